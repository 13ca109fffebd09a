"""From a model's answers about one thread to samples that keep to the rules.

The rules are enforced here, whatever the model says: a post belongs to one sample, its words are
feedback of one sample, a picture belongs to one sample, and a picture without words goes to the
prompt above it. Each correction is noted. Equal pictures in two threads stay in both: people give
the same famous picture to different prompts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from echo_hf.context.answers import ExtractAnswer, Quality, SampleAnswer
from echo_hf.context.spans import span_start, squeezed
from echo_hf.reasons import Notice
from echo_hf.shortening import MARK

Post = Mapping[str, Any]
Finding = tuple[Notice, str]
BEST_FIRST: tuple[str, ...] = get_args(Quality)
# Addressees, links, and signs that are shown as emoji (digits and some letters can be).
NO_WORDS = re.compile(
    r"@[\w.@-]+|(?:https?://|www\.|pic\.twitter\.com/)\S*|.\ufe0f\u20e3?|[0-9]\u20e3"
)


@dataclass
class Draft:
    """A sample in the making.

    Attributes:
        primary: Number of the post that says what the task is.
        start: Offset of the prompt's longest span in that post's text, -1 when it has none there.
        prompt: The instruction.
        quality: How usable it is.
        posts: Numbers of its posts, the most important first.
        owned: Those of them whose pictures are its own.
        pictures: Digests of the pictures that no sample before it has; set when finished.
        feedback: What was said, by the number of the post that said it.
    """

    primary: int
    start: int
    prompt: str
    quality: Quality
    posts: list[int] = field(default_factory=list)
    owned: list[int] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
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
    _drafts: list[Draft] = field(default_factory=list)
    _owner: dict[int, Draft] = field(default_factory=dict)
    _said_to: set[int] = field(default_factory=set)

    def add(self, answer: ExtractAnswer, shown: Collection[int]) -> None:
        """Takes over the answer about one part of the thread.

        Args:
            answer: What the model found.
            shown: Numbers of the posts in that part.
        """
        shown = frozenset(shown)
        earlier = list(self._drafts)
        prompts = {squeezed(sample.prompt) for sample in answer.samples}
        for sample in answer.samples:
            numbers = self._known(sample.posts, shown)
            prompt = sample.prompt.strip()
            if not prompt or not numbers:
                self._find(Notice.EMPTY_SAMPLE, sample.prompt[:80])
                continue
            start = span_start(prompt, self.posts[numbers[0]]["text"] or "")
            found = Draft(numbers[0], start, prompt, sample.quality)
            draft = self._merged(found, earlier, prompts)
            self._give(draft, numbers)
            self._listen(draft, sample, shown)

    def finish(self) -> list[Draft]:
        """The samples in the order they were found, with the pictures that came without words."""
        self._adopt_wordless()
        self._share_out_pictures()
        for draft in self._drafts:
            if MARK.search(draft.prompt):
                self._find(Notice.SHORTENED_PROMPT, self.posts[draft.primary]["url"])
                draft.quality = max(draft.quality, "Analysis", key=BEST_FIRST.index)
        return list(self._drafts)

    def _merged(self, found: Draft, earlier: list[Draft], prompts: Collection[str]) -> Draft:
        # Two parts of a long thread may both show a prompt; one answer tells its samples apart.
        same = next((draft for draft in earlier if _agree(draft, found)), None) or next(
            (draft for draft in earlier if _same_place(draft, found, prompts)), None
        )
        if same is None:
            self._drafts.append(found)
            return found
        earlier[:] = [draft for draft in earlier if draft is not same]
        same.quality = min(same.quality, found.quality, key=BEST_FIRST.index)
        return same

    def _adopt_wordless(self) -> None:
        nearest: list[Draft | None] = []
        for number, post in enumerate(self.posts):
            above = nearest[post["parent"]] if post["parent"] >= 0 else None
            if above and number not in self._owner and post["pictures"] and _wordless(post["text"]):
                self._owner[number] = above
                above.owned.append(number)
                above.posts.append(number)
            nearest.append(self._owner.get(number, above))

    def _share_out_pictures(self) -> None:
        has: dict[str, Draft] = {}
        for draft in self._drafts:
            shown = (one["sha256"] for n in draft.owned for one in self.posts[n]["pictures"] or [])
            digests = [digest for digest in dict.fromkeys(shown) if digest]
            draft.pictures = [one for one in digests if has.setdefault(one, draft) is draft]
            for digest in digests:
                if has[digest] is not draft:
                    self._find(Notice.PICTURE_USED_TWICE, digest)

    def _give(self, draft: Draft, numbers: Sequence[int]) -> None:
        for number in numbers:
            owner = self._owner.setdefault(number, draft)
            if owner is draft and number not in draft.owned:
                draft.owned.append(number)
            elif owner is not draft:
                self._find(Notice.POST_USED_TWICE, self.posts[number]["url"])
            if number not in draft.posts and (owner is draft or number == draft.primary):
                draft.posts.append(number)

    def _listen(self, draft: Draft, sample: SampleAnswer, shown: Collection[int]) -> None:
        for said in sample.feedback:
            text = said.feedback.strip()
            if not text or not self._known([said.post], shown):
                continue
            if said.post in self._said_to:
                self._find(Notice.POST_USED_TWICE, self.posts[said.post]["url"])
                continue
            if written := self._as_written(said.post, text):
                self._said_to.add(said.post)
                draft.feedback[said.post] = written

    def _as_written(self, number: int, text: str) -> str:
        written = self.posts[number]["text"] or ""
        if squeezed(text) in squeezed(written):
            return text
        self._find(Notice.FEEDBACK_NOT_IN_POST, self.posts[number]["url"])
        return written.strip()

    def _known(self, numbers: Sequence[int], shown: Collection[int]) -> list[int]:
        seen = dict.fromkeys(numbers)
        for number in seen:
            if number not in shown:
                self._find(Notice.UNKNOWN_NUMBER, str(number))
        return [number for number in seen if number in shown]

    def _find(self, notice: Notice, detail: str) -> None:
        self.findings.append((notice, detail))


def _agree(draft: Draft, found: Draft) -> bool:
    return draft.primary == found.primary and squeezed(draft.prompt) == squeezed(found.prompt)


def _same_place(draft: Draft, found: Draft, prompts: Collection[str]) -> bool:
    # A draft that the answer repeats word for word waits for that.
    placed = found.start >= 0 and (draft.primary, draft.start) == (found.primary, found.start)
    return placed and squeezed(draft.prompt) not in prompts


def _wordless(text: str | None) -> bool:
    """Whether a text says nothing: mentions, links, emoji and punctuation are no words.

    Example:
        >>> _wordless("@mira_draws !! https://example.org/1"), _wordless("@mira_draws wow")
        (True, False)
    """
    return not any(character.isalnum() for character in NO_WORDS.sub(" ", text or ""))
