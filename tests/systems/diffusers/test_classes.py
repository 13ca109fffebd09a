"""Which class draws a model's images, and whether it can be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from echo_hf.errors import GenerationError
from echo_hf.systems.diffusers_classes import (
    KINDS,
    PipelineClass,
    check_call,
    class_named,
    pipeline_class,
)
from tests.systems.tiny_pipelines import REASON

PLACE = "system 'tiny'"
KONTEXT = PipelineClass(
    "FluxKontextPipeline",
    KINDS["FluxKontextPipeline"],
    frozenset({"image", "prompt", "guidance_scale", "num_inference_steps", "max_area", "latents"}),
)


def _needs_diffusers() -> None:
    for package in ("torch", "diffusers", "transformers"):
        pytest.importorskip(package, reason=REASON, exc_type=ImportError)


def _refused(name: str) -> str:
    _needs_diffusers()
    with pytest.raises(GenerationError) as caught:
        pipeline_class(name, PLACE)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _index(folder: Path, said: Any) -> Path:
    file = folder / "model_index.json"
    file.write_text(said if isinstance(said, str) else json.dumps(said))
    return file


def test_a_model_names_its_class(tmp_path: Path) -> None:
    """In its index."""
    index = _index(tmp_path, {"_class_name": "FluxPipeline"})
    assert class_named(index, PLACE) == "FluxPipeline"


@pytest.mark.parametrize("said", ["", "[]", "{}", '"FluxPipeline"', "{"])
def test_an_index_without_a_class_is_told(tmp_path: Path, said: str) -> None:
    """Whatever else is in it."""
    with pytest.raises(GenerationError, match=r"^system 'tiny': 'model_index.json' of the model"):
        class_named(_index(tmp_path, said), PLACE)


def test_a_class_of_the_model_s_own_is_refused(tmp_path: Path) -> None:
    """Its code would have to run."""
    index = _index(tmp_path, {"_class_name": ["pipeline", "LumenPipeline"]})
    with pytest.raises(GenerationError, match="is code of its own, which is never run here"):
        class_named(index, PLACE)


@pytest.mark.extras
@pytest.mark.parametrize("name", ["LumenPipeline", "os", "DiffusionPipe line", "UNet2DModel"])
def test_what_is_no_pipeline_of_diffusers_is_refused(name: str) -> None:
    """A newer diffusers may have it."""
    assert f"has no pipeline {name!r}: expected one of its own" in _refused(name)


@pytest.mark.extras
@pytest.mark.parametrize(
    "name",
    ["FluxImg2ImgPipeline", "StableDiffusion3Img2ImgPipeline", "QwenImageImg2ImgPipeline"],
)
def test_a_class_that_draws_over_noise_is_refused_with_the_reason(name: str) -> None:
    """It makes variations: no instruction is followed."""
    said = _refused(name)
    assert f"{name} draws over a noisy copy of its input ('strength')" in said
    assert "FluxKontextPipeline" in said


@pytest.mark.extras
@pytest.mark.parametrize(
    "name",
    [
        "LongCatImageEditPipeline",
        "JoyImageEditPlusPipeline",
        "StableDiffusionInstructPix2PixPipeline",
        "WanPipeline",
        "AudioLDM2Pipeline",
        "DDPMPipeline",
    ],
)
def test_a_class_outside_the_table_is_refused_unless_text_is_all_it_takes(name: str) -> None:
    """How it takes images is a guess; what makes sounds or videos makes no image."""
    assert f"how {name} is called is not known" in _refused(name)


@pytest.mark.extras
@pytest.mark.parametrize("name", ["StableDiffusionXLPipeline", "SanaPipeline", "CogView4Pipeline"])
def test_a_class_outside_the_table_may_draw_from_text(name: str) -> None:
    """With what its signature says, and no rule for sizes."""
    _needs_diffusers()
    found = pipeline_class(name, PLACE)
    assert (found.kind.image, found.kind.multiple) == (None, 1)
    assert "guidance_scale" in found.parameters


@pytest.mark.extras
def test_a_class_of_the_table_has_its_row() -> None:
    """And the names of its own call."""
    _needs_diffusers()
    found = pipeline_class("FluxKontextPipeline", PLACE)
    assert found.kind is KINDS["FluxKontextPipeline"]
    assert found.parameters >= KONTEXT.parameters


def test_arguments_of_the_call_are_taken() -> None:
    """Those that follow neither from the task nor from the size."""
    check_call({"guidance_scale": 2.5, "num_inference_steps": 28}, KONTEXT, PLACE)


def test_a_misspelt_argument_is_told_with_the_nearest() -> None:
    """In one line."""
    with pytest.raises(GenerationError) as caught:
        check_call({"guidence_scale": 2.5}, KONTEXT, PLACE)
    assert str(caught.value) == (
        "system 'tiny': parameters.call: unknown argument of FluxKontextPipeline 'guidence_scale'; "
        "did you mean 'guidance_scale'? known: guidance_scale, num_inference_steps"
    )


@pytest.mark.parametrize("name", ["prompt", "image", "height", "generator", "max_area", "latents"])
def test_what_follows_from_the_task_is_no_argument(name: str) -> None:
    """A config that sets it would draw something else than the task."""
    with pytest.raises(GenerationError, match=f"parameters.call has '{name}', which follows"):
        check_call({name: 1}, KONTEXT, PLACE)
