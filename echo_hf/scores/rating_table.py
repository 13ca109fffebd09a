"""Ratings as one array, with what is missing marked, and what does not count named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import ArrayLike, NDArray

from echo_hf.errors import ScoreError, TableError, unknown
from echo_hf.reasons import IgnoredRating, Outcome, Unrated
from echo_hf.tables import OUTPUTS, RATINGS, Table, arrow_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
# How often a sample is drawn, and sums of halves over samples: exact below 2**23 samples.
Weights = NDArray[np.float32]

FORMS = "a datasets.Dataset, a pyarrow Table, a data frame, a list of dicts or a dict of columns"
TEXT = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
# By declared type what an error calls it, and what can be cast to it.
FITTING = {
    "string": ("text", TEXT),
    "double": ("numbers", (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
    "int64": ("whole numbers", (pa.types.is_integer,)),
    "bool": ("true or false", (pa.types.is_boolean,)),
}


def divided(part: ArrayLike, whole: ArrayLike) -> Floats:
    """One array by another, and NaN where there is nothing to divide by."""
    parts, wholes = np.broadcast_arrays(part, whole)
    found: Floats = np.full(parts.shape, np.nan)
    np.divide(parts, wholes, out=found, where=wholes > 0)
    return found


def read_columns(
    source: Any, table: Table, required: Sequence[str], optional: Sequence[str] = ()
) -> pa.Table:
    """The columns of a table that a measure reads, cast to their declared types."""
    try:
        given = _as_arrow(source, table.name, required, (*required, *optional))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise TableError(f"{table.name}: not a table with one type a column: {reason}") from error
    columns = {}
    for name in given.column_names:
        found, wanted = given[name].type, table.schema.field(name).type
        kind = found.value_type if pa.types.is_dictionary(found) else found
        expected, fitting = FITTING[str(wanted)]
        if not any(fits(kind) for fits in (*fitting, pa.types.is_null)):
            raise TableError(
                f"{table.name}: column {name!r} has type {str(found)!r}: expected {expected}"
            )
        columns[name] = given[name].cast(wanted)
        keyed = name in table.key or (name == OUTCOME and name in required)
        if columns[name].null_count and keyed:
            row = pc.index(columns[name].is_null(), True).as_py()
            raise TableError(f"{table.name}: {name!r} is null in row {row}: expected a value")
    return pa.table(columns)


def _as_arrow(source: Any, table: str, required: Sequence[str], wanted: Sequence[str]) -> pa.Table:
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, Dataset):
        source = pa.table(source)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        for number, row in enumerate(source):
            if not isinstance(row, Mapping) or not row.keys() >= {*required}:
                raise TableError(
                    f"{table}: row {number} is {row!r}: expected a dict with {', '.join(required)}"
                )
        there = {*required}.union(*source)
        source = {name: [row.get(name) for row in source] for name in wanted if name in there}
    if not isinstance(source, Dataset | pa.Table | Mapping):
        raise TableError(f"{table}: {type(source).__name__!r} is not a table: expected {FORMS}")
    names = list(source) if isinstance(source, Mapping) else source.column_names
    if missing := [name for name in required if name not in names]:
        raise TableError(
            f"{table}: no column {missing[0]!r} among {names!r}: expected {', '.join(required)}"
        )
    kept = [name for name in wanted if name in names]
    if isinstance(source, Dataset):
        return arrow_rows(source, kept)
    return pa.table({name: source[name] for name in kept})


def encoded(*columns: pa.ChunkedArray) -> tuple[tuple[str, ...], list[Integers]]:
    """Distinct values of text columns, and each column as positions among them; null is -1."""
    chunks = [column.unique() for column in columns]
    values = sorted(pa.chunked_array(chunks, pa.string()).unique().drop_null().to_pylist())
    known = pa.array(values, pa.string())
    codes = [pc.index_in(column, known).fill_null(-1).cast(pa.int64()) for column in columns]
    return tuple(values), [np.asarray(one.to_numpy()) for one in codes]


def aligned(
    values: Floats,
    systems: Sequence[str],
    samples: Sequence[str],
    wanted_systems: Sequence[str],
    wanted_samples: Sequence[str],
) -> Floats:
    """Values [..., system, sample] of other systems and samples, NaN where there are none."""
    # One more at -1, of what nobody has.
    around = [(0, 0)] * (values.ndim - 2) + [(0, 1), (0, 1)]
    values = np.pad(values, around, constant_values=np.nan)
    for axis, names, wanted in ((-2, systems, wanted_systems), (-1, samples, wanted_samples)):
        places = {name: at for at, name in enumerate(names)}
        at = np.array([places.get(name, -1) for name in wanted], dtype=np.int64)
        values = values.take(at, axis=axis)
    return values


def named_key(row: Mapping[str, Any], keys: Iterable[str]) -> str:
    return ", ".join(f"{key} {row[key]!r}" for key in keys if key in row)


def check_once(table: Table, rows: pa.Table, cells: Integers) -> None:
    if len(np.unique(cells)) < len(cells):
        _, first = np.unique(cells, return_index=True)
        again = np.delete(np.arange(len(cells)), first)[0]
        key = named_key(rows.slice(int(again), 1).to_pylist()[0], table.key)
        raise ScoreError(f"{table.name}: {key} is there twice: expected one row for each")


RUBRIC = "overall"
REQUIRED = ("sample_id", "system", "judge", "rating")
DIGEST, OUTCOME, SPLIT = "sample_digest", "outcome", "split"
OPTIONAL = ("rubric", "repeat", DIGEST, OUTCOME, SPLIT)
LOST = (Outcome.REFUSED.value, Outcome.NO_IMAGE.value)
Key = tuple[str, str, str]
Ignored = dict[IgnoredRating, pa.Table]


@dataclass(frozen=True)
class RatingTable:
    """Every judge's rating of every system's output for every sample.

    `ratings` is [judge, system, sample], NaN where there is none; `lost` is what was refused or has
    no image [system, sample], null without outputs; `ignored` are keys of rows that do not count.
    `splits` are those that the samples are of, where the ratings say it.
    `not_asked` is what a judge was not asked on purpose [judge, system, sample], null for nothing.
    `made` is what figures share that are made of the same table, such as votes.
    """

    samples: tuple[str, ...]
    systems: tuple[str, ...]
    judges: tuple[str, ...]
    ratings: Floats
    lost: Bools | None
    ignored: Mapping[IgnoredRating, tuple[Key, ...]]
    not_asked: Bools | None = None
    splits: tuple[str, ...] = ()
    made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def part(self) -> RatingTable:
        """The samples of which all judges were asked about all systems."""
        if self.not_asked is None:
            return self
        if "part" not in self.made:
            self.made["part"] = self.of(~self.not_asked.any(axis=(0, 1)))
        return self.made["part"]  # type: ignore[no-any-return]

    @property
    def of_all(self) -> RatingTable:
        """The ratings of the judges who were asked about everything."""
        return self if self.not_asked is None else self.by(~self.not_asked.any(axis=(1, 2)))

    @property
    def is_stopped(self) -> bool:
        """Whether there are outputs that no judge was asked about."""
        return self.not_asked is not None and bool(self.not_asked.all(axis=0).any())

    def of(self, samples: Any) -> RatingTable:
        """The ratings of some samples."""
        names = tuple(np.array(self.samples, dtype=object)[samples])
        lost = None if self.lost is None else self.lost[:, samples]
        skipped = None if self.not_asked is None else _any(self.not_asked[..., samples])
        ratings = self.ratings[..., samples]
        return replace(self, samples=names, ratings=ratings, lost=lost, not_asked=skipped)

    def by(self, judges: Any) -> RatingTable:
        """The ratings of some judges."""
        chosen = np.flatnonzero(judges)
        names = tuple(self.judges[at] for at in chosen)
        skipped = None if self.not_asked is None else _any(self.not_asked[chosen])
        return replace(self, judges=names, ratings=self.ratings[chosen], not_asked=skipped)


def _any(not_asked: Bools) -> Bools | None:
    return not_asked if not_asked.any() else None


def read_ratings(
    ratings: Any, outputs: Any = None, *, rubric: str = RUBRIC, judges: Sequence[str] | None = None
) -> RatingTable:
    """Reads ratings; with outputs given, those of other outputs are left out and named."""
    ignored: Ignored = {}
    rows = rows_of_rubric(ratings, rubric, ignored)
    known = sorted(rows["judge"].unique().to_pylist())
    if judges is not None and sorted(judges) != known:
        raise ScoreError(
            f"judges is {list(judges)!r}: expected each judge of the ratings once, in the order "
            f"that you mean, of {known!r}"
        )
    order = tuple(known if judges is None else judges)
    made = None if outputs is None else read_outputs(outputs)
    if made is not None:
        rows = _of_outputs(rows, made, ignored)
    tables = (rows,) if made is None else (rows, made)
    samples, (sample, *made_sample) = encoded(*(table["sample_id"] for table in tables))
    systems, (system, *made_system) = encoded(*(table["system"] for table in tables))
    lost = None
    if made is not None:
        lost = np.zeros((len(systems), len(samples)), dtype=bool)
        without = pc.is_in(made["outcome"], value_set=pa.array(LOST)).to_numpy()
        lost[made_system[0][without], made_sample[0][without]] = True
    rated_by, (position,) = encoded(rows["judge"])
    judge = np.array([order.index(name) for name in rated_by], dtype=np.int64)[position]
    cells = (judge * len(systems) + system) * len(samples) + sample
    once = cells
    if "repeat" in rows.column_names:
        repeats, repeat = np.unique(rows["repeat"].to_numpy(), return_inverse=True)
        once = cells * len(repeats) + repeat
    check_once(RATINGS, rows, once)
    given = rows["rating"].to_numpy()
    there, shape = ~np.isnan(given), (len(order), len(systems), len(samples))
    counts = np.bincount(cells[there], minlength=int(np.prod(shape)))
    sums = np.bincount(cells[there], weights=given[there], minlength=int(np.prod(shape)))
    keys = {
        reason: tuple(sorted(zip(*(rows[name].to_pylist() for name in REQUIRED[:3]), strict=True)))
        for reason, rows in ignored.items()
        if rows.num_rows
    }
    given = divided(sums, counts).reshape(shape)
    not_asked = None
    if OUTCOME in rows.column_names:
        skipped = pc.equal(rows[OUTCOME], Unrated.NOT_NEEDED.value).fill_null(False).to_numpy()
        not_asked = np.zeros(shape, dtype=bool)
        not_asked.flat[cells[skipped & ~there]] = True
        not_asked = _any(not_asked & np.isnan(given))
    splits = rows[SPLIT].unique().drop_null().to_pylist() if SPLIT in rows.column_names else ()
    return RatingTable(samples, systems, order, given, lost, keys, not_asked, tuple(sorted(splits)))


def rows_of_rubric(ratings: Any, rubric: str, ignored: Ignored) -> pa.Table:
    """The ratings by one rubric, one row each, with the columns that scores are made of."""
    rows = read_columns(ratings, RATINGS, REQUIRED, OPTIONAL)
    infinite = np.isinf(rows["rating"].to_numpy())
    if infinite.any():
        row = rows.slice(int(np.argmax(infinite)), 1).to_pylist()[0]
        raise ScoreError(
            f"ratings: {row['rating']!r} is the rating of {named_key(row, RATINGS.key)}: expected "
            "a finite number, or null where there is none"
        )
    if "rubric" not in rows.column_names or not rows.num_rows:
        return rows
    asked = pc.equal(rows["rubric"], rubric)
    if not pc.any(asked).as_py():
        raise ScoreError(
            f"ratings: {unknown('rubric', rubric, rows['rubric'].unique().to_pylist())}"
        )
    ignored[IgnoredRating.OTHER_RUBRIC] = rows.filter(pc.invert(asked))
    return rows.filter(asked)


def read_outputs(outputs: Any) -> pa.Table:
    """What systems made: one row for each system and sample."""
    rows = read_columns(outputs, OUTPUTS, ("sample_id", "system", "outcome"), (DIGEST,))
    known = [outcome.value for outcome in Outcome]
    for outcome in rows["outcome"].unique().to_pylist():
        if outcome not in known:
            raise ScoreError(f"outputs: {unknown('outcome', outcome, known)}")
    keys = rows.group_by(["sample_id", "system"], use_threads=False).aggregate([([], "count_all")])
    for one in keys.filter(pc.greater(keys["count_all"], 1)).to_pylist():
        raise ScoreError(
            f"outputs: system {one['system']!r} has {one['count_all']} outputs for sample "
            f"{one['sample_id']!r}: expected one"
        )
    return rows


def _of_outputs(ratings: pa.Table, made: pa.Table, ignored: Ignored) -> pa.Table:
    """The ratings of images that are there, and as they were rated."""
    samples, (rated, made_sample) = encoded(ratings["sample_id"], made["sample_id"])
    systems, (rated_system, made_system) = encoded(ratings["system"], made["system"])
    position = np.full((len(systems), len(samples)), -1)
    position[made_system, made_sample] = np.arange(made.num_rows)
    output = position[rated_system, rated]
    known, stale = output >= 0, np.zeros(len(output), dtype=bool)
    if DIGEST in ratings.column_names and DIGEST in made.column_names:
        _, (seen, now) = encoded(ratings[DIGEST], made[DIGEST])
        now = np.append(now, -1)[output]
        stale = (seen >= 0) & (now >= 0) & (seen != now)
    has_image = np.append(pc.equal(made["outcome"], Outcome.OK.value).to_numpy(), False)[output]
    unseen = known & ~stale & ~has_image & ~np.isnan(ratings["rating"].to_numpy())
    for reason, rows in (
        (IgnoredRating.NO_OUTPUT, ~known),
        (IgnoredRating.OTHER_DIGEST, stale),
        (IgnoredRating.NO_IMAGE, unseen),
    ):
        ignored[reason] = ratings.filter(pa.array(rows))
    return ratings.filter(pa.array(known & ~stale & ~unseen))
