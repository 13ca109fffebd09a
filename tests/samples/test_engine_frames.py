"""What an engine's signature says about the images that it sends, and the boxes it gets."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.engines.base import make_engine
from echo_hf.errors import ImageError
from echo_hf.samples.boxes import Convention, EngineFrames, engine_frames

PHONE = (1290, 2796)
ABS, THOUSANDTHS = Convention.ABS_RESIZED, Convention.REL_1000


def signature(model: str, pixels: Any, kind: str = "vllm") -> dict[str, Any]:
    """What an engine says of itself, as far as images go."""
    return {"kind": kind, "model": model, "pixels": pixels}


@pytest.mark.parametrize(
    ("pixels", "sent"),
    [
        # Published sizes of a phone's screen under the usual and the checkpoint's own budget.
        ([28, 3136, 1_003_520], (672, 1456)),
        ({"factor": 28, "min_pixels": 3136, "max_pixels": 12_845_056}, (1288, 2800)),
        ((28, 3136, 1_003_520), (672, 1456)),
    ],
)
def test_a_model_that_counts_pixels_is_sent_a_known_size(
    pixels: Any, sent: tuple[int, int]
) -> None:
    """The engine's own rule says which, in either way that engines write it."""
    frame = engine_frames(signature("Qwen/Qwen2.5-VL-32B-Instruct", pixels)).frame(PHONE)
    assert (frame.convention, frame.sent, frame.original) == (ABS, sent, PHONE)


def test_plain_rules_count_pixels_of_the_file() -> None:
    """They read it themselves, whatever the config says about models."""
    for convention in ("auto", "rel_1000"):
        frames = engine_frames(make_engine("rules").signature(), convention, "qwen3_vl")
        assert (frames.frame(PHONE).sent, frames.convention) == (PHONE, ABS)
        assert not frames.is_assumed


@pytest.mark.parametrize(
    ("model", "family", "convention"),
    [
        ("Qwen/Qwen3-VL-8B-Instruct", None, THOUSANDTHS),
        ("Qwen/Qwen2-VL-7B-Instruct", None, THOUSANDTHS),
        ("gemini-2.5-flash", None, Convention.REL_1000_YX),
        ("our-finetune", "qwen3_vl", THOUSANDTHS),
    ],
)
def test_shares_of_the_sides_need_no_size(
    model: str, family: str | None, convention: Convention
) -> None:
    """They are the same in every size, also where nobody says how images are sent."""
    for pixels in (None, [32, 65_536, 1_003_520]):
        frames = engine_frames(signature(model, pixels, "openai"), family=family)
        assert (frames.convention, frames.is_assumed, frames.is_blind) == (convention, False, False)
        assert frames.frame(PHONE).sent == PHONE


def test_pixels_of_an_unknown_size_are_not_guessed() -> None:
    """A server that is sent the file itself resizes it by a budget that nobody stated."""
    for family, model in ((None, "Qwen/Qwen2.5-VL-7B-Instruct"), ("qwen2_5_vl", "our-finetune")):
        assert engine_frames(signature(model, None, "openai"), family=family).is_blind
    said = signature("Qwen/Qwen2.5-VL-7B-Instruct", None, "openai")
    assert not engine_frames(said, "rel_1000").is_blind


def test_a_model_of_unknown_convention_is_asked_for_thousandths() -> None:
    """No resizing disturbs them, and that it was a guess is said; what a config says is none."""
    for said in (
        signature("org/other", None, "openai"),
        signature("org/other", [1, 1, 500_000]),
        {},
    ):
        frames = engine_frames(said)
        assert (frames.convention, frames.is_assumed, frames.is_blind) == (THOUSANDTHS, True, False)
        assert not engine_frames(said, "rel_1").is_assumed


def test_a_config_may_say_that_a_model_counts_pixels() -> None:
    """Of the size that the engine sends: that of its rule, else of the file."""
    known = engine_frames(signature("org/other", [1, 1, 901_710]), "abs_resized")
    # A quarter of 1290 x 2796 pixels, so half of each side.
    assert known.frame(PHONE).sent == (645, 1398)
    assert engine_frames(signature("org/other", None), "abs_resized").frame(PHONE).sent == PHONE


@pytest.mark.parametrize("pixels", [[28], "28", [None, 1, 2], {"factor": 28}, 5])
def test_what_is_no_rule_is_none(pixels: Any) -> None:
    """An engine of another package may mean anything by the word."""
    assert engine_frames(signature("Qwen/Qwen2.5-VL-7B-Instruct", pixels)).is_blind


def test_a_shape_that_cannot_be_sent_is_refused() -> None:
    """A strip more than 200 times as long as wide; where no size is needed any shape will do."""
    strip = (10, 3000)
    with pytest.raises(ImageError, match="more than 200 times"):
        engine_frames(signature("Qwen/Qwen2.5-VL-7B-Instruct", [28, 3136, 1_003_520])).frame(strip)
    assert EngineFrames(THOUSANDTHS).frame(strip).original == strip
