"""Ratings as one array, with what is missing marked, and what does not count named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import IgnoredRating, Outcome
from echo_hf.scores.columns import Bools, Floats, Integers, divided, encoded, read_columns
from echo_hf.tables import OUTPUTS, RATINGS

LOST = (Outcome.REFUSED.value, Outcome.NO_IMAGE.value)
READ = ("sample_id", "system", "outcome")
DIGEST = "sample_digest"


@dataclass(frozen=True)
class RatedOutputs:
    rows: pa.Table

    def without_stale(self, ratings: pa.Table, ignored: dict[IgnoredRating, pa.Table]) -> pa.Table:
        output = self._output_of(ratings)
        known = output >= 0
        stale = self._differ(ratings, output)
        ok = pc.equal(self.rows["outcome"], Outcome.OK.value).to_numpy()
        made = np.append(ok, False)[output]
        unseen = known & ~stale & ~made & ~np.isnan(ratings["rating"].to_numpy())
        for reason, rows in (
            (IgnoredRating.NO_OUTPUT, ~known),
            (IgnoredRating.OTHER_DIGEST, stale),
            (IgnoredRating.NO_IMAGE, unseen),
        ):
            ignored[reason] = ratings.filter(pa.array(rows))
        return ratings.filter(pa.array(known & ~stale & ~unseen))

    def lost(self, systems: Sequence[str], samples: Sequence[str]) -> Bools:
        """What a system refused, or answered without an image."""
        lost = np.zeros((len(systems), len(samples)), dtype=bool)
        without = pc.is_in(self.rows["outcome"], value_set=pa.array(LOST)).to_numpy()
        _, (system,) = encoded(self.rows["system"])
        _, (sample,) = encoded(self.rows["sample_id"])
        lost[system[without], sample[without]] = True
        return lost

    def _output_of(self, ratings: pa.Table) -> Integers:
        """Row of the output that each rating is of, -1 where there is none."""
        samples, (rated, made) = encoded(ratings["sample_id"], self.rows["sample_id"])
        systems, (rated_system, made_system) = encoded(ratings["system"], self.rows["system"])
        position = np.full((len(systems), len(samples)), -1)
        position[made_system, made] = np.arange(self.rows.num_rows)
        return position[rated_system, rated]

    def _differ(self, ratings: pa.Table, output: Integers) -> Bools:
        if DIGEST not in ratings.column_names or DIGEST not in self.rows.column_names:
            return np.zeros(len(output), dtype=bool)
        _, (rated, made) = encoded(ratings[DIGEST], self.rows[DIGEST])
        made = np.append(made, -1)[output]
        return np.asarray((rated >= 0) & (made >= 0) & (rated != made))


def read_outputs(outputs: Any) -> RatedOutputs:
    rows = read_columns(outputs, OUTPUTS, READ, (DIGEST,))
    known = [outcome.value for outcome in Outcome]
    for outcome in rows["outcome"].unique().to_pylist():
        if outcome not in known:
            raise ScoreError(f"outputs: {unknown('outcome', outcome, known)}")
    keys = rows.group_by(["sample_id", "system"], use_threads=False).aggregate([([], "count_all")])
    twice = keys.filter(pc.greater(keys["count_all"], 1)).to_pylist()
    if twice:
        sample, system, count = (twice[0][name] for name in ("sample_id", "system", "count_all"))
        raise ScoreError(
            f"outputs: system {system!r} has {count} outputs for sample {sample!r}: expected one"
        )
    return RatedOutputs(rows)


RUBRIC = "overall"
REQUIRED = ("sample_id", "system", "judge", "rating")
OPTIONAL = ("rubric", "repeat", "sample_digest")
Key = tuple[str, str, str]
Ignored = dict[IgnoredRating, pa.Table]


@dataclass(frozen=True)
class RatingTable:
    """Every judge's rating of every system's output for every sample."""

    samples: tuple[str, ...]
    systems: tuple[str, ...]
    judges: tuple[str, ...]
    ratings: Floats
    lost: Bools | None
    ignored: Mapping[IgnoredRating, tuple[Key, ...]]


def read_ratings(
    ratings: Any,
    outputs: Any = None,
    *,
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
) -> RatingTable:
    """Reads ratings; with outputs given, those of other outputs are left out and named."""
    ignored: Ignored = {}
    rows = rows_of_rubric(ratings, rubric, ignored)
    seen = None if outputs is None else read_outputs(outputs)
    order = _in_order(sorted(rows["judge"].unique().to_pylist()), judges)
    if seen is not None:
        rows = seen.without_stale(rows, ignored)
    return _table(rows, seen, order, ignored)


def rows_of_rubric(ratings: Any, rubric: str, ignored: Ignored) -> pa.Table:
    """The ratings by one rubric, one row each, with the columns that scores are made of."""
    rows = read_columns(ratings, RATINGS, REQUIRED, OPTIONAL)
    _check_finite(rows)
    return _of_rubric(rows, rubric, ignored)


def _check_finite(rows: pa.Table) -> None:
    infinite = np.isinf(rows["rating"].to_numpy())
    if infinite.any():
        row = rows.slice(int(np.argmax(infinite)), 1).to_pylist()[0]
        raise ScoreError(
            f"ratings: {row['rating']!r} is the rating of {_named(row)}: expected a finite number, "
            "or null where there is none"
        )


def _of_rubric(rows: pa.Table, rubric: str, ignored: Ignored) -> pa.Table:
    if "rubric" not in rows.column_names or not rows.num_rows:
        return rows
    asked = pc.equal(rows["rubric"], rubric)
    if not pc.any(asked).as_py():
        known = rows["rubric"].unique().to_pylist()
        raise ScoreError(f"ratings: {unknown('rubric', rubric, known)}")
    ignored[IgnoredRating.OTHER_RUBRIC] = rows.filter(pc.invert(asked))
    return rows.filter(asked)


def _in_order(known: list[str], asked: Sequence[str] | None) -> tuple[str, ...]:
    if asked is not None and sorted(asked) != known:
        raise ScoreError(
            f"judges is {list(asked)!r}: expected each judge of the ratings once, in the order "
            f"that you mean, of {known!r}"
        )
    return tuple(known if asked is None else asked)


def _table(
    rows: pa.Table, seen: RatedOutputs | None, judges: tuple[str, ...], ignored: Ignored
) -> RatingTable:
    known = [] if seen is None else [seen.rows]
    samples, (sample, *_) = encoded(*(table["sample_id"] for table in (rows, *known)))
    systems, (system, *_) = encoded(*(table["system"] for table in (rows, *known)))
    rated_by, (position,) = encoded(rows["judge"])
    judge = np.array([judges.index(name) for name in rated_by], dtype=np.int64)[position]
    shape = len(judges), len(systems), len(samples)
    cells = (judge * len(systems) + system) * len(samples) + sample
    _check_once(rows, cells)
    return RatingTable(
        samples,
        systems,
        judges,
        _means(rows["rating"].to_numpy(), cells, shape),
        None if seen is None else seen.lost(systems, samples),
        {reason: _keys(table) for reason, table in ignored.items() if table.num_rows},
    )


def _check_once(rows: pa.Table, cells: Integers) -> None:
    if "repeat" in rows.column_names:
        repeats, repeat = np.unique(rows["repeat"].to_numpy(), return_inverse=True)
        cells = cells * len(repeats) + repeat
    ordered = np.sort(cells)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        at = int(np.flatnonzero(cells == twice[0])[1])
        raise ScoreError(
            f"ratings: {_named(rows.slice(at, 1).to_pylist()[0])} is rated twice: expected one row "
            "for each sample, system, judge, rubric and repeat"
        )


def _means(ratings: Floats, cells: Integers, shape: tuple[int, int, int]) -> Floats:
    there, size = ~np.isnan(ratings), int(np.prod(shape))
    counts = np.bincount(cells[there], minlength=size)
    sums = np.bincount(cells[there], weights=ratings[there], minlength=size)
    return divided(sums, counts).reshape(shape)


def _named(row: Mapping[str, Any]) -> str:
    keys = ("sample_id", "system", "judge", "rubric", "repeat")
    return ", ".join(f"{key} {row[key]!r}" for key in keys if key in row)


def _keys(rows: pa.Table) -> tuple[Key, ...]:
    columns = (rows[name].to_pylist() for name in ("sample_id", "system", "judge"))
    return tuple(sorted(zip(*columns, strict=True)))
