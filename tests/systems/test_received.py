"""Pictures as they come from servers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import PictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn
from echo_hf.systems.images import decoded, with_picture
from tests.systems.drawing_for_tests import HUGE, PICTURE, base64_of

ANSWERED = Drawn(Outcome.FAILED, stage=OutcomeStage.ANSWER, text="thoughts", cost_usd=0.5)


@given(st.binary())
def test_text_becomes_the_bytes_that_it_encodes(data: bytes) -> None:
    """As base64, and as a data URL of any type."""
    assert decoded(base64_of(data)) == data
    assert decoded(f"data:image/jpeg;charset=utf-8;base64,{base64_of(data)}") == data


@pytest.mark.parametrize("address", ["https://a.example/1.png", "file:///etc/passwd", "ftp://a"])
def test_addresses_are_not_followed(address: str) -> None:
    """Whatever their scheme."""
    with pytest.raises(PictureError, match="addresses are not followed"):
        decoded(address)


@pytest.mark.parametrize("text", ["*", "iVBOR", "data:image/png,raw", "aGk=\n", "ü"])
def test_what_is_no_base64_is_told(text: str) -> None:
    """Nothing is made of it."""
    with pytest.raises(PictureError, match="no base64"):
        decoded(text)


def test_a_picture_is_kept_as_it_came() -> None:
    """With all that came beside it."""
    drawn = with_picture(ANSWERED, PICTURE)
    assert (drawn.outcome, drawn.picture, drawn.stage) == (Outcome.OK, PICTURE, None)
    assert (drawn.text, drawn.cost_usd) == ("thoughts", 0.5)


@pytest.mark.parametrize("data", [b"", b"<html>", PICTURE[:-300], HUGE])
def test_what_cannot_be_opened_is_not_kept(data: bytes) -> None:
    """It is a failure at the answer, and still costs what it cost."""
    drawn = with_picture(ANSWERED, data)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert (drawn.picture, drawn.cost_usd) == (None, 0.5)
    assert drawn.text not in (None, "thoughts")
