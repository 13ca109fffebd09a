"""What people say failed: keywords with counts, examples, and when it was said (figure 4)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf.analysis.figures import Part
from echo_hf.analysis.keyword_form import RULE, keyword_form
from echo_hf.analysis.post_times import PostTimes
from echo_hf.analysis.result import Example, FailureKeyword, Failures
from echo_hf.curate.keywords import WITH_KEYWORD
from echo_hf.reasons import NotAnalyzed

UNASKED = "unasked"
LONGEST_EXAMPLE = 280
Sample = Mapping[str, Any]
FailurePart = Part[Failures]


@dataclass(frozen=True)
class Comment:
    """A comment on a sample.

    Attributes:
        sample: Id of the sample.
        url: Address of its post.
        text: What it says, null where its words are left out.
        verdict: success, failure, mixed or none; null where nobody judged it.
        keyword: What failed, null where there is none.
    """

    sample: str
    url: str
    text: str | None
    verdict: str | None
    keyword: str | None

    @property
    def form(self) -> str | None:
        """The form that all spellings of its keyword share; null without a failure's keyword."""
        if self.verdict not in WITH_KEYWORD or not self.keyword:
            return None
        return keyword_form(self.keyword) or None


def comments_of(sample: Sample) -> Iterator[Comment]:
    """The comments on a sample, in their order.

    Args:
        sample: A row of samples.

    Yields:
        Its comments.
    """
    for one in sample["community_feedback"] or ():
        verdict, keyword = one.get("verdict"), one.get("keyword")
        yield Comment(sample["id"], one["post_url"], one.get("feedback"), verdict, keyword)


def example(url: str, text: str | None, times: PostTimes) -> Example:
    """A post's words as an example: its first characters, on one line."""
    shown = None if text is None else shortened(text, LONGEST_EXAMPLE)
    return Example(post_url=url, time=times.text(url), text=shown)


def shortened(text: str, longest: int) -> str:
    r"""A text on one line, no longer than asked.

    Example:
        >>> shortened("a red\n  car", 7)
        'a red …'
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def failures(samples: Sequence[Sample], times: PostTimes, *, examples: int = 5) -> FailurePart:
    """Counts what people say failed.

    Args:
        samples: Rows of samples, with verdicts and keywords of their comments.
        times: When posts were posted.
        examples: Most examples of each keyword: the earliest, each of another sample where there
            are as many.

    Returns:
        The keywords, the most frequent first.
    """
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
