"""How the inputs of a task are given to a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Task
from echo_hf.systems.diffusers import given_inputs, not_shown, not_taken, shown_images, way_of
from echo_hf.systems.diffusers_classes import KINDS, DiffusersOptions, PipelineClass
from tests.systems.tasks_for_tests import blocks, task

WIDE, HIGH = blocks((128, 64), 1), blocks((64, 128), 2)
AUTO = DiffusersOptions()


def _pipeline(name: str) -> PipelineClass:
    return PipelineClass(name, KINDS[name], frozenset())


KONTEXT, KLEIN = _pipeline("FluxKontextPipeline"), _pipeline("Flux2KleinPipeline")


def _task(count: int, prompt: str = "swap them") -> Task:
    return task(*(ImageRef(str(number)) for number in range(count)), prompt=prompt)


@pytest.mark.parametrize(
    ("name", "policy", "way"),
    [
        ("FluxKontextPipeline", "auto", "stitch"),
        ("Flux2KleinPipeline", "auto", "list"),
        ("FluxKontextPipeline", "first", "first"),
        ("Flux2KleinPipeline", "stitch", "stitch"),
        ("Flux2KleinPipeline", "refuse", "refuse"),
    ],
)
def test_the_way_is_the_config_s_or_the_pipeline_s(name: str, policy: str, way: str) -> None:
    """A list where there is one, unless a config wants something else."""
    options = DiffusersOptions.model_validate({"several_inputs": policy})
    assert way_of(_pipeline(name), options) == way


@pytest.mark.parametrize(
    ("name", "way", "count", "taken"),
    [
        ("FluxPipeline", "list", 0, True),
        ("FluxPipeline", "list", 1, False),
        ("FluxKontextPipeline", "stitch", 0, True),
        ("FluxKontextPipeline", "stitch", 5, True),
        ("FluxKontextPipeline", "refuse", 1, True),
        ("FluxKontextPipeline", "refuse", 2, False),
        ("QwenImageEditPlusPipeline", "list", 0, False),
        ("QwenImageEditPlusPipeline", "list", 3, True),
        ("QwenImagePipeline", "first", 2, False),
    ],
)
def test_what_a_pipeline_does_not_take_is_unsupported(
    name: str, way: str, count: int, taken: bool
) -> None:
    """Too many inputs, or too few: nothing is left out to make it fit."""
    found = not_taken(_task(count), _pipeline(name), way)
    assert (found is None) == taken
    if found is not None:
        assert (found.outcome, found.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
        assert found.code == ("too_many_inputs" if count else "too_few_inputs")


@pytest.mark.parametrize(
    ("size", "seen"),
    [((64, 64), True), ((63, 640), False), ((512, 64), True), ((513, 64), False)],
)
def test_an_input_that_a_pipeline_cannot_see_is_unsupported(
    size: tuple[int, int], seen: bool
) -> None:
    """FLUX.2 sees no side below 64 pixels, and none of more than eight times the other."""
    images = [blocks((100, 100), 1), blocks(size, 2)]
    found = not_shown(images, KLEIN)
    assert (found is None) == seen
    assert found is None or (found.stage, found.code) == (OutcomeStage.INPUT, "size_of_input")
    assert not_shown(images, KONTEXT) is None


def test_a_list_holds_all_inputs_in_order() -> None:
    """As they are."""
    given = given_inputs(_task(2), [WIDE, HIGH], KLEIN, AUTO)
    assert given.arguments == {"prompt": "swap them", "image": [WIDE, HIGH]}
    assert given.details == {"given": 2, "used": 2, "way": "list"}


def test_one_input_is_given_alone() -> None:
    """In a list where the pipeline takes one; the pipeline resizes it."""
    assert given_inputs(_task(1), [WIDE], KLEIN, AUTO).arguments["image"] == [WIDE]
    given = given_inputs(_task(1), [WIDE], KONTEXT, AUTO)
    assert given.arguments == {"prompt": "swap them", "image": WIDE}
    assert given.details == {"given": 1, "used": 1, "way": "alone"}


def test_without_inputs_there_is_a_prompt_alone() -> None:
    """No empty list, which some pipelines trip over."""
    given = given_inputs(_task(0), [], KLEIN, AUTO)
    assert given.arguments == {"prompt": "swap them"}
    assert given.details == {"given": 0, "used": 0}


def test_the_first_alone_is_told() -> None:
    """One of two is used, and the provenance says so."""
    options = DiffusersOptions(several_inputs="first")
    shown = shown_images([HIGH, WIDE], KONTEXT, options)
    assert shown == [HIGH]
    given = given_inputs(_task(2), shown, KONTEXT, options)
    assert given.details == {"given": 2, "used": 1, "way": "first"}


def test_a_stitched_image_is_not_resized_again() -> None:
    """It has the sizes of the pipeline already, and the provenance says which."""
    options = DiffusersOptions(stitched_pixels=128 * 128)
    [whole] = shown_images([HIGH, WIDE], KONTEXT, options)
    given = given_inputs(_task(2), [whole], KONTEXT, options)
    assert given.arguments["_auto_resize"] is False
    # Shapes of 672 x 1568 and 2 : 1; 16 x floor(sqrt(16384 / (672 / 1568 + 2)) / 16) = 80.
    assert whole.size == (32 + 160, 80)
    assert given.details == {"given": 2, "used": 2, "way": "stitch", "stitched": [192, 80]}


def test_a_stitched_image_has_a_million_pixels_at_most() -> None:
    """The number that the pipelines were made for."""
    [whole] = shown_images([Image.new("RGB", (3000, 2000))] * 3, KONTEXT, AUTO)
    assert 0.9 * 1024**2 < whole.width * whole.height <= 1024**2
    assert whole.width % 16 == whole.height % 16 == 0


def test_a_list_may_be_stitched_as_well() -> None:
    """Then the list holds one image."""
    options = DiffusersOptions(several_inputs="stitch", stitched_pixels=128 * 128)
    shown = shown_images([WIDE, HIGH], KLEIN, options)
    given = given_inputs(_task(2), shown, KLEIN, options)
    assert given.arguments["image"] == shown
    assert given.details["way"] == "stitch"
    assert len(shown) == 1


def test_omnigen_is_told_where_the_images_are() -> None:
    """Each has a place in the prompt, before what was asked."""
    given = given_inputs(_task(2), [WIDE, HIGH], _pipeline("OmniGenPipeline"), AUTO)
    assert given.arguments["prompt"] == ("<img><|image_1|></img> <img><|image_2|></img> swap them")
    np.testing.assert_array_equal(np.asarray(given.arguments["input_images"][1]), np.asarray(HIGH))
