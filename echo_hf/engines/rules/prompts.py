"""Find the prompt that a post holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from echo_hf.engines.rules import han_words as han
from echo_hf.engines.rules.common_words import FIRST_PERSON
from echo_hf.engines.rules.enclosed import FENCE, fenced, json_objects, quoted
from echo_hf.engines.rules.feedback import judges_own
from echo_hf.engines.rules.folding import LINK, fold
from echo_hf.engines.rules.markers import labels, only_points, points_to_description
from echo_hf.engines.rules.names import Names
from echo_hf.engines.rules.phrases import ORDER_START
from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.spans import Span, lines_of, trimmed

FEWEST_WORDS = 4
FEWEST_WORDS_IN_QUOTES = 3
FEWEST_WORDS_WITHOUT_PICTURE = 8
FEWEST_LOOKS_ABOVE = 3
MOST_ENCLOSED = 16
FEWEST_WORDS_OF_A_DESCRIPTION = 12


class Found(NamedTuple):
    """A prompt in a post.

    Attributes:
        prompt: A span of the post's text, or of a picture's description.
        before: What stands before it, without its label.
        label: Its label.
        after: What stands after it.
        marked: Whether the author marked it as a prompt.
        alone: Whether it is the only one of the post; the others are in its span.
    """

    prompt: str
    before: str = ""
    label: str = ""
    after: str = ""
    marked: bool = True
    alone: bool = True


def find_prompt(
    text: str, alt_texts: Sequence[str], names: Names, *, pictures: int
) -> Found | None:
    """Finds the prompt in a post.

    Args:
        text: What the post says.
        alt_texts: The descriptions of its pictures.
        names: The names around the target.
        pictures: How many pictures it has.

    Returns:
        The prompt, null when there is none. Labels count first, then JSON, fences and quotation
        marks, then the descriptions, then the text as a whole.
    """
    folded = fold(text)
    return (
        _labelled(text, folded, names)
        or _enclosed(text, names)
        or _described(text, folded, alt_texts, names)
        or _whole(text, folded, names, pictures)
    )


def _labelled(text: str, folded: str, names: Names) -> Found | None:
    marks = labels(folded)
    ends = [*(mark.start for mark in marks), len(text)][1:]
    found: list[tuple[int, int, Span]] = []
    for mark, end in zip(marks, ends, strict=True):
        span = trimmed(text, Span(mark.inside, end), names)
        span = span and _unwrapped(text, span, names)
        if span and not only_points(span.of(folded)):
            start = _order_before(text, mark.start, names)
            found.append(
                (mark.start, mark.inside, span if start is None else Span(start, span.end))
            )
    if not found:
        return None
    (start, inside, first), (_, _, last) = found[0], found[-1]
    alone = len({span.of(text) for _, _, span in found}) == 1
    whole = first if alone else Span(first.start, last.end)
    before = text[: min(start, whole.start)]
    return Found(whole.of(text), before, text[start:inside], text[last.end :], alone=alone)


def _order_before(text: str, mark: int, names: Names) -> int | None:
    # "Make a poster from my photo, using the following prompt: ..." begins before its label.
    line = text.rfind("\n", max(0, mark - 400), mark) + 1
    lead = Reading(text[line:mark], names)
    if lead.length >= FEWEST_WORDS and lead.picture and _is_order(lead):
        return line
    return None


def _unwrapped(text: str, span: Span, names: Names) -> Span:
    if text.startswith(FENCE, span.start):
        inner = next(fenced(text, span.start), None)
        return (inner and trimmed(text, inner, names)) or span
    inner = next(quoted(text, span), None)
    if inner is None or inner.start != span.start + 1:
        return span
    rest = text[inner.end + 1 : span.end].lstrip()
    return inner if _is_complete(inner.of(text), rest, names) else span


def _is_complete(quote: str, rest: str, names: Names) -> bool:
    # A prompt may begin with a quotation: "Tea Time": a poster in ...
    if not rest:
        return True
    says = Reading(quote, names)
    if says.length < FEWEST_WORDS_IN_QUOTES:
        return False
    goes_on = rest[0].islower() or rest[0] in ":,："
    return not goes_on or _is_order(says) or judges_own(Reading(rest, names))


def _enclosed(text: str, names: Names) -> Found | None:
    objects = [_with_lead(text, span, names) for span in islice(json_objects(text), MOST_ENCLOSED)]
    candidates = (
        (span for span in objects if _speaks_of_looks(span.of(text), names)),
        (span for span in islice(fenced(text), MOST_ENCLOSED) if _is_prompt(span.of(text), names)),
        (
            span
            for span in islice(quoted(text, Span(0, len(text))), MOST_ENCLOSED)
            if _is_prompt(span.of(text), names)
        ),
    )
    for spans in candidates:
        clean = [span for one in spans if (span := trimmed(text, one, names))]
        if clean:
            whole = Span(clean[0].start, clean[-1].end)
            before, after = text[: whole.start], text[whole.end :]
            return Found(whole.of(text), before, "", after, alone=len(clean) == 1)
    return None


def _with_lead(text: str, span: Span, names: Names) -> Span:
    # The line above an object often says what to do with it.
    above = text[max(0, span.start - 400) : span.start].rstrip()
    line = above.rfind("\n") + 1
    lead = Reading(above[line:], names)
    if _is_order(lead) or ("json" in lead.words and not lead.is_remark):
        start = max(0, span.start - 400) + line
        return Span(_beginning(text, start, names), span.end)
    return span


def _beginning(text: str, start: int, names: Names) -> int:
    # What stands above an instruction may already describe the picture.
    above = Reading(text[:start], names)
    if above.looks < FEWEST_LOOKS_ABOVE or not _is_impersonal(above):
        return start
    return 0


def _described(text: str, folded: str, alt_texts: Sequence[str], names: Names) -> Found | None:
    pointed = points_to_description(folded)
    for alt in alt_texts:
        found = _labelled(alt, fold(alt), names)
        if found is None and (pointed or _is_order_for_picture(Reading(alt, names))):
            span = trimmed(alt, Span(0, len(alt)), names)
            found = Found(span.of(alt)) if span else None
        if found:
            return found._replace(before=text, label="", after="")
    return None


def _whole(text: str, folded: str, names: Names, pictures: int) -> Found | None:
    line = next(_instructing_lines(text, folded), None)
    start = _beginning(text, line.start, names) if line else 0
    span = trimmed(text, Span(start, len(text)), names)
    if span is None or (line and LINK.search(line.of(text))):
        return None
    said = Reading(span.of(text), names)
    if not (_instructs(said, pictures) if line else _only_describes(said, pictures)):
        return None
    return Found(span.of(text), text[: span.start], "", text[span.end :], marked=False)


def _instructing_lines(text: str, folded: str) -> Iterator[Span]:
    for line in lines_of(text):
        small = line.of(folded)
        if ORDER_START.match(small) or han.ORDER.match(small):
            yield line


def _instructs(said: Reading, pictures: int) -> bool:
    fewest = FEWEST_WORDS if pictures else FEWEST_WORDS_WITHOUT_PICTURE
    return (said.picture or said.look) and said.length >= fewest and not said.asks_for_prompt


def _only_describes(said: Reading, pictures: int) -> bool:
    # People describe their own photographs too, but then they speak of themselves.
    described = said.description and said.length >= FEWEST_WORDS_OF_A_DESCRIPTION
    template = said.template and said.length >= FEWEST_WORDS_WITHOUT_PICTURE
    return pictures > 0 and (described or template) and _is_impersonal(said)


def _is_impersonal(said: Reading) -> bool:
    return said.words.isdisjoint(FIRST_PERSON) and not (said.target or said.developer)


def _is_prompt(text: str, names: Names) -> bool:
    said = Reading(text, names)
    if said.length < FEWEST_WORDS_IN_QUOTES:
        return False
    return _is_order_for_picture(said) or said.description


def _speaks_of_looks(text: str, names: Names) -> bool:
    said = Reading(text, names)
    return said.picture or said.look


def _is_order_for_picture(said: Reading) -> bool:
    return (said.picture or said.look) and _is_order(said)


def _is_order(said: Reading) -> bool:
    return bool(ORDER_START.match(said.folded) or (said.has_han and han.ORDER.match(said.folded)))
