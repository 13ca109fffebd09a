"""What goes wrong in a model of this process."""

from __future__ import annotations

import pytest

from echo_hf.errors import ImageError
from echo_hf.images.decode import BadImageError
from echo_hf.reasons import BadImage, Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult
from echo_hf.systems.local_models import bad_input, failure, one_line

REASON = "needs torch and accelerate: see `make test-extras`"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("no file /home/mira/.cache/hub/vae/config.json here", "no file config.json here"),
        ("\n\n  two lines\nof it", "two lines"),
        (r"cannot open C:\Users\mira\model.bin", "cannot open model.bin"),
        ("in '~/models/lumen/unet.py'", "in 'unet.py'"),
        ("see https://example.org/docs/a.html", "see https://example.org/docs/a.html"),
        ("shapes 3/4 and 5/6", "shapes 3/4 and 5/6"),
        ("", ""),
        ("x" * 1000, "x" * 300),
    ],
)
def test_a_message_is_one_line_without_folders(said: str, line: str) -> None:
    """What is left says what happened, and nothing of the machine."""
    assert one_line(ValueError(said)) == line


@pytest.mark.extras
def test_a_breakdown_is_a_failure_with_its_name() -> None:
    """It may be tried again."""
    pytest.importorskip("accelerate", reason=REASON)
    assert failure(ValueError("height has to be 16\nTraceback")) == GenerationResult(
        Outcome.FAILED, stage=OutcomeStage.REQUEST, code="ValueError", text="height has to be 16"
    )


@pytest.mark.extras
def test_too_little_memory_has_a_code_of_its_own() -> None:
    """What torch itself says when it is asked for more than there is."""
    torch = pytest.importorskip("torch", reason=REASON)
    pytest.importorskip("accelerate", reason=REASON)
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    drawn = failure(caught.value)
    assert (drawn.outcome, drawn.code) == (Outcome.FAILED, "out_of_memory")
    assert failure(torch.OutOfMemoryError("CUDA out of memory. Tried")).code == "out_of_memory"


def test_a_bad_input_keeps_its_reason() -> None:
    """The reason of the loader is the code."""
    drawn = bad_input(BadImageError(BadImage.SVG, "detail"))
    assert (drawn.outcome, drawn.stage, drawn.code) == (Outcome.FAILED, OutcomeStage.INPUT, "svg")
    assert bad_input(ImageError("gone")).code is None
