"""What each search term is worth: how many of its posts are on topic, and for how long."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import percent, plain
from echo_hf.builder.build import stage_table
from echo_hf.builder.gold.measures import wilson
from echo_hf.config.collection import Search, phase_spans
from echo_hf.config.loading import Config, load_config
from echo_hf.pipeline.runs import run_folder

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


COUNTS = [one.name for one in fields(Yield)]


def keyword_yields(
    posts: pa.Table, released: datetime.date, edges: Sequence[int], keep: Sequence[int]
) -> Yields:
    windows = windows_of(edges)
    days = days_since(posts["timestamp"].combine_chunks(), released).to_pandas()
    # 0 holds what has no date, 1 what is from before the first edge.
    inside = np.searchsorted(edges, days.fillna(0), side="right") + 1
    score = pc.struct_field(posts["relevance"].combine_chunks(), "score").to_pandas()
    lists = posts["keywords"].to_pylist()
    table = pd.DataFrame({"keyword": [sorted(set(some or ())) for some in lists], "day": days})
    table["window"] = np.where(days.notna(), inside, 0)
    table["found"], table["scored"], table["passed"] = True, score.notna(), score.isin(keep)
    words = table["keyword"].map(len)
    table["alone"] = words == 1
    table["alone_passed"] = table["alone"] & table["passed"]

    def counted(keyword: str | None, rows: pd.DataFrame) -> KeywordYield:
        sums = rows.groupby("window")[COUNTS].sum().reindex(range(len(windows)), fill_value=0)
        dated = rows.loc[rows["passed"], "day"].dropna()
        return KeywordYield(
            keyword,
            total=Yield(*sums.sum().tolist()),
            windows=tuple(Yield(*row) for row in sums.to_numpy().tolist()),
            half_by_day=int(dated.quantile(interpolation="lower")) if len(dated) else None,
        )

    by_word = table.explode("keyword").dropna(subset="keyword").groupby("keyword")
    every = [counted(str(word), rows) for word, rows in by_word]
    every.sort(key=lambda one: (-one.total.passed, -one.total.found, one.keyword or ""))
    unknown = lists.count(None)
    return Yields(
        windows=tuple(windows),
        together=counted(None, table[words > 0]),
        keywords=tuple(every),
        came_along=int((words == 0).sum()) - unknown,
        unknown=unknown,
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


def write_yields(config: Config | Path | str, *, runs: Path | str | None = None) -> WrittenYields:
    config = load_config(config)
    folder = run_folder(config, runs)
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
