"""From a model's answers about one thread to samples that keep to the rules.

The rules are enforced here, whatever the model says: a post belongs to one sample, its words are
feedback of one sample, and a picture without words goes to the prompt above it. Each correction
is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from echo_hf.context.answers import ExtractAnswer, Quality, SampleAnswer
from echo_hf.context.spans import anchor
from echo_hf.reasons import Notice

Post = Mapping[str, Any]
Finding = tuple[Notice, str]


@dataclass
class Draft:
    """A sample in the making.

    Attributes:
        primary: Number of the post that says what the task is.
        place: Offset of the prompt's paragraph in that post, -1 when it is not there.
        nth: Number among the samples of one answer with the same primary post and place.
        prompt: The instruction.
        quality: How usable it is.
        posts: Numbers of its posts, the most important first.
        owned: Those of them whose pictures are its own.
        feedback: What was said, by the number of the post that said it.
    """

    primary: int
    place: int
    nth: int
    prompt: str
    quality: Quality
    posts: list[int] = field(default_factory=list)
    owned: list[int] = field(default_factory=list)
    feedback: dict[int, str] = field(default_factory=dict)


@dataclass
class Drafts:
    """The samples of one thread.

    Attributes:
        posts: The thread's posts, depth first.
        findings: What had to be corrected.
    """

    posts: Sequence[Post]
    findings: list[Finding] = field(default_factory=list)
    _drafts: dict[tuple[int, int, int], Draft] = field(default_factory=dict)
    _owner: dict[int, Draft] = field(default_factory=dict)
    _said_to: set[int] = field(default_factory=set)

    def add(self, answer: ExtractAnswer, shown: Sequence[int]) -> None:
        """Takes over the answer about one part of the thread.

        Args:
            answer: What the model found.
            shown: Numbers of the posts in that part.
        """
        siblings: dict[tuple[int, int], int] = {}
        for sample in answer.samples:
            numbers = self._known(sample.posts, shown)
            prompt = sample.prompt.strip()
            if not prompt or not numbers:
                self._find(Notice.EMPTY_SAMPLE, sample.prompt[:80])
                continue
            draft = self._draft(numbers[0], prompt, sample, siblings)
            self._give(draft, numbers)
            self._listen(draft, sample, shown)

    def finish(self) -> list[Draft]:
        """The samples in the order they were found, with the pictures that came without words."""
        for number, post in enumerate(self.posts):
            if number not in self._owner and post["pictures"] and not (post["text"] or "").strip():
                above = next(
                    (self._owner[n] for n in self._above(number) if n in self._owner), None
                )
                if above:
                    self._give(above, [number])
        return list(self._drafts.values())

    def _draft(
        self, primary: int, prompt: str, sample: SampleAnswer, siblings: dict[tuple[int, int], int]
    ) -> Draft:
        place = anchor(prompt, self.posts[primary]["text"] or "")
        nth = siblings.get((primary, place), 0)
        siblings[primary, place] = nth + 1
        # Two parts of a long thread may both show a prompt: the same source is the same sample.
        draft = Draft(primary, place, nth, prompt, sample.quality)
        return self._drafts.setdefault((primary, place, nth), draft)

    def _give(self, draft: Draft, numbers: Sequence[int]) -> None:
        for number in numbers:
            owner = self._owner.setdefault(number, draft)
            if owner is draft and number not in draft.owned:
                draft.owned.append(number)
            elif owner is not draft:
                self._find(Notice.POST_USED_TWICE, self.posts[number]["url"])
            if number not in draft.posts and (owner is draft or number == draft.primary):
                draft.posts.append(number)

    def _listen(self, draft: Draft, sample: SampleAnswer, shown: Sequence[int]) -> None:
        for said in sample.feedback:
            text = said.feedback.strip()
            if not text or not self._known([said.post], shown):
                continue
            if said.post in self._said_to:
                self._find(Notice.POST_USED_TWICE, self.posts[said.post]["url"])
                continue
            self._said_to.add(said.post)
            draft.feedback[said.post] = self._as_written(said.post, text)

    def _as_written(self, number: int, text: str) -> str:
        written = self.posts[number]["text"] or ""
        if " ".join(text.split()) in " ".join(written.split()):
            return text
        self._find(Notice.FEEDBACK_NOT_IN_POST, self.posts[number]["url"])
        return written.strip()

    def _known(self, numbers: Sequence[int], shown: Sequence[int]) -> list[int]:
        seen = dict.fromkeys(numbers)
        for number in seen:
            if number not in shown:
                self._find(Notice.UNKNOWN_NUMBER, str(number))
        return [number for number in seen if number in shown]

    def _above(self, number: int) -> Iterator[int]:
        while (number := self.posts[number]["parent"]) >= 0:
            yield number

    def _find(self, notice: Notice, detail: str) -> None:
        self.findings.append((notice, detail))
