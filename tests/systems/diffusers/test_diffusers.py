"""Systems whose images diffusers draws, from a task to an image."""

from __future__ import annotations

import gc
import json
import shutil
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echo_hf.engines.base import ImageRef
from echo_hf.errors import GenerationError, MissingExtraError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, System, Task
from echo_hf.systems.diffusers import DiffusersSystem
from echo_hf.systems.registry import make_system
from tests.systems.tasks_for_tests import blocks, config, image_file, levels, task
from tests.systems.tiny_pipelines import Write

SIZE = {"width": 64, "height": 48}
CALLS: dict[str, dict[str, Any]] = {
    "kontext": {"max_sequence_length": 32},
    "flux": {"max_sequence_length": 32},
    "klein": {"max_sequence_length": 64, "text_encoder_out_layers": [1]},
    "edit_plus": {},
    "checked": {},
}


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImageRef, ImageRef]:
    """Two images of other shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    return image_file(folder, blocks((128, 96), 1)), image_file(folder, blocks((96, 160), 2))


def _system(folder: Path, name: str, *, seed: int = 0, size: Any = SIZE, **more: Any) -> System:
    call = {"num_inference_steps": 2, **CALLS[name], **more.pop("call", {})}
    parameters = {"call": call, "dtype": "float32", "device": "cpu", "stitched_pixels": 128 * 128}
    return make_system(
        config("diffusers", folder, seed=seed, size=size, parameters={**parameters, **more})
    )


def _drawn(system: System, *tasks: Task) -> list[GenerationResult]:
    with system:
        return [system.draw(one) for one in tasks]


@pytest.fixture
def _qwen(request: pytest.FixtureRequest) -> None:
    if "edit_plus" in request.node.name:
        request.getfixturevalue("_small_qwen")


# What a core environment can show.


def test_packages_that_are_missing_are_told() -> None:
    """What to install, before anything is loaded."""
    if find_spec("diffusers"):
        pytest.skip("diffusers is installed")
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[diffusers\]"$'):
        make_system(config("diffusers", "a/b"))


def test_a_system_without_a_model_is_told() -> None:
    """The adapter cannot choose one."""
    with pytest.raises(GenerationError, match="system 'tiny' has no model"):
        DiffusersSystem(config("diffusers", None))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"cal": {}}, "unknown key 'cal'; did you mean 'call'?"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"several_inputs": "all"}, "several_inputs is 'all'"),
        ({"offload": "disk"}, "offload is 'disk'"),
    ],
)
def test_a_bad_parameter_is_told_in_one_line(parameters: dict[str, Any], said: str) -> None:
    """With its place."""
    with pytest.raises(GenerationError) as caught:
        DiffusersSystem(config("diffusers", "a/b", parameters=parameters))
    assert str(caught.value).startswith("system 'tiny': parameters: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_signature_is_what_decides_an_image() -> None:
    """Neither the device nor where parts wait; it needs no model."""
    parameters = {"call": {"guidance_scale": 2.5}, "revision": "a" * 40}
    said = DiffusersSystem(config("diffusers", "acme/lumen", parameters=parameters, seed=7))
    elsewhere = DiffusersSystem(
        config(
            "diffusers",
            "acme/lumen",
            parameters={**parameters, "device": "cuda:1", "offload": "model"},
            seed=7,
        )
    )
    assert said.signature() == elsewhere.signature()
    assert json.loads(json.dumps(said.signature())) == {
        "adapter": "diffusers",
        "model": "acme/lumen",
        "revision": "a" * 40,
        "wording": 1,
        "call": {"guidance_scale": 2.5},
        "size": "auto",
        "seed": 7,
    }


def test_a_default_that_is_written_out_is_the_same_signature() -> None:
    """One more parameter draws nothing anew; another value does."""
    plain, written, other = (
        DiffusersSystem(config("diffusers", "acme/lumen", parameters=parameters)).signature()
        for parameters in ({}, {"several_inputs": "auto"}, {"several_inputs": "first"})
    )
    assert plain == written != other


def test_preflight_looks_for_the_model(tmp_path: Path) -> None:
    """A model that is there is not loaded; one that is not is told, and so is code of its own."""
    assert DiffusersSystem(config("diffusers", "acme/lumen")).concurrency == 1
    with pytest.raises(GenerationError, match=r"holds no 'model_index\.json'"):
        DiffusersSystem(config("diffusers", tmp_path)).preflight()
    index = tmp_path / "model_index.json"
    index.write_text('{"_class_name": "FluxPipeline"}')
    assert DiffusersSystem(config("diffusers", tmp_path)).preflight() is None
    index.write_text('{"_class_name": ["lumen", "LumenPipeline"]}')
    with pytest.raises(GenerationError, match="is code of its own"):
        DiffusersSystem(config("diffusers", tmp_path)).preflight()


# What needs the packages.


@pytest.mark.extras
@pytest.mark.usefixtures("_qwen")
@pytest.mark.parametrize(
    ("name", "counts", "way"),
    [
        ("kontext", (0, 1, 2), "stitch"),
        ("klein", (0, 1, 2), "list"),
        ("edit_plus", (1, 2), "list"),
    ],
)
def test_every_number_of_inputs_gives_another_image(
    tiny: Write, images: tuple[ImageRef, ImageRef], name: str, counts: tuple[int, ...], way: str
) -> None:
    """All inputs are seen, in their order, and the provenance says how they were given."""
    tasks = [task(*images[:count]) for count in counts]
    found = _drawn(_system(tiny(name), name), *tasks, task(*reversed(images)))
    assert [one.outcome for one in found] == [Outcome.OK] * len(found)
    assert len({one.image for one in found}) == len(found)
    ways = {0: None, 1: "alone", 2: way}
    for one, count in zip(found, (*counts, 2), strict=True):
        said = one.details["inputs"]
        assert (said["given"], said["used"], said.get("way")) == (count, count, ways[count])
        assert levels(one.image).shape == (48, 64, 3)
        assert one.details["size"] == {"asked": [64, 48], "came": [64, 48]}


@pytest.mark.extras
@pytest.mark.parametrize("name", ["kontext", "klein"])
def test_the_seed_decides_the_image(
    tiny: Write, images: tuple[ImageRef, ImageRef], name: str
) -> None:
    """The same seed gives the same bytes, in a new process of loading too; another seed others."""
    one = task(images[0])
    first, again = _drawn(_system(tiny(name), name), one, one)
    [anew] = _drawn(_system(tiny(name), name), one)
    [other] = _drawn(_system(tiny(name), name, seed=1), one)
    assert first.image == again.image == anew.image
    assert first.image != other.image
    assert (first.seed, other.seed) == (0, 1)
    assert first.image is not None
    assert first.image.startswith(b"\x89PNG")


@pytest.mark.extras
def test_the_prompt_decides_the_image(tiny: Write) -> None:
    """Without inputs too."""
    system = _system(tiny("flux"), "flux")
    one, other = _drawn(system, task(prompt="a red barn"), task(prompt="a blue lake at night"))
    assert one.image != other.image


@pytest.mark.extras
def test_the_image_is_the_pipeline_s_own(tiny: Write) -> None:
    """Called by hand with the same arguments, it draws the same levels."""
    from diffusers import FluxPipeline
    from torch import Generator

    pipe = FluxPipeline.from_pretrained(tiny("flux"))
    pipe.set_progress_bar_config(disable=True)
    expected = pipe(
        prompt="a red barn",
        width=64,
        height=48,
        num_inference_steps=2,
        max_sequence_length=32,
        generator=Generator("cpu").manual_seed(5),
    ).images[0]
    [found] = _drawn(_system(tiny("flux"), "flux", seed=5), task(prompt="a red barn"))
    np.testing.assert_array_equal(levels(found.image), np.asarray(expected))


@pytest.mark.extras
@pytest.mark.usefixtures("_small_qwen")
def test_guidance_of_qwen_does_not_wait_for_a_negative_prompt(
    tiny: Write, images: tuple[ImageRef, ImageRef]
) -> None:
    """A space is one, unless a config has another; without any its pipeline would not guide."""
    calls: list[dict[str, Any]] = [
        {},
        {"negative_prompt": " "},
        {"negative_prompt": "blurred"},
        {"true_cfg_scale": 1.0},
    ]
    folder, one = tiny("edit_plus"), task(images[0])
    plain, space, other, unguided = (
        _drawn(_system(folder, "edit_plus", call=call), one)[0].image for call in calls
    )
    assert plain == space
    assert len({plain, other, unguided}) == 3


@pytest.mark.extras
@pytest.mark.usefixtures("_qwen")
@pytest.mark.parametrize(("name", "count"), [("flux", 1), ("edit_plus", 0)])
def test_a_task_that_the_pipeline_does_not_take_is_unsupported(
    tiny: Write, images: tuple[ImageRef, ImageRef], name: str, count: int
) -> None:
    """Nothing is drawn, and no input is left out."""
    [found] = _drawn(_system(tiny(name), name), task(*images[:count]))
    assert (found.outcome, found.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
    assert found.image is None


@pytest.mark.extras
def test_match_input_draws_the_shape_of_the_first_input(tiny: Write, tmp_path: Path) -> None:
    """About a million pixels; Kontext draws the size that it was trained on."""
    wide = image_file(tmp_path, blocks((300, 100), 1))
    system = _system(
        tiny("kontext"), "kontext", size="match_input", call={"num_inference_steps": 1}
    )
    [found] = _drawn(system, task(wide))
    assert found.details["size"] == {"asked": [1568, 672], "came": [1568, 672]}
    assert levels(found.image).shape == (672, 1568, 3)


@pytest.mark.extras
def test_auto_leaves_the_size_to_the_pipeline(tiny: Write, tmp_path: Path) -> None:
    """FLUX.2 draws the size of the first input, cut to multiples of 16."""
    images = [image_file(tmp_path, blocks(size, 1)) for size in ((100, 70), (64, 64))]
    [found] = _drawn(_system(tiny("klein"), "klein", size="auto"), task(*images))
    assert found.details["size"] == {"asked": None, "came": [96, 64]}


@pytest.mark.extras
def test_details_say_what_drew(tiny: Write, images: tuple[ImageRef, ImageRef]) -> None:
    """The class, the numbers, the device and the versions; JSON can hold them."""
    import diffusers

    [found] = _drawn(_system(tiny("klein"), "klein"), task())
    said = json.loads(json.dumps(found.details))
    assert said["pipeline"] == "Flux2KleinPipeline"
    assert (said["dtype"], said["device"], said["commit"]) == ("float32", "cpu", None)
    assert said["versions"]["diffusers"] == diffusers.__version__


@pytest.mark.extras
def test_an_image_that_the_checker_holds_back_is_refused(tiny: Write) -> None:
    """The pipeline hands out a black one in its place, which is no output."""
    [found] = _drawn(_system(tiny("checked"), "checked"), task())
    assert (found.outcome, found.stage) == (Outcome.REFUSED, OutcomeStage.OUTPUT)
    assert found.code == "nsfw_content_detected"
    assert found.image is None


@pytest.mark.extras
def test_a_breakdown_is_a_value(tiny: Write) -> None:
    """The run goes on with the next task."""
    system = _system(tiny("flux"), "flux", call={"max_sequence_length": 100_000})
    for found in _drawn(system, task(), task()):
        assert (found.outcome, found.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)
        assert found.code == "ValueError"
        assert "`max_sequence_length` cannot be greater than 512" in str(found.text)


@pytest.mark.extras
def test_a_bad_input_is_a_value(tiny: Write, tmp_path: Path) -> None:
    """A file that is gone loses its own task alone."""
    good = image_file(tmp_path, blocks((64, 64), 1))
    gone = ImageRef("f" * 64, tmp_path / "gone.png")
    bad, drawn = _drawn(_system(tiny("klein"), "klein"), task(gone), task(good))
    assert (bad.outcome, bad.stage) == (Outcome.FAILED, OutcomeStage.INPUT)
    assert str(tmp_path) not in str(bad.text)
    assert drawn.outcome is Outcome.OK


@pytest.mark.extras
def test_an_input_that_is_too_small_is_unsupported(tiny: Write, tmp_path: Path) -> None:
    """FLUX.2 would raise."""
    small = image_file(tmp_path, blocks((32, 64), 1))
    [found] = _drawn(_system(tiny("klein"), "klein"), task(small))
    assert (found.outcome, found.code) == (Outcome.UNSUPPORTED, "size_of_input")


@pytest.mark.extras
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"call": {"guidence_scale": 1}}, "did you mean 'guidance_scale'?"),
        ({"call": {"image": "x.png"}}, "parameters.call has 'image'"),
        ({"size": {"width": 70, "height": 64}}, "multiples of 16"),
        ({"offload": "model"}, "offload is 'model', and the device is the processor"),
        ({"several_inputs": "list"}, "FluxKontextPipeline takes a single image"),
    ],
)
def test_a_config_that_no_task_could_succeed_with_is_told(
    tiny: Write, more: dict[str, Any], said: str
) -> None:
    """In one line, by the first task."""
    with (
        pytest.raises(GenerationError) as caught,
        _system(tiny("kontext"), "kontext", **more) as one,
    ):
        one.draw(task())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_pickled_weights_are_not_read(tiny: Write, tmp_path: Path) -> None:
    """Only safetensors are: a pickle may run anything."""
    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "pickled"
    shutil.copytree(tiny("flux"), folder)
    safe = folder / "vae" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(safe), safe.with_suffix(".bin"))
    safe.unlink()
    with pytest.raises(GenerationError) as caught, _system(folder, "flux") as system:
        system.draw(task())
    assert "expected a pipeline of diffusers with safetensors weights" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_a_processor_that_needs_torchvision_is_told(tiny: Write, tmp_path: Path) -> None:
    """Qwen's does, for videos; what belongs to a torch cannot be named in an extra."""
    if find_spec("torchvision"):
        pytest.skip("torchvision is installed")
    folder = tmp_path / "with-videos"
    shutil.copytree(tiny("edit_plus"), folder)
    video = folder / "processor" / "video_preprocessor_config.json"
    video.write_text('{"video_processor_type": "Qwen2VLVideoProcessor"}')
    with pytest.raises(GenerationError) as caught, _system(folder, "edit_plus") as system:
        system.draw(task())
    assert str(caught.value).endswith(
        "needs torchvision: install the one that belongs to your torch"
    )


@pytest.mark.extras
def test_leaving_frees_the_model(tiny: Write) -> None:
    """It is loaded by the first task, and again by the next one after that."""
    system: Any = _system(tiny("flux"), "flux")
    with system:
        assert system._loaded is None
        first = system.draw(task())
        part = weakref.ref(system._loaded.pipe.transformer)
        assert part() is not None
    gc.collect()
    assert part() is None
    [again] = _drawn(system, task())
    assert again.image == first.image
