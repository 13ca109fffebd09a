"""What gets no number, and why: each reason on either side, in threads as without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.images.loader import load_image
from echo_hf.metrics.image_features import (
    SampleFeatures,
    notices_of,
    reasons_of,
    seen,
    seen_outputs,
)
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.samples import samples_of
from echo_hf.reasons import BadImage, ImageNotice, MetricReason
from tests.images_for_tests import encoded
from tests.metrics.images_for_metrics import noise

GOOD, OTHER = (encoded(noise(seed), "PNG") for seed in (0, 1))
CUT = encoded(noise(2, size=(200, 200)), "PNG")[:9000]
CARD = encoded(noise(8), "PNG")
SHEET = encoded(Image.new("RGB", (8, 8), "white"), "PNG")
CLEAR = encoded(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "PNG")


def _size(image: Image.Image) -> tuple[int, int]:
    return image.size


def _seen(
    inputs: list[Any], outputs: list[Any], **options: Any
) -> list[SampleFeatures[tuple[int, int]]]:
    return list(seen(samples_of(inputs, outputs), _size, load=load_image, **options))


def _reasons(inputs: list[Any], outputs: list[Any]) -> list[MetricReason | None]:
    return [one and one.reason for one in reasons_of(_seen(inputs, outputs))]


def test_good_images_are_looked_at() -> None:
    """Each input and the output, and nothing speaks against the sample."""
    small = noise(3, size=(4, 5))
    (found,) = _seen([[GOOD, small]], [OTHER])
    assert (found.inputs, found.output, found.unmeasured) == (((10, 12), (5, 4)), (10, 12), None)


@pytest.mark.parametrize(
    ("given", "made", "reason", "cause"),
    [
        (GOOD, None, "missing_output", None),
        (GOOD, CUT, "bad_output", "truncated"),
        (GOOD, b"<html>not found</html>", "bad_output", "html"),
        (GOOD, Path("nowhere.png"), "bad_output", "no_file"),
        (GOOD, Image.new("RGB", (1, 1)), "bad_output", "too_small"),
        (GOOD, SHEET, "blank_output", None),
        (GOOD, CLEAR, "blank_output", None),
        (None, GOOD, "no_input", None),
        ([], GOOD, "no_input", None),
        ([GOOD, None], OTHER, "no_input", None),
        ([GOOD, CUT], OTHER, "bad_input", "truncated"),
        ([GOOD, SHEET], OTHER, "blank_input", None),
        (CUT, CUT, "bad_output", "truncated"),
    ],
)
def test_a_sample_is_measured_whole_or_not_at_all(
    given: Any, made: Any, reason: str, cause: str | None
) -> None:
    """Each reason; of two, the output's is said."""
    (found,) = _seen([given], [made])
    assert found.unmeasured is not None
    assert (found.unmeasured.reason, found.unmeasured.cause) == (reason, cause)
    assert isinstance(found.unmeasured.reason, MetricReason)
    assert cause is None or isinstance(found.unmeasured.cause, BadImage)


def test_the_detail_says_which_image_it_is() -> None:
    """And what a person needs to know of it."""
    (cut,), (blank,), (path,) = (
        _seen([given], [made])
        for given, made in [([GOOD, CUT], OTHER), (GOOD, SHEET), (GOOD, Path("a.png"))]
    )
    assert cut.unmeasured == Unmeasured(
        MetricReason.BAD_INPUT,
        BadImage.TRUNCATED,
        "input 2: the file ends before the image does (9000 bytes: fetch it again)",
    )
    assert blank.unmeasured == Unmeasured(MetricReason.BLANK_OUTPUT, None, "output")
    assert path.unmeasured is not None
    assert path.unmeasured.detail.startswith("output: the file does not exist or cannot be read")


def test_one_bad_image_costs_no_other_sample() -> None:
    """The samples around it are seen, in order."""
    found = _seen([GOOD] * 5, [OTHER, CUT, OTHER, None, OTHER], threads=2)
    assert [one.unmeasured is None for one in found] == [True, False, True, False, True]


def test_inputs_are_looked_at_alone_when_asked() -> None:
    """Else the image of a sample that gets no number is not even read."""
    for lone, expected in ((False, ()), (True, ((10, 12),))):
        for made in (None, CUT, SHEET):
            (found,) = _seen([GOOD], [made], lone_inputs=lone)
            assert found.inputs == expected
            assert found.unmeasured is not None
            assert found.unmeasured.reason.value.endswith("_output")


def test_a_card_that_several_tasks_got_is_no_output() -> None:
    """Byte for byte the same for other inputs; pixel for pixel for images in memory."""
    card, card_again = noise(7), noise(7)
    assert _reasons([GOOD, OTHER, noise(3)], [CARD, OTHER, CARD]) == [
        MetricReason.PLACEHOLDER,
        None,
        MetricReason.PLACEHOLDER,
    ]
    assert _reasons([GOOD, OTHER], [card, card_again]) == [MetricReason.PLACEHOLDER] * 2


def test_the_same_task_may_have_the_same_output_twice() -> None:
    """A system that draws the same each time has made nothing up, nor has one that copies."""
    assert _reasons([GOOD, GOOD], [OTHER, OTHER]) == [None, None]
    assert _reasons([GOOD, OTHER], [GOOD, OTHER]) == [None, None]
    assert (
        _reasons([[GOOD, OTHER], [OTHER, GOOD]], [noise(3)] * 2) == [MetricReason.PLACEHOLDER] * 2
    )


def test_what_had_to_be_decided_on_loading_is_counted() -> None:
    """By kind, over inputs and outputs that were looked at."""
    half = encoded(noise(4).convert("RGBA").point(lambda level: level // 2), "PNG")
    deep = encoded(Image.fromarray(np.arange(0, 6400, 100, np.uint16).reshape(8, 8)), "PNG")
    found = _seen([[half, half], deep, half], [OTHER, half, None])
    assert notices_of(found) == {ImageNotice.SIXTEEN_BITS: 1, ImageNotice.TRANSPARENT: 3}


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_see_what_one_sees(threads: int) -> None:
    """Everything about every sample, in the same order, also of images that they share."""
    shared = noise(9)
    inputs = [[GOOD, shared], shared, CUT, None, shared, GOOD] * 5
    outputs = [OTHER, SHEET, OTHER, OTHER, None, shared] * 5
    assert _seen(inputs, outputs, threads=threads) == _seen(inputs, outputs, threads=1)


def test_outputs_are_seen_without_inputs() -> None:
    """Each with its own reason; a card is one that two prompts got, not one prompt twice."""
    outputs = [("a", GOOD), ("b", CARD), ("c", CARD), ("a", GOOD), ("d", None), ("e", CUT)]
    found = list(seen_outputs(iter(outputs), _size, load=load_image, threads=2))
    assert [one.output for one in found] == [(10, 12)] * 4 + [None] * 2
    assert [one and one.reason.value for one in reasons_of(found)] == [
        None, "placeholder", "placeholder", None, "missing_output", "bad_output"
    ]  # fmt: skip


def test_what_was_made_of_a_sample_takes_the_place_of_its_images() -> None:
    """All else about it stays."""
    half = encoded(noise(4).convert("RGBA").point(lambda level: level // 2), "PNG")
    (found,) = _seen([[half, GOOD]], [OTHER])
    made = found.measured(0.5)
    assert (made.inputs, made.output) == ((), 0.5)
    assert (made.digests, made.notices, made.unmeasured) == (found.digests, found.notices, None)
    assert made.notices == (ImageNotice.TRANSPARENT,)
