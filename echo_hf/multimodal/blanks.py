"""Find the blanks of a template, and fill them in. Pure text: no model, and nothing is guessed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from echo_hf.multimodal.notations import (
    CANDIDATE,
    EMPTY,
    LONGEST_DEFAULT,
    Candidate,
    begins_line,
    inside,
    is_blank,
)
from echo_hf.multimodal.slot_words import is_slot
from echo_hf.shortening import MARK

CLOSING_TAG = re.compile(r"(?:</|\[/)\s{0,4}([\w-]{1,40})")
COLON = re.compile(r"[*_`]{0,3}\s?[:：]")
ENCLOSED = {"[": re.compile(r"\[[^\[\]\n]{1,60}\]"), "【": re.compile(r"【[^【】\n]{1,60}】")}
WITHIN = f"{{1,{LONGEST_DEFAULT}}}?"
ATTRIBUTE = (
    rf"\s{{0,4}}=\s{{0,4}}\\?(?:\"([^\"\n]{WITHIN})\\?\"|'([^'\n]{WITHIN})'|“([^”\n]{WITHIN})”)"
)
NAME, DEFAULT = re.compile("name" + ATTRIBUTE), re.compile("default" + ATTRIBUTE)
HINT = re.compile(r"\s?[:：,，;；(（].*", re.DOTALL)
# Of a run of one of these no part is a placeholder.
RUN_SIGNS = frozenset("_＿〇○◯●")
LETTER = r"[A-Za-z0-9\u00c0-\u024f]"
# YOUR CITY, but no part of a longer run of capitals; CITY_NAME.
CAPITALS = re.compile(r"[A-Z]{2,20}(?: [A-Z]{1,20}){0,5}")
VARIABLE = re.compile(r"[A-Z]{2,20}(?:_[A-Z0-9]{1,20}){1,5}")
UNDERSCORES = re.compile(r"_{2,60}|＿{2,60}")


class Place(NamedTuple):
    """Where a piece of a prompt stands, from its first character to the one after its last."""

    start: int
    end: int

    def of(self, prompt: str) -> str:
        """What stands there."""
        return prompt[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Completed:
    """A prompt with values in its blanks.

    Attributes:
        prompt: The prompt.
        unknown: Placeholders that were given a value but do not stand in the prompt, each once.
        left: Placeholders that still stand in it, each as often as it does.
        surplus: Placeholders that were given more values than the prompt has places, each once.
        filled: Placeholder and value of each blank that was filled, in the order given.
    """

    prompt: str
    unknown: tuple[str, ...]
    left: tuple[str, ...]
    surplus: tuple[str, ...] = ()
    filled: tuple[tuple[str, str], ...] = ()


def placeholders(prompt: str) -> list[str]:
    """Finds what looks like a blank to fill in.

    Notations: `[KEYWORD]`, `{name}`, `{argument name="x" default="y"}`, `<subject>`, `【】`, and
    runs of `_` or `〇`; also with doubled or full-width marks. Marks around nothing or around an
    ellipsis are blanks too: `【】`, `[ ]`, `[...]`; `{}`, `[]` and `(   )` only between the words
    of a sentence, since code has them as well, and `()` never. In `(parentheses)` a piece counts
    only when all its words are known names of what templates leave open, such as "(object)" or
    "(your name)": any other is taken for a remark.

    No blanks are: links, data as in JSON (but a blank inside one of its strings is one), tags,
    emoticons, boxes to tick, headings, brackets that stand for a picture ("[attached image]"), and
    our mark of what was left out of a text.

    Args:
        prompt: A prompt.

    Returns:
        Each with its marks, letter for letter, in order of appearance, as often as it appears.

    Example:
        >>> placeholders("A [PET] (4k, sharp) on a [link](https://example.org), saying (word)")
        ['[PET]', '(word)']
    """
    return [place.of(prompt) for place in places(prompt)]


def places(prompt: str) -> list[Place]:
    """Where a prompt has blanks, in order; none inside another."""
    return list(_places(prompt))


def name_of(placeholder: str) -> str:
    """What a placeholder calls the thing that it leaves open.

    Args:
        placeholder: With its marks.

    Returns:
        The name, in small letters, without hints behind it; empty for a blank without a name.

    Example:
        >>> name_of('{argument name="Main Colour" default="red"}'), name_of("[PET: any animal]")
        ('main colour', 'pet')
        >>> name_of("____")
        ''
    """
    named = NAME.search(placeholder) if placeholder.startswith("{") else None
    if EMPTY.fullmatch(placeholder):
        return ""
    name = _value(named) if named else HINT.sub("", inside(placeholder))
    return " ".join(name.lower().split())


def default_of(placeholder: str) -> str | None:
    """The value that a placeholder itself proposes, null when it proposes none.

    Example:
        >>> default_of('{argument name="colour" default="red"}'), default_of("[COLOUR]")
        ('red', None)
    """
    proposed = DEFAULT.search(placeholder) if placeholder.startswith("{") else None
    return _value(proposed) if proposed else None


def completed(prompt: str, fillings: Sequence[tuple[str, str]]) -> Completed:
    """Puts values into the blanks of a prompt.

    Values go in as they are: what looks like a blank in one stays. What can be filled is what
    `placeholders` finds, and three kinds of pieces that it leaves alone, since they are blanks only
    if somebody says so: the name of a slot in capitals ("YOUR CITY"), a name in capitals joined by
    underscores ("CITY_NAME"), and a run of underscores. Nothing else of a prompt can be replaced,
    nor can part of a longer run or word.

    Args:
        prompt: A template.
        fillings: Placeholder and value of each blank. A placeholder listed once is replaced
            wherever it stands; one listed several times takes its values in order, a place each.

    Returns:
        The prompt, and what did not fit; outside the placeholders no character is changed.

    Example:
        >>> completed("a [PET] with ___ and ___", [("[PET]", "cat"), ("___", "hat"), ("[X]", "y")])
        Completed(prompt='a cat with hat and hat', unknown=('[X]',), left=(), surplus=(), \
filled=(('[PET]', 'cat'), ('___', 'hat')))
    """
    values: dict[str, list[str]] = {}
    for placeholder, value in fillings:
        values.setdefault(placeholder, []).append(value)
    blanks = places(prompt)
    found = list(_found(prompt, values, blanks))
    placed = list(_placed(prompt, found, values))
    stand = Counter(place.of(prompt) for place in found)
    return Completed(
        _joined(prompt, placed),
        tuple(one for one in values if not stand[one]),
        tuple(_left(prompt, blanks, placed)),
        tuple(one for one, given in values.items() if 0 < stand[one] < len(given)),
        tuple(_filled(fillings, stand)),
    )


def _filled(
    fillings: Iterable[tuple[str, str]], stand: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    used = Counter[str]()
    for placeholder, value in fillings:
        if used[placeholder] < stand[placeholder]:
            yield placeholder, value
        used[placeholder] += 1


def _value(attribute: re.Match[str]) -> str:
    return str(next(filter(None, attribute.groups())))


def _places(prompt: str) -> Iterator[Place]:
    closed = frozenset(name.lower() for name in CLOSING_TAG.findall(prompt))
    headings = frozenset(mark for mark in ENCLOSED if _only_heads(prompt, mark))
    at = 0
    while match := CANDIDATE.search(prompt, at):
        piece = Candidate(prompt, *match.span(), str(match.lastgroup), closed)
        if MARK.fullmatch(piece.text):  # ours, and nobody's blank
            at = match.end()
        elif is_blank(piece) and piece.text[0] not in headings and not _has_colon(piece):
            yield Place(*match.span())
            at = match.end()
        else:
            at = match.start() + 1


def _has_colon(piece: Candidate) -> bool:
    return piece.begins_line and COLON.match(piece.prompt, piece.end) is not None


def _only_heads(prompt: str, mark: str) -> bool:
    """Whether brackets of a kind are used as headings: several, each above or before its text."""
    found = list(ENCLOSED[mark].finditer(prompt))
    if len({match.group() for match in found}) < 2:
        return False
    return all(begins_line(prompt, match.start()) and _has_text(match, mark) for match in found)


def _has_text(heading: re.Match[str], mark: str) -> bool:
    line, _, below = heading.string[heading.end() : heading.end() + 200].partition("\n")
    if line.strip(" \t*_"):
        # "[ANIMAL] on a bicycle" is no heading.
        return mark == "【" or COLON.match(line) is not None
    return bool(below.strip()) and not below.lstrip().startswith(mark)


def _found(
    prompt: str, values: Mapping[str, Sequence[str]], blanks: Sequence[Place]
) -> Iterator[Place]:
    found = [blank for blank in blanks if blank.of(prompt) in values]
    within = {at for blank in blanks for at in range(*blank)}
    named = sorted((one for one in values if _is_named_blank(one)), key=len, reverse=True)
    matches = re.finditer("|".join(map(_whole, named)), prompt) if named else ()
    found += [Place(*one.span()) for one in matches if within.isdisjoint(range(*one.span()))]
    yield from sorted(found)


def _is_named_blank(piece: str) -> bool:
    """Whether a piece that has no marks may be a blank."""
    if CAPITALS.fullmatch(piece):
        return is_slot(piece)
    return (VARIABLE.fullmatch(piece) or UNDERSCORES.fullmatch(piece)) is not None


def _whole(piece: str) -> str:
    if piece[0] in RUN_SIGNS:
        return f"(?<!{piece[0]}){piece}(?!{piece[0]})"
    return rf"(?<![A-Z][ _-])(?<!{LETTER})(?<!_){piece}(?![ _-][A-Z]{{2}})(?!{LETTER})(?!_)"


def _placed(
    prompt: str, found: Sequence[Place], values: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Place, str]]:
    done = Counter[str]()
    for place in found:
        given = values[place.of(prompt)]
        if len(given) == 1:
            yield place, given[0]
        elif done[place.of(prompt)] < len(given):
            yield place, given[done[place.of(prompt)]]
        done[place.of(prompt)] += 1


def _joined(prompt: str, placed: Sequence[tuple[Place, str]]) -> str:
    pieces, at = [], 0
    for place, value in placed:
        pieces += [prompt[at : place.start], value]
        at = place.end
    return "".join([*pieces, prompt[at:]])


def _left(
    prompt: str, blanks: Sequence[Place], placed: Sequence[tuple[Place, str]]
) -> Iterator[str]:
    filled = {at for place, _ in placed for at in range(*place)}
    return (blank.of(prompt) for blank in blanks if filled.isdisjoint(range(*blank)))
