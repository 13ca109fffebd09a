"""The comments on a sample as a model is shown them, and the verdict that each was given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from echo_hf.curate.feedback_answer import MOST_COMMENTS, FeedbackAnswer, JudgedComment
from echo_hf.curate.keywords import failure_keyword
from echo_hf.reasons import Notice
from echo_hf.shortening import shortened

LONGEST_TEXT = 4000
LONGEST_TEXTS = 16_000  # of a part; a single comment is shorter
Sample = Mapping[str, Any]
Comment = Mapping[str, Any]
Finding = tuple[Notice, str]


def parts_of(sample: Sample) -> list[list[Comment]]:
    """Cuts the comments on a sample into parts that an answer can name and a model can read.

    Args:
        sample: A row of samples in context.

    Returns:
        The parts, each comment in one; a single empty part where there is no comment.
    """
    parts: list[list[Comment]] = [[]]
    room = LONGEST_TEXTS
    for comment in _comments(sample):
        room -= len(comment["text"])
        if len(parts[-1]) == MOST_COMMENTS or (parts[-1] and room < 0):
            parts.append([])
            room = LONGEST_TEXTS - len(comment["text"])
        parts[-1].append(comment)
    return parts


def _comments(sample: Sample) -> Iterator[Comment]:
    said = sample["community_feedback"]
    author = {post["url"]: post["author"] for post in sample["context"]}
    asker = author.get(sample["post_urls"][0])
    texts = shortened([one["feedback"] for one in said], LONGEST_TEXT, LONGEST_TEXT * len(said))
    for number, (one, text) in enumerate(zip(said, texts, strict=True)):
        by_author = asker is not None and author.get(one["post_url"]) == asker
        yield {"comment": number, "text": text, "by_author": by_author}


@dataclass
class Verdicts:
    """The verdicts on the comments of one sample.

    Attributes:
        comments: The sample's feedback.
        findings: What had to be corrected.
    """

    comments: Sequence[Mapping[str, Any]]
    findings: list[Finding] = field(default_factory=list)
    _given: dict[int, JudgedComment] = field(default_factory=dict)

    def add(self, answer: FeedbackAnswer, part: Iterable[Comment]) -> None:
        """Takes over the answer about one part of the comments.

        Args:
            answer: What the model said.
            part: What it was shown.
        """
        shown = {one["comment"] for one in part}
        for judged in answer.feedback:
            name = f"comment {judged.comment}"
            if judged.comment not in shown:
                self.findings.append((Notice.UNKNOWN_NUMBER, name))
            elif judged.comment not in self._given:
                self._take(judged, name)
            elif self._given[judged.comment] != judged:
                self.findings.append((Notice.JUDGED_TWICE, name))
        for number in sorted(shown - set(self._given)):
            self.findings.append((Notice.UNJUDGED_COMMENT, self.comments[number]["post_url"]))

    def feedback(self) -> list[dict[str, Any]]:
        """The comments with their verdicts; null where there is none."""
        return [{**one, **self._verdict(number)} for number, one in enumerate(self.comments)]

    def _take(self, judged: JudgedComment, name: str) -> None:
        self._given[judged.comment] = judged
        _, notice = failure_keyword(judged)
        if notice:
            self.findings.append((notice, f"{name}: {judged.keyword!r}"))

    def _verdict(self, number: int) -> dict[str, str | None]:
        if (judged := self._given.get(number)) is None:
            return {"verdict": None, "keyword": None}
        keyword, _ = failure_keyword(judged)
        return {"verdict": judged.verdict, "keyword": keyword}
