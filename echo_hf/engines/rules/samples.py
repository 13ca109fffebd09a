"""Samples in the making, and how good their prompts are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from echo_hf.context.answers import MOST_POSTS, MOST_SAMPLES
from echo_hf.engines.rules.feedback import feedback_text, judges_own
from echo_hf.engines.rules.labelled import Found
from echo_hf.engines.rules.names import Names
from echo_hf.engines.rules.phrases import BLANK
from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.spans import LONGEST_PROMPT
from echo_hf.engines.rules.thread import Post, Thread

Quality = Literal["Benchmark", "Analysis", "Trash"]
ORDER_OF_QUALITY: tuple[Quality, ...] = ("Benchmark", "Analysis", "Trash")
FEWEST_WORDS = 2
# What encloses a prompt is no part of what stands beside it.
OPENING, CLOSING = ' \t\r\n"“„«「『`*_', ' \t\r\n"”“»」』`*_,.;'


@dataclass
class Draft:
    """A sample in the making.

    Attributes:
        primary: The post that says what the task is.
        prompt: The task.
        quality: How usable it is.
        marked: Whether the author marked it as a prompt.
        around: What else its author says beside it.
        posts: Numbers of its posts, the most important first.
        feedback: What was said, by the number of the post that said it.
    """

    primary: Post
    prompt: str
    quality: Quality
    marked: bool = False
    around: list[Reading] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)
    feedback: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.posts.append(self.primary.number)
        self.template = BLANK.search(self.prompt) is not None

    def join(self, post: Post) -> bool:
        """Takes in another post with its pictures, while there is room."""
        if len(self.posts) < MOST_POSTS:
            self.posts.append(post.number)
            return True
        return False

    def hear(self, post: Post, text: str) -> bool:
        """Takes in what a post says about the result, while there is room."""
        said = feedback_text(text)
        if said is None or post.number in self.feedback or len(self.feedback) == MOST_POSTS:
            return False
        self.feedback[post.number] = said
        return True

    def hear_beside(self, post: Post, names: Names) -> None:
        """Takes in what a post says about the result beside its prompt; the first such words."""
        found = post.found
        pieces = (found.before.rstrip(OPENING), found.after.lstrip(CLOSING)) if found else ()
        for piece in pieces:
            if piece and judges_own(Reading(piece, names)) and self.hear(post, piece):
                return

    def as_answer(self) -> dict[str, Any]:
        """The sample as an extraction answers it."""
        return {
            "prompt": self.prompt,
            "quality": self.quality,
            "posts": self.posts,
            "feedback": [{"post": post, "feedback": text} for post, text in self.feedback.items()],
        }


@dataclass
class Samples:
    """The samples of a thread, as far as they are found.

    Attributes:
        thread: The thread.
        drafts: The samples, by the number of their primary post.
        owner: The sample that each post belongs to or stands below.
    """

    thread: Thread
    drafts: dict[int, Draft] = field(default_factory=dict)
    owner: dict[int, Draft] = field(default_factory=dict)

    def add_prompt(self, post: Post, found: Found) -> None:
        """Begins a sample with the prompt that a post holds."""
        names = self.thread.names
        around = [Reading(said, names) for said in (found.before + found.label, found.after)]
        quality = _quality(Reading(found.prompt, names), alone=found.alone)
        self._add(Draft(post, found.prompt, quality, found.marked, around))

    def add_comment(self, post: Post, quality: Quality) -> None:
        """Begins a sample with a post that holds no prompt, unless it is too long for one."""
        text = feedback_text(post.text) or post.text.strip()
        if 0 < len(text) <= LONGEST_PROMPT:
            self._add(Draft(post, text, quality))

    def _add(self, draft: Draft) -> None:
        self.drafts[draft.primary.number] = self.owner[draft.primary.number] = draft

    def settled(self) -> list[Draft]:
        """The samples that an answer has room for, the best ones, in the order of their posts.

        What was made with another model, and not only compared with it, is Trash.
        """
        drafts = list(self.drafts.values())
        for draft in drafts:
            elsewhere = any(said.other for said in draft.around)
            if elsewhere and not any(said.target for said in draft.around):
                draft.quality = "Trash"
        drafts.sort(key=lambda draft: ORDER_OF_QUALITY.index(draft.quality))
        return sorted(drafts[:MOST_SAMPLES], key=lambda draft: draft.primary.number)


def _quality(prompt: Reading, *, alone: bool) -> Quality:
    if prompt.text_use and not prompt.looks:
        return "Trash"
    enough = prompt.length >= FEWEST_WORDS or prompt.looks > 0
    return "Benchmark" if alone and enough else "Analysis"
