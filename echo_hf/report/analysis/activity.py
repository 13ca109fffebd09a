"""When people posted, the funnel as numbers, and the word cloud of failures (figures 2, 4, 5c)."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa

from echo_hf.builder.steps import STEPS, stage_class
from echo_hf.errors import MissingExtraError
from echo_hf.hub.manifest import Manifest
from echo_hf.metrics.result import error_line
from echo_hf.pipeline.result import StageStats
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.result import (
    Activity,
    AnalysisPart,
    Day,
    FailureKeyword,
    FunnelStep,
    WordCloud,
)

FOUND, CAME_ALONG, UNKNOWN = "found", "came_along", "unknown"
ActivityPart = AnalysisPart[Activity]


def activity(posts: pa.Table | None, released: datetime.date) -> ActivityPart:
    """Counts posts by day and by search term."""
    if posts is None:
        return ActivityPart(reason=NotAnalyzed.NO_POSTS, detail=NotAnalyzed.NO_POSTS.meaning)
    moments, terms = posts["timestamp"].to_pylist(), posts["keywords"].to_pylist()
    by_day: dict[datetime.date, Counter[str]] = defaultdict(Counter)
    undated = 0
    for moment, keywords in zip(moments, terms, strict=True):
        if moment is None:
            undated += 1
        else:
            by_day[moment.astimezone(datetime.UTC).date()][_how(keywords)] += 1
    keywords = Counter(term for found in terms for term in dict.fromkeys(found or ()))
    found = Activity(
        days=tuple(_day(date, counts, released) for date, counts in sorted(by_day.items())),
        keywords=dict(sorted(keywords.items(), key=lambda pair: (-pair[1], pair[0]))),
        undated=undated,
    )
    definition = {"days": "UTC", "released": released.isoformat()}
    return ActivityPart(found=found, definition=definition)


def _how(keywords: Sequence[str] | None) -> str:
    if keywords is None:
        return UNKNOWN
    return FOUND if keywords else CAME_ALONG


def _day(date: datetime.date, counts: Counter[str], released: datetime.date) -> Day:
    return Day(
        date=date.isoformat(),
        since_release=(date - released).days,
        posts=counts.total(),
        found=counts[FOUND],
        came_along=counts[CAME_ALONG],
        unknown=counts[UNKNOWN],
    )


FunnelPart = AnalysisPart[tuple[FunnelStep, ...]]


def funnel_steps(manifest: Manifest | None) -> FunnelPart:
    """The stages of a build, in order."""
    rows = [row for row in manifest.funnel if row.stage in STEPS] if manifest else []
    if not rows:
        return FunnelPart(reason=NotAnalyzed.NO_RUN, detail=NotAnalyzed.NO_RUN.meaning)
    stats = {row.stage: _stats(row.stage, row.counts) for row in rows}
    return FunnelPart(found=tuple(_step(one, stats) for one in stats.values()))


def _stats(stage: str, counts: Mapping[str, Any]) -> StageStats:
    made_by = stage_class(stage)
    return StageStats(
        stage=stage,
        rows_in=counts.get("rows_in", 0),
        kept=counts.get("kept", 0),
        rejected=dict(counts.get("rejected") or {}),
        quarantined=dict(counts.get("quarantined") or {}),
        tally=dict(counts.get("tally") or {}),
        reads=made_by.inputs.name,
        makes=made_by.outputs.name,
    )


def _step(one: StageStats, stats: Mapping[str, StageStats]) -> FunnelStep:
    return FunnelStep(
        stage=one.stage,
        rows_in=one.rows_in,
        kept=one.kept,
        reads=one.reads,
        makes=one.makes,
        lost={**one.rejected, **one.quarantined},
        headline=stage_class(one.stage).headline(stats),
    )


EXTRA = "analysis"
WIDTH, HEIGHT = 960, 480
MOST_WORDS = 150
LONGEST_WORD = 100  # characters: trying sizes for a whole text takes minutes, and finds none
LABEL = "Failures that people speak of, the most frequent the largest"
SVG = "http://www.w3.org/2000/svg"
CloudPart = AnalysisPart[WordCloud]


class BadFontError(Exception):
    """A file is no font that can be read."""


def word_cloud(
    keywords: Sequence[FailureKeyword] | None, *, font: Path | None = None, seed: int = 0
) -> CloudPart:
    """Lays keywords out in a plane, the most frequent the largest."""
    if not keywords:
        return CloudPart(reason=NotAnalyzed.NO_COMMENTS, detail=NotAnalyzed.NO_COMMENTS.meaning)
    if not (find_spec("wordcloud") and find_spec("fontTools")):
        detail = str(MissingExtraError("the word cloud", EXTRA))
        return CloudPart(reason=NotAnalyzed.MISSING_EXTRA, detail=detail)
    try:
        return _cloud(keywords, font, seed)
    except BadFontError as error:
        return CloudPart(reason=NotAnalyzed.BAD_FONT, detail=str(error))


def _cloud(keywords: Sequence[FailureKeyword], font: Path | None, seed: int) -> CloudPart:
    layout = _layout(font, seed)
    glyphs = _glyphs(Path(layout.font_path))
    written = [one for one in keywords if glyphs.issuperset(one.keyword)]
    sizes = {one.keyword: one.comments for one in written if len(one.keyword) <= LONGEST_WORD}
    if not sizes:
        reason = NotAnalyzed.NO_SPACE if written else NotAnalyzed.NO_GLYPHS
        return CloudPart(reason=reason, detail=reason.meaning)
    layout.generate_from_frequencies(sizes)
    shown = len(layout.layout_)
    left_out = {NotAnalyzed.NO_GLYPHS: len(keywords) - len(written)}
    left_out[NotAnalyzed.NO_SPACE] = len(written) - shown
    definition = {
        "by": f"wordcloud {version('wordcloud')}",
        "font": Path(layout.font_path).name,
        "most_words": MOST_WORDS,
        "seed": seed,
    }
    counts = {str(reason): count for reason, count in left_out.items() if count}
    found = WordCloud(svg=inline(layout.to_svg()), words=shown, left_out=counts)
    return CloudPart(found=found, definition=definition)


def _layout(font: Path | None, seed: int) -> Any:
    from wordcloud import WordCloud as Layout

    return Layout(
        width=WIDTH,
        height=HEIGHT,
        max_words=MOST_WORDS,
        font_path=str(font) if font else None,
        random_state=seed,
        background_color=None,
        color_func=lambda *_, **__: "currentColor",
    )


def _glyphs(font: Path) -> frozenset[str]:
    """The characters that a font can write; of those without an image only the space."""
    from fontTools.ttLib import TTFont

    if not font.is_file():
        raise BadFontError(f"no font {font.name!r}: expected a file, relative to the config")
    try:
        with TTFont(font, fontNumber=0) as opened:
            return frozenset(filter(str.isprintable, map(chr, opened.getBestCmap() or {}))) | {" "}
    except Exception as error:  # whatever is in a file that is no font
        raise BadFontError(f"cannot read font {font.name!r} ({error_line(error)})") from error


def inline(svg: str) -> str:
    """An image of wordcloud's as a part of a page, without its style sheet."""
    ET.register_namespace("", SVG)
    root = ET.fromstring(svg)  # noqa: S314 - of the library, which escapes the words
    for style in root.findall(f"{{{SVG}}}style"):
        root.remove(style)
    size = {"viewBox": f"0 0 {root.attrib.pop('width')} {root.attrib.pop('height')}"}
    root.attrib.update({**size, "role": "img", "aria-label": LABEL, "font-family": "monospace"})
    for word in root.findall(f"{{{SVG}}}text"):
        word.set("fill", word.attrib.pop("style").removeprefix("fill:"))
    return ET.tostring(root, encoding="unicode")
