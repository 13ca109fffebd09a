"""What each search term is worth: how many of its posts are on topic, and for how long."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf._infra.text import plain
from echo_hf.builder.build import RUNS
from echo_hf.builder.gold.measures import wilson
from echo_hf.config.collection import Search, phase_spans
from echo_hf.config.loading import Config, load_config
from echo_hf.errors import RunError
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


def default_edges(last: int) -> list[int]:
    """Where windows begin when no plan says it: daily for two weeks, weekly after."""
    return _prolonged(list(range(DAILY + 1)), last)


def planned_edges(searches: Sequence[Search], released: datetime.date, last: int) -> list[int]:
    """Where windows begin by the plan; weekly after its end."""
    edges: set[int] = set()
    for search in searches:
        spans = phase_spans(search.phases, released)
        for phase, span in zip(search.phases, spans, strict=True):
            start = (span.start - released).days
            end = last + 1 if span.until is None else (span.until - released).days
            edges.update(range(start, max(end, start + 1), phase.length.days)[:MOST_EDGES])
            edges.add(max(end, start + 1))
    return _prolonged(sorted(edges), last) if edges else default_edges(last)


def windows_of(edges: Iterable[int]) -> list[DayWindow]:
    """The windows between edges, and before the first one those that are left."""
    days = list(edges)
    inner = [DayWindow(*pair) for pair in pairwise(days)]
    return [DayWindow(None, None), DayWindow(None, days[0]), *inner]


def _prolonged(edges: list[int], last: int) -> list[int]:
    if edges[-1] <= last:
        weeks = range(edges[-1] + WEEK, last + WEEK + 1, WEEK)
        edges = [*edges, *weeks[:MOST_EDGES]]
        if edges[-1] <= last:
            edges.append(last + 1)
    return edges


SECONDS_A_DAY = 86_400
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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
        """Where that share lies with 95 % confidence, by Wilson's score."""
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
    """Counts what each term brought in each window."""
    windows = windows_of(edges)
    days = days_since(posts["timestamp"].combine_chunks(), released)
    places = _windows(days, edges)
    score = pc.struct_field(posts["relevance"].combine_chunks(), "score")
    scored = np.asarray(score.is_valid())
    passed = np.asarray(pc.is_in(score, pa.array(keep, score.type)))
    lists = posts["keywords"].combine_chunks()
    words = pc.dictionary_encode(pc.list_flatten(lists))
    owner = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    kinds = np.asarray(words.indices, dtype=np.int64)
    kinds, owner = _each_once(kinds, owner)
    found_by = np.bincount(owner, minlength=len(posts))
    counted = _Counted(places, scored, passed, found_by == 1, days, len(windows))
    every = [
        counted.of(word.as_py(), owner[kinds == number])
        for number, word in enumerate(words.dictionary)
    ]
    return Yields(
        windows=tuple(windows),
        together=counted.of(None, np.flatnonzero(found_by)),
        keywords=tuple(sorted(every, key=_by_worth)),
        came_along=int(np.sum((found_by == 0) & np.asarray(lists.is_valid()))),
        unknown=lists.null_count,
    )


@dataclass(frozen=True)
class _Counted:
    window: Numbers
    scored: Flags
    passed: Flags
    alone: Flags
    days: pa.Array
    windows: int

    def of(self, keyword: str | None, rows: Numbers) -> KeywordYield:
        masks = (
            np.ones(len(rows), dtype=bool),
            self.scored[rows],
            self.passed[rows],
            self.alone[rows],
            self.alone[rows] & self.passed[rows],
        )
        counts = [
            np.bincount(self.window[rows][mask], minlength=self.windows).tolist() for mask in masks
        ]
        by_window = tuple(Yield(*one) for one in zip(*counts, strict=True))
        total = Yield(*(sum(one) for one in counts))
        dated = self.days.take(pa.array(rows[self.passed[rows]])).drop_null().to_numpy()
        half = int(np.sort(dated)[(len(dated) - 1) // 2]) if len(dated) else None
        return KeywordYield(keyword, total, by_window, half)


def _windows(days: pa.Array, edges: Sequence[int]) -> Numbers:
    # 0 holds what has no date, 1 what is from before the first edge.
    inside = np.searchsorted(np.asarray(edges), pc.fill_null(days, 0).to_numpy(), side="right") + 1
    return np.where(np.asarray(days.is_valid()), inside, 0).astype(np.int64)


def _each_once(kinds: Numbers, owner: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of a term and a post, none of them twice."""
    pairs = np.unique(np.stack([owner, kinds], axis=1), axis=0) if len(owner) else np.empty((0, 2))
    return pairs[:, 1].astype(np.int64), pairs[:, 0].astype(np.int64)


def _by_worth(one: KeywordYield) -> tuple[int, int, str]:
    return -one.total.passed, -one.total.found, one.keyword or ""


MOST_TERMS = 12
WIDTH, ROW, TOP, LEFT, GAP = 860, 84, 64, 180, 40
PANEL = (WIDTH - LEFT - 2 * GAP) // 2
HEIGHT = 52  # of the part of a row that is drawn in
STYLE = """
svg{background:#fff;font:12px system-ui,sans-serif}
text{fill:#333}.dim{fill:#777}.name{font-weight:600}
.found{fill:#c9d4e5}.passed{fill:#2f5d9b}.axis{stroke:#bbb;stroke-width:1}
.range{stroke:#2f5d9b;stroke-opacity:.35;stroke-width:3}.share{fill:#2f5d9b}
"""
WindowYield = tuple[DayWindow, Yield]


def yield_plot(yields: Yields) -> str:
    dated = [at for at, one in enumerate(yields.windows) if one.start is not None]
    used = [at for at in dated if yields.together.windows[at].found]
    shown = dated[: used[-1] + 1 - dated[0]] if used else []
    rows = [yields.together, *yields.keywords[:MOST_TERMS]]
    height = TOP + ROW * len(rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Posts a day and share on topic by search term and days since the release</title>",
        f"<style>{STYLE}</style>",
        *_head(len(yields.keywords)),
    ]
    for number, one in enumerate(rows):
        windows = [(yields.windows[at], one.windows[at]) for at in shown]
        parts += _row(one, windows, TOP + ROW * number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _head(terms: int) -> Iterator[str]:
    cut = f" ({MOST_TERMS} of {terms:,} terms)" if terms > MOST_TERMS else ""
    yield _text(LEFT, 22, f"posts a day, those on topic darker{cut}")
    yield _text(LEFT + PANEL + GAP, 22, "share of scored posts on topic, 95 % interval")
    yield _text(LEFT, 40, "days since the release; each row has its own scale", "dim")


def _row(one: KeywordYield, windows: Sequence[WindowYield], top: int) -> Iterator[str]:
    name = "all terms" if one.keyword is None else plain(one.keyword, 21)
    total = one.total
    share = "-" if total.share is None else f"{100 * total.share:.0f} %"
    yield _text(12, top + 22, name, "name")
    yield _text(12, top + 40, f"{total.found:,} posts, {share} on topic", "dim")
    right = LEFT + PANEL + GAP
    yield from _axes(LEFT, top, windows)
    yield from _axes(right, top, windows)
    most = max((_a_day(window, counts.found) for window, counts in windows), default=0)
    yield _text(LEFT - 6, top + 10, f"{most:,.0f}" if most >= 10 else f"{most:.1f}", "dim", "end")
    yield _text(right - 6, top + 10, "100 %", "dim", "end")
    for window, counts in windows:
        x, width = _place(window, windows)
        for kind, count in (("found", counts.found), ("passed", counts.passed)):
            high = HEIGHT * _a_day(window, count) / most if most else 0
            y = top + HEIGHT - high
            yield f'<rect class="{kind}" x="{LEFT + x:.1f}" y="{y:.1f}" ' + (
                f'width="{max(width - 1, 0.5):.1f}" height="{high:.1f}"/>'
            )
        yield from _share(counts, right + x + width / 2, top)


def _share(counts: Yield, x: float, top: int) -> Iterator[str]:
    if counts.share is None or counts.interval is None:
        return
    low, high = (top + HEIGHT * (1 - end) for end in counts.interval)
    yield f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
    said = f"{counts.passed:,} of {counts.scored:,}"
    middle = top + HEIGHT * (1 - counts.share)
    yield f'<circle class="share" cx="{x:.1f}" cy="{middle:.1f}" r="2.5">'
    yield f"<title>{said}</title></circle>"


def _axes(left: int, top: int, windows: Sequence[WindowYield]) -> Iterator[str]:
    y = top + HEIGHT
    yield f'<line class="axis" x1="{left}" x2="{left + PANEL}" y1="{y}" y2="{y}"/>'
    if windows:
        first, last = windows[0][0].start, windows[-1][0].end
        yield _text(left, y + 14, str(first), "dim")
        yield _text(left + PANEL, y + 14, f"{last}", "dim", "end")


def _place(window: DayWindow, windows: Sequence[WindowYield]) -> tuple[float, float]:
    """Where a window begins in a panel, and how wide it is."""
    first, last = windows[0][0].start or 0, windows[-1][0].end or 0
    scale = PANEL / (last - first)
    start, end = window.start or 0, window.end or 0
    return (start - first) * scale, (end - start) * scale


def _a_day(window: DayWindow, count: int) -> float:
    return count / ((window.end or 0) - (window.start or 0))


def _text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(said)}</text>'


FIGURES = "keywords.json"
PLOT = "keywords.svg"
COLUMNS = ["timestamp", "keywords", "relevance"]


@dataclass(frozen=True)
class WrittenYields:
    yields: Yields
    figures: Path
    plot: Path


def write_yields(config: Config | Path | str, *, runs: Path | str = RUNS) -> WrittenYields:
    """Counts what each search term of a run brought."""
    config = config if isinstance(config, Config) else load_config(config)
    folder = RunFolder(Path(runs) / config.name)
    posts = _scored_posts(folder)
    released = config.target.released
    days = days_since(posts["timestamp"].combine_chunks(), released)
    searches = [entry.search for entry in config.posts if entry.search is not None]
    edges = planned_edges(searches, released, pc.max(days).as_py() or 0)
    found = keyword_yields(posts, released, edges, config.stages.relevance.keep)
    written = WrittenYields(found, folder.root / FIGURES, folder.root / PLOT)
    text = json.dumps(as_json(found, released), indent=1, ensure_ascii=False)
    written.figures.write_text(text + "\n", "utf-8", "backslashreplace")
    written.plot.write_text(yield_plot(found), "utf-8")
    return written


def as_json(yields: Yields, released: datetime.date) -> dict[str, Any]:
    return {
        "released": released.isoformat(),
        "windows": [one._asdict() for one in yields.windows],
        "all_keywords": _of_keyword(yields.together),
        "keywords": [{"keyword": one.keyword, **_of_keyword(one)} for one in yields.keywords],
        "came_along": yields.came_along,
        "unknown": yields.unknown,
    }


def _of_keyword(one: KeywordYield) -> dict[str, Any]:
    total = {**_counts(one.total), "half_by_day": one.half_by_day}
    return {**total, "windows": [_counts(window) for window in one.windows]}


def _counts(one: Yield) -> dict[str, Any]:
    return {**asdict(one), "share": one.share, "interval": one.interval}


def _scored_posts(folder: RunFolder) -> pa.Table:
    file = folder.stage("relevance") / "kept.parquet"
    try:
        return pq.read_table(file, columns=COLUMNS)
    except FileNotFoundError:
        raise RunError(
            f"no scored posts in {str(folder.root)!r}: run `echo-hf build CONFIG --until "
            "relevance` first"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"cannot read {str(file)!r} ({error}): delete it and build again") from error
