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
from echo_hf.metrics.result import check_extra, error_line, versions_of

PACKAGE, SPELLING_EXTRA = "pyspellchecker", "ocr"
MODULE = "spellchecker"
FEWEST_LETTERS = 3
# Runs of letters, and apostrophes between them.
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ′`", "'"))


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    words: frozenset[str]
    latin: bool
    definition: Mapping[str, Any]

    def knows(self, word: str) -> bool:
        return word in self.words or word.removesuffix("'s") in self.words


def vocabulary_of(words: Collection[str] | None) -> Vocabulary:
    """English, or the words that are given."""
    return _english() if words is None else _given(words)


def check_vocabulary(words: Collection[str] | None) -> None:
    """Refuses what is no vocabulary; loads none."""
    if words is None:
        check_extra("ocr_accuracy", SPELLING_EXTRA, [MODULE])
    else:
        _given(words)


def words_of(text: str) -> list[str]:
    """The words of a text that have three letters or more, in small letters."""
    plain = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).casefold()
    words = _WORD.findall(plain)
    return [word for word in words if len(word) - word.count("'") >= FEWEST_LETTERS]


def mostly_latin(text: str) -> bool:
    """Whether at least half of a text's letters are Latin."""
    letters = [one for one in text if one.isalpha()]
    latin = sum(
        unicodedata.name(one, "").startswith(("LATIN", "FULLWIDTH LATIN")) for one in letters
    )
    return 2 * latin >= len(letters)


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


def normalized_text(text: str) -> str:
    """A text without what does not tell whether it is written right."""
    marked = text.translate(MARKS)
    # As Unicode defines caseless matching of compatible characters (3.13, D146).
    once = normalize("NFKC", normalize("NFD", marked).casefold())
    plain = normalize("NFKC", once.casefold()).translate(MARKS)
    # Once more, for accents that stood on a space and now stand on a letter.
    return normalize("NFKC", _without_spaces(plain))


def signs_of(text: str) -> frozenset[str]:
    """The letters and signs of a text, in the case in which they are written."""
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
class TextLine:
    """A line of text in an image."""

    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Lines:
    lines: tuple[TextLine, ...]
    failed: str = ""


class TextReader:
    """Three networks that find, turn and read lines of text; for one thread at a time."""

    def __init__(self) -> None:
        check_extra("ocr_accuracy", EXTRA, PACKAGES)
        try:
            self._engine, files = _loaded()
            self.signs = _signs(self._engine)
        except Exception as error:  # a missing file or libGL, onnxruntime's own errors
            raise ScoreError(
                f"the text reader cannot be used ({error_line(error)}): expected rapidocr 3.10 "
                "with its "
                'networks, as pip install "echo-hf[ocr]" installs it'
            ) from error
        self.definition = _definition(files)

    def read(self, levels: NDArray[np.uint8]) -> Lines:
        height, width = levels.shape[:2]
        if max(height, width) > MOST_TIMES * min(height, width):
            return Lines((), f"{width} x {height} pixels, expected at most 1 to {MOST_TIMES}")
        try:
            found = self._engine(levels)
        except MemoryError:
            raise  # says nothing about the image
        except Exception as error:  # OpenCV, numpy and onnxruntime raise errors of their own
            return Lines((), error_line(error))
        pairs = zip(getattr(found, "txts", None) or (), found.scores or (), strict=True)
        return Lines(tuple(TextLine(str(text), float(sure)) for text, sure in pairs))


def blue_first(image: Image.Image) -> NDArray[np.uint8]:
    """An image as the networks take it."""
    return np.ascontiguousarray(np.asarray(image)[..., ::-1])


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
