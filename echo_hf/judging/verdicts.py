"""Parse the verdict of a judge that answers in free text: a rating, or a choice between two."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from echo_hf.config.judge_files import (
    CHOICE_GROUP,
    MAX_SEARCHED_CHARACTERS,
    JudgeFile,
    compile_answer,
)
from echo_hf.config.rubrics import PUBLISHED_SCALE, Scale
from echo_hf.pipeline.answer_text import RepeatedKeyError, find_last_value, remove_thoughts
from echo_hf.scores.rating_table import Unrated
from echo_hf.scores.votes import ProtocolName

# The published code takes the first whole number from 1 to 10 in double brackets.
PUBLISHED_RATING = re.compile(r"\[\[\s*(10|[1-9])\s*\]\]")

NUMBER = (
    r"(?P<value>[+-]?[0-9]+(?:\.[0-9]+)?)(?:\s*(?:/|out of)\s*(?P<highest>[0-9]+(?:\.[0-9]+)?))?"
)
ALONE = r"(?!\w|[./]\d|\s*%|\s*(?:/|out of|-|–|to|or)\s*\d)"  # no part of a longer number or range
REQUESTED_RATING = re.compile(rf"\[\[\s*{NUMBER}\s*\]\]")
LABELLED = re.compile(
    rf"^[^\w\n]*(?P<label>(?:(?:my|the|final|overall|total)[^\S\n]+)*"
    rf"(?:rating|score|grade|verdict|answer|overall))(?:\s*\([^()\n]*\))?"
    rf"\W{{0,4}}[:=]\W{{0,4}}?{NUMBER}{ALONE}",
    re.IGNORECASE | re.MULTILINE | re.ASCII,
)
BOXED = re.compile(rf"\\boxed\{{\s*{NUMBER}\s*\}}")
BRACKETED = re.compile(rf"(?:^|(?<=[.!?:])\s)[^\S\n]*\[\s*{NUMBER}\s*\]\W*\Z", re.MULTILINE)
RATING_KEYS = ("rating", "score")

DECISIVE_WORDS = frozenset({"final", "overall", "total", "verdict", "conclusion"})
RATING_WORDS = "rating score grade answer result so thus therefore hence and but"
WHOLE_IMAGE_WORDS = "my the it is this that i say think image output picture"
NEUTRAL_WORDS = frozenset(f"{RATING_WORDS} {WHOLE_IMAGE_WORDS}".split())
LABEL_WORDS = r"((?:[^\W\d_][\w'/&]*+\s*+){1,4}+)"  # possessive: a run of letters is one word
LABEL = re.compile(rf"(?:^|[\n.,;(|])\W*?{LABEL_WORDS}[^\w\[]*[:=|–—-][^\w\[]*\Z")
SUBJECT = re.compile(rf"(?:^|[\n.,;(|])\W*?{LABEL_WORDS}(?<=\bis )[^\w\[]*\Z")
HEADING = re.compile(rf"(?:^|\n)(?:#+|\*\*)\W*{LABEL_WORDS}\W*\Z")
MAX_LABEL_CHARACTERS = 100
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
# Without ASCII, letters that only look alike would match.
CHOICE = re.compile(r"\[\[\s*(first|second|tie)\s*\]\]", re.ASCII | re.IGNORECASE)
YES_OR_NO = re.compile(r"\[\[\s*(yes|no)\s*\]\]", re.ASCII | re.IGNORECASE)


class ParsedNumber(NamedTuple):
    value: float
    highest: float | None = None  # 10 in `8/10`
    is_final: bool = False  # whether its label says so


def read_choice(text: str) -> str | Unrated:
    return _read_word(CHOICE, text, Unrated.TWO_CHOICES, Unrated.NO_CHOICE)


def read_yes_no(text: str) -> str | Unrated:
    return _read_word(YES_OR_NO, text, Unrated.AMBIGUOUS, Unrated.NO_RATING)


def _read_word(form: re.Pattern[str], text: str, several: Unrated, none: Unrated) -> str | Unrated:
    words = {word.lower() for word in form.findall(remove_thoughts(text))}
    if len(words) > 1:
        return several
    return words.pop() if words else none


def read_rating(
    text: str, scale: Scale, protocol: ProtocolName, *, decimals: bool = False
) -> float | Unrated:
    """Read the rating of an answer.

    Under `published` the first number in double square brackets, as the released code reads it.
    Under `corrected` the last one outside thoughts, or where there is none, what a judge wrote in
    another form that is plain; numbers that contradict each other are no rating.
    """
    if protocol == "published":
        match = PUBLISHED_RATING.search(text)
        return float(match[1]) if match else Unrated.NO_RATING
    text = remove_thoughts(text)
    requested = list(REQUESTED_RATING.finditer(text))
    verdicts = [_read_requested_form(text, requested)] if requested else []
    verdicts += _read_other_forms(REQUESTED_RATING.sub(" ", text), has_requested=bool(requested))
    if not verdicts:
        return Unrated.NO_RATING
    first, *others = verdicts
    if first is None or any(other is None or other.value != first.value for other in others):
        return Unrated.AMBIGUOUS
    lowest, highest = scale
    on_scale = lowest <= first.value <= highest and first.highest in (None, highest)
    is_whole = decimals or first.value.is_integer()
    return first.value if on_scale and is_whole else Unrated.BEYOND_SCALE


def read_scalar(text: str) -> float | Unrated:
    """Read the number that an engine without words gave."""
    try:
        value = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return Unrated.NO_RATING
    if not isinstance(value, float):
        return Unrated.NO_RATING
    return value if math.isfinite(value) else Unrated.NO_FINITE_NUMBER


def read_file_rating(text: str, file: JudgeFile) -> float | Unrated:
    """Read a rating by the pattern of a judge's file; answers that differ are none."""
    matches = _search_answer(text, file)
    if not isinstance(matches, dict):
        return matches
    numbers = [_parse_float(match) for match in matches.values()]
    if None in numbers:
        return Unrated.NO_RATING
    values = [number for number in numbers if number is not None]
    lowest, highest = file.scale or PUBLISHED_SCALE
    for value in values:
        if not lowest <= value <= highest or not (file.decimals or value.is_integer()):
            return Unrated.BEYOND_SCALE
    return min(values) if file.combine == "min" else fmean(values)


def read_file_choice(text: str, file: JudgeFile) -> str | Unrated:
    """Read which of two outputs an answer prefers, by a word or by the higher number."""
    groups = _search_answer(text, file)
    if isinstance(groups, Unrated):
        return Unrated.TWO_CHOICES if groups is Unrated.AMBIGUOUS else Unrated.NO_CHOICE
    if CHOICE_GROUP in groups:
        words = {_fold(word): side for side, word in file.choices.items()}
        return words.get(_fold(groups[CHOICE_GROUP]), Unrated.NO_CHOICE)
    first, second = _parse_float(groups["first"]), _parse_float(groups["second"])
    if first is None or second is None:
        return Unrated.NO_CHOICE
    return "tie" if first == second else "first" if first > second else "second"


def _search_answer(text: str, file: JudgeFile) -> dict[str, str] | Unrated:
    searched = remove_thoughts(text)[-MAX_SEARCHED_CHARACTERS:]
    pattern = compile_answer(file.answer or "")
    matches = [match.groupdict("") for match in pattern.finditer(searched)]
    if not matches:
        return Unrated.NO_RATING
    if any(match != matches[0] for match in matches):
        return Unrated.AMBIGUOUS
    return matches[0]


def _fold(word: str) -> str:
    return " ".join(word.split()).casefold()


def _parse_float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _read_requested_form(text: str, matches: Sequence[re.Match[str]]) -> ParsedNumber | None:
    """Return the last number in the requested form; null where it is about something else."""
    numbers = [_parse_number(match) for match in matches]
    if len({number.value for number in numbers}) == 1:
        return numbers[-1]
    last_match, text_between = matches[-1], text[matches[-2].end() : matches[-1].start()]
    context = text_between[-MAX_LABEL_CHARACTERS:]
    label = LABEL.search(context) or HEADING.search(context) or SUBJECT.search(context)
    if label:
        words = set(label[1].casefold().split())
        return numbers[-1] if words & DECISIVE_WORDS or words <= NEUTRAL_WORDS else None
    is_aside = text_between.count("(") > text_between.count(")")
    is_example = BEFORE_EXAMPLE.search(context) or AFTER_EXAMPLE.match(
        text, last_match.end(), last_match.end() + MAX_LABEL_CHARACTERS
    )
    return None if is_aside or is_example else numbers[-1]


def _read_other_forms(text: str, *, has_requested: bool) -> Iterator[ParsedNumber | None]:
    """Yield the verdict in each other form; null where one form has several numbers.

    Beside the form that was asked for, several are sub-scores that a judge has summed up.
    """
    for form in (BOXED, LABELLED, *([] if has_requested else [BRACKETED])):
        numbers = [_parse_number(match) for match in form.finditer(text)]
        if len({number.value for number in numbers}) == 1 or (numbers and numbers[-1].is_final):
            yield numbers[-1]
        elif numbers and not has_requested:
            yield None
    try:
        value = json.loads(find_last_value(text) or "null", parse_int=float)
    except RepeatedKeyError:
        yield None
        return
    candidates = [value.get(key) for key in RATING_KEYS] if isinstance(value, dict) else []
    yield from (ParsedNumber(number) for number in candidates if isinstance(number, float))


def _parse_number(match: re.Match[str]) -> ParsedNumber:
    groups = match.groupdict()
    is_final = bool(DECISIVE_WORDS & set((groups.get("label") or "").casefold().split()))
    top = groups["highest"]
    return ParsedNumber(float(groups["value"]), None if top is None else float(top), is_final)
