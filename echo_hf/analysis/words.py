r"""Words of any language: runs of letters, digits and marks, cut where no spaces are written.

A word is what `\w+` finds, and the marks that belong to its letters. In Chinese, Japanese, Thai,
Lao, Khmer and Burmese that would be a whole sentence: there ICU's dictionaries cut it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import groupby, islice

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
    """The words of a text, in order, in small letters.

    Args:
        text: The text, in any language or several; compared in Unicode's normal form C.

    Yields:
        Words, case folded.

    Raises:
        UnsegmentedError: It comes to a script without spaces, and ICU is not installed.

    Example:
        >>> list(words("Don't draw Straße-24, cafés"))
        ['don', 't', 'draw', 'strasse', '24', 'cafés']
    """
    for is_word, letters in groupby(unicodedata.normalize("NFC", text), _in_word):
        run = "".join(letters)
        if is_word and any(letter.isalnum() or letter == "_" for letter in run):
            yield from _cut(run)


def first_bigram(text: str) -> tuple[str, str] | None:
    """The first two words of a text.

    Args:
        text: The text.

    Returns:
        The two, null where it has fewer.

    Raises:
        UnsegmentedError: As for `words`.

    Example:
        >>> first_bigram("A photo of a cat"), first_bigram("bond")
        (('a', 'photo'), None)
    """
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
