"""What a reading says of one sample: how much of the quoted text is there, or how many words."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.text_reader import (
    Lines,
    Vocabulary,
    mostly_latin,
    normalized_text,
    signs_of,
    words_of,
)
from echo_hf.reasons import MetricReason

# What opens is followed by what may close it. A mark inside others belongs to their text.
PAIRS = {
    "“": "”“",
    "„": "“”",
    "”": "”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "《": "》",
    "〝": "〞〟",
    "‘": "’",
    "‚": "‘’",
    "'": "'",
    '"': '"',
    "＂": "＂",
}
SINGLE = "‘‚'"
# What closes only after that is no quotation.
MOST_LETTERS = 1000
# Words that begin with an apostrophe, and decades, open no quotation.
ELISIONS = r"(?:\d\ds?|n|em|til|tis|twas|cause|bout|round|cuz)\b"


# An apostrophe has letters on both sides; between digits and marks stand inches and seconds.
_OTHERS = "".join(mark for mark in PAIRS if mark not in SINGLE and mark != '"')
_OPENING = re.compile(rf"(?<!\w)[{SINGLE}](?!\s|{ELISIONS})|(?<!\d)\"|[{_OTHERS}]", re.IGNORECASE)
_CLOSING = {
    opening: re.compile(rf"[{re.escape(closings)}]" + (r"(?!\w)" if opening in SINGLE else ""))
    for opening, closings in PAIRS.items()
}
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")


def quoted(prompt: str) -> tuple[str, ...]:
    """The strings in quotation marks, each once."""
    found: dict[str, str] = {}
    for text in map(str.strip, _between_marks(prompt)):
        if any(letter.isalnum() for letter in text):
            found.setdefault(normalized_text(text), text)
    return tuple(found.values())


class _Nearest:
    """The next match of each of a few patterns, each part of the text being searched once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[re.Pattern[str], int] = {}

    def __call__(self, pattern: re.Pattern[str], start: int) -> int:
        """Where the first match from `start` on begins, beyond the text where there is none."""
        found = self._found.get(pattern, -1)
        if found < start:
            match = pattern.search(self._text, start)
            found = self._found[pattern] = match.start() if match else sys.maxsize
        return found


def _between_marks(prompt: str) -> Iterator[str]:
    """What stands between marks of one kind, without an empty line in it."""
    nearest, start = _Nearest(prompt), 0
    while opening := _OPENING.search(prompt, start):
        start = opening.end()
        end = nearest(_CLOSING[opening[0]], start)
        if 0 < end - start <= MOST_LETTERS and end < nearest(_EMPTY_LINE, start):
            yield prompt[start:end]
            start = end + 1


class TextWindow(NamedTuple):
    distance: int
    start: int
    end: int


def best_window(wanted: str, text: str) -> TextWindow:
    """The window of a text with the smallest edit distance to a string."""
    letters = _codes(text)
    ends = _distances(_codes(wanted), letters, anywhere=True)
    end = int(ends.argmin())
    distance = int(ends[end])
    starts = _distances(_codes(wanted)[::-1], letters[:end][::-1], anywhere=False)
    longest = int(np.flatnonzero(starts == distance)[-1])
    return TextWindow(distance, end - longest, end)


def _distances(
    wanted: NDArray[np.uint32], text: NDArray[np.uint32], *, anywhere: bool
) -> NDArray[np.int64]:
    """Distance of a string to the windows that end after each number of letters, 0 first."""
    places = np.arange(len(text) + 1)
    row = np.zeros_like(places) if anywhere else places
    for count, letter in enumerate(wanted, 1):
        changed = row[:-1] + (text != letter)
        without = np.concatenate([[count], np.minimum(changed, row[1:] + 1)])
        # A letter too many costs one for each place: a running minimum along the slope.
        row = np.minimum.accumulate(without - places) + places
    return row


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


Rule = Literal["quoted", "vocabulary"]
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    wanted: str
    found: str
    distance: int | None
    accuracy: float | None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    lines: tuple[str, ...]
    unsure: tuple[str, ...]
    quotes: tuple[QuoteMatch, ...]
    words: int
    known: int | None


class Least(NamedTuple):
    words: int
    confidence: float


@dataclass(frozen=True, slots=True)
class OcrScore:
    by: Rule | None
    value: float | None
    exact: float | None
    unmeasured: Unmeasured | None
    reading: Reading


def match_quotes(
    prompt: str, lines: Sequence[str], signs: AbstractSet[str] | None = None
) -> tuple[QuoteMatch, ...]:
    """Looks for the strings that a prompt quotes in what was read."""
    text = "".join(map(normalized_text, lines))
    return tuple(_matched(wanted, text, signs) for wanted in quoted(prompt))


def score(
    prompt: str,
    read: Lines,
    vocabulary: Vocabulary,
    least: Least,
    signs: AbstractSet[str] | None = None,
) -> OcrScore:
    """Scores one output by the strings that its prompt quotes, else by its words."""
    if read.failed:
        failed = Unmeasured(MetricReason.MODEL_FAILED, detail=f"output: {read.failed}")
        return _unscored(failed, Reading((), (), (), 0, None))
    lines = tuple(line.text for line in read.lines if line.confidence >= least.confidence)
    unsure = tuple(line.text for line in read.lines if line.confidence < least.confidence)
    words = [word for line in lines for word in words_of(line)]
    quotes = match_quotes(prompt, lines, signs)
    if quotes:
        return _by_quotes(Reading(lines, unsure, quotes, len(words), None))
    known = sum(map(vocabulary.knows, words))
    reading = Reading(lines, unsure, (), len(words), known)
    reason = _no_share(lines, len(words), vocabulary, least.words)
    if reason:
        return _unscored(reason, reading)
    return OcrScore("vocabulary", known / len(words), None, None, reading)


def _unscored(reason: Unmeasured, reading: Reading) -> OcrScore:
    return OcrScore(None, None, None, reason, reading)


def _by_quotes(reading: Reading) -> OcrScore:
    accuracies = [one.accuracy for one in reading.quotes if one.accuracy is not None]
    if not accuracies:
        unknown = sorted({sign for one in reading.quotes for sign in one.unknown})
        detail = ", ".join(map(repr, unknown[:MOST_NAMED]))
        return _unscored(Unmeasured(MetricReason.UNKNOWN_LETTERS, detail=detail), reading)
    exact = [one.distance == 0 for one in reading.quotes if one.distance is not None]
    return OcrScore("quoted", fmean(accuracies), fmean(exact), None, reading)


def _matched(wanted: str, text: str, signs: AbstractSet[str] | None) -> QuoteMatch:
    plain = normalized_text(wanted)
    window = best_window(plain, text)
    found = text[window.start : window.end]
    unknown = set() if signs is None else signs_of(wanted) - signs
    if unknown:
        return QuoteMatch(wanted, found, None, None, "".join(sorted(unknown)))
    return QuoteMatch(wanted, found, window.distance, 1 - window.distance / len(plain))


def _no_share(
    lines: Sequence[str], words: int, vocabulary: Vocabulary, fewest: int
) -> Unmeasured | None:
    if vocabulary.latin and not mostly_latin("".join(lines)):
        return Unmeasured(MetricReason.OTHER_SCRIPT, detail="the vocabulary is English")
    if words < fewest:
        return Unmeasured(MetricReason.TOO_FEW_WORDS, detail=f"{words}, expected {fewest}")
    return None
