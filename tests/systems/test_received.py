"""Images as they come from servers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ImageError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult
from echo_hf.systems.images import decoded, with_image
from tests.systems.drawing_for_tests import HUGE, IMAGE, base64_of

ANSWERED = GenerationResult(
    Outcome.FAILED, stage=OutcomeStage.ANSWER, text="thoughts", cost_usd=0.5
)


@given(st.binary())
def test_text_becomes_the_bytes_that_it_encodes(data: bytes) -> None:
    """As base64, and as a data URL of any type."""
    assert decoded(base64_of(data)) == data
    assert decoded(f"data:image/jpeg;charset=utf-8;base64,{base64_of(data)}") == data


@pytest.mark.parametrize("address", ["https://a.example/1.png", "file:///etc/passwd", "ftp://a"])
def test_addresses_are_not_followed(address: str) -> None:
    """Whatever their scheme."""
    with pytest.raises(ImageError, match="addresses are not followed"):
        decoded(address)


@pytest.mark.parametrize("text", ["*", "iVBOR", "data:image/png,raw", "aGk=\n", "ü"])
def test_what_is_no_base64_is_told(text: str) -> None:
    """Nothing is made of it."""
    with pytest.raises(ImageError, match="not base64"):
        decoded(text)


def test_an_image_is_kept_as_it_came() -> None:
    """With all that came beside it."""
    drawn = with_image(ANSWERED, IMAGE)
    assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, IMAGE, None)
    assert (drawn.text, drawn.cost_usd) == ("thoughts", 0.5)


@pytest.mark.parametrize("data", [b"", b"<html>", IMAGE[:-300], HUGE])
def test_what_cannot_be_opened_is_not_kept(data: bytes) -> None:
    """It is a failure at the answer, and still costs what it cost."""
    drawn = with_image(ANSWERED, data)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert (drawn.image, drawn.cost_usd) == (None, 0.5)
    assert drawn.text not in (None, "thoughts")
