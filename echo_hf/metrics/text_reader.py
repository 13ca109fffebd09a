"""Read what is written in pictures, with rapidocr and the networks that come with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.metrics.extras import check_extra, said
from echo_hf.metrics.folded_text import signs_of

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
