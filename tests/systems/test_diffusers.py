"""Systems whose images diffusers draws: what goes into a pipeline, and what comes of it."""

from __future__ import annotations

import gc
import inspect
import json
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from echo_hf.config.systems import FixedSize, OutputSize, list_shipped_systems, read_system
from echo_hf.engines.base import ImageRef
from echo_hf.errors import GenerationError
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.diffusers import (
    KINDS,
    KONTEXT_SIZES,
    RESERVED,
    DiffusersOptions,
    DiffusersSystem,
    Pipeline,
)
from echo_hf.tables import Outcome
from tests.errors_for_tests import said_by
from tests.systems import tiny_pipelines
from tests.systems.drawing_for_tests import blocks, config, image_file, levels, task
from tests.systems.tiny_pipelines import REASON, Write, write_tiny

PLACE = "system 'tiny'"
WIDE, HIGH = blocks((128, 64), 1), blocks((64, 128), 2)
KONTEXT, KLEIN = "FluxKontextPipeline", "Flux2KleinPipeline"
FIXED = FixedSize(width=640, height=480)
# What the shipped files' models name as their class.
SHIPPED = {
    "flux2_dev": "Flux2Pipeline",
    "flux2_klein": "Flux2KleinPipeline",
    "flux_kontext": "FluxKontextPipeline",
    "qwen_image_2_1": "QwenImage21Pipeline",
    "qwen_image_edit_plus": "QwenImageEditPlusPipeline",
    "sd3_5_large": "StableDiffusion3Pipeline",
    "z_image_turbo": "ZImagePipeline",
}


def pipeline(name: str, *parameters: str, **options: Any) -> Pipeline:
    chosen = DiffusersOptions.model_validate(options)
    return Pipeline(name, KINDS[name], frozenset(parameters), chosen)


def system_of(model: str | Path, parameters: dict[str, Any], **more: Any) -> DiffusersSystem:
    return DiffusersSystem(config("diffusers", parameters, model=str(model), **more))


def several(count: int) -> Task:
    return task(*(ImageRef(str(number)) for number in range(count)), prompt="swap them")


def test_the_signature_is_what_decides_an_image() -> None:
    given = {"call": {"guidance_scale": 2.5}, "revision": "a" * 40}
    elsewhere = {"device": "cuda:1", "offload": "model", "several_inputs": "auto"}
    plain, moved, other = (
        system_of("acme/lumen", {**given, **more}, seed=7).signature()
        for more in ({}, elsewhere, {"several_inputs": "first"})
    )
    assert plain == moved != other
    assert json.loads(json.dumps(plain)) == {
        "adapter": "diffusers",
        "model": "acme/lumen",
        "revision": "a" * 40,
        "wording": 1,
        "call": {"guidance_scale": 2.5},
        "size": "auto",
        "seed": 7,
    }


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (None, r"no 'model_index\.json'"),
        ("{}", "names no class of diffusers"),
        ('{"_class_name": ["lumen", "LumenPipeline"]}', "code that comes with a model is never"),
        ('{"_class_name": "FluxPipeline"}', None),
    ],
)
def test_preflight_reads_which_class_it_is(tmp_path: Path, index: str | None, said: Any) -> None:
    if index is not None:
        (tmp_path / "model_index.json").write_text(index)
    system = system_of(tmp_path, {})
    if said is None:
        assert system.preflight() is None
        return
    with pytest.raises(GenerationError, match=said):
        system.preflight()


@pytest.mark.parametrize(
    ("name", "policy", "count", "code"),
    [
        ("FluxPipeline", "list", 1, "too_many_inputs"),
        (KONTEXT, "stitch", 5, None),
        (KONTEXT, "refuse", 1, None),
        (KONTEXT, "refuse", 2, "too_many_inputs"),
        ("QwenImageEditPlusPipeline", "list", 0, "too_few_inputs"),
    ],
)
def test_too_many_or_too_few_inputs_are_unsupported(
    name: str, policy: str, count: int, code: str | None
) -> None:
    found = pipeline(name, several_inputs=policy).check_task(several(count))
    assert (found and (found.outcome, found.stage, found.code)) == (
        code and (Outcome.UNSUPPORTED, "task", code)
    )


@pytest.mark.parametrize(
    ("name", "policy", "images", "arguments", "details"),
    [
        (KLEIN, "auto", [WIDE, HIGH], {"image": [WIDE, HIGH]}, {"used": 2, "way": "list"}),
        (KLEIN, "auto", [WIDE], {"image": [WIDE]}, {"used": 1, "way": "alone"}),
        (KONTEXT, "auto", [WIDE], {"image": WIDE}, {"used": 1, "way": "alone"}),
        (KLEIN, "auto", [], {}, {"used": 0}),
        (KONTEXT, "first", [HIGH, WIDE], {"image": HIGH}, {"used": 1, "way": "first"}),
    ],
    ids=["list", "one", "single", "none", "first"],
)
def test_inputs_are_given_as_the_class_takes_them(
    name: str, policy: str, images: list[Any], arguments: Any, details: Any
) -> None:
    found, told = pipeline(name, several_inputs=policy).build_inputs(images)
    assert (found, told) == (arguments, {"given": len(images), **details})


def test_a_stitched_image_is_not_resized_again() -> None:
    """Shapes of 672 x 1568 and 2 : 1; 16 x floor(sqrt(16384 / (672 / 1568 + 2)) / 16) = 80."""
    arguments, details = pipeline(KONTEXT, stitched_pixels=128 * 128).build_inputs([HIGH, WIDE])
    assert arguments["_auto_resize"] is False
    assert arguments["image"].size == (32 + 160, 80)
    assert details == {"given": 2, "used": 2, "way": "stitch", "stitched": [192, 80]}


@pytest.mark.parametrize(
    ("size", "first", "name", "arguments"),
    [
        ("auto", (300, 200), KONTEXT, {}),
        ("match_input", None, KLEIN, {}),
        ("match_input", (1290, 2796), KONTEXT, {"width": 688, "height": 1504, "max_area": 1034752}),
        ("match_input", (300, 200), KLEIN, {"width": 1248, "height": 832}),
        (FIXED, None, KONTEXT, {"width": 640, "height": 480, "max_area": 307_200}),
    ],
)
def test_the_size_follows_the_config(
    size: OutputSize, first: Any, name: str, arguments: Any
) -> None:
    assert pipeline(name).size_arguments(size, first) == arguments


@pytest.mark.parametrize(
    ("name", "given", "size", "said"),
    [
        (KONTEXT, {"call": {"guidance_scale": 2.5}}, "auto", None),
        (KONTEXT, {"call": {"guidence_scale": 2}}, "auto", "did you mean 'guidance_scale'?"),
        *[
            (KONTEXT, {"call": {name: 1}}, "auto", f"parameters.call has '{name}', which follows")
            for name in ("prompt", "image", "generator", "max_area")
        ],
        ("QwenImage21Pipeline", {}, FIXED, None),
        ("QwenImage21Pipeline", {}, FixedSize(width=656, height=480), "are multiples of 32"),
        (KONTEXT, {"several_inputs": "list"}, "auto", "takes a single image: expected stitch"),
    ],
)
def test_a_config_that_no_pipeline_could_follow_is_one_line(
    name: str, given: dict[str, Any], size: OutputSize, said: str | None
) -> None:
    parameters = ("image", "prompt", "guidance_scale", "max_area")
    made = pipeline(name, *parameters, **given)
    if said is None:
        made.check(size, PLACE)
    else:
        assert said in said_by(GenerationError, made.check, size, PLACE)


class Pipe:
    """A pipeline that draws what it was called with."""

    def __call__(self, prompt: str, **called: Any) -> Any:
        self.called = called
        return SimpleNamespace(images=[WIDE], nsfw_content_detected=[prompt == "held back"])


# What needs the packages.


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Write]:
    for package in ("torch", "diffusers", "transformers", "accelerate"):
        pytest.importorskip(package, reason=REASON, exc_type=ImportError)
    import torch

    written: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in written:
            place = tmp_path_factory.mktemp("pipelines") / f"tiny-{name}"
            written[name] = write_tiny(getattr(tiny_pipelines, name), place)
        return written[name]

    # Threads that share such small sums wait for each other longer than they add.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield folder
    torch.set_num_threads(threads)


def made(folder: Path, *, size: Any = None, seed: int = 0, **more: Any) -> DiffusersSystem:
    length = {"max_sequence_length": 64 if "klein" in folder.name else 32}
    layers = {"text_encoder_out_layers": [1]} if "klein" in folder.name else {}
    call = {"num_inference_steps": 2, **length, **layers, **more.pop("call", {})}
    given = {"dtype": "float32", "device": "cpu", "stitched_pixels": 128 * 128, **more}
    size = size or {"width": 64, "height": 48}
    return system_of(folder, {"call": call, **given}, size=size, seed=seed)


def drawn(system: DiffusersSystem, *tasks: Task) -> list[GenerationResult]:
    with system:
        return [system.draw(one) for one in tasks]


@pytest.mark.extras
@pytest.mark.parametrize(("name", "way"), [("kontext", "stitch"), ("klein", "list")])
def test_every_number_of_inputs_gives_another_image(
    tiny: Write, tmp_path: Path, name: str, way: str
) -> None:
    one, two = (image_file(tmp_path, blocks(size, 1)) for size in ((128, 96), (96, 160)))
    tasks = [task(), task(one), task(one, two), task(two, one), task(one, prompt="a blue lake")]
    found = drawn(made(tiny(name)), *tasks)
    assert [each.outcome for each in found] == [Outcome.OK] * len(found)
    assert len({each.image for each in found}) == len(found)
    for each, count, told in zip(found, (0, 1, 2), (None, "alone", way), strict=False):
        said = each.details["inputs"]
        assert (said["given"], said["used"], said.get("way")) == (count, count, told)
        assert levels(each.image).shape == (48, 64, 3)
        assert each.details["size"] == {"asked": [64, 48], "came": [64, 48]}
    said = json.loads(json.dumps(found[0].details))
    assert (said["dtype"], said["device"], said["commit"]) == ("float32", "cpu", None)
    assert set(said["versions"]) == {"torch", "diffusers", "transformers"}


@pytest.mark.extras
def test_the_image_is_the_pipelines_own_and_leaving_frees_the_model(tiny: Write) -> None:
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
    system: Any = made(tiny("flux"), seed=5)
    with system:
        found = system.draw(task(prompt="a red barn"))
        part = weakref.ref(system._loaded[0].transformer)
        assert part() is not None
    np.testing.assert_array_equal(levels(found.image), np.asarray(expected))
    gc.collect()
    assert part() is None


@pytest.mark.extras
def test_defaults_come_before_the_configs_call_and_what_is_held_back_is_refused() -> None:
    """Guidance of Qwen's pipelines waits for a negative prompt: it gets one."""
    pytest.importorskip("torch", reason=REASON)
    found = []
    for call in ({}, {"negative_prompt": "blurred"}):
        system, pipe = system_of("a/b", {"call": call}), Pipe()
        loaded = (pipe, pipeline("QwenImageEditPlusPipeline", call=call), {})
        found.append(pipe)
        assert system.draw_with(loaded, task(prompt="a fox"), ()).outcome is Outcome.OK
        held = system.draw_with(loaded, task(prompt="held back"), ())
        assert (held.outcome, held.stage, held.image) == (Outcome.REFUSED, "output", None)
        assert held.code == "nsfw_content_detected"
    assert [one.called["negative_prompt"] for one in found] == [" ", "blurred"]


@pytest.mark.extras
def test_what_a_task_has_wrong_is_its_own_outcome(tiny: Write, tmp_path: Path) -> None:
    broken = made(tiny("flux"), call={"max_sequence_length": 100_000})
    many, found = drawn(broken, task(image_file(tmp_path, blocks((64, 64), 1))), task())
    assert many.code == "too_many_inputs"
    assert (found.outcome, found.stage, found.code) == (Outcome.FAILED, "request", "ValueError")
    assert "`max_sequence_length` cannot be greater than 512" in str(found.text)


@pytest.mark.extras
def test_what_no_task_could_succeed_with_stops_the_run(tiny: Write, tmp_path: Path) -> None:
    """Among it pickled weights, which are not read."""
    import torch
    from safetensors.torch import load_file

    pickled = tmp_path / "pickled"
    shutil.copytree(tiny("flux"), pickled)
    safe = pickled / "vae" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(safe), safe.with_suffix(".bin"))
    safe.unlink()
    cases = {
        "offload is 'model', and the device is the proc": made(tiny("kontext"), offload="model"),
        "expected a pipeline of diffusers with safetensors weights": made(pickled),
    }
    for said, system in cases.items():
        with system:
            assert said in said_by(GenerationError, system.draw, task())


@pytest.mark.extras
@pytest.mark.parametrize(("name", "limit"), [("flux", 48), ("klein", 64)])
def test_a_prompt_that_is_cut_is_told(tiny: Write, name: str, limit: int) -> None:
    long = "a fox in the snow " * 20
    prompts = ("a fox", f"{long} at noon", f"{long} at dawn")
    system = made(tiny(name), call={"num_inference_steps": 1, "max_sequence_length": limit})
    short, noon, dawn = drawn(system, *(task(prompt=prompt) for prompt in prompts))
    assert noon.image == dawn.image != short.image
    for one in (noon, dawn):
        assert (one.details["prompt_cut"], one.details["prompt_tokens_used"]) == (True, limit)
        assert one.details["prompt_tokens"] > limit
    assert short.details["prompt_cut"] is False
    assert short.details["prompt_tokens_used"] == short.details["prompt_tokens"]


def needs_diffusers() -> Any:
    return pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)


def named(name: str, **options: Any) -> Pipeline:
    return Pipeline.from_name(name, DiffusersOptions.model_validate(options), PLACE)


@pytest.mark.extras
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_row_of_the_table_is_what_the_class_says_of_itself(name: str) -> None:
    found, kind = getattr(needs_diffusers(), name), KINDS[name]
    parameters = inspect.signature(found.__call__).parameters
    assert set(parameters) >= kind.arguments | set(kind.defaults) | RESERVED
    if kind.image:
        assert parameters[kind.image].default is None
    else:
        places = {one for one in parameters if "image" in one and "ip_adapter" not in one}
        assert places == {"num_images_per_prompt"}
    assert named(name).kind is kind


@pytest.mark.extras
def test_the_sizes_of_kontext_are_those_of_diffusers() -> None:
    needs_diffusers()
    from diffusers.pipelines.flux.pipeline_flux_kontext import PREFERRED_KONTEXT_RESOLUTIONS

    assert sorted(KONTEXT_SIZES) == sorted(PREFERRED_KONTEXT_RESOLUTIONS)


@pytest.mark.extras
@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("LumenPipeline os DiffusionPipe.line UNet2DModel", "is not known"),
        ("FluxImg2ImgPipeline LongCatImageEditPipeline WanPipeline DDPMPipeline", "is not known"),
        ("StableDiffusionXLPipeline SanaPipeline", None),
    ],
)
def test_a_class_outside_of_the_table_may_draw_from_text_alone(names: str, said: Any) -> None:
    needs_diffusers()
    for name in names.split():
        if said is None:
            assert (named(name).kind.image, named(name).kind.multiple) == (None, 1)
            continue
        told = said_by(GenerationError, named, name)
        assert (said in told, name in told) == (True, True)


@pytest.mark.extras
@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_system_is_called_as_its_pipeline_can_be(name: str) -> None:
    needs_diffusers()
    shipped = read_system(next(file for file in list_shipped_systems() if file.stem == name))
    options = DiffusersSystem(shipped).options
    Pipeline.from_name(SHIPPED[name], options, "shipped").check(shipped.size, "shipped")
