"""What was asked for beside what came; expected failures are decided by hand."""

from __future__ import annotations

import pytest

from echo_hf.engines.rules.verdicts import leaves_open, mismatch, misses, recounts, sentences_of


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("asked for seven candles got nine", "counting"),
        ("i said red scarf and it came back green", "colour"),
        ("asked for oil paint and got a photo", "ignored instruction"),
        ("it gave me a photo when i wanted oil paint", "ignored instruction"),
        ("i asked and got it", None),
        ("i got a fox", None),
        ("i asked for a fox", None),
        ("it gave me what i wanted", None),
    ],
)
def test_mismatch(text: str, failure: str | None) -> None:
    """Both what was asked for and what came have to be said, and to differ."""
    assert mismatch(text.split()) == failure


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("three owls not four", True),
        ("four cups instead of three", True),
        ("three owls and four cups", False),
        ("three owls one cup not four", False),
        ("not four owls", False),
    ],
)
def test_recounts(text: str, counted: bool) -> None:
    """Exactly two numbers, with a denial between them."""
    assert recounts(text.split()) is counted


@pytest.mark.parametrize(
    ("text", "missed"),
    [
        ("where did my dog go", True),
        ("cadê o gato", True),
        ("where is the prompt", False),
        ("where did you find it", False),
        ("somewhere else", False),
    ],
)
def test_misses(text: str, missed: bool) -> None:
    """People ask after parts of the picture, and after things on the page."""
    assert misses(sentences_of(text)[0]) is missed


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("is it any good with hands?", True),
        ("and can it do text?", True),
        ("¿puede hacer manos?", True),
        ("why is everything yellow?", False),
        ("how is this so good?", False),
        ("is it good", False),
    ],
)
def test_leaves_open(text: str, is_open: bool) -> None:
    """A question whether something is so says neither; one that wonders why it is so does."""
    assert leaves_open(sentences_of(text)[0]) is is_open
