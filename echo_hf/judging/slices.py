"""Boards by slice of the samples, on those since a day, and by what people ask for."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import MIN_SAMPLES, Interval
from echo_hf._infra.text import pluralize
from echo_hf.collect.urls import canonical_url, platform_of
from echo_hf.config.evaluation import SliceOptions
from echo_hf.curate.provenance import INPUT
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, ReleaseError, unknown
from echo_hf.hub.redistribution import list_texts
from echo_hf.hub.run_tables import ResultRow
from echo_hf.judging.results import SavedBoard, SavedDemand, SavedSlices
from echo_hf.reasons import Reason
from echo_hf.samples.languages import name_languages
from echo_hf.scores import SliceRate, SliceRates, demand_rates, slice_rates
from echo_hf.scores.rating_table import RatingTable
from echo_hf.scores.slices import score_samples, select_samples
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.benchmark import Benchmark, select_sample_configs
from echo_hf.tables import arrow_rows

SINCE, BY_DEMAND = "win_rate_since", "win_rate_by_demand"
MAX_VALUES, MAX_CHARACTERS = 100, 100  # of a column of kinds
EMPTY = "(none)"  # the slice of samples whose list is empty
# What would put words of posts, or people, into results.
NOT_KINDS = frozenset(
    {"id", "post_id", "post_urls", "prompt", "prompt_sha256", "task_phrase", "author"}
    | {"sample_digest", "provenance"}
)


class Unsliced(Reason):
    """Why a sample counts in no board that is asked for beside the main one."""

    EARLIER = "earlier", "posted before the day from which samples count"
    NO_DATE = "no_date", "posted nobody knows when"
    OUTSIDE_WINDOW = "outside_window", "posted before or after the time that counts"
    UNKNOWN_TASK = "unknown_task", "of a task that nobody named"


def _name_months(times: Sequence[datetime.datetime | None]) -> list[str | None]:
    return [None if time is None else f"{time:%Y-%m}" for time in times]


def _name_platforms(addresses: Sequence[Sequence[str] | None]) -> list[str | None]:
    return [platform_of(canonical_url(urls[0]) or "") if urls else None for urls in addresses]


def _name_known_languages(prompts: Sequence[str | None]) -> list[str | None]:
    known = [prompt for prompt in prompts if prompt]
    codes = iter(name_languages(known))
    return [next(codes) if prompt else None for prompt in prompts]


# By name the column that it is made of, and how.
DERIVED: Mapping[str, tuple[str, Callable[[Sequence[Any]], list[str | None]]]] = {
    "task_family": ("task", list),
    "language": ("prompt", _name_known_languages),
    "platform": ("post_urls", _name_platforms),
    "month": ("timestamp", _name_months),
}


@dataclass(frozen=True)
class SampleKinds:
    """The kinds and days of a split's samples, which slices and weights are made of.

    `values` has the slices of each sample by column; `dates` those that are known; `asked` counts
    how often each task was asked for, and `left_out` the samples that are not counted there.
    """

    values: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    dates: Mapping[str, datetime.date] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[Reason, int] = field(default_factory=dict)


def read_kinds(benchmark: Benchmark, split: str, options: SliceOptions) -> SampleKinds:
    """Read the columns of a split's samples that are sliced by, and count what was asked for."""
    if options.is_empty:
        return SampleKinds()
    dataset = benchmark.load(split)
    try:
        words = list_texts(benchmark.read_manifest().columns)
    except ReleaseError:  # the dataset of ECHO's authors has no manifest
        words = []
    schema: pa.Schema = dataset.features.arrow_schema
    usable = {name for name in schema.names if _has_kinds(schema.field(name).type)}
    usable -= {*NOT_KINDS, *words}
    usable |= {name for name, (source, _) in DERIVED.items() if source in schema.names}
    for column in options.by:
        if column in schema.names and column not in usable:
            raise ConfigError(
                f"slices.by: {column!r} holds no kinds but words, images or the like, and results "
                f"are published: expected one of {', '.join(sorted(usable))}"
            )
        if column not in usable:
            raise ConfigError(unknown("column of kinds", column, sorted(usable), "slices.by"))
    sources = {DERIVED[name][0] if name in DERIVED else name for name in options.by}
    sources |= {"timestamp", "task"} & {*schema.names}
    rows = arrow_rows(dataset, ["id", *sorted(sources - {"id"})])
    ids = rows["id"].to_pylist()
    read = {name: rows[name].to_pylist() for name in rows.column_names}
    times = zip(ids, read.get("timestamp", ()), strict=False)
    tasks = zip(ids, read.get("task", ()), strict=False)
    asked, left_out = _count_demand(benchmark, split, options)
    return SampleKinds(
        {name: dict(zip(ids, _read_values(name, read), strict=True)) for name in options.by},
        {name: time.date() for name, time in times if time is not None},
        {name: task for name, task in tasks if task is not None},
        asked,
        left_out,
    )


def _has_kinds(type_: pa.DataType) -> bool:
    kind = type_.value_type if pa.types.is_list(type_) or pa.types.is_large_list(type_) else type_
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, pa.types.is_integer)
    return any(test(kind) for test in tests)


def _read_values(column: str, read: Mapping[str, Sequence[Any]]) -> list[tuple[str, ...]]:
    source, derive = DERIVED.get(column, (column, list))
    values: list[tuple[str, ...]] = [
        tuple(_name_value(part) for part in value if part is not None) or (EMPTY,)
        if isinstance(value, list)
        else ()
        if value is None
        else (_name_value(value),)
        for value in derive(read[source])
    ]
    names = {name for own in values for name in own}
    longest = max(map(len, names), default=0)
    if len(names) > MAX_VALUES or longest > MAX_CHARACTERS:
        raise ConfigError(
            f"slices.by: {column!r} has {len(names):,} values of up to {longest:,} characters: "
            f"expected a column of kinds, at most {MAX_VALUES} of {MAX_CHARACTERS} characters"
        )
    return values


def _name_value(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _count_demand(
    benchmark: Benchmark, split: str, options: SliceOptions
) -> tuple[dict[str, int], dict[Reason, int]]:
    """Count tasks over all samples of the release that start as those of the split do."""
    if options.demand is None:
        return {}, {}
    try:
        configs = select_sample_configs(benchmark.read_manifest().configs)
    except ReleaseError:
        configs = select_sample_configs(BENCHMARKS)
    seen = dict[str, tuple[datetime.date | None, str | None]]()
    wanted = ("id", "timestamp", "task", "picture_sources")
    for config in configs:
        dataset = benchmark.load(config)
        rows = arrow_rows(dataset, [name for name in wanted if name in dataset.column_names])
        inputs = arrow_rows(dataset, ["input_images"])["input_images"]
        lengths = pc.list_value_length(inputs).fill_null(0).to_pylist()
        for row, length in zip(rows.to_pylist(), lengths, strict=True):
            # Of a dehydrated sample the sources alone tell.
            sources = row.get("picture_sources") or ()
            has_input = length > 0 or any(source["role"] == INPUT for source in sources)
            if has_input == (split == BENCHMARKS[0]):
                time = row.get("timestamp")
                seen[row["id"]] = time and time.date(), row.get("task")
    newest = max((day for day, _ in seen.values() if day), default=None)
    asked, left_out = Counter[str](), Counter[Reason]()
    first, last = _read_window(options.demand, newest)
    for day, task in seen.values():
        if options.demand != "all" and day is None:
            left_out[Unsliced.NO_DATE] += 1
        elif day is not None and not first <= day <= last:
            left_out[Unsliced.OUTSIDE_WINDOW] += 1
        elif task is None:
            left_out[Unsliced.UNKNOWN_TASK] += 1
        else:
            asked[task] += 1
    return dict(asked), dict(left_out)


def _read_window(window: str, newest: datetime.date | None) -> tuple[datetime.date, datetime.date]:
    first, last = datetime.date.min, datetime.date.max
    if ".." in window:
        first, last = map(datetime.date.fromisoformat, window.split(".."))
    elif window != "all" and newest is not None:
        first = newest - datetime.timedelta(days=int(window.removesuffix("d")) - 1)
    return first, last


def score_slices(
    options: SliceOptions,
    overall: RatingTable,
    kinds: SampleKinds,
    protocol: ProtocolName,
    n_boot: int,
) -> SavedSlices:
    """Score what the options ask for on the rated samples of a split."""
    left_out, board, table = Counter[Reason](), None, overall
    if options.since:
        days = {name: kinds.dates.get(name) for name in overall.samples}
        left_out.update(
            Unsliced.NO_DATE if day is None else Unsliced.EARLIER
            for day in days.values()
            if day is None or day < options.since
        )
        table = select_samples(
            overall, {name for name, day in days.items() if day and day >= options.since}
        )
        options_of_board = {"protocol": protocol, "n_boot": n_boot}
        rates, intervals, reasons = score_samples(table, options_of_board)
        board = SavedBoard(win_rate=rates, interval=intervals, reasons=reasons)
    scored: dict[str, Any] = {"protocol": protocol, "n_boot": n_boot}
    demand = None
    if options.demand:
        demand = SavedDemand(
            window=options.demand,
            left_out=kinds.left_out,
            result=demand_rates(table, strata=kinds.tasks, asked=kinds.asked, **scored),
        )
    return SavedSlices(
        since=options.since,
        samples=int((~np.isnan(table.ratings)).any(axis=(0, 1)).sum()),  # rated by anybody
        left_out=left_out,
        board=board,
        by={
            name: slice_rates(table, values=values, **scored)
            for name, values in kinds.values.items()
        },
        demand=demand,
    )


def make_slice_rows(saved: SavedSlices, split: str, protocol: ProtocolName) -> Iterator[ResultRow]:
    """Yield the boards since a day and by demand as rows of results."""
    columns: dict[str, Any] = {"protocol": protocol, "split": split}
    since = {"since": saved.since.isoformat()} if saved.since else {}
    common = {"protocol": protocol, "direction": "higher is better", **since}

    def make_row(
        metric: str, system: str, value: float | None, ends: Interval | None, **more: Any
    ) -> ResultRow:
        low, high = ends or (None, None)
        figure: dict[str, Any] = {"system": system, "value": value, "low": low, "high": high}
        definition = {**common, "metric": metric, **more}
        return ResultRow(metric=metric, **columns, **figure, definition=definition)

    if saved.board:
        about = {"samples": saved.samples, "left_out": dict(saved.left_out)}
        for system, value in saved.board.win_rate.items():
            yield make_row(SINCE, system, value, saved.board.interval[system], **about)
    if saved.demand:
        rates = saved.demand.result
        strata = {name: asdict(stratum) for name, stratum in rates.strata.items()}
        about = {**rates.definition, "window": saved.demand.window, "strata": strata}
        for system, value in rates.win_rate.items():
            own = {"effective_n": rates.effective_n[system], "not_rated": rates.not_rated}
            yield make_row(BY_DEMAND, system, value, rates.interval[system], **about, **own)


def list_rated(column: str, sliced: SliceRates) -> list[tuple[str, SliceRate]]:
    """Return the slices that have a rate: months in their order, of others the largest first."""
    rows = [pair for pair in sorted(sliced.slices.items()) if any(pair[1].best.values())]
    return rows if column == "month" else sorted(rows, key=lambda pair: -pair[1].samples)


def describe_slices(saved: SavedSlices) -> Iterator[str]:
    """Yield what does not count in these boards, and why; and what shrunken rates are."""
    for why, count in saved.left_out.items():
        yield f"since {saved.since}: {pluralize(count, 'sample')} left out: {_explain(why)}"
    if saved.demand:
        for why, count in saved.demand.left_out.items():
            yield f"by demand: {pluralize(count, 'request')} left out: {_explain(why)}"
        yield from saved.demand.result.caveats
    for column, sliced in saved.by.items():
        if few := [name for name, row in sliced.slices.items() if row.samples < MIN_SAMPLES]:
            counts = ", ".join(f"{name} ({sliced.slices[name].samples:,})" for name in few)
            yield f"by {column}: no rate of {counts}: each needs {MIN_SAMPLES} rated samples"
        if sliced.no_value:
            yield f"by {column}: {pluralize(sliced.no_value, 'rated sample')} without a value"
        has_rates = len(few) < len(sliced.slices)
        for reason in dict.fromkeys(sliced.reasons.values()) if has_rates else ():
            systems = [name for name, why in sliced.reasons.items() if why is reason]
            names = "" if len(systems) == len(sliced.spread) else f" of {', '.join(systems)}"
            yield f"by {column}: no shrunken rates{names}: {reason.meaning}"
        if len(sliced.reasons) < len(sliced.spread):
            yield f"by {column}: rates are drawn toward the whole as far as chance explains them"


def _explain(reason: str) -> str:
    return next((each.meaning for each in Unsliced if each == reason), reason)
