"""The outputs of systems, several a prompt, each with whether it succeeds and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from echo_hf.errors import ScoreError, unknown
from echo_hf.scores.rating_table import (
    DIGEST,
    OPTIONAL,
    REQUIRED,
    SPLIT,
    Bools,
    Floats,
    IgnoredRating,
    Integers,
    check_finite,
    check_once,
    divide,
    encode,
    find_scalar_judges,
    rank_scalars,
    read_columns,
)
from echo_hf.scores.votes import TIE_WIDTH
from echo_hf.scores.win_rate import warn_mixed_splits
from echo_hf.tables import DRAW, DRAW_COLUMN, OUTPUTS, RATINGS, Outcome, Table

_TEXT, _VALUE = (RATINGS.columns[name] for name in ("system", "rating"))
METRIC_VALUES = Table(
    "values",
    "a metric's value for one output",
    (*OUTPUTS.key, "metric"),
    {**dict.fromkeys(("sample_id", "system", "metric"), _TEXT), DRAW: DRAW_COLUMN, "value": _VALUE},
)
OUTPUT_FACTS = (DRAW, "stage", "cost_usd", "latency_s", DIGEST)
CHECK_MARK = "@"  # in the name of a check, NAME@VERSION, and of no other rubric
REQUEST_STAGE = "request"  # of `outputs.stage`: the provider's own error
NO_TRY = (Outcome.UNSUPPORTED.value, Outcome.RETIRED.value)
SuccessRule = Literal["rating", "checks"] | Mapping[str, float]


class _Judged(NamedTuple):
    """Values of outputs by criterion and judge, one a row."""

    criterion: Integers
    judge: Integers
    output: Integers
    repeat: Integers
    value: Floats

    def select(self, rows: Bools) -> _Judged:
        return self._replace(**{name: getattr(self, name)[rows] for name in self._fields})

    def average(self, *shape: int) -> Floats:
        """Return the mean value [criterion, judge, output], NaN where there is none."""
        cells = np.ravel_multi_index((self.criterion, self.judge, self.output), shape)
        size = int(np.prod(shape))
        sums, counts = np.bincount(cells, self.value, size), np.bincount(cells, minlength=size)
        return divide(sums, counts).reshape(shape)


class _Bounds(NamedTuple):
    """Bounds that a success reaches, by criterion; the sign is -1 where lower is better.

    Where it `needs_all`, an output that reaches all but has no value of some is not judged.
    """

    limits: Floats
    signs: Floats
    needs_all: bool = False

    def decide(self, means: Floats) -> Floats:
        """Return whether each output reaches all bounds that it was judged by, NaN where none."""
        margins = (means - self.limits[:, None, None]) * self.signs[:, None, None]
        judges = (~np.isnan(margins)).sum(axis=1)
        passes = 2 * (margins >= -TIE_WIDTH).sum(axis=1) > judges
        is_success = (passes | (judges == 0)).all(axis=0)
        is_judged = judges.any(axis=0)
        if self.needs_all:
            is_judged &= ~is_success | judges.all(axis=0)
        return np.where(is_judged, is_success, np.nan)


class _Facts(NamedTuple):
    """Outcomes and costs of outputs; `cell` is the place of system and sample among all."""

    cell: Integers
    outcome: NDArray[Any]
    stage: NDArray[Any]
    digest: NDArray[Any]
    dollars: Floats
    seconds: Floats

    @property
    def is_try(self) -> Bools:
        is_failed = (self.outcome == Outcome.FAILED.value) & (self.stage == REQUEST_STAGE)
        is_unbilled = is_failed & ~(self.dollars > 0)
        return np.asarray(~np.isin(self.outcome, NO_TRY) & ~is_unbilled, dtype=bool)

    @property
    def has_image(self) -> Bools:
        return np.asarray(self.outcome == Outcome.OK.value, dtype=bool)


@dataclass(frozen=True)
class DrawnOutputs:
    """All outputs, with 1 or 0 for their success, NaN where nobody judged one or it is no try.

    `looks` [repeat, output] is the success by that look of each judge alone, `ratings` are [judge,
    output].
    """

    systems: tuple[str, ...]
    samples: tuple[str, ...]
    judges: tuple[str, ...]
    facts: _Facts
    success: Floats
    looks: Floats
    ratings: Floats
    ignored: Mapping[IgnoredRating, int]

    def sum_up(self, chosen: Bools, weights: Floats | None = None) -> Floats:
        """Count chosen outputs, or sum up their weights, for each system and sample."""
        shape = len(self.systems), len(self.samples)
        own = None if weights is None else weights[chosen]
        sums = np.bincount(self.facts.cell[chosen], own, shape[0] * shape[1])
        return sums.reshape(shape).astype(float)


def read_drawn_outputs(
    ratings: Any, outputs: Any, values: Any, success: SuccessRule, threshold: float, rubric: str
) -> DrawnOutputs:
    rated = read_columns(ratings, RATINGS, REQUIRED, OPTIONAL)
    check_finite(rated)
    if SPLIT in rated.column_names:
        warn_mixed_splits(rated[SPLIT].unique().drop_null().to_pylist(), stacklevel=4)
    tables = {"ratings": rated}
    if outputs is not None:
        required: tuple[str, ...] = ("sample_id", "system", "outcome")
        tables["outputs"] = read_columns(outputs, OUTPUTS, required, OUTPUT_FACTS)
    if not isinstance(success, str):
        required = ("sample_id", "system", "metric", "value")
        tables["values"] = read_columns(values, METRIC_VALUES, required, (DRAW,))
    samples, sample = encode(*(table["sample_id"] for table in tables.values()))
    systems, system = encode(*(table["system"] for table in tables.values()))
    draws = [_read_column(table, DRAW, 0) for table in tables.values()]
    numbers = np.unique(np.concatenate(draws))
    if numbers.min(initial=0) < 0:
        raise ScoreError(f"draw is {int(numbers[0])!r}: expected the number of an output, from 0")
    keys = {
        name: (of_system * len(samples) + of_sample) * len(numbers) + np.searchsorted(numbers, draw)
        for name, of_system, of_sample, draw in zip(tables, system, sample, draws, strict=True)
    }
    own = np.unique(keys["outputs"] if "outputs" in keys else np.concatenate([*keys.values()]))
    facts = _read_facts(tables.get("outputs"), keys.get("outputs"), own // max(len(numbers), 1))
    # At -1 is what no output has.
    own, has_image = np.append(own, -1), np.append(facts.has_image, False)
    digests = np.array([*facts.digest, None], dtype=object)
    places = {name: np.searchsorted(own[:-1], key) for name, key in keys.items()}
    places = {name: np.where(own[at] == keys[name], at, -1) for name, at in places.items()}

    same = pa.chunked_array([pa.repeat(rubric, rated.num_rows)])
    kinds, (kind,) = encode(rated["rubric"] if "rubric" in rated.column_names else same)
    judges, (judge,) = encode(rated["judge"])
    repeats, repeat = np.unique(_read_column(rated, "repeat", 0), return_inverse=True)
    cells = (keys["ratings"] * (len(kinds) + 1) + kind) * len(judges) + judge
    check_once(RATINGS, rated, cells * len(repeats) + repeat)
    is_rubric, is_check = (
        np.array([*flags, False])[kind]
        for flags in ([name == rubric for name in kinds], [CHECK_MARK in name for name in kinds])
    )
    is_check &= success == "checks"
    if success == "checks" and not is_check.any():
        raise ScoreError(
            "ratings: none is by a check, NAME@VERSION: expected answers to kept checks, as judges "
            "give them, or success='rating'"
        )
    if success == "rating" and rated.num_rows and not is_rubric.any():
        raise ScoreError(f"ratings: {unknown('rubric', rubric, kinds)}")

    output, value = places["ratings"], rated["rating"].to_numpy()
    pairs = zip(_read_column(rated, DIGEST, None), digests[output], strict=True)
    is_stale = [None not in pair and pair[0] != pair[1] for pair in pairs]
    left = {
        IgnoredRating.OTHER_RUBRIC: ~is_rubric & ~is_check,
        IgnoredRating.NO_OUTPUT: output < 0,
        IgnoredRating.OTHER_DIGEST: np.array(is_stale, dtype=bool),
        IgnoredRating.NO_IMAGE: ~has_image[output] & ~np.isnan(value),
    }
    scalar_judges = find_scalar_judges(rated)
    is_scalar = np.array([name in scalar_judges for name in judges], dtype=bool)[judge]
    if success == "rating" and is_scalar.any():
        if is_scalar[is_rubric].all():
            scalar_names = ", ".join(map(repr, sorted(scalar_judges)))
            raise ScoreError(
                f"success is 'rating', and {scalar_names} gives numbers without a scale, to which "
                "no threshold can be held: expected checks, bounds of metrics, or another judge"
            )
        left[IgnoredRating.NO_SCALE] = is_rubric & is_scalar
    ignored, is_used = dict[IgnoredRating, int](), np.ones(len(output), dtype=bool)
    for reason, rows in left.items():
        if count := int((is_used & rows).sum()):
            ignored[reason] = count
        is_used &= ~rows
    judged = _Judged(kind, judge, output, repeat, value)
    by_rubric = judged.select(is_used & is_rubric & ~np.isnan(value))
    by_rubric = by_rubric._replace(criterion=np.zeros_like(by_rubric.criterion))
    if success == "rating":
        judged, bounds = by_rubric, _Bounds(np.array([threshold]), np.ones(1))
    elif success == "checks":
        judged = judged.select(is_used & is_check & ~np.isnan(value))
        # No and yes are 0 and 1, and half of a judge's repeats is no pass.
        limits = np.full(len(kinds), 0.5 - 2 * TIE_WIDTH)
        bounds = _Bounds(limits, np.full(len(kinds), -1.0))
    else:
        judged, bounds = _read_values(tables["values"], keys["values"], places["values"], success)
        judged = judged.select(has_image[judged.output])
    shape = max(len(judges), 1), len(facts.cell)
    looks = [judged] + [judged.select(judged.repeat == at) for at in range(len(repeats))]
    results = np.stack([bounds.decide(each.average(len(bounds.limits), *shape)) for each in looks])
    results = np.where(facts.has_image, results, 0.0)
    results = np.where(facts.is_try, results, np.nan)
    average = by_rubric.average(1, *shape)[0]
    for at in np.flatnonzero(np.isin(judges, sorted(scalar_judges))):
        average[at] = rank_scalars(average[at])
    names = systems, samples, judges
    return DrawnOutputs(*names, facts, results[0], results[1:], average, ignored)


def _read_column(rows: pa.Table, name: str, default: Any) -> NDArray[Any]:
    if name not in rows.column_names:
        return np.full(rows.num_rows, default)
    column = rows[name] if default is None else rows[name].fill_null(default)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _read_facts(rows: pa.Table | None, keys: Integers | None, cell: Integers) -> _Facts:
    """Read outputs in the order of their keys; without a table all have an image."""
    if rows is None or keys is None:
        outcome, nothing = (
            np.full(len(cell), Outcome.OK.value, dtype=object),
            np.full(len(cell), None),
        )
        return _Facts(cell, outcome, nothing, nothing, *np.full((2, len(cell)), np.nan))
    check_once(OUTPUTS, rows, keys)
    rows = rows.take(pa.array(np.argsort(keys)))
    outcome, outcomes = rows["outcome"].to_numpy(), [name.value for name in Outcome]
    if others := {*outcome}.difference(outcomes):
        raise ScoreError(f"outputs: {unknown('outcome', min(others), outcomes)}")
    numbers = [_read_column(rows, name, np.nan).astype(float) for name in OUTPUT_FACTS[2:4]]
    for name, column in zip(OUTPUT_FACTS[2:4], numbers, strict=True):
        if (wrong := column[(column < 0) | np.isinf(column)]).size:
            raise ScoreError(f"outputs: {name} is {float(wrong[0])!r}: expected 0 or more, or null")
    stage, digest = (_read_column(rows, name, None) for name in ("stage", DIGEST))
    dollars, seconds = numbers
    # What ended without an image and without a price was not billed.
    dollars = np.where((outcome != Outcome.OK.value) & np.isnan(dollars), 0.0, dollars)
    return _Facts(cell, outcome, stage, digest, dollars, seconds)


def _read_values(
    rows: pa.Table, keys: Integers, output: Integers, success: Mapping[str, float]
) -> tuple[_Judged, _Bounds]:
    # A metric says what is better; `metrics` stands on `scores` in turn.
    from echo_hf.metrics import registered

    names, (metric,) = encode(rows["metric"])
    check_once(METRIC_VALUES, rows, keys * len(names) + metric)
    signs, metrics = list[float](), registered()
    for name, limit in success.items():
        if name not in names or name not in metrics:
            raise ScoreError(f"success: {unknown('metric', name, {*names}.intersection(metrics))}")
        if isinstance(limit, bool) or not np.isfinite(limit):
            raise ScoreError(f"success: {name} is {limit!r}: expected a bound of its values")
        signs.append(1.0 if metrics[name].better == "higher" else -1.0)
    order = {name: number for number, name in enumerate(success)}
    criterion = np.array([order.get(name, -1) for name in names], dtype=np.int64)[metric]
    value, zeros = rows["value"].to_numpy(), np.zeros(len(output), dtype=np.int64)
    judged = _Judged(criterion, zeros, output, zeros, value)
    judged = judged.select((criterion >= 0) & (output >= 0) & ~np.isnan(value))
    limits = np.array([*success.values()], dtype=float)
    return judged, _Bounds(limits, np.array(signs), needs_all=True)
