"""What people say failed and how they work around it: keywords with counts, examples, times."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from echo_hf.curate.feedback import WITH_KEYWORD
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.result import (
    AnalysisPart,
    Example,
    FailureKeyword,
    Failures,
    Interaction,
    Probe,
    Workaround,
)

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
    words = re.findall(r"[^\W_]+", folded)
    return " ".join(sorted({_plain(word) for word in words}))


def _plain(word: str) -> str:
    if len(word) >= SHORTEST_PLURAL and word.endswith("s") and not SINGULAR.search(word):
        word = word[:-1]
    return BRITISH.get(word, word)


X_STATUS = re.compile(r"https://(?:x|twitter)\.com/(?:\w+/)*status/(\d{15,19})(?!\d)")
X_BEGAN = datetime(2010, 11, 4, 1, 42, 54, 657_000, tzinfo=UTC)  # of its identifiers' clock
BELOW_TIME = 22  # bits of an identifier that say which of a millisecond's posts it is


def time_in_address(url: str | None) -> datetime | None:
    found = X_STATUS.match(url or "")
    if found is None:
        return None
    return X_BEGAN + timedelta(milliseconds=int(found.group(1)) >> BELOW_TIME)


@dataclass(frozen=True)
class PostTimes:
    known: Mapping[str, datetime] = field(default_factory=dict)

    def of(self, url: str | None) -> datetime | None:
        """When the post of an address was posted, null when nothing says so."""
        return self.known.get(url or "") or time_in_address(url)

    def order(self, url: str | None) -> tuple[bool, datetime, str]:
        """What sorts posts by time, those without one last."""
        moment = self.of(url)
        return moment is None, moment or X_BEGAN, url or ""

    def text(self, url: str | None) -> str | None:
        """The same in ISO 8601, to the second."""
        moment = self.of(url)
        return moment.astimezone(UTC).isoformat(timespec="seconds") if moment else None


def post_times(posts: pa.Table | None) -> PostTimes:
    return PostTimes({} if posts is None else dict(_known(posts)))


def _known(posts: pa.Table) -> Iterator[tuple[str, datetime]]:
    times = posts["timestamp"].to_pylist()
    for url, moment in zip(posts["url"].to_pylist(), times, strict=True):
        if moment is not None:
            yield url, moment


UNASKED = "unasked"
LONGEST_EXAMPLE = 280
Sample = Mapping[str, Any]
FailurePart = AnalysisPart[Failures]


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


def comments_of(sample: Sample) -> Iterator[Comment]:
    for one in sample["community_feedback"] or ():
        verdict, keyword = one.get("verdict"), one.get("keyword")
        yield Comment(sample["id"], one.get("post_url"), one.get("feedback"), verdict, keyword)


def example(url: str | None, text: str | None, times: PostTimes) -> Example:
    shown = None if text is None else shortened(text, LONGEST_EXAMPLE)
    return Example(post_url=url, time=times.text(url), text=shown)


def shortened(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def failures(samples: Sequence[Sample], times: PostTimes, *, examples: int = 5) -> FailurePart:
    comments = [comment for sample in samples for comment in comments_of(sample)]
    verdicts = Counter(one.verdict or UNASKED for one in comments)
    named: dict[str, list[Comment]] = defaultdict(list)
    for comment in comments:
        if comment.form is not None:
            named[comment.form].append(comment)
    failed = sum(verdicts[verdict] for verdict in WITH_KEYWORD)
    if not failed:
        reason = NotAnalyzed.NO_COMMENTS
        return FailurePart(reason=reason, detail=reason.meaning)
    keywords = [_keyword(group, times, examples) for group in named.values()]
    count = sum(map(len, named.values()))
    found = Failures(
        keywords=tuple(sorted(keywords, key=lambda one: (-one.comments, one.keyword))),
        verdicts=dict(sorted(verdicts.items())),
        unnamed=failed - count,
        untimed=sum(times.of(one.url) is None for group in named.values() for one in group),
    )
    definition = {"spellings": RULE, "counted": "comments of verdict failure or mixed"}
    return FailurePart(found=found, definition=definition)


def _keyword(group: Sequence[Comment], times: PostTimes, examples: int) -> FailureKeyword:
    spellings = Counter(one.keyword for one in group if one.keyword)
    ranked = dict(sorted(spellings.items(), key=lambda pair: (-pair[1], pair[0])))
    moments = [moment for one in group if (moment := times.of(one.url)) is not None]
    return FailureKeyword(
        keyword=next(iter(ranked)),
        comments=len(group),
        samples=len({one.sample for one in group}),
        spellings=ranked,
        by_month=dict(sorted(Counter(f"{moment:%Y-%m}" for moment in moments).items())),
        examples=tuple(
            example(one.url, one.text, times) for one in _chosen(group, times)[:examples]
        ),
    )


def _chosen(group: Sequence[Comment], times: PostTimes) -> list[Comment]:
    """The comments by time, those of a sample that had one already after all others."""
    ordered = sorted(group, key=lambda one: times.order(one.url))
    seen: Counter[str] = Counter()
    turns = []
    for one in ordered:
        turns.append(seen[one.sample])
        seen[one.sample] += 1
    return [one for _, one in sorted(zip(turns, ordered, strict=True), key=lambda pair: pair[0])]


LONGEST_PROMPT = 280
PROBE = "probe"
WORKED = frozenset({"success", "mixed"})
InteractionPart = AnalysisPart[Interaction]


def interaction(samples: Sequence[Sample], times: PostTimes) -> InteractionPart:
    """Lists what may be workarounds, and what are probes."""
    found = Interaction(
        workarounds=tuple(one for sample in samples for one in _workarounds(sample, times)),
        probes=tuple(_probe(sample, times) for sample in samples if sample["kind"] == PROBE),
    )
    definition = {
        "workarounds": "candidates: a comment of verdict success or mixed after one, of another "
        "post, of verdict failure or mixed with a keyword, on the same sample",
        "probes": "samples of kind probe",
    }
    return InteractionPart(found=found, definition=definition)


def _workarounds(sample: Sample, times: PostTimes) -> Iterator[Workaround]:
    comments = list(comments_of(sample))
    if all(times.of(one.url) for one in comments):
        comments.sort(key=lambda one: times.order(one.url)[:2])
    said_by: dict[str, set[str | None]] = defaultdict(set)  # posts by the failure that they name
    for comment in comments:
        failed = _named_by_others(said_by, comment.url) if comment.verdict in WORKED else ()
        if failed:
            yield Workaround(
                id=sample["id"],
                prompt=_first_words(sample),
                failed=failed,
                comment=example(comment.url, comment.text, times),
            )
        if comment.form and comment.keyword:
            said_by[comment.keyword].add(comment.url)


def _named_by_others(said_by: Mapping[str, set[str | None]], url: str | None) -> tuple[str, ...]:
    return tuple(keyword for keyword, posts in said_by.items() if len(posts) > (url in posts))


def _probe(sample: Sample, times: PostTimes) -> Probe:
    url = (sample["post_urls"] or [None])[0]
    return Probe(
        id=sample["id"],
        prompt=_first_words(sample),
        post=example(url, None, times),
        comments=len(sample["community_feedback"] or ()),
    )


def _first_words(sample: Sample) -> str | None:
    return None if sample["prompt"] is None else shortened(sample["prompt"], LONGEST_PROMPT)
