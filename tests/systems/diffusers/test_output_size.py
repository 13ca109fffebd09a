"""The size that a pipeline is asked for."""

from __future__ import annotations

import pytest

from echo_hf.config.systems import FixedSize
from echo_hf.errors import GenerationError
from echo_hf.systems.diffusers import check_size, size_arguments
from echo_hf.systems.diffusers_classes import KINDS

KONTEXT, KLEIN, GLM = (
    KINDS[name] for name in ("FluxKontextPipeline", "Flux2KleinPipeline", "GlmImagePipeline")
)


def test_auto_asks_for_nothing() -> None:
    """The pipeline chooses."""
    assert size_arguments("auto", (300, 200), KONTEXT) == ({}, None)


def test_match_input_without_inputs_asks_for_nothing() -> None:
    """There is no shape to match."""
    assert size_arguments("match_input", None, KLEIN) == ({}, None)


def test_match_input_asks_for_the_shape_of_the_first_input() -> None:
    """Kontext is told the number of pixels as well, or it would change the size."""
    assert size_arguments("match_input", (200, 300), KONTEXT) == (
        {"width": 832, "height": 1248, "max_area": 1_038_336},
        (832, 1248),
    )


def test_a_fixed_size_is_asked_for_as_it_stands() -> None:
    """Whatever the inputs are."""
    fixed = FixedSize(width=640, height=480)
    assert size_arguments(fixed, (200, 300), KLEIN) == (
        {"width": 640, "height": 480},
        (640, 480),
    )
    assert size_arguments(fixed, None, KONTEXT)[0]["max_area"] == 307_200


def test_a_size_that_would_be_changed_is_told() -> None:
    """In one line, before the weights are read."""
    check_size("auto", GLM, "system 'tiny'")
    check_size(FixedSize(width=640, height=480), GLM, "system 'tiny'")
    check_size(FixedSize(width=656, height=480), KLEIN, "system 'tiny'")
    with pytest.raises(GenerationError) as caught:
        check_size(FixedSize(width=656, height=480), GLM, "system 'tiny'")
    assert str(caught.value) == (
        "system 'tiny': size is 656 x 480: expected sides that are multiples of 32, which is what "
        "its pipeline draws"
    )
