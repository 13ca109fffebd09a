"""Find the prompt that a post marks as one by a label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from echo_hf.engines.rules.enclosed import FENCE, fenced, quoted
from echo_hf.engines.rules.feedback import judges_own
from echo_hf.engines.rules.instructions import FEWEST_WORDS, is_order
from echo_hf.engines.rules.markers import Label, labels, only_points
from echo_hf.engines.rules.names import Names
from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.spans import Span, trimmed

FEWEST_WORDS_IN_QUOTES = 3
LONGEST_LEAD = 400


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


def labelled_prompt(text: str, folded: str, names: Names) -> Found | None:
    """Finds the prompt that a post's labels announce.

    Args:
        text: What the post says.
        folded: The same, folded.
        names: The names around the target.

    Returns:
        The prompt behind the label; several as one span, not alone; null when there is none.
    """
    found = list(_labelled(text, folded, names))
    if not found:
        return None
    (label, first), (_, last) = found[0], found[-1]
    alone = len({span.of(text) for _, span in found}) == 1
    whole = first if alone else Span(first.start, last.end)
    before = text[: min(label.start, whole.start)]
    after = text[last.end :]
    return Found(whole.of(text), before, text[label.start : label.inside], after, alone=alone)


def _labelled(text: str, folded: str, names: Names) -> Iterator[tuple[Label, Span]]:
    found = labels(folded)
    ends = [*(label.start for label in found), len(text)][1:]
    for label, end in zip(found, ends, strict=True):
        span = trimmed(text, Span(label.inside, end), names)
        span = span and _unwrapped(text, span, names)
        if span and not only_points(span.of(folded)):
            start = _order_before(text, label.start, names)
            yield label, span if start is None else Span(start, span.end)


def _order_before(text: str, mark: int, names: Names) -> int | None:
    # "Make a poster from my photo, using the following prompt: ..." begins before its label.
    line = text.rfind("\n", max(0, mark - LONGEST_LEAD), mark) + 1
    lead = Reading(text[line:mark], names)
    if lead.length >= FEWEST_WORDS and lead.picture and is_order(lead):
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
    return not goes_on or is_order(says) or judges_own(Reading(rest, names))
