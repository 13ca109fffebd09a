"""What the package of metrics offers, and what its import costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import echo_hf
from tests.stages_for_tests import ROOT

HEAVY = (
    "datasets", "pyarrow", "pandas", "torch", "transformers", "scipy", "insightface",
    "onnxruntime", "cv2", "rapidocr", "spellchecker", "huggingface_hub",
)  # fmt: skip

NAMES = ("color_shift", "face_identity", "ocr_accuracy", "text_rendering", "structure_distance")


@pytest.mark.parametrize(
    "code",
    [
        "from echo_hf.metrics.color_shift import ColorShift; import echo_hf.metrics as m",
        "from echo_hf.metrics import text_rendering; import echo_hf.metrics as m",
        "import echo_hf.metrics.structure_distance; import echo_hf.metrics as m",
        "from echo_hf.metrics.face_identity import FaceIdentity; import echo_hf.metrics as m",
        "from echo_hf.metrics.ocr_accuracy import OcrAccuracy; import echo_hf.metrics as m",
        "import echo_hf; m = echo_hf.metrics",
    ],
)
def test_names_are_functions_whatever_is_imported_first(code: str) -> None:
    """A function and its file share a name, which means the function; nothing heavy is loaded."""
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}; import sys; print(all(callable(getattr(m, name)) for name in {NAMES!r}),"
            f" [name for name in {HEAVY!r} if name in sys.modules])",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.split() == ["True", "[]"]


@pytest.mark.parametrize("name", echo_hf.metrics.__all__)
def test_every_name_is_there(name: str) -> None:
    """And calls itself so."""
    assert getattr(echo_hf.metrics, name).__name__ == name
