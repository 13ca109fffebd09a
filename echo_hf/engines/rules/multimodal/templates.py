"""A template with blanks, and what a text that follows its words has in their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from echo_hf.engines.rules.common_words import FAMILIAR
from echo_hf.engines.rules.folding import fold
from echo_hf.engines.rules.han_words import HAN_OR_KANA
from echo_hf.engines.rules.multimodal.blank_values import Blank, value_of
from echo_hf.multimodal.blanks import Place, default_of, name_of, places

MOST_BLANKS = 12
MOST_AROUND = 3
NEARBY, LONGEST_VALUE, LONGEST_GAP = 80, 64, 400
MOST_FOUND = 8
SHORTEST_WORD, FEWEST_HAN = 4, 2
HAN = r"[\u3040-\u30ff\u3400-\u9fff]"
WORD = re.compile(rf"{HAN}|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
BREAK = re.compile(r"[.!?;:\n。！？；：，,]")
AN = r"(?:an?|the|un[ae]?|el|la|los|las|le|les|eine?[nrms]?|der|die|das|den|uma?|o|il|lo)"
ARTICLE = re.compile(AN)
ARTICLE_BEFORE = re.compile(rf"(?:^|[^\w]){AN}\s+(?:[\w-]{{1,14}}\s)?$")
VALUE = r"([^\n.!?。！？]{1,60}?)"
FEW_WORDS = rf"((?:{AN}\s+)?(?:[^\W_]{{2,20}}[ -])?[^\W_]{{2,20}}|{HAN}{{1,6}})"
SAYS = r"(?:(?:is|was|says|reads|es|est|ist|é|è)\W{1,3}|是|は)?"
OVER = r"\W{0,3}(?:$|(?=[\n.,;!?，。；！？]))"


@dataclass(frozen=True, slots=True)
class Context:
    """The words around a blank.

    Attributes:
        blank: The blank.
        before: Up to three words before it, in the same part of its sentence.
        after: Up to three words after it, likewise.
        between: All words from it to the next blank.
    """

    blank: Blank
    before: tuple[str, ...]
    after: tuple[str, ...]
    between: tuple[str, ...]


class Step(NamedTuple):
    """Patterns for the words before a blank, behind its value, and before the next blank."""

    before: str
    end: str
    onwards: str


@dataclass(frozen=True)
class Template:
    """A prompt with blanks.

    Attributes:
        contexts: The blanks in order, with the words around them; one with a name stands for all
            its places, one without a name for one place.
    """

    contexts: Sequence[Context]

    @property
    def blanks(self) -> list[Blank]:
        """The blanks in order."""
        return [context.blank for context in self.contexts]

    @property
    def defaults(self) -> dict[Blank, str]:
        """The values that the template itself proposes; a pictograph in a blank is one."""
        proposed = ((blank, _proposed(blank)) for blank in self.blanks)
        return {blank: value for blank, value in proposed if value}

    def followed_by(self, text: str) -> dict[Blank, str]:
        """What a text that follows the template's words has in the places of the blanks.

        Args:
            text: A text that is not the template itself.

        Returns:
            The values found; a blank for which it has several has none.
        """
        whole = self._read_through(text)
        if whole:
            return whole
        found = {one.blank: set(islice(_values(one, text), MOST_FOUND)) for one in self.contexts}
        return {blank: some.pop() for blank, some in found.items() if len(some) == 1}

    def _read_through(self, text: str) -> dict[Blank, str] | None:
        """The values in a text that has all of the words between the blanks, in order."""
        folded = fold(text)
        said = [word for one in self.contexts for word in (*one.before, *one.after)]
        if not _tell(said):
            return None
        for start in islice(re.finditer(self._steps[0].before, folded), MOST_FOUND):
            values = list(self._follow(text, folded, start.end()))
            if len(values) == len(self.blanks) and all(values):
                return {one: value for one, value in zip(self.blanks, values, strict=True) if value}
        return None

    def _follow(self, text: str, folded: str, at: int) -> Iterator[str | None]:
        # Each step takes the nearest match: a text made to be searched for long stays cheap.
        for blank, step in zip(self.blanks, self._steps, strict=True):
            over = _next(step.end or OVER, folded, at + 1, LONGEST_VALUE)
            further = _next(step.onwards, folded, over.start(), LONGEST_GAP) if over else None
            if over is None or further is None:
                return
            yield value_of(text[at : over.start()], blank)
            at = further.end()

    @cached_property
    def _steps(self) -> list[Step]:
        last = self.contexts[-1]
        return [*map(_step, self.contexts[:-1]), Step(*map(_joined, (last.before, last.after, ())))]


def read_template(prompt: str, known: Sequence[str]) -> Template | None:
    """Reads a prompt as a template.

    Args:
        prompt: The prompt.
        known: The placeholders that the request names.

    Returns:
        The template; null when the prompt has no blank, or more than people fill in.
    """
    found = [place for place in places(prompt) if place.of(prompt) in known]
    first = {_key(place, prompt): place for place in reversed(found)}
    some = sorted(first.values())
    if not 0 < len(some) <= MOST_BLANKS:
        return None
    return Template([_context(prompt, place, found) for place in some])


def _key(place: Place, prompt: str) -> tuple[int, str]:
    placeholder = place.of(prompt)
    return (0 if name_of(placeholder) else place.start, placeholder)


def _context(prompt: str, place: Place, found: Sequence[Place]) -> Context:
    start = max([one.end for one in found if one.end <= place.start], default=0)
    end = min([one.start for one in found if one.start >= place.end], default=len(prompt))
    before = fold(prompt[max(start, place.start - NEARBY) : place.start])
    after = fold(prompt[place.end : end])
    placeholder = place.of(prompt)
    article = ARTICLE_BEFORE.search(before) is not None
    blank = Blank(placeholder, name_of(placeholder), article, place.start)
    near = BREAK.split(before)[-1], BREAK.split(after[:NEARBY])[0]
    return Context(
        blank,
        tuple(WORD.findall(near[0])[-MOST_AROUND:]),
        tuple(WORD.findall(near[1])[:MOST_AROUND]),
        tuple(WORD.findall(after)),
    )


def _step(one: Context) -> Step:
    ends = one.between[:MOST_AROUND], one.between[-MOST_AROUND:]
    return Step(*map(_joined, (one.before, *ends)))


def _next(pattern: str, text: str, start: int, reach: int) -> re.Match[str] | None:
    return re.compile(pattern).search(text, start, min(len(text), start + reach))


def _values(context: Context, text: str) -> Iterator[str]:
    folded = fold(text)
    for pattern in _patterns(context):
        found = [
            value_of(text[slice(*match.span(1))], context.blank)
            for match in islice(pattern.finditer(folded), MOST_FOUND)
        ]
        if any(found):
            yield from filter(None, found)
            return


def _patterns(context: Context) -> Iterator[re.Pattern[str]]:
    """Ways to find the blank's value, the surest first."""
    before, after = context.before, context.after
    for count in (3, 2, 1):
        around = before[-count:], after[:count]
        if all(around) and _tell((*around[0], *around[1])):
            yield re.compile(_joined(around[0]) + VALUE + _joined(around[1]))
    if _tell(before[-2:]) and len(before) > 1:
        onwards = rf"|(?=\W{{1,3}}{re.escape(after[0])}(?![^\W_]))" if after else ""
        yield re.compile(_joined(before[-2:]) + SAYS + VALUE + f"(?:{OVER}{onwards})")
    if _tell(after[:2]) and len(after) > 1:
        yield re.compile(rf"(?:^|[\W_]){FEW_WORDS}{_joined(after[:2])}")


def _tell(words: Sequence[str]) -> bool:
    """Whether words are ones that other texts hardly have by chance."""
    han = sum(HAN_OR_KANA.match(word) is not None for word in words)
    return han >= FEWEST_HAN or any(
        len(word) >= SHORTEST_WORD and word not in FAMILIAR for word in words
    )


def _joined(words: Sequence[str]) -> str:
    """A pattern for words one after the other, and the space around them."""
    if not words:
        return ""
    edges = [r"\W{0,3}" if HAN_OR_KANA.match(one) else r"\W{1,3}" for one in (words[0], words[-1])]
    inner = r"\W{0,3}".join(AN if ARTICLE.fullmatch(one) else re.escape(one) for one in words)
    return rf"(?:^|{edges[0]}){inner}(?:$|{edges[1]})"


def _proposed(blank: Blank) -> str | None:
    default = default_of(blank.placeholder)
    pictograph = blank.name and not any(sign.isalnum() for sign in blank.name)
    return default or (blank.name if pictograph else None)
