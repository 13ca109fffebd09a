"""Ratings as one array [judge, system, sample], and the rows that do not count with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import ArrayLike, NDArray

from echo_hf._infra.bootstrap import Bools as Bools
from echo_hf._infra.bootstrap import Floats as Floats
from echo_hf._infra.bootstrap import Integers as Integers
from echo_hf.config.systems import DrawChoice as DrawChoice
from echo_hf.errors import ScoreError, TableError, unknown
from echo_hf.reasons import Fact, Reason
from echo_hf.tables import (
    DRAW,
    OUTPUTS,
    RATINGS,
    Outcome,
    Table,
    arrow_rows,
    fill_draws,
    select_first_draws,
)


class IgnoredRating(Reason):
    """Why a rating does not count; it is named and counted in the result."""

    OTHER_RUBRIC = "other_rubric", "a rating by another rubric; text_rendering has its own figures"
    NO_OUTPUT = "no_output", "the table of outputs has no such sample and system"
    NO_IMAGE = "no_picture", "the table of outputs says that there is no image to rate"
    OTHER_DIGEST = "other_digest", "the judge saw another version of the sample than the system"
    NO_SCALE = "no_scale", "a number without a scale, to which no threshold can be held"


class Unrated(Reason):
    """Why a judge that answered, or could not be asked, gave no rating: values of `outcome`."""

    NO_RATING = "no_rating", "the answer holds no rating in the form that was asked for"
    BEYOND_SCALE = "beyond_scale", "the rating is not one of the judge's scale"
    UNSHOWABLE = "unshowable", "the output or an input cannot be shown as an image"
    NO_CHOICE = "no_choice", "the answer names none of the two, and no tie, in the form asked for"
    AMBIGUOUS = "ambiguous", "the answer holds ratings that differ, and which one counts is open"
    TWO_CHOICES = "two_choices", "the answer makes more than one choice in the form asked for"
    NO_FINITE_NUMBER = "no_finite_number", "a number without an end, or none that can be ranked"
    NOT_NEEDED = "not_needed", "not asked on purpose: a part of the samples tells enough"


Fact.UNUSABLE.mark(Unrated.NO_RATING, Unrated.BEYOND_SCALE, Unrated.AMBIGUOUS)
Fact.UNUSABLE.mark(Unrated.NO_CHOICE, Unrated.TWO_CHOICES, Unrated.NO_FINITE_NUMBER)


# How often a sample is drawn, and sums of halves over samples: exact below 2**23 samples.
Weights = NDArray[np.float32]

TABLE_FORMS = (
    "a datasets.Dataset, a pyarrow Table, a data frame, a list of dicts or a dict of columns"
)
IS_TEXT = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
# By declared type what an error calls it, and what can be cast to it.
ACCEPTED_TYPES = {
    "string": ("text", IS_TEXT),
    "double": ("numbers", (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
    "int64": ("whole numbers", (pa.types.is_integer,)),
    "bool": ("true or false", (pa.types.is_boolean,)),
}
RUBRIC = "overall"
REQUIRED = ("sample_id", "system", "judge", "rating")
DIGEST, OUTCOME, SPLIT, PROVENANCE = "sample_digest", "outcome", "split", "provenance"
OPTIONAL = ("rubric", "repeat", DRAW, DIGEST, OUTCOME, SPLIT, PROVENANCE)
SCALAR_FORM = '"form": "scalar"'  # as `judge` writes it into a provenance
LOST_OUTCOMES = (Outcome.REFUSED.value, Outcome.NO_IMAGE.value)


def divide(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """Divide arrays, with NaN where the denominator is 0."""
    numerators, denominators = np.broadcast_arrays(numerator, denominator)
    quotients: Floats = np.full(numerators.shape, np.nan)
    np.divide(numerators, denominators, out=quotients, where=denominators > 0)
    return quotients


def read_columns(
    source: Any, table: Table, required: Sequence[str], optional: Sequence[str] = ()
) -> pa.Table:
    """Read the columns of a table that a measure needs, cast to their declared types."""
    try:
        arrow_table = _as_arrow(source, table.name, required, (*required, *optional))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise TableError(f"{table.name}: not a table with one type a column: {reason}") from error
    columns = {}
    for name in arrow_table.column_names:
        actual_type, declared_type = arrow_table[name].type, table.schema.field(name).type
        kind = actual_type.value_type if pa.types.is_dictionary(actual_type) else actual_type
        expected, accepted = ACCEPTED_TYPES[str(declared_type)]
        if not any(fits(kind) for fits in (*accepted, pa.types.is_null)):
            raise TableError(
                f"{table.name}: column {name!r} has type {str(actual_type)!r}: expected {expected}"
            )
        columns[name] = arrow_table[name].cast(declared_type)
        is_key = name in table.key and name != DRAW
        is_required = is_key or (name == OUTCOME and name in required)
        if columns[name].null_count and is_required:
            row = pc.index(columns[name].is_null(), True).as_py()
            raise TableError(f"{table.name}: {name!r} is null in row {row}: expected a value")
    return pa.table(columns)


def _as_arrow(source: Any, table: str, required: Sequence[str], columns: Sequence[str]) -> pa.Table:
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, Dataset):
        source = pa.table(source)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        for number, row in enumerate(source):
            if not isinstance(row, Mapping) or not row.keys() >= {*required}:
                raise TableError(
                    f"{table}: row {number} is {row!r}: expected a dict with {', '.join(required)}"
                )
        present = {*required}.union(*source)
        source = {name: [row.get(name) for row in source] for name in columns if name in present}
    if not isinstance(source, Dataset | pa.Table | Mapping):
        raise TableError(
            f"{table}: {type(source).__name__!r} is not a table: expected {TABLE_FORMS}"
        )
    names = list(source) if isinstance(source, Mapping) else source.column_names
    if missing := [name for name in required if name not in names]:
        raise TableError(
            f"{table}: no column {missing[0]!r} among {names!r}: expected {', '.join(required)}"
        )
    present_names = [name for name in columns if name in names]
    if isinstance(source, Dataset):
        return arrow_rows(source, present_names)
    return pa.table({name: source[name] for name in present_names})


def encode(*columns: pa.ChunkedArray) -> tuple[tuple[str, ...], list[Integers]]:
    """Return distinct names of text columns, and each column as positions in them, -1 for null."""
    chunks = [column.unique() for column in columns]
    values = sorted(pa.chunked_array(chunks, pa.string()).unique().drop_null().to_pylist())
    name_array = pa.array(values, pa.string())
    codes = [pc.index_in(column, name_array).fill_null(-1).cast(pa.int64()) for column in columns]
    return tuple(values), [np.asarray(column.to_numpy()) for column in codes]


def align_outputs(
    values: Floats,
    systems: Sequence[str],
    samples: Sequence[str],
    wanted_systems: Sequence[str],
    wanted_samples: Sequence[str],
) -> Floats:
    """Rearrange values [..., system, sample] to other systems and samples, NaN where absent."""
    # One more at -1, of what nobody has.
    padding = [(0, 0)] * (values.ndim - 2) + [(0, 1), (0, 1)]
    values = np.pad(values, padding, constant_values=np.nan)
    for axis, names, wanted_names in ((-2, systems, wanted_systems), (-1, samples, wanted_samples)):
        position_of = {name: position for position, name in enumerate(names)}
        positions = np.array([position_of.get(name, -1) for name in wanted_names], dtype=np.int64)
        values = values.take(positions, axis=axis)
    return values


def format_key(row: Mapping[str, Any], keys: Iterable[str]) -> str:
    names = (key for key in keys if key in row and (key != DRAW or row[key]))
    return ", ".join(f"{name} {row[name]!r}" for name in names)


def check_once(table: Table, rows: pa.Table, cells: Integers) -> None:
    if len(np.unique(cells)) < len(cells):
        _, first = np.unique(cells, return_index=True)
        repeated = np.delete(np.arange(len(cells)), first)[0]
        key = format_key(rows.slice(int(repeated), 1).to_pylist()[0], table.key)
        raise ScoreError(f"{table.name}: {key} is there twice: expected one row for each")


RatingKey = tuple[str, str, str]
IgnoredRows = dict[IgnoredRating, pa.Table]


@dataclass(frozen=True)
class RatingTable:
    """Every judge's rating of every system's output for every sample.

    `ratings` is [judge, system, sample], NaN where there is none; `lost` is what was refused or has
    no image [system, sample], null without outputs; `ignored` are keys of rows that do not count.
    `splits` are those that the samples are of, where the ratings say it; `draws` says if the first
    output of a sample is rated, or the mean of all.
    `not_asked` is what a judge was not asked on purpose [judge, system, sample], null for nothing.
    `scalar_judges` give numbers on no scale: their `ratings` are ranks among all, 1 the lowest.
    `cache` keeps what several measures compute from the same table, such as votes.
    """

    samples: tuple[str, ...]
    systems: tuple[str, ...]
    judges: tuple[str, ...]
    ratings: Floats
    lost: Bools | None
    ignored: Mapping[IgnoredRating, tuple[RatingKey, ...]]
    not_asked: Bools | None = None
    splits: tuple[str, ...] = ()
    draws: DrawChoice = "first"
    scalar_judges: frozenset[str] = frozenset()
    cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def part(self) -> RatingTable:
        """The samples of which all judges were asked about all systems."""
        if self.not_asked is None:
            return self
        if "part" not in self.cache:
            self.cache["part"] = self.of_samples(~self.not_asked.any(axis=(0, 1)))
        return self.cache["part"]  # type: ignore[no-any-return]

    @property
    def complete(self) -> RatingTable:
        """The ratings of the judges who were asked about everything."""
        return self if self.not_asked is None else self.of_judges(~self.not_asked.any(axis=(1, 2)))

    @property
    def is_stopped(self) -> bool:
        """Whether there are outputs that no judge was asked about."""
        return self.not_asked is not None and bool(self.not_asked.all(axis=0).any())

    def of_samples(self, samples: Any) -> RatingTable:
        names = tuple(np.array(self.samples, dtype=object)[samples])
        lost = None if self.lost is None else self.lost[:, samples]
        skipped = None if self.not_asked is None else _none_if_empty(self.not_asked[..., samples])
        ratings = self.ratings[..., samples]
        return replace(self, samples=names, ratings=ratings, lost=lost, not_asked=skipped)

    def of_judges(self, judges: Any) -> RatingTable:
        chosen = np.flatnonzero(judges)
        names = tuple(self.judges[at] for at in chosen)
        skipped = None if self.not_asked is None else _none_if_empty(self.not_asked[chosen])
        return replace(self, judges=names, ratings=self.ratings[chosen], not_asked=skipped)


def _none_if_empty(not_asked: Bools) -> Bools | None:
    return not_asked if not_asked.any() else None


def read_ratings(
    ratings: Any,
    outputs: Any = None,
    *,
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
    draws: DrawChoice = "first",
) -> RatingTable:
    """Read ratings; with outputs, ratings of other outputs are left out and named.

    Of several draws of a sample the first counts, or of all the mean rating.
    """
    if draws not in get_args(DrawChoice):
        raise ScoreError(unknown("draws", draws, get_args(DrawChoice)))
    ignored: IgnoredRows = {}
    rows = fill_draws(select_rubric_rows(ratings, rubric, ignored), RATINGS)
    if draws == "first":
        rows = select_first_draws(rows)
    judge_names = sorted(rows["judge"].unique().to_pylist())
    if judges is not None and sorted(judges) != judge_names:
        raise ScoreError(
            f"judges is {list(judges)!r}: expected each judge of the ratings once, in the order "
            f"that you mean, of {judge_names!r}"
        )
    order = tuple(judge_names if judges is None else judges)
    output_rows = None if outputs is None else read_outputs(outputs)
    if output_rows is not None and draws == "first":
        output_rows = select_first_draws(output_rows)
    if output_rows is not None:
        rows = _select_rated_outputs(rows, output_rows, ignored)
    tables = (rows,) if output_rows is None else (rows, output_rows)
    samples, (sample, *output_sample) = encode(*(table["sample_id"] for table in tables))
    systems, (system, *output_system) = encode(*(table["system"] for table in tables))
    lost = None
    if output_rows is not None:
        lost = np.zeros((len(systems), len(samples)), dtype=bool)
        is_lost = pc.is_in(output_rows["outcome"], value_set=pa.array(LOST_OUTCOMES)).to_numpy()
        lost[output_system[0][is_lost], output_sample[0][is_lost]] = True
        is_drawn = pc.equal(output_rows["outcome"], Outcome.OK.value).to_numpy()
        lost[output_system[0][is_drawn], output_sample[0][is_drawn]] = False  # of another draw
    rated_by, (position,) = encode(rows["judge"])
    judge = np.array([order.index(name) for name in rated_by], dtype=np.int64)[position]
    cells = (judge * len(systems) + system) * len(samples) + sample
    unique_cells = cells
    for name in ("repeat", DRAW):
        if name in rows.column_names:
            numbers, number = np.unique(rows[name].to_numpy(), return_inverse=True)
            unique_cells = unique_cells * len(numbers) + number
    check_once(RATINGS, rows, unique_cells)
    values = rows["rating"].to_numpy()
    is_rated, shape = ~np.isnan(values), (len(order), len(systems), len(samples))
    counts = np.bincount(cells[is_rated], minlength=int(np.prod(shape)))
    sums = np.bincount(cells[is_rated], weights=values[is_rated], minlength=int(np.prod(shape)))
    keys = {
        reason: tuple(sorted(zip(*(rows[name].to_pylist() for name in REQUIRED[:3]), strict=True)))
        for reason, rows in ignored.items()
        if rows.num_rows
    }
    means = divide(sums, counts).reshape(shape)
    not_asked = None
    if OUTCOME in rows.column_names:
        skipped = pc.equal(rows[OUTCOME], Unrated.NOT_NEEDED.value).fill_null(False).to_numpy()
        not_asked = np.zeros(shape, dtype=bool)
        not_asked.flat[cells[skipped & ~is_rated]] = True
        not_asked = _none_if_empty(not_asked & np.isnan(means))
    splits = rows[SPLIT].unique().drop_null().to_pylist() if SPLIT in rows.column_names else ()
    scalar_judges = find_scalar_judges(rows)
    for at, name in enumerate(order):
        if name in scalar_judges:
            means[at] = rank_scalars(means[at])
    about = not_asked, tuple(sorted(splits)), draws, scalar_judges
    return RatingTable(samples, systems, order, means, lost, keys, *about)


def find_scalar_judges(rows: pa.Table) -> frozenset[str]:
    """Return the judges whose numbers have no scale, as their provenance tells."""
    if PROVENANCE not in rows.column_names:
        return frozenset()
    is_scalar = pc.match_substring(rows[PROVENANCE], SCALAR_FORM).fill_null(False)
    return frozenset(rows["judge"].filter(is_scalar).unique().to_pylist())


def rank_scalars(values: Floats) -> Floats:
    """Return the rank of each number among all, 1 the lowest, equal ones alike, NaN as it is."""
    is_known = ~np.isnan(values)
    ranks: Floats = np.full(values.shape, np.nan)
    ranks[is_known] = np.unique(values[is_known], return_inverse=True)[1] + 1.0
    return ranks


def check_finite(rows: pa.Table) -> None:
    infinite = np.isinf(rows["rating"].to_numpy())
    if infinite.any():
        row = rows.slice(int(np.argmax(infinite)), 1).to_pylist()[0]
        raise ScoreError(
            f"ratings: {row['rating']!r} is the rating of {format_key(row, RATINGS.key)}: expected "
            "a finite number, or null where there is none"
        )


def select_rubric_rows(ratings: Any, rubric: str, ignored: IgnoredRows) -> pa.Table:
    """Select the ratings by one rubric, with the columns that scores are made of."""
    rows = read_columns(ratings, RATINGS, REQUIRED, OPTIONAL)
    check_finite(rows)
    if "rubric" not in rows.column_names or not rows.num_rows:
        return rows
    has_rubric = pc.equal(rows["rubric"], rubric)
    if not pc.any(has_rubric).as_py():
        raise ScoreError(
            f"ratings: {unknown('rubric', rubric, rows['rubric'].unique().to_pylist())}"
        )
    ignored[IgnoredRating.OTHER_RUBRIC] = rows.filter(pc.invert(has_rubric))
    return rows.filter(has_rubric)


def read_outputs(outputs: Any) -> pa.Table:
    """Read the outcome of each system on each sample."""
    rows = read_columns(outputs, OUTPUTS, ("sample_id", "system", "outcome"), (DRAW, DIGEST))
    rows = fill_draws(rows, OUTPUTS)
    outcome_names = [outcome.value for outcome in Outcome]
    for outcome in rows["outcome"].unique().to_pylist():
        if outcome not in outcome_names:
            raise ScoreError(f"outputs: {unknown('outcome', outcome, outcome_names)}")
    keys = rows.group_by(list(OUTPUTS.key), use_threads=False).aggregate([([], "count_all")])
    for duplicate in keys.filter(pc.greater(keys["count_all"], 1)).to_pylist():
        raise ScoreError(
            f"outputs: system {duplicate['system']!r} has {duplicate['count_all']} outputs for "
            f"sample {duplicate['sample_id']!r}"
            f"{f', draw {duplicate[DRAW]}' if duplicate[DRAW] else ''}: expected one"
        )
    return rows


def _select_rated_outputs(ratings: pa.Table, outputs: pa.Table, ignored: IgnoredRows) -> pa.Table:
    """Select the ratings of images that exist, in the version that was rated."""
    samples, (rated_sample, output_sample) = encode(ratings["sample_id"], outputs["sample_id"])
    systems, (rated_system, output_system) = encode(ratings["system"], outputs["system"])
    rated_draw, output_draw = (table[DRAW].to_numpy() for table in (ratings, outputs))
    numbers, draws = np.unique(np.concatenate([rated_draw, output_draw]), return_inverse=True)
    position = np.full((len(systems), len(samples), len(numbers)), -1)
    rated, drawn = np.split(draws, [len(rated_draw)])
    position[output_system, output_sample, drawn] = np.arange(outputs.num_rows)
    output = position[rated_system, rated_sample, rated]
    has_output, stale = output >= 0, np.zeros(len(output), dtype=bool)
    if DIGEST in ratings.column_names and DIGEST in outputs.column_names:
        _, (rated_digest, output_digest) = encode(ratings[DIGEST], outputs[DIGEST])
        output_digest = np.append(output_digest, -1)[output]
        stale = (rated_digest >= 0) & (output_digest >= 0) & (rated_digest != output_digest)
    has_image = np.append(pc.equal(outputs["outcome"], Outcome.OK.value).to_numpy(), False)[output]
    without_image = has_output & ~stale & ~has_image & ~np.isnan(ratings["rating"].to_numpy())
    for reason, rows in (
        (IgnoredRating.NO_OUTPUT, ~has_output),
        (IgnoredRating.OTHER_DIGEST, stale),
        (IgnoredRating.NO_IMAGE, without_image),
    ):
        ignored[reason] = ratings.filter(pa.array(rows))
    return ratings.filter(pa.array(has_output & ~stale & ~without_image))
