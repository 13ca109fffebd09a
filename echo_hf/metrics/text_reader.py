"""Read what is written in images, with rapidocr, and know which words there are."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.metrics.result import check_extra, said, versions_of

PACKAGE, SPELLING_EXTRA = "pyspellchecker", "ocr"
MODULE = "spellchecker"
FEWEST_LETTERS = 3
# Runs of letters, and apostrophes between them.
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ′`", "'"))


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words, in small letters.

    Attributes:
        words: The words.
        latin: Whether it holds words in Latin letters alone.
        definition: What decides which words it holds.
    """

    words: frozenset[str]
    latin: bool
    definition: Mapping[str, Any]

    def knows(self, word: str) -> bool:
        """Whether there is such a word, with or without a genitive's ending.

        Args:
            word: As `words_of` gives it.

        Returns:
            True where there is.
        """
        return word in self.words or word.removesuffix("'s") in self.words


def vocabulary_of(words: Collection[str] | None) -> Vocabulary:
    """English, or the words that are given.

    Args:
        words: Null for the English list of pyspellchecker, 160 000 words, American spellings.

    Returns:
        The vocabulary.

    Raises:
        MissingExtraError: pyspellchecker is not installed.
        ScoreError: What is given are no words.

    Example:
        >>> vocabulary_of(["Echo", "l’eau"]).knows("l'eau")
        True
    """
    return _english() if words is None else _given(words)


def check_vocabulary(words: Collection[str] | None) -> None:
    """Refuses what is no vocabulary; loads none.

    Args:
        words: As for `vocabulary_of`.

    Raises:
        MissingExtraError: pyspellchecker is needed, and not installed.
        ScoreError: What is given are no words.
    """
    if words is None:
        check_extra("ocr_accuracy", SPELLING_EXTRA, [MODULE])
    else:
        _given(words)


def words_of(text: str) -> list[str]:
    """The words of a text that have three letters or more, in small letters.

    Args:
        text: The text.

    Returns:
        The words, in order.

    Example:
        >>> words_of("It’s 5 o'clock: DON'T be late, Zoë!")
        ["it's", "o'clock", "don't", 'late', 'zoë']
    """
    plain = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).casefold()
    return [word for word in _WORD.findall(plain) if _letters(word) >= FEWEST_LETTERS]


def mostly_latin(text: str) -> bool:
    """Whether at least half of a text's letters are Latin.

    Args:
        text: The text.

    Returns:
        True also where there are no letters.

    Example:
        >>> mostly_latin("東京 tower"), mostly_latin("東京タワー view")
        (True, False)
    """
    letters = [one for one in text if one.isalpha()]
    latin = sum(
        unicodedata.name(one, "").startswith(("LATIN", "FULLWIDTH LATIN")) for one in letters
    )
    return 2 * latin >= len(letters)


def _letters(word: str) -> int:
    return len(word) - word.count("'")


def _english() -> Vocabulary:
    check_extra("ocr_accuracy", SPELLING_EXTRA, [MODULE])
    from spellchecker import SpellChecker

    words = frozenset(SpellChecker(language="en").word_frequency.words())
    definition = {"language": "English", "words": len(words), **versions_of(PACKAGE)}
    return Vocabulary(words, True, definition)


def _given(words: Collection[str]) -> Vocabulary:
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise ScoreError("vocabulary holds something else than words: expected a list of strings")
    known = frozenset(word.translate(_APOSTROPHES).casefold() for word in words)
    if not known:
        raise ScoreError("vocabulary is empty: expected words, or null for English")
    digest = hashlib.sha256("\n".join(sorted(known)).encode(errors="surrogatepass")).hexdigest()
    return Vocabulary(known, False, {"words": len(known), "sha256": digest})


MARKS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′‵`´ʼ‹›", "'"),
        **dict.fromkeys("“”„‟″‶«»〝〞〟", '"'),
        **dict.fromkeys("‐‒–—―−", "-"),
    }
)


def folded(text: str) -> str:
    r"""A text without what does not tell whether it is written right.

    Case, width, ligatures, kinds of quotation marks and of dashes are folded. Spaces and line
    breaks go: where a line ends is a matter of layout, and readers of pictures drop spaces by
    themselves.

    Args:
        text: Any text.

    Returns:
        The same for all that count as the same.

    Example:
        >>> folded("ＨＡＰＰＹ  “Birth\nday” ﬁsh")
        'happy"birthday"fish'
    """
    marked = text.translate(MARKS)
    # As Unicode defines caseless matching of compatible characters (3.13, D146).
    once = normalize("NFKC", normalize("NFD", marked).casefold())
    plain = normalize("NFKC", once.casefold()).translate(MARKS)
    # Once more, for accents that stood on a space and now stand on a letter.
    return normalize("NFKC", _without_spaces(plain))


def signs_of(text: str) -> frozenset[str]:
    """The letters and signs of a text, in the case in which they are written.

    What has to be read for `folded` texts to be compared: a reader that knows the letters of
    "STRASSE" does not know that of "Straße" for it.

    Args:
        text: Any text.

    Returns:
        Each once, with width, ligatures, kinds of quotation marks and of dashes folded.

    Example:
        >>> sorted(signs_of("ＡＡ a ﬁ–“"))
        ['"', '-', 'A', 'a', 'f', 'i']
    """
    plain = normalize("NFKC", text.translate(MARKS)).translate(MARKS)
    return frozenset(_without_spaces(plain))


def _without_spaces(text: str) -> str:
    return "".join(one for one in text if not (one.isspace() or category(one) == "Cf"))


PACKAGES, EXTRA = ("rapidocr", "onnxruntime"), "ocr"
# Named, so that rapidocr never looks for another at the address it knows.
NETWORKS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}
# rapidocr enlarges the shorter side to 736 pixels and the longer one along with it: a strip of
# 2 x 2000 would take more memory than machines have.
MOST_TIMES = 10


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text in a picture.

    Attributes:
        text: What was read.
        confidence: The reader's own, from 0 to 1, which says little about the text.
    """

    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Lines:
    """All that was read in a picture.

    Attributes:
        lines: From top to bottom, and from left to right.
        failed: What the networks said where they failed on the picture; else empty.
    """

    lines: tuple[Line, ...]
    failed: str = ""


class TextReader:
    """Three networks that find, turn and read lines of text; for one thread at a time.

    Attributes:
        definition: What of them and of their surroundings decides what is read.
        signs: The letters and signs that they can write, as `folded_text.signs_of` gives them.

    Raises:
        MissingExtraError: rapidocr or onnxruntime is not installed.
        ScoreError: Its networks are not there, or do not run.
    """

    def __init__(self) -> None:
        check_extra("ocr_accuracy", EXTRA, PACKAGES)
        try:
            self._engine, files = _loaded()
            self.signs = _signs(self._engine)
        except Exception as error:  # a missing file or libGL, onnxruntime's own errors
            raise ScoreError(
                f"the text reader cannot be used ({said(error)}): expected rapidocr 3.10 with its "
                'networks, as pip install "echo-hf[ocr]" installs it'
            ) from error
        self.definition = _definition(files)

    def read(self, levels: NDArray[np.uint8]) -> Lines:
        """Reads a picture.

        Args:
            levels: Array [row, column, channel] of blue, green, red.

        Returns:
            Its lines. Where the networks fail there are none, and `failed` says so; so it is of
            a picture with one side more than 10 times the other, which they are not given.
        """
        height, width = levels.shape[:2]
        if max(height, width) > MOST_TIMES * min(height, width):
            return Lines((), f"{width} x {height} pixels, expected at most 1 to {MOST_TIMES}")
        try:
            found = self._engine(levels)
        except MemoryError:
            raise  # says nothing about the picture
        except Exception as error:  # OpenCV, numpy and onnxruntime raise errors of their own
            return Lines((), said(error))
        pairs = zip(getattr(found, "txts", None) or (), found.scores or (), strict=True)
        return Lines(tuple(Line(str(text), float(sure)) for text, sure in pairs))


def blue_first(picture: Image.Image) -> NDArray[np.uint8]:
    """A picture as the networks take it.

    Args:
        picture: In mode RGB.

    Returns:
        Array [row, column, channel] of blue, green, red.

    Example:
        >>> blue_first(Image.new("RGB", (2, 2), (255, 128, 0)))[0, 0].tolist()
        [0, 128, 255]
    """
    return np.ascontiguousarray(np.asarray(picture)[..., ::-1])


def _loaded() -> tuple[Any, Mapping[str, Path]]:
    import rapidocr

    folder = Path(rapidocr.__file__).parent / "models"
    files = {part: folder / name for part, name in NETWORKS.items()}
    paths = {f"{part}.model_path": str(file) for part, file in files.items()}
    # Every line is wanted, also an unsure one; and nothing is to be logged.
    settings = {"Global.text_score": 0.0, "Global.log_level": "critical"}
    engine = rapidocr.RapidOCR(params={**settings, **paths})
    for find in (False, True):  # each network is loaded at its first use
        engine(np.zeros((48, 48, 3), np.uint8), use_det=find)
    return engine, files


def _signs(engine: Any) -> frozenset[str]:
    """From the file of the recognizer, which ends in a choice between them."""
    # One by one: side by side, a letter and an accent would be another letter.
    characters = engine.text_rec.session.get_character_list()
    return frozenset().union(*map(signs_of, characters))


def _definition(files: Mapping[str, Path]) -> dict[str, Any]:
    return {
        "networks": {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files.values()
        },
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    """By module, except rapidocr, which does not say: several packages install the others."""
    from importlib.metadata import version

    modules = ("onnxruntime", "cv2")
    return {
        "rapidocr": version("rapidocr"),
        **{name: str(import_module(name).__version__) for name in modules},
    }
