"""Find the prompt that a post holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from echo_hf.engines.rules.enclosed import fenced, json_objects, quoted
from echo_hf.engines.rules.folding import LINK, fold
from echo_hf.engines.rules.instructions import (
    begins_as_order,
    instructs,
    is_impersonal,
    is_order,
    is_order_for_picture,
    only_describes,
)
from echo_hf.engines.rules.labelled import (
    FEWEST_WORDS_IN_QUOTES,
    LONGEST_LEAD,
    Found,
    labelled_prompt,
)
from echo_hf.engines.rules.markers import points_to_description
from echo_hf.engines.rules.names import Names
from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.spans import Span, lines_of, trimmed

FEWEST_LOOKS_ABOVE = 3
MOST_ENCLOSED = 16


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
        labelled_prompt(text, folded, names)
        or _enclosed(text, names)
        or _described(text, folded, alt_texts, names)
        or _whole(text, folded, names, pictures)
    )


def _enclosed(text: str, names: Names) -> Found | None:
    whole = Span(0, len(text))
    for spans, holds in (
        (_objects(text, names), _speaks_of_looks),
        (fenced(text), _is_prompt),
        (quoted(text, whole), _is_prompt),
    ):
        some = [one for one in islice(spans, MOST_ENCLOSED) if holds(Reading(one.of(text), names))]
        clean = [span for one in some if (span := trimmed(text, one, names))]
        if clean:
            span = Span(clean[0].start, clean[-1].end)
            before, after = text[: span.start], text[span.end :]
            return Found(span.of(text), before, "", after, alone=len(clean) == 1)
    return None


def _objects(text: str, names: Names) -> Iterator[Span]:
    return (_with_lead(text, span, names) for span in json_objects(text))


def _with_lead(text: str, span: Span, names: Names) -> Span:
    # The line above an object often says what to do with it.
    above = text[max(0, span.start - LONGEST_LEAD) : span.start].rstrip()
    line = above.rfind("\n") + 1
    lead = Reading(above[line:], names)
    if is_order(lead) or ("json" in lead.words and not lead.is_remark):
        start = max(0, span.start - LONGEST_LEAD) + line
        return Span(_beginning(text, start, names), span.end)
    return span


def _beginning(text: str, start: int, names: Names) -> int:
    # What stands above an instruction may already describe the picture.
    above = Reading(text[:start], names)
    if above.looks < FEWEST_LOOKS_ABOVE or not is_impersonal(above):
        return start
    return 0


def _described(text: str, folded: str, alt_texts: Sequence[str], names: Names) -> Found | None:
    pointed = points_to_description(folded)
    for alt in alt_texts:
        found = labelled_prompt(alt, fold(alt), names)
        if found is None and (pointed or is_order_for_picture(Reading(alt, names))):
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
    if not (instructs(said, pictures) if line else only_describes(said, pictures)):
        return None
    return Found(span.of(text), text[: span.start], "", text[span.end :], marked=False)


def _instructing_lines(text: str, folded: str) -> Iterator[Span]:
    for line in lines_of(text):
        if begins_as_order(line.of(folded)):
            yield line


def _is_prompt(said: Reading) -> bool:
    if said.length < FEWEST_WORDS_IN_QUOTES:
        return False
    return is_order_for_picture(said) or said.description


def _speaks_of_looks(said: Reading) -> bool:
    return said.picture or said.look
