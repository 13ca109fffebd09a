"""Reads the verdict of a judge that answers in free text: a rating, or a choice between two."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.pipeline.answer_text import RepeatedKeyError, last_value, without_thoughts
from echo_hf.reasons import Unrated
from echo_hf.scores.votes import ProtocolName

# Whole numbers from 1 to 10 and nothing else: the first of them counts.
PUBLISHED = re.compile(r"\[\[\s*(10|[1-9])\s*\]\]")

NUMBER = (
    r"(?P<value>[+-]?[0-9]+(?:\.[0-9]+)?)(?:\s*(?:/|out of)\s*(?P<highest>[0-9]+(?:\.[0-9]+)?))?"
)
ALONE = r"(?!\w|[./]\d|\s*%|\s*(?:/|out of|-|–|to|or)\s*\d)"  # no part of a longer number or range
ASKED = re.compile(rf"\[\[\s*{NUMBER}\s*\]\]")
LABELLED = re.compile(
    rf"^[^\w\n]*(?P<label>(?:(?:my|the|final|overall|total)[^\S\n]+)*"
    rf"(?:rating|score|grade|verdict|answer|overall))(?:\s*\([^()\n]*\))?"
    rf"\W{{0,4}}[:=]\W{{0,4}}?{NUMBER}{ALONE}",
    re.IGNORECASE | re.MULTILINE | re.ASCII,
)
BOXED = re.compile(rf"\\boxed\{{\s*{NUMBER}\s*\}}")
BRACKETED = re.compile(rf"(?:^|(?<=[.!?:])\s)[^\S\n]*\[\s*{NUMBER}\s*\]\W*\Z", re.MULTILINE)
KEYS = ("rating", "score")

DECISIVE = frozenset({"final", "overall", "total", "verdict", "conclusion"})
OF_A_RATING = "rating score grade answer result so thus therefore hence and but"
OF_THE_WHOLE = "my the it is this that i say think image output picture"
NEUTRAL = frozenset(f"{OF_A_RATING} {OF_THE_WHOLE}".split())
WORDS = r"((?:[^\W\d_][\w'/&]*+\s*+){1,4}+)"  # possessive: a run of letters is one word
LABEL = re.compile(rf"(?:^|[\n.,;(|])\W*?{WORDS}[^\w\[]*[:=|–—-][^\w\[]*\Z")
SUBJECT = re.compile(rf"(?:^|[\n.,;(|])\W*?{WORDS}(?<=\bis )[^\w\[]*\Z")
HEADING = re.compile(rf"(?:^|\n)(?:#+|\*\*)\W*{WORDS}\W*\Z")
LONGEST_LABEL = 100
BEFORE_EXAMPLE = re.compile(
    r"\b(?:e\.?\s?g\.?|example|instance|such as|like|where|if|of|not|than|to|from|between|and)"
    r"[^\w\]]*\Z",
    re.IGNORECASE,
)
AFTER_EXAMPLE = re.compile(
    r"\W*(?:is|would be|means|being|stands for|for|=)?\W*(?:the\s+)?"
    r"(?:best|worst|perfect|highest|lowest|maximum|minimum|flawless|excellent)\b",
    re.IGNORECASE,
)
# Without ASCII, letters that only look like these would match.
CHOICE = re.compile(r"\[\[\s*(first|second|tie)\s*\]\]", re.ASCII | re.IGNORECASE)


class WrittenNumber(NamedTuple):
    value: float
    highest: float | None = None  # of `8/10`
    is_final: bool = False  # its label says so


def read_choice(text: str) -> str | Unrated:
    choices = {choice.lower() for choice in CHOICE.findall(without_thoughts(text))}
    if len(choices) > 1:
        return Unrated.TWO_CHOICES
    return choices.pop() if choices else Unrated.NO_CHOICE


def read_rating(text: str, judge: JudgeConfig, protocol: ProtocolName) -> float | Unrated:
    """The rating of an answer.

    Under `published` the first number in double square brackets, as the released code reads it.
    Under `corrected` the last one outside thoughts, or where there is none, what a judge wrote in
    another form that is plain; numbers that contradict each other are no rating.
    """
    if protocol == "published":
        match = PUBLISHED.search(text)
        return float(match[1]) if match else Unrated.NO_RATING
    text = without_thoughts(text)
    asked = list(ASKED.finditer(text))
    verdicts = [_asked_verdict(text, asked)] if asked else []
    verdicts += _other_verdicts(ASKED.sub(" ", text), beside=bool(asked))
    if not verdicts:
        return Unrated.NO_RATING
    first, *others = verdicts
    if first is None or any(other is None or other.value != first.value for other in others):
        return Unrated.AMBIGUOUS
    lowest, highest = judge.scale
    on_scale = lowest <= first.value <= highest and first.highest in (None, highest)
    is_whole = judge.decimals or first.value.is_integer()
    return first.value if on_scale and is_whole else Unrated.BEYOND_SCALE


def _asked_verdict(text: str, asked: Sequence[re.Match[str]]) -> WrittenNumber | None:
    """The last number in the form that was asked for; null where it belongs to something else."""
    numbers = [_number(match) for match in asked]
    if len({number.value for number in numbers}) == 1:
        return numbers[-1]
    last, before = asked[-1], text[asked[-2].end() : asked[-1].start()]
    nearest = before[-LONGEST_LABEL:]
    label = LABEL.search(nearest) or HEADING.search(nearest) or SUBJECT.search(nearest)
    if label:
        words = set(label[1].casefold().split())
        return numbers[-1] if words & DECISIVE or words <= NEUTRAL else None
    is_aside = before.count("(") > before.count(")")
    is_example = BEFORE_EXAMPLE.search(nearest) or AFTER_EXAMPLE.match(
        text, last.end(), last.end() + LONGEST_LABEL
    )
    return None if is_aside or is_example else numbers[-1]


def _other_verdicts(text: str, *, beside: bool) -> Iterator[WrittenNumber | None]:
    """The verdict in each other form; null where one form holds several.

    Beside the form that was asked for, several are sub-scores that a judge has summed up.
    """
    for form in (BOXED, LABELLED, *([] if beside else [BRACKETED])):
        numbers = [_number(match) for match in form.finditer(text)]
        if len({number.value for number in numbers}) == 1 or (numbers and numbers[-1].is_final):
            yield numbers[-1]
        elif numbers and not beside:
            yield None
    try:
        value = json.loads(last_value(text) or "null", parse_int=float)
    except RepeatedKeyError:
        yield None
        return
    named = [value.get(key) for key in KEYS] if isinstance(value, dict) else []
    yield from (WrittenNumber(number) for number in named if isinstance(number, float))


def _number(match: re.Match[str]) -> WrittenNumber:
    parts = match.groupdict()
    is_final = bool(DECISIVE & set((parts.get("label") or "").casefold().split()))
    highest = parts["highest"]
    return WrittenNumber(
        float(parts["value"]), None if highest is None else float(highest), is_final
    )
