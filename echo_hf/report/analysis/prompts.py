"""Lists of prompts: their words, lengths and languages."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import groupby, islice
from typing import Any

import numpy as np

from echo_hf.errors import MissingExtraError
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.result import AnalysisPart, Quartiles, SetLanguages, SetLengths


@dataclass(frozen=True)
class PromptSet:
    name: str
    prompts: tuple[str, ...]
    ids: tuple[str, ...]
    left_out: Mapping[NotAnalyzed, int] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)


def prompt_set(
    name: str,
    texts: Iterable[object],
    *,
    ids: Iterable[str] | None = None,
    source: Mapping[str, Any] | None = None,
) -> PromptSet:
    """Makes a prompt set of rows as they are found."""
    rows = list(texts)
    named = [str(at) for at in range(len(rows))] if ids is None else list(ids)
    out: Counter[NotAnalyzed] = Counter()
    kept: list[tuple[str, str]] = []
    for name_of, text in zip(named, rows, strict=True):
        reason = _no_prompt(text)
        if reason is None:
            kept.append((name_of, str(text).strip()))
        else:
            out[reason] += 1
    prompts, known = tuple(text for _, text in kept), tuple(one for one, _ in kept)
    return PromptSet(name, prompts, known, left_out=dict(out), source=source or {})


def _no_prompt(text: object) -> NotAnalyzed | None:
    if not isinstance(text, str) or not text.strip():
        return NotAnalyzed.NO_TEXT
    try:
        text.encode()
    except UnicodeEncodeError:
        return NotAnalyzed.BROKEN_TEXT
    return None


PACKAGE = "icu4py"
# Han, kana, bopomofo, Thai, Lao, Burmese, Khmer: written without spaces between words.
WITHOUT_SPACES = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    r"\u3031-\u3035\u3038-\u303c\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\ua9e0-\ua9fe\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f"
    r"\U00020000-\U0003ffff]+"
)
JOINERS = "\u200c\u200d"  # shape letters within a word of Persian or Hindi


class UnsegmentedError(Exception):
    """A text's words cannot be told: its script writes no spaces, and ICU is not installed."""


def words(text: str) -> Iterator[str]:
    for is_word, letters in groupby(unicodedata.normalize("NFC", text), _in_word):
        run = "".join(letters)
        if is_word and any(letter.isalnum() or letter == "_" for letter in run):
            yield from _cut(run)


def first_bigram(text: str) -> tuple[str, str] | None:
    """The first two words of a text."""
    first = tuple(islice(words(text), 2))
    return (first[0], first[1]) if len(first) == 2 else None


def word_definition() -> dict[str, str | None]:
    """What a word is, and by which version of ICU scripts without spaces are cut."""
    rule = r"runs of \w and marks, NFC, case folded; ICU's dictionaries where no spaces are written"
    return {"words": rule, "icu": _icu_version() if find_spec(PACKAGE) else None}


@cache
def _in_word(letter: str) -> bool:
    return (
        letter.isalnum()
        or letter == "_"
        or letter in JOINERS
        or unicodedata.category(letter).startswith("M")
    )


def _cut(run: str) -> Iterator[str]:
    at = 0
    for found in WITHOUT_SPACES.finditer(run):
        yield from filter(None, [run[at : found.start()].casefold()])
        yield from _segmented(found.group())
        at = found.end()
    yield from filter(None, [run[at:].casefold()])


def _segmented(run: str) -> Iterator[str]:
    breaker = _word_breaker()
    if breaker is None:
        raise UnsegmentedError
    # One dictionary serves Chinese and Japanese: no language has to be guessed.
    for piece in breaker(run, "root"):
        if any(letter.isalnum() for letter in piece):
            yield piece.casefold()


@cache
def _word_breaker() -> Callable[[str, str], Iterable[str]] | None:
    if not find_spec(PACKAGE):
        return None
    from icu4py.breakers import WordBreaker

    return WordBreaker  # type: ignore[no-any-return]


def _icu_version() -> str:
    import icu4py

    return str(icu4py.icu_version)


Lengths = AnalysisPart[tuple[SetLengths, ...]]


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """The middle of a distribution, between two values by linear interpolation."""
    if not len(values):
        return None
    low, median, high = (float(one) for one in np.quantile(values, [0.25, 0.5, 0.75]))
    return Quartiles(low=low, median=median, high=high)


def lengths(sets: Sequence[PromptSet]) -> Lengths:
    definition = {**word_definition(), "characters": "code points", "quartiles": "interpolated"}
    return Lengths(found=tuple(map(_of_set, sets)), definition=definition)


def _of_set(one: PromptSet) -> SetLengths:
    counted = [count for prompt in one.prompts if (count := _words(prompt)) is not None]
    return SetLengths(
        name=one.name,
        characters=quartiles([len(prompt) for prompt in one.prompts]),
        words=quartiles(counted),
        words_of=len(counted),
    )


def _words(prompt: str) -> int | None:
    try:
        return sum(1 for _ in words(prompt))
    except UnsegmentedError:
        return None


EXTRA = "analysis"
UNKNOWN = "unknown"
LONGEST = 1000  # characters say enough
Languages = AnalysisPart[tuple[SetLanguages, ...]]


def languages(sets: Sequence[PromptSet]) -> Languages:
    """Tells the languages of prompts by lingua, a statistical model of short texts."""
    if not find_spec("lingua"):
        detail = str(MissingExtraError("the languages of prompts", EXTRA))
        return Languages(reason=NotAnalyzed.MISSING_EXTRA, detail=detail)
    detect = _detector()
    found = (Counter(detect([prompt[:LONGEST] for prompt in one.prompts])) for one in sets)
    figures = tuple(
        SetLanguages(name=one.name, prompts=dict(sorted(counts.items(), key=_order)))
        for one, counts in zip(sets, found, strict=True)
    )
    definition = {
        "by": f"lingua {version('lingua-language-detector')}, all its languages",
        "longest": LONGEST,
    }
    return Languages(found=figures, definition=definition)


def _detector() -> Callable[[list[str]], list[str]]:
    from lingua import LanguageDetectorBuilder

    detector = LanguageDetectorBuilder.from_all_languages().build()

    def detect(prompts: list[str]) -> list[str]:
        found = detector.detect_languages_in_parallel_of(prompts)
        return [UNKNOWN if one is None else one.iso_code_639_1.name.lower() for one in found]

    return detect


def _order(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
