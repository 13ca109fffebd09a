"""What people say failed, how they work around it, when they post, and which rows a build lost."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pyarrow as pa

from echo_hf.builder.steps import STEPS, stage_class
from echo_hf.curate.feedback import WITH_KEYWORD
from echo_hf.errors import MissingExtraError
from echo_hf.hub.manifest import Manifest
from echo_hf.metrics.result import error_line
from echo_hf.pipeline.result import StageStats
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis import result
from echo_hf.report.analysis.prompts import EXTRA, shortened
from echo_hf.report.analysis.result import AnalysisPart, Example
from echo_hf.tables import POSTS

Sample = Mapping[str, Any]
BRITISH = {
    "aeroplane": "airplane",
    "behaviour": "behavior",
    "centre": "center",
    "colour": "color",
    "coloured": "colored",
    "colouring": "coloring",
    "discolouration": "discoloration",
    "grey": "gray",
    "mould": "mold",
    "stylised": "stylized",
}
# Singular though they end in s.
SINGULAR = re.compile(r"(?:ss|us|is|as|os|news|lens|glasses|always)$")
SHORTEST_PLURAL = 4
RULE = "case folded, NFKC, signs as spaces, American spelling, plain plurals as singulars, sorted"


def keyword_form(keyword: str) -> str:
    """The form that all spellings of a keyword share."""
    folded = unicodedata.normalize("NFKC", keyword).casefold().replace("'", "").replace("’", "")
    found = set()
    for word in re.findall(r"[^\W_]+", folded):
        if len(word) >= SHORTEST_PLURAL and word.endswith("s") and not SINGULAR.search(word):
            word = word[:-1]
        found.add(BRITISH.get(word, word))
    return " ".join(sorted(found))


X_STATUS = re.compile(r"https://(?:x|twitter)\.com/(?:\w+/)*status/(\d{15,19})(?!\d)")
# Of its identifiers' clock.
X_BEGAN = datetime.datetime(2010, 11, 4, 1, 42, 54, 657_000, tzinfo=datetime.UTC)
BELOW_TIME = 22  # bits of an identifier that say which of a millisecond's posts it is


def time_in_address(url: str | None) -> datetime.datetime | None:
    found = X_STATUS.match(url or "")
    if found is None:
        return None
    return X_BEGAN + datetime.timedelta(milliseconds=int(found.group(1)) >> BELOW_TIME)


@dataclass(frozen=True)
class PostTimes:
    known: Mapping[str, datetime.datetime] = field(default_factory=dict)

    def of(self, url: str | None) -> datetime.datetime | None:
        """When the post of an address was posted, null when nothing says so."""
        return self.known.get(url or "") or time_in_address(url)

    def order(self, url: str | None) -> tuple[bool, datetime.datetime, str]:
        """What sorts posts by time, those without one last."""
        moment = self.of(url)
        return moment is None, moment or X_BEGAN, url or ""

    def text(self, url: str | None) -> str | None:
        moment = self.of(url)
        return moment.astimezone(datetime.UTC).isoformat(timespec="seconds") if moment else None


def post_times(posts: pa.Table | None) -> PostTimes:
    if posts is None:
        return PostTimes()
    rows = zip(posts["url"].to_pylist(), posts["timestamp"].to_pylist(), strict=True)
    return PostTimes({url: moment for url, moment in rows if moment is not None})


POST_COLUMNS = ("url", "timestamp", "keywords")
POST_SCHEMA = pa.schema([POSTS.schema.field(name) for name in POST_COLUMNS])
COLLECTED = "all collected posts"
OF_SAMPLES = "the primary posts of the samples: a release names no others that were collected"
UNASKED = "unasked"
LONGEST = 280
PROBE = "probe"
WORKED = frozenset({"success", "mixed"})


@dataclass(frozen=True)
class Comment:
    sample: str
    url: str | None
    text: str | None
    verdict: str | None
    keyword: str | None

    @property
    def form(self) -> str | None:
        if self.verdict not in WITH_KEYWORD or not self.keyword:
            return None
        return keyword_form(self.keyword) or None


def _comments(sample: Sample) -> list[Comment]:
    columns = ("post_url", "feedback", "verdict", "keyword")
    said = sample["community_feedback"] or ()
    return [Comment(sample["id"], *(one.get(name) for name in columns)) for one in said]


def _example(url: str | None, text: str | None, times: PostTimes) -> Example:
    said = None if text is None else shortened(text, LONGEST)
    return Example(post_url=url, time=times.text(url), text=said)


def failures(
    samples: Sequence[Sample], times: PostTimes, *, examples: int = 5
) -> AnalysisPart[result.Failures]:
    comments = [comment for sample in samples for comment in _comments(sample)]
    verdicts = Counter(one.verdict or UNASKED for one in comments)
    named: dict[str, list[Comment]] = defaultdict(list)
    for comment in comments:
        if comment.form is not None:
            named[comment.form].append(comment)
    failed = sum(verdicts[verdict] for verdict in WITH_KEYWORD)
    if not failed:
        return AnalysisPart.without(NotAnalyzed.NO_COMMENTS)
    keywords = []
    for group in named.values():
        spellings = Counter(one.keyword for one in group if one.keyword)
        ranked = dict(sorted(spellings.items(), key=lambda pair: (-pair[1], pair[0])))
        moments = [moment for one in group if (moment := times.of(one.url)) is not None]
        # The comments by time, those of a sample that had one already after all others.
        ordered = sorted(group, key=lambda one: times.order(one.url))
        seen: Counter[str] = Counter()
        turns = []
        for at, one in enumerate(ordered):
            turns.append((seen[one.sample], at, one))
            seen[one.sample] += 1
        shown = [one for _, _, one in sorted(turns, key=lambda turn: turn[:2])[:examples]]
        keywords.append(
            result.FailureKeyword(
                keyword=next(iter(ranked)),
                comments=len(group),
                samples=len(seen),
                spellings=ranked,
                by_month=dict(sorted(Counter(f"{moment:%Y-%m}" for moment in moments).items())),
                examples=tuple(_example(one.url, one.text, times) for one in shown),
            )
        )
    found = result.Failures(
        keywords=tuple(sorted(keywords, key=lambda one: (-one.comments, one.keyword))),
        verdicts=dict(sorted(verdicts.items())),
        unnamed=failed - sum(map(len, named.values())),
        untimed=sum(times.of(one.url) is None for group in named.values() for one in group),
    )
    definition = {"spellings": RULE, "counted": "comments of verdict failure or mixed"}
    return AnalysisPart(found=found, definition=definition)


def interaction(samples: Sequence[Sample], times: PostTimes) -> AnalysisPart[result.Interaction]:
    """Lists what may be workarounds, and what are probes."""
    probes = []
    for sample in samples:
        if sample["kind"] == PROBE:
            post = _example((sample["post_urls"] or [None])[0], None, times)
            comments, prompt = len(sample["community_feedback"] or ()), _first_words(sample)
            known = {"id": sample["id"], "prompt": prompt, "comments": comments}
            probes.append(result.Probe(**known, post=post))
    found = result.Interaction(
        workarounds=tuple(one for sample in samples for one in _workarounds(sample, times)),
        probes=tuple(probes),
    )
    definition = {
        "workarounds": "candidates: a comment of verdict success or mixed after one, of another "
        "post, of verdict failure or mixed with a keyword, on the same sample",
        "probes": "samples of kind probe",
    }
    return AnalysisPart(found=found, definition=definition)


def _workarounds(sample: Sample, times: PostTimes) -> Iterator[result.Workaround]:
    comments = _comments(sample)
    if all(times.of(one.url) for one in comments):
        comments.sort(key=lambda one: times.order(one.url)[:2])
    said_by: dict[str, set[str | None]] = defaultdict(set)  # posts by the failure that they name
    for one in comments:
        # Others have named it.
        failed = tuple(name for name, posts in said_by.items() if len(posts) > (one.url in posts))
        if failed and one.verdict in WORKED:
            yield result.Workaround(
                id=sample["id"],
                prompt=_first_words(sample),
                failed=failed,
                comment=_example(one.url, one.text, times),
            )
        if one.form and one.keyword:
            said_by[one.keyword].add(one.url)


def _first_words(sample: Sample) -> str | None:
    return None if sample["prompt"] is None else shortened(sample["prompt"], LONGEST)


def posts_of_samples(samples: Iterable[Sample]) -> pa.Table | None:
    """The primary posts that samples tell of, null where no time of any is known."""
    rows: dict[str, dict[str, Any]] = {}
    for one in samples:
        for url in (one["post_urls"] or ())[:1]:
            moment = one["timestamp"] or time_in_address(url)
            rows[url] = {"url": url, "timestamp": moment, "keywords": one["keywords"]}
    if not any(row["timestamp"] for row in rows.values()):
        return None
    return pa.Table.from_pylist(list(rows.values()), POST_SCHEMA)


def activity(
    posts: pa.Table | None, released: datetime.date, counted: str = COLLECTED
) -> AnalysisPart[result.Activity]:
    """How many posts there are a day, and how many each search term found (figure 5)."""
    if posts is None:
        return AnalysisPart.without(NotAnalyzed.NO_POSTS)
    moments, terms = posts["timestamp"].to_pylist(), posts["keywords"].to_pylist()
    by_day: dict[datetime.date, Counter[str]] = defaultdict(Counter)
    for moment, keywords in zip(moments, terms, strict=True):
        if moment is not None:
            how = "unknown" if keywords is None else "found" if keywords else "came_along"
            by_day[moment.astimezone(datetime.UTC).date()][how] += 1
    counts = Counter(term for found in terms for term in dict.fromkeys(found or ()))
    found = result.Activity(
        days=tuple(
            result.Day(
                date=date.isoformat(),
                since_release=(date - released).days,
                posts=day.total(),
                **{how: day[how] for how in ("found", "came_along", "unknown")},
            )
            for date, day in sorted(by_day.items())
        ),
        keywords=dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))),
        undated=moments.count(None),
    )
    definition = {"counted": counted, "days": "UTC", "released": released.isoformat()}
    return AnalysisPart(found=found, definition=definition)


def funnel_steps(manifest: Manifest | None) -> AnalysisPart[tuple[result.FunnelStep, ...]]:
    stats: dict[str, StageStats] = {}
    for row in manifest.funnel if manifest else ():
        if row.stage in STEPS:  # a release may be older or newer than this toolkit
            made_by, counts = stage_class(row.stage), cast("Mapping[str, Any]", row.counts)
            stats[row.stage] = StageStats(
                stage=row.stage,
                rows_in=counts.get("rows_in", 0),
                kept=counts.get("kept", 0),
                rejected=dict(counts.get("rejected") or {}),
                quarantined=dict(counts.get("quarantined") or {}),
                tally=dict(counts.get("tally") or {}),
                reads=made_by.inputs.name,
                makes=made_by.outputs.name,
            )
    if not stats:
        return AnalysisPart.without(NotAnalyzed.NO_RUN)
    steps = [
        result.FunnelStep(
            stage=one.stage,
            rows_in=one.rows_in,
            kept=one.kept,
            reads=one.reads,
            makes=one.makes,
            lost={**one.rejected, **one.quarantined},
            headline=stage_class(one.stage).headline(stats),
        )
        for one in stats.values()
    ]
    return AnalysisPart(found=tuple(steps))


WIDTH, HEIGHT = 960, 480
MOST_WORDS = 150
LONGEST_WORD = 100  # characters: trying sizes for a whole text takes minutes, and finds none
LABEL = "Failures that people speak of, the most frequent the largest"
SVG = "http://www.w3.org/2000/svg"


class BadFontError(Exception):
    """A file is no font that can be read."""


def word_cloud(
    keywords: Sequence[result.FailureKeyword] | None, *, font: Path | None = None, seed: int = 0
) -> AnalysisPart[result.WordCloud]:
    """Lays keywords out in a plane, the most frequent the largest."""
    if not keywords:
        return AnalysisPart.without(NotAnalyzed.NO_COMMENTS)
    if not (find_spec("wordcloud") and find_spec("fontTools")):
        detail = str(MissingExtraError("the word cloud", EXTRA))
        return AnalysisPart.without(NotAnalyzed.MISSING_EXTRA, detail)
    from wordcloud import WordCloud as Layout

    layout = Layout(
        width=WIDTH,
        height=HEIGHT,
        max_words=MOST_WORDS,
        font_path=str(font) if font else None,
        random_state=seed,
        background_color=None,
        color_func=lambda *_, **__: "currentColor",
    )
    file = Path(layout.font_path)
    try:
        glyphs = _glyphs(file)
    except BadFontError as error:
        return AnalysisPart.without(NotAnalyzed.BAD_FONT, str(error))
    written = [one for one in keywords if glyphs.issuperset(one.keyword)]
    sizes = {one.keyword: one.comments for one in written if len(one.keyword) <= LONGEST_WORD}
    if not sizes:
        return AnalysisPart.without(NotAnalyzed.NO_SPACE if written else NotAnalyzed.NO_GLYPHS)
    layout.generate_from_frequencies(sizes)
    shown = len(layout.layout_)
    left_out = {
        NotAnalyzed.NO_GLYPHS: len(keywords) - len(written),
        NotAnalyzed.NO_SPACE: len(written) - shown,
    }
    definition = {
        "by": f"wordcloud {version('wordcloud')}",
        "font": file.name,
        "most_words": MOST_WORDS,
        "seed": seed,
    }
    counts = {str(reason): count for reason, count in left_out.items() if count}
    found = result.WordCloud(svg=_inline(layout.to_svg()), words=shown, left_out=counts)
    return AnalysisPart(found=found, definition=definition)


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


def _inline(svg: str) -> str:
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
