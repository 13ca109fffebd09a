"""Analyze comments and posts: failures, workarounds, activity, and what each build stage lost."""

from __future__ import annotations

import datetime
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, cast
from xml.etree import ElementTree as ET

import pyarrow as pa

from echo_hf.config.sections import STAGES
from echo_hf.curate.feedback import KEYWORD_VERDICTS, RULE, normalize_keyword
from echo_hf.hub.manifest import Manifest
from echo_hf.report.analysis import result
from echo_hf.report.analysis.prompts import EXTRA, shorten_prompt
from echo_hf.report.analysis.result import AnalysisPart, Example, NotAnalyzed
from echo_hf.tables import POSTS, SampleRow

X_STATUS = re.compile(r"https://(?:x|twitter)\.com/(?:\w+/)*status/(\d{15,19})(?!\d)")
# The epoch of its post identifiers.
X_EPOCH = datetime.datetime(2010, 11, 4, 1, 42, 54, 657_000, tzinfo=datetime.UTC)
SEQUENCE_BITS = 22  # low bits of an identifier, which number the posts of one millisecond


def parse_post_time(url: str | None) -> datetime.datetime | None:
    match = X_STATUS.match(url or "")
    if match is None:
        return None
    return X_EPOCH + datetime.timedelta(milliseconds=int(match.group(1)) >> SEQUENCE_BITS)


@dataclass(frozen=True)
class PostTimes:
    times: Mapping[str, datetime.datetime] = field(default_factory=dict)

    @classmethod
    def from_table(cls, posts: pa.Table | None) -> PostTimes:
        rows = posts.select(["url", "timestamp"]).to_pylist() if posts is not None else ()
        return cls({row["url"]: row["timestamp"] for row in rows if row["timestamp"] is not None})

    def get(self, url: str | None) -> datetime.datetime | None:
        """Return when a post was posted; null where nothing states it."""
        return self.times.get(url or "") or parse_post_time(url)

    def sort_key(self, url: str | None) -> tuple[bool, datetime.datetime, str]:
        """Return a key that sorts posts by time, those without a time last."""
        moment = self.get(url)
        return moment is None, moment or X_EPOCH, url or ""


POST_COLUMNS = ("url", "timestamp", "keywords")
POST_SCHEMA = pa.schema([POSTS.schema.field(name) for name in POST_COLUMNS])
COLLECTED = "all collected posts"
SAMPLE_POSTS = "the primary posts of the samples: a release names no others that were collected"
UNASKED = "unasked"
MAX_TEXT = 280
PROBE = "probe"
SUCCESS_VERDICTS = frozenset({"success", "mixed"})


class Comment(NamedTuple):
    sample: str
    url: str | None
    text: str | None
    verdict: str | None
    keyword: str | None

    @property
    def form(self) -> str | None:
        """The normalized keyword, where the comment is about a failure."""
        if self.verdict in KEYWORD_VERDICTS and self.keyword:
            return normalize_keyword(self.keyword) or None
        return None


def _read_comments(sample: SampleRow) -> list[Comment]:
    columns = ("post_url", "feedback", "verdict", "keyword")
    rows = sample["community_feedback"] or ()
    return [Comment(sample["id"], *(row.get(name) for name in columns)) for row in rows]


def _example(url: str | None, text: str | None, times: PostTimes) -> Example:
    moment = times.get(url)
    time = moment.astimezone(datetime.UTC).isoformat(timespec="seconds") if moment else None
    return Example(post_url=url, time=time, text=_shorten(text))


def _shorten(text: str | None) -> str | None:
    return None if text is None else shorten_prompt(text, MAX_TEXT)


def analyze_failures(
    samples: Sequence[SampleRow], times: PostTimes, *, examples: int = 5
) -> AnalysisPart[result.FailureAnalysis]:
    comments = [comment for sample in samples for comment in _read_comments(sample)]
    verdicts = Counter(comment.verdict or UNASKED for comment in comments)
    if not any(verdicts[verdict] for verdict in KEYWORD_VERDICTS):
        return AnalysisPart.omit(NotAnalyzed.NO_COMMENTS)
    groups: dict[str, list[Comment]] = defaultdict(list)
    for comment in comments:
        if form := comment.form:
            groups[form].append(comment)
    keywords = [_summarize(group, times, examples) for group in groups.values()]
    analysis = result.FailureAnalysis(
        keywords=tuple(sorted(keywords, key=lambda keyword: (-keyword.comments, keyword.keyword))),
        verdicts=dict(sorted(verdicts.items())),
    )
    return AnalysisPart(found=analysis, definition={"spellings": RULE})


def _summarize(group: Sequence[Comment], times: PostTimes, examples: int) -> result.FailureKeyword:
    spellings = Counter(comment.keyword for comment in group if comment.keyword)
    ranked = dict(sorted(spellings.items(), key=lambda pair: (-pair[1], pair[0])))
    months = Counter(f"{moment:%Y-%m}" for comment in group if (moment := times.get(comment.url)))
    # By time; further comments on a sample come after the first ones of all samples.
    turns = Counter[str]()
    order = []
    for comment in sorted(group, key=lambda comment: times.sort_key(comment.url)):
        order.append((turns[comment.sample], comment))
        turns[comment.sample] += 1
    order.sort(key=itemgetter(0))
    return result.FailureKeyword(
        keyword=next(iter(ranked)),
        comments=len(group),
        samples=len(turns),
        spellings=ranked,
        by_month=dict(sorted(months.items())),
        examples=tuple(_example(first.url, first.text, times) for _, first in order[:examples]),
    )


def interaction(samples: Sequence[SampleRow], times: PostTimes) -> AnalysisPart[result.Interaction]:
    """List candidates for workarounds, and probes."""
    probes = [
        result.Probe(
            id=sample["id"],
            prompt=_shorten(sample["prompt"]),
            post=_example((sample["post_urls"] or [None])[0], None, times),
            comments=len(sample["community_feedback"] or ()),
        )
        for sample in samples
        if sample["kind"] == PROBE
    ]
    ways = [way for sample in samples for way in _find_workarounds(sample, times)]
    interaction = result.Interaction(workarounds=tuple(ways), probes=tuple(probes))
    definition = {
        "workarounds": "candidates: a comment of verdict success or mixed after one, of another "
        "post, of verdict failure or mixed with a keyword, on the same sample"
    }
    return AnalysisPart(found=interaction, definition=definition)


def _find_workarounds(sample: SampleRow, times: PostTimes) -> Iterator[result.Workaround]:
    comments = _read_comments(sample)
    if all(times.get(comment.url) for comment in comments):
        comments.sort(key=lambda comment: times.sort_key(comment.url)[:2])
    posts_of: dict[str, set[str | None]] = defaultdict(set)  # by keyword, the posts that name it
    for comment in comments:
        # Only what another post has named can be worked around.
        failed = tuple(name for name, posts in posts_of.items() if posts - {comment.url})
        if failed and comment.verdict in SUCCESS_VERDICTS:
            yield result.Workaround(
                id=sample["id"],
                prompt=_shorten(sample["prompt"]),
                failed=failed,
                comment=_example(comment.url, comment.text, times),
            )
        if comment.form and comment.keyword:
            posts_of[comment.keyword].add(comment.url)


def build_sample_posts(samples: Iterable[SampleRow]) -> pa.Table | None:
    """Build a table of the samples' primary posts; null where no time is known."""
    rows: dict[str, dict[str, Any]] = {}
    for sample in samples:
        for url in (sample["post_urls"] or ())[:1]:
            moment = sample["timestamp"] or parse_post_time(url)
            rows[url] = {"url": url, "timestamp": moment, "keywords": sample["keywords"]}
    if not any(row["timestamp"] for row in rows.values()):
        return None
    return pa.Table.from_pylist(list(rows.values()), POST_SCHEMA)


def count_activity(
    posts: pa.Table | None, released: datetime.date, counted: str = COLLECTED
) -> AnalysisPart[result.Activity]:
    """Count the posts per day, and those that each search term found (figure 5)."""
    if posts is None:
        return AnalysisPart.omit(NotAnalyzed.NO_POSTS)
    by_day, terms, undated = Counter[datetime.date](), Counter[str](), 0
    for row in posts.select(["timestamp", "keywords"]).to_pylist():
        terms.update(set(row["keywords"] or ()))
        if row["timestamp"] is None:
            undated += 1
        else:
            by_day[row["timestamp"].astimezone(datetime.UTC).date()] += 1
    days = [
        result.DayCount(date=date.isoformat(), since_release=(date - released).days, posts=count)
        for date, count in sorted(by_day.items())
    ]
    ranked = dict(sorted(terms.items(), key=lambda pair: (-pair[1], pair[0])))
    activity = result.Activity(days=tuple(days), keywords=ranked, undated=undated)
    definition = {"counted": counted, "days": "UTC", "released": released.isoformat()}
    return AnalysisPart(found=activity, definition=definition)


def read_funnel(manifest: Manifest | None) -> AnalysisPart[tuple[result.FunnelStep, ...]]:
    steps, names = [], STAGES.list_names()
    for row in manifest.funnel if manifest else ():
        if row.stage in names:  # a release may be older or newer than this toolkit
            stage, counts = STAGES.find(row.stage), cast("Mapping[str, Any]", row.counts)
            steps.append(
                result.FunnelStep(
                    stage=row.stage,
                    rows_in=counts.get("rows_in", 0),
                    kept=counts.get("kept", 0),
                    reads=stage.inputs.name,
                    makes=stage.outputs.name,
                    lost={**(counts.get("rejected") or {}), **(counts.get("quarantined") or {})},
                )
            )
    if not steps:
        return AnalysisPart.omit(NotAnalyzed.NO_RUN)
    return AnalysisPart(found=tuple(steps))


WIDTH, HEIGHT = 960, 480
MAX_WORDS = 150
MAX_WORD_CHARACTERS = 100  # trying font sizes for a whole text would take minutes, and find none
LABEL = "Failures that people speak of, the most frequent the largest"
SVG = "http://www.w3.org/2000/svg"


def draw_word_cloud(
    keywords: Sequence[result.FailureKeyword] | None, *, font: Path | None = None, seed: int = 0
) -> AnalysisPart[result.WordCloud]:
    """Draw keywords as a cloud, the most frequent the largest."""
    if not keywords:
        return AnalysisPart.omit(NotAnalyzed.NO_COMMENTS)
    if not (find_spec("wordcloud") and find_spec("fontTools")):
        return AnalysisPart.omit_without(EXTRA, "the word cloud")
    from fontTools.ttLib import TTFont
    from wordcloud import WordCloud as Layout

    layout = Layout(
        width=WIDTH,
        height=HEIGHT,
        max_words=MAX_WORDS,
        font_path=str(font) if font else None,
        random_state=seed,
        background_color=None,
        color_func=lambda *_, **__: "currentColor",
    )
    file = Path(layout.font_path)
    try:
        with TTFont(file, fontNumber=0) as font_file:
            glyphs = set(font_file.getBestCmap() or ()) | {ord(" ")}
    except Exception:  # a file that is no font may raise anything
        detail = f"cannot read font {file.name!r}: expected a font file, relative to the config"
        return AnalysisPart.omit(NotAnalyzed.BAD_FONT, detail)
    frequencies = {
        keyword.keyword: keyword.comments
        for keyword in keywords
        if keyword.keyword.isprintable() and glyphs.issuperset(map(ord, keyword.keyword))
    }
    sizes = {word: size for word, size in frequencies.items() if len(word) <= MAX_WORD_CHARACTERS}
    if not sizes:
        return AnalysisPart.omit(NotAnalyzed.NO_SPACE if frequencies else NotAnalyzed.NO_GLYPHS)
    layout.generate_from_frequencies(sizes)
    placed = len(layout.layout_)
    left_out = {
        NotAnalyzed.NO_GLYPHS: len(keywords) - len(frequencies),
        NotAnalyzed.NO_SPACE: len(frequencies) - placed,
    }
    counts = {str(reason): count for reason, count in left_out.items() if count}
    definition = {"by": f"wordcloud {version('wordcloud')}", "font": file.name, "seed": seed}
    cloud = result.WordCloud(svg=_make_inline_svg(layout.to_svg()), words=placed, left_out=counts)
    return AnalysisPart(found=cloud, definition=definition)


def _make_inline_svg(svg: str) -> str:
    """Turn wordcloud's SVG into a part of a page, without a style sheet."""
    ET.register_namespace("", SVG)
    root = ET.fromstring(svg)  # noqa: S314 - of the library, which escapes the words
    for style in root.findall(f"{{{SVG}}}style"):
        root.remove(style)
    size = {"viewBox": f"0 0 {root.attrib.pop('width')} {root.attrib.pop('height')}"}
    root.attrib.update({**size, "role": "img", "aria-label": LABEL, "font-family": "monospace"})
    for word in root.findall(f"{{{SVG}}}text"):
        word.set("fill", word.attrib.pop("style").removeprefix("fill:"))
    return ET.tostring(root, encoding="unicode")
