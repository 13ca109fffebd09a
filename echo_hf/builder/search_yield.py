"""Measure each search term: how many of its posts are on topic, and for how long."""

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

from echo_hf._infra.text import clean, percent
from echo_hf.builder.build import read_stage
from echo_hf.builder.gold.measures import wilson_interval
from echo_hf.config.collection import Search, phase_dates
from echo_hf.config.loading import Config, load_config
from echo_hf.pipeline.runs import open_run_folder

DAILY_WINDOWS = 14  # days, as in the paper; weeks follow
WEEK = 7
MAX_EDGES = 5_000  # of a phase: limits the windows for a post dated in the year 9999
SECONDS_A_DAY = 86_400
MAX_PLOTTED_TERMS = 12
TEMPLATE = Path(__file__).with_name("keywords.svg.jinja")
FIGURES_FILE = "keywords.json"
PLOT_FILE = "keywords.svg"
READ_COLUMNS = ["timestamp", "keywords", "relevance"]


class DayWindow(NamedTuple):
    """A window of days since the release; the day of the release is day 0."""

    start: int | None
    end: int | None

    @property
    def name(self) -> str:
        """The window as a person reads it: `0`, `14-20`, `before`, `undated`."""
        if self.end is None:
            return "undated"
        if self.start is None:
            return "before"
        return str(self.start) if self.end == self.start + 1 else f"{self.start}-{self.end - 1}"


def plan_edges(searches: Sequence[Search], released: datetime.date, last: int) -> list[int]:
    """Return where windows begin: by the plan, or daily for two weeks; then weekly."""
    edges: set[int] = set()
    for search in searches:
        spans = phase_dates(search.phases, released)
        for phase, span in zip(search.phases, spans, strict=True):
            start = (span.start - released).days
            end = last + 1 if span.until is None else (span.until - released).days
            edges.update(range(start, max(end, start + 1), phase.length.days)[:MAX_EDGES])
            edges.add(max(end, start + 1))
    days = sorted(edges) or list(range(DAILY_WINDOWS + 1))
    if days[-1] <= last:
        days += range(days[-1] + WEEK, last + WEEK + 1, WEEK)[:MAX_EDGES]
        days += [last + 1] if days[-1] <= last else []
    return days


def make_windows(edges: Iterable[int]) -> list[DayWindow]:
    """Return the windows between edges, after one of undated posts and one of those before."""
    days = list(edges)
    inner = [DayWindow(*pair) for pair in pairwise(days)]
    return [DayWindow(None, None), DayWindow(None, days[0]), *inner]


@dataclass(frozen=True)
class SearchYield:
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
        return wilson_interval(self.passed, self.scored)


@dataclass(frozen=True)
class KeywordYield:
    keyword: str | None
    total: SearchYield
    windows: tuple[SearchYield, ...]
    half_by_day: int | None


@dataclass(frozen=True)
class SearchYields:
    windows: tuple[DayWindow, ...]
    together: KeywordYield
    keywords: tuple[KeywordYield, ...]
    came_along: int
    unknown: int


def count_days(timestamps: pa.Array, released: datetime.date) -> pa.Array:
    """Return whole days from the release, in UTC, to each moment; null where there is none."""
    start = datetime.datetime.combine(released, datetime.time(), datetime.UTC)
    seconds = pc.cast(pc.cast(timestamps, pa.timestamp("s", "UTC"), safe=False), pa.int64())
    seconds_since = pc.subtract(seconds, int(start.timestamp()))
    days = np.floor_divide(pc.fill_null(seconds_since, 0).to_numpy(), SECONDS_A_DAY)
    return pc.if_else(timestamps.is_valid(), pa.array(days, pa.int64()), None)


YIELD_COUNTS = [field.name for field in fields(SearchYield)]


def compute_yields(
    posts: pa.Table, released: datetime.date, edges: Sequence[int], keep: Sequence[int]
) -> SearchYields:
    windows = make_windows(edges)
    days = count_days(posts["timestamp"].combine_chunks(), released).to_pandas()
    # Window 0 is of undated posts, window 1 of posts before the first edge.
    inside = np.searchsorted(edges, days.fillna(0), side="right") + 1
    score = pc.struct_field(posts["relevance"].combine_chunks(), "score").to_pandas()
    lists = posts["keywords"].to_pylist()
    sorted_keywords = [sorted(set(keywords or ())) for keywords in lists]
    table = pd.DataFrame({"keyword": sorted_keywords, "day": days})
    table["window"] = np.where(days.notna(), inside, 0)
    table["found"], table["scored"], table["passed"] = True, score.notna(), score.isin(keep)
    words = table["keyword"].map(len)
    table["alone"] = words == 1
    table["alone_passed"] = table["alone"] & table["passed"]

    def count_keyword(keyword: str | None, rows: pd.DataFrame) -> KeywordYield:
        sums = rows.groupby("window")[YIELD_COUNTS].sum().reindex(range(len(windows)), fill_value=0)
        dated = rows.loc[rows["passed"], "day"].dropna()
        return KeywordYield(
            keyword,
            total=SearchYield(*sums.sum().tolist()),
            windows=tuple(SearchYield(*row) for row in sums.to_numpy().tolist()),
            half_by_day=int(dated.quantile(interpolation="lower")) if len(dated) else None,
        )

    by_word = table.explode("keyword").dropna(subset="keyword").groupby("keyword")
    terms = [count_keyword(str(word), rows) for word, rows in by_word]
    terms.sort(key=lambda term: (-term.total.passed, -term.total.found, term.keyword or ""))
    unknown = lists.count(None)
    return SearchYields(
        windows=tuple(windows),
        together=count_keyword(None, table[words > 0]),
        keywords=tuple(terms),
        came_along=int((words == 0).sum()) - unknown,
        unknown=unknown,
    )


def render_yield_plot(yields: SearchYields) -> str:
    windows = [number for number, window in enumerate(yields.windows) if window.start is not None]
    used_windows = [number for number in windows if yields.together.windows[number].found]
    shown_windows = windows[: used_windows[-1] + 1 - windows[0]] if used_windows else []
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"plain": clean, "percent": percent}
    return environment.from_string(TEMPLATE.read_text("utf-8")).render(
        rows=[yields.together, *yields.keywords[:MAX_PLOTTED_TERMS]],
        terms=len(yields.keywords),
        most_terms=MAX_PLOTTED_TERMS,
        windows=[yields.windows[number] for number in shown_windows],
        first=shown_windows[0] if shown_windows else 0,
    )


@dataclass(frozen=True)
class SavedYields:
    yields: SearchYields
    figures: Path
    plot: Path


def write_yields(config: Config | Path | str, *, runs: Path | str | None = None) -> SavedYields:
    config = load_config(config)
    folder = open_run_folder(config, runs)
    command = "build CONFIG --until relevance"
    posts = read_stage(folder, "relevance", READ_COLUMNS, "scored", command)
    released = config.target.released
    days = count_days(posts["timestamp"].combine_chunks(), released)
    searches = [entry.search for entry in config.posts if entry.search is not None]
    edges = plan_edges(searches, released, pc.max(days).as_py() or 0)
    yields = compute_yields(posts, released, edges, config.stages.relevance.keep)
    saved = SavedYields(yields, folder.root / FIGURES_FILE, folder.root / PLOT_FILE)
    figures = {
        "released": released.isoformat(),
        "windows": [window._asdict() for window in yields.windows],
        "all_keywords": _keyword_to_json(yields.together),
        "keywords": [
            {"keyword": term.keyword, **_keyword_to_json(term)} for term in yields.keywords
        ],
        "came_along": yields.came_along,
        "unknown": yields.unknown,
    }
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    saved.figures.write_text(text + "\n", "utf-8", "backslashreplace")
    saved.plot.write_text(render_yield_plot(yields), "utf-8")
    return saved


def _keyword_to_json(term: KeywordYield) -> dict[str, Any]:
    total, *windows = (
        {**asdict(counts), "share": counts.share, "interval": counts.interval}
        for counts in (term.total, *term.windows)
    )
    return {**total, "half_by_day": term.half_by_day, "windows": windows}
