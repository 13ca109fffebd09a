"""What each search term is worth: how many of its posts are on topic, and for how long."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import percent, plain
from echo_hf.builder.build import RUNS, stage_table
from echo_hf.builder.gold.measures import wilson
from echo_hf.config.collection import Search, phase_spans
from echo_hf.config.loading import Config, load_config
from echo_hf.pipeline.run_folder import RunFolder

DAILY = 14  # days, as in the paper; weeks follow
WEEK = 7
MOST_EDGES = 5_000  # of a phase: a post of the year 9999 makes no hundred thousand windows


class DayWindow(NamedTuple):
    """Days since the release; the day of the release is day 0."""

    start: int | None
    end: int | None

    @property
    def name(self) -> str:
        """As a person reads it: `0`, `14-20`, `before`, `undated`."""
        if self.end is None:
            return "undated"
        if self.start is None:
            return "before"
        return str(self.start) if self.end == self.start + 1 else f"{self.start}-{self.end - 1}"


def planned_edges(searches: Sequence[Search], released: datetime.date, last: int) -> list[int]:
    """Where windows begin by the plan, or daily for two weeks without one; weekly after."""
    edges: set[int] = set()
    for search in searches:
        spans = phase_spans(search.phases, released)
        for phase, span in zip(search.phases, spans, strict=True):
            start = (span.start - released).days
            end = last + 1 if span.until is None else (span.until - released).days
            edges.update(range(start, max(end, start + 1), phase.length.days)[:MOST_EDGES])
            edges.add(max(end, start + 1))
    days = sorted(edges) or list(range(DAILY + 1))
    if days[-1] <= last:
        days += range(days[-1] + WEEK, last + WEEK + 1, WEEK)[:MOST_EDGES]
        days += [last + 1] if days[-1] <= last else []
    return days


def windows_of(edges: Iterable[int]) -> list[DayWindow]:
    """The windows between edges, and before the first one those that are left."""
    days = list(edges)
    inner = [DayWindow(*pair) for pair in pairwise(days)]
    return [DayWindow(None, None), DayWindow(None, days[0]), *inner]


SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Yield:
    found: int
    scored: int
    passed: int
    alone: int
    alone_passed: int

    @property
    def share(self) -> float | None:
        """The share of scored posts that are on topic, from 0 to 1; null where none is scored."""
        return self.passed / self.scored if self.scored else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.passed, self.scored)


@dataclass(frozen=True)
class KeywordYield:
    keyword: str | None
    total: Yield
    windows: tuple[Yield, ...]
    half_by_day: int | None


@dataclass(frozen=True)
class Yields:
    windows: tuple[DayWindow, ...]
    together: KeywordYield
    keywords: tuple[KeywordYield, ...]
    came_along: int
    unknown: int


def days_since(timestamps: pa.Array, released: datetime.date) -> pa.Array:
    """Whole days from the release, in UTC, to each moment; null where there is none."""
    start = datetime.datetime.combine(released, datetime.time(), datetime.UTC)
    seconds = pc.cast(pc.cast(timestamps, pa.timestamp("s", "UTC"), safe=False), pa.int64())
    whole = pc.subtract(seconds, int(start.timestamp()))
    days = np.floor_divide(pc.fill_null(whole, 0).to_numpy(), SECONDS_A_DAY)
    return pc.if_else(timestamps.is_valid(), pa.array(days, pa.int64()), None)


def keyword_yields(
    posts: pa.Table, released: datetime.date, edges: Sequence[int], keep: Sequence[int]
) -> Yields:
    windows = windows_of(edges)
    days = days_since(posts["timestamp"].combine_chunks(), released)
    # 0 holds what has no date, 1 what is from before the first edge.
    inside = np.searchsorted(np.asarray(edges), pc.fill_null(days, 0).to_numpy(), side="right") + 1
    window = np.where(np.asarray(days.is_valid()), inside, 0)
    score = pc.struct_field(posts["relevance"].combine_chunks(), "score")
    scored = np.asarray(score.is_valid())
    passed = np.asarray(pc.is_in(score, pa.array(keep, score.type)))
    lists = posts["keywords"].combine_chunks()
    words = pc.dictionary_encode(pc.list_flatten(lists))
    pairs = np.stack([pc.list_parent_indices(lists).to_numpy(), np.asarray(words.indices)], axis=1)
    owner, kinds = np.unique(pairs.astype(np.int64), axis=0).T  # no pair twice
    found_by = np.bincount(owner, minlength=len(posts))
    alone = found_by == 1
    flags = (np.ones(len(posts), bool), scored, passed, alone, alone & passed)

    def counted(keyword: str | None, rows: npt.NDArray[np.int64]) -> KeywordYield:
        counts = [
            np.bincount(window[rows][flag[rows]], minlength=len(windows)).tolist() for flag in flags
        ]
        dated = days.take(pa.array(rows[passed[rows]])).drop_null().to_numpy()
        return KeywordYield(
            keyword,
            total=Yield(*map(sum, counts)),
            windows=tuple(Yield(*one) for one in zip(*counts, strict=True)),
            half_by_day=int(np.sort(dated)[(len(dated) - 1) // 2]) if len(dated) else None,
        )

    every = [
        counted(word.as_py(), owner[kinds == number])
        for number, word in enumerate(words.dictionary)
    ]
    every.sort(key=lambda one: (-one.total.passed, -one.total.found, one.keyword or ""))
    return Yields(
        windows=tuple(windows),
        together=counted(None, np.flatnonzero(found_by)),
        keywords=tuple(every),
        came_along=int(np.sum((found_by == 0) & np.asarray(lists.is_valid()))),
        unknown=lists.null_count,
    )


MOST_TERMS = 12
TEMPLATE = Path(__file__).with_name("keywords.svg.jinja")


def yield_plot(yields: Yields) -> str:
    dated = [at for at, one in enumerate(yields.windows) if one.start is not None]
    used = [at for at in dated if yields.together.windows[at].found]
    shown = dated[: used[-1] + 1 - dated[0]] if used else []
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"plain": plain, "percent": percent}
    return environment.from_string(TEMPLATE.read_text("utf-8")).render(
        rows=[yields.together, *yields.keywords[:MOST_TERMS]],
        terms=len(yields.keywords),
        most_terms=MOST_TERMS,
        windows=[yields.windows[at] for at in shown],
        first=shown[0] if shown else 0,
    )


FIGURES = "keywords.json"
PLOT = "keywords.svg"
COLUMNS = ["timestamp", "keywords", "relevance"]


@dataclass(frozen=True)
class WrittenYields:
    yields: Yields
    figures: Path
    plot: Path


def write_yields(config: Config | Path | str, *, runs: Path | str = RUNS) -> WrittenYields:
    config = config if isinstance(config, Config) else load_config(config)
    folder = RunFolder(Path(runs) / config.name)
    posts = stage_table(folder, "relevance", COLUMNS, "scored", "build CONFIG --until relevance")
    released = config.target.released
    days = days_since(posts["timestamp"].combine_chunks(), released)
    searches = [entry.search for entry in config.posts if entry.search is not None]
    edges = planned_edges(searches, released, pc.max(days).as_py() or 0)
    found = keyword_yields(posts, released, edges, config.stages.relevance.keep)
    written = WrittenYields(found, folder.root / FIGURES, folder.root / PLOT)
    said = {
        "released": released.isoformat(),
        "windows": [one._asdict() for one in found.windows],
        "all_keywords": _of_keyword(found.together),
        "keywords": [{"keyword": one.keyword, **_of_keyword(one)} for one in found.keywords],
        "came_along": found.came_along,
        "unknown": found.unknown,
    }
    text = json.dumps(said, indent=1, ensure_ascii=False)
    written.figures.write_text(text + "\n", "utf-8", "backslashreplace")
    written.plot.write_text(yield_plot(found), "utf-8")
    return written


def _of_keyword(one: KeywordYield) -> dict[str, Any]:
    total, *windows = (
        {**asdict(counts), "share": counts.share, "interval": counts.interval}
        for counts in (one.total, *one.windows)
    )
    return {**total, "half_by_day": one.half_by_day, "windows": windows}
