"""Tell what a sample asks for: a picture that somebody wants, or a look at the model itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.verdicts import change_phrases as changes
from echo_hf.engines.rules.verdicts import given_phrases as pictures
from echo_hf.engines.rules.verdicts import lettering_phrases as lettering
from echo_hf.engines.rules.verdicts import probe_phrases as probing
from echo_hf.engines.rules.verdicts.judging_words import SPEAKERS

LONGEST = 6000  # characters of a prompt: what is asked for is said long before
LONGEST_PROBE = 60  # words; longer prompts know what they want
NAMED_BY = 90  # characters into a prompt, it has said what kind of thing it asks for
LONGEST_QUESTION_END = 40
FEWEST_COMBINED = 2


class Wish(NamedTuple):
    """What a task is decided from.

    Attributes:
        text: The prompt, folded.
        written: The prompt as it was written.
        given: Number of pictures that went in.
    """

    text: str
    written: str
    given: int

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether the prompt holds a phrase."""
        return pattern.search(self.text) is not None

    @property
    def about_a_picture(self) -> bool:
        """Whether a picture is given, or spoken of as given."""
        return self.given > 0 or self.has(pictures.GIVEN)


def kind_and_task(prompt: Reading, inputs: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """What a sample asks for.

    Args:
        prompt: Its prompt.
        inputs: quality, and the numbers of inputs and outputs.

    Returns:
        The kind and the task; null for both where no picture is asked for.
    """
    wish = Wish(prompt.folded[:LONGEST], prompt.text[:LONGEST], inputs["inputs"])
    probes = prompt.length <= LONGEST_PROBE and wish.has(probing.PROBE)
    if inputs["quality"] != "Benchmark":
        # What asks a model about itself asks people too, unless a picture came of it.
        answered = probes and inputs["outputs"] > 0
        if not (answered or _asks(prompt, wish)):
            return None, None
    return ("probe" if probes else "task"), task_of(wish)


def task_of(wish: Wish) -> str:
    """The first task of the list whose signs are there."""
    return next(task for task, holds in TASKS if holds(wish))


def _asks(prompt: Reading, wish: Wish) -> bool:
    if prompt.order or prompt.template:
        return True
    if probing.QUESTION.search(prompt.folded[-LONGEST_QUESTION_END:]):
        return False
    described = prompt.description and prompt.words.isdisjoint(SPEAKERS)
    return prompt.turned_into or described or (wish.given > 0 and prompt.making)


def _composes(wish: Wish) -> bool:
    if wish.given < FEWEST_COMBINED:
        return wish.has(pictures.SEVERAL_GIVEN)
    # Several people may have given one picture each.
    one_each = wish.has(pictures.ONE_GIVEN) and not wish.has(pictures.SEVERAL)
    return not one_each and not wish.has(pictures.STYLE_OF_GIVEN)


def _restores(wish: Wish) -> bool:
    return wish.has(changes.RESTORE) and wish.about_a_picture and not wish.has(changes.SKETCH)


def _restyles(wish: Wish) -> bool:
    if not wish.about_a_picture:
        return False
    if wish.has(changes.RESTYLE):
        return True
    return wish.has(changes.MEDIUM) and not changes.PART.match(wish.text)


def _edits(wish: Wish) -> bool:
    return wish.about_a_picture or wish.has(changes.EDIT)


def _letters(wish: Wish) -> bool:
    text = lettering.NO_TEXT.sub(" ", wish.text)
    if lettering.JSON.match(text):
        return lettering.JSON_TEXT.search(text) is not None
    if lettering.WORDED.search(text) or lettering.DOCUMENT.search(text[:NAMED_BY]):
        return True
    quoted = [found.group(1) for found in lettering.QUOTED.finditer(wish.written)]
    if len(quoted) > 1 or any(one.isupper() and len(one) > 1 for one in quoted):
        return True
    return bool(quoted) and lettering.CUE.search(text) is not None


# The first that holds decides.
TASKS: tuple[tuple[str, Callable[[Wish], bool]], ...] = (
    ("composition", _composes),
    ("restoration", _restores),
    ("sketch_to_image", lambda wish: wish.has(changes.SKETCH)),
    ("style_transfer", _restyles),
    ("edit", _edits),
    ("text_rendering", _letters),
    ("text_to_image", lambda wish: True),  # noqa: ARG005 - the last always holds
)
