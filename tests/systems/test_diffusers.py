"""Systems whose images diffusers draws: what goes into a pipeline, and what comes of it."""

from __future__ import annotations

import gc
import inspect
import json
import shutil
import sys
import weakref
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.config.systems import FixedSize, Size, read_system, shipped_systems
from echo_hf.engines.base import ImageRef
from echo_hf.errors import GenerationError, MissingExtraError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, System, Task
from echo_hf.systems.diffusers import (
    KINDS,
    KONTEXT_SIZES,
    OURS,
    DiffusersOptions,
    DiffusersSystem,
    PipelineClass,
    PromptReader,
    check_options,
    given_inputs,
    not_shown,
    not_taken,
    pipeline_class,
    prompt_length,
    shown_images,
    size_arguments,
    way_of,
)
from echo_hf.systems.registry import make_system
from tests.systems import tiny_pipelines
from tests.systems.tasks_for_tests import blocks, config, image_file, levels, task
from tests.systems.tiny_pipelines import REASON, Write, write_tiny

PLACE = "system 'tiny'"
WIDE, HIGH = blocks((128, 64), 1), blocks((64, 128), 2)
SMALL: dict[str, Any] = {"width": 64, "height": 48}
CALLS: dict[str, dict[str, Any]] = {
    "kontext": {"max_sequence_length": 32},
    "flux": {"max_sequence_length": 32},
    "klein": {"max_sequence_length": 64, "text_encoder_out_layers": [1]},
    "edit_plus": {},
    "checked": {},
}
# What the shipped files' models name as their class.
SHIPPED = {
    "flux2_dev": "Flux2Pipeline",
    "flux2_klein": "Flux2KleinPipeline",
    "flux_kontext": "FluxKontextPipeline",
    "qwen_image_2_1": "QwenImage21Pipeline",
    "qwen_image_edit_plus": "QwenImageEditPlusPipeline",
    "sd3_5_large": "StableDiffusion3Pipeline",
    "z_image": "ZImagePipeline",
}


def pipeline(name: str, *parameters: str) -> PipelineClass:
    return PipelineClass(name, KINDS[name], frozenset(parameters))


def options(**given: Any) -> DiffusersOptions:
    return DiffusersOptions.model_validate(given)


def several(count: int) -> Task:
    return task(*(ImageRef(str(number)) for number in range(count)), prompt="swap them")


KONTEXT = pipeline("FluxKontextPipeline", "image", "prompt", "guidance_scale", "max_area")
KLEIN, GLM = pipeline("Flux2KleinPipeline"), pipeline("GlmImagePipeline")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"cal": {}}, "unknown key 'cal'; did you mean 'call'?"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"several_inputs": "all"}, "several_inputs is 'all'"),
        ({"offload": "disk"}, "offload is 'disk'"),
    ],
)
def test_a_bad_parameter_is_one_line(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(GenerationError) as caught:
        DiffusersSystem(config("diffusers", "a/b", parameters=parameters))
    assert str(caught.value).startswith("system 'tiny': parameters: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_signature_is_what_decides_an_image() -> None:
    given = {"call": {"guidance_scale": 2.5}, "revision": "a" * 40}
    elsewhere = {"device": "cuda:1", "offload": "model", "several_inputs": "auto"}
    plain, moved, other = (
        DiffusersSystem(
            config("diffusers", "acme/lumen", parameters={**given, **more}, seed=7)
        ).signature()
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
        (None, r"holds no 'model_index\.json'"),
        ("", "names no `_class_name`"),
        ('"FluxPipeline"', "names no `_class_name`"),
        ("{}", "names no `_class_name`"),
        ('{"_class_name": ["lumen", "LumenPipeline"]}', "is code of its own, which is never run"),
        ('{"_class_name": "FluxPipeline"}', None),
    ],
)
def test_preflight_reads_which_class_it_is(
    tmp_path: Path, index: str | None, said: str | None
) -> None:
    if index is not None:
        (tmp_path / "model_index.json").write_text(index)
    system = DiffusersSystem(config("diffusers", tmp_path))
    if said is None:
        assert system.preflight() is None
        return
    with pytest.raises(GenerationError, match=said):
        system.preflight()


@pytest.mark.parametrize(
    ("name", "policy", "way"),
    [
        ("FluxKontextPipeline", "auto", "stitch"),
        ("Flux2KleinPipeline", "auto", "list"),
        ("FluxKontextPipeline", "first", "first"),
        ("Flux2KleinPipeline", "stitch", "stitch"),
    ],
)
def test_several_inputs_are_a_list_where_the_class_takes_one(
    name: str, policy: str, way: str
) -> None:
    assert way_of(pipeline(name), options(several_inputs=policy)) == way


@pytest.mark.parametrize(
    ("name", "policy", "count", "taken"),
    [
        ("FluxPipeline", "list", 0, True),
        ("FluxPipeline", "list", 1, False),
        ("FluxKontextPipeline", "stitch", 0, True),
        ("FluxKontextPipeline", "stitch", 5, True),
        ("FluxKontextPipeline", "refuse", 1, True),
        ("FluxKontextPipeline", "refuse", 2, False),
        ("QwenImageEditPlusPipeline", "list", 0, False),
        ("QwenImageEditPlusPipeline", "list", 3, True),
    ],
)
def test_too_many_or_too_few_inputs_are_unsupported(
    name: str, policy: str, count: int, taken: bool
) -> None:
    found = not_taken(several(count), pipeline(name), options(several_inputs=policy))
    assert (found is None) == taken
    if found is not None:
        assert (found.outcome, found.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
        assert found.code == ("too_many_inputs" if count else "too_few_inputs")


@pytest.mark.parametrize(
    ("size", "seen"), [((64, 64), True), ((63, 640), False), ((512, 64), True), ((513, 64), False)]
)
def test_flux_2_sees_no_side_below_64_and_none_eight_times_the_other(
    size: tuple[int, int], seen: bool
) -> None:
    images = [blocks((100, 100), 1), blocks(size, 2)]
    found = not_shown(images, KLEIN)
    assert (found is None) == seen
    assert found is None or (found.stage, found.code) == (OutcomeStage.INPUT, "size_of_input")
    assert not_shown(images, KONTEXT) is None


@pytest.mark.parametrize(
    ("kind", "policy", "images", "arguments", "details"),
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
    kind: PipelineClass, policy: str, images: list[Any], arguments: Any, details: Any
) -> None:
    chosen = options(several_inputs=policy)
    shown = shown_images(images, kind, chosen)
    found = given_inputs(several(len(images)), shown, kind, chosen)
    assert found == ({"prompt": "swap them", **arguments}, {"given": len(images), **details})


def test_a_stitched_image_is_not_resized_again() -> None:
    """Shapes of 672 x 1568 and 2 : 1; 16 x floor(sqrt(16384 / (672 / 1568 + 2)) / 16) = 80."""
    chosen = options(stitched_pixels=128 * 128)
    [whole] = shown_images([HIGH, WIDE], KONTEXT, chosen)
    arguments, details = given_inputs(several(2), [whole], KONTEXT, chosen)
    assert arguments["_auto_resize"] is False
    assert whole.size == (32 + 160, 80)
    assert details == {"given": 2, "used": 2, "way": "stitch", "stitched": [192, 80]}
    [large] = shown_images([Image.new("RGB", (3000, 2000))] * 3, KONTEXT, options())
    assert 0.9 * 1024**2 < large.width * large.height <= 1024**2


def test_omnigen_is_told_where_the_images_are() -> None:
    arguments, _ = given_inputs(
        several(2), [WIDE, HIGH], pipeline("OmniGenPipeline"), DiffusersOptions()
    )
    assert arguments["prompt"] == "<img><|image_1|></img> <img><|image_2|></img> swap them"
    assert arguments["input_images"] == [WIDE, HIGH]


@pytest.mark.parametrize(
    ("size", "first", "kind", "arguments"),
    [
        ("auto", (300, 200), KONTEXT, {}),
        ("match_input", None, KLEIN, {}),
        ("match_input", (200, 300), KONTEXT, {"width": 832, "height": 1248, "max_area": 1_038_336}),
        (FixedSize(width=640, height=480), (200, 300), KLEIN, {"width": 640, "height": 480}),
        (
            FixedSize(width=640, height=480),
            None,
            KONTEXT,
            {"width": 640, "height": 480, "max_area": 307_200},
        ),
    ],
)
def test_the_size_follows_the_config(
    size: Size, first: Any, kind: PipelineClass, arguments: dict[str, int]
) -> None:
    found, asked = size_arguments(size, first, kind.kind)
    assert found == arguments
    assert asked == ((arguments["width"], arguments["height"]) if arguments else None)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("FluxKontextPipeline", (1290, 2796), (688, 1504)),
        ("FluxKontextPipeline", (300, 200), (1248, 832)),
        ("Flux2KleinPipeline", (300, 200), (1248, 832)),
        ("QwenImage21Pipeline", (1000, 1000), (1024, 1024)),
    ],
)
def test_a_size_is_like_that_of_the_input(name: str, given: Any, expected: Any) -> None:
    assert KINDS[name].like(given) == expected


@pytest.mark.parametrize(
    ("kind", "given", "size", "said"),
    [
        (KONTEXT, {"call": {"guidance_scale": 2.5}}, "auto", None),
        (
            KONTEXT,
            {"call": {"guidence_scale": 2.5}},
            "auto",
            "system 'tiny': parameters.call: unknown argument of FluxKontextPipeline "
            "'guidence_scale'; did you mean 'guidance_scale'? known: guidance_scale",
        ),
        *[
            (KONTEXT, {"call": {name: 1}}, "auto", f"parameters.call has '{name}', which follows")
            for name in ("prompt", "image", "height", "generator", "max_area", "latents")
        ],
        (GLM, {}, FixedSize(width=640, height=480), None),
        (GLM, {}, FixedSize(width=656, height=480), "size is 656 x 480: expected sides that are"),
        (KONTEXT, {"several_inputs": "list"}, "auto", "takes a single image: expected stitch"),
    ],
)
def test_a_config_that_no_pipeline_could_follow_is_one_line(
    kind: PipelineClass, given: dict[str, Any], size: Size, said: str | None
) -> None:
    if said is None:
        check_options(kind, options(**given), size, PLACE)
        return
    with pytest.raises(GenerationError) as caught:
        check_options(kind, options(**given), size, PLACE)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


class Pipe:
    before, start = "draw this {} now", 2

    @staticmethod
    def tokenizer(text: str) -> Any:
        return type("Tokens", (), {"input_ids": text.split()})

    def __call__(self, prompt: str, max_sequence_length: int = 4) -> None:
        """Draws nothing."""


@pytest.mark.parametrize(
    ("prompt", "limit", "counted"),
    [
        ("a red fox", None, (4, 4, False)),
        ("a small red fox", None, (5, 4, True)),
        ("a small red fox", 5, (5, 5, False)),
    ],
)
def test_tokens_are_counted_as_the_pipeline_counts_them(
    prompt: str, limit: int | None, counted: tuple[int, int, bool]
) -> None:
    """By hand: with the words around the prompt that are read, up to the call's own limit."""
    arguments = {"prompt": prompt} | ({} if limit is None else {"max_sequence_length": limit})
    reader = PromptReader(template="before", template_start="start")
    names = ("prompt_tokens", "prompt_tokens_used", "prompt_cut")
    assert prompt_length(Pipe(), reader, arguments) == dict(zip(names, counted, strict=True))
    for unknown in (None, PromptReader("tokenizer_3")):
        assert prompt_length(Pipe(), unknown, arguments) == {}


def test_packages_that_are_missing_are_told() -> None:
    if find_spec("diffusers"):
        pytest.skip("diffusers is installed")
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[diffusers\]"$'):
        make_system(config("diffusers", "a/b"))


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


@pytest.fixture
def _small_qwen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as module

    monkeypatch.setattr(module, "VAE_IMAGE_SIZE", 64 * 64)
    monkeypatch.setattr(module, "CONDITION_IMAGE_SIZE", 56 * 56)
    # The very module that diffusers looks into: importing a part of it replaces the one before.
    transformers: Any = sys.modules["transformers"]
    monkeypatch.setattr(transformers, "Qwen2VLProcessor", tiny_pipelines.qwen_processor_class())


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImageRef, ImageRef]:
    folder = tmp_path_factory.mktemp("pictures")
    return image_file(folder, blocks((128, 96), 1)), image_file(folder, blocks((96, 160), 2))


def made(folder: Path, name: str, *, seed: int = 0, size: Any = SMALL, **more: Any) -> System:
    call = {"num_inference_steps": 2, **CALLS[name], **more.pop("call", {})}
    given = {"dtype": "float32", "device": "cpu", "stitched_pixels": 128 * 128, **more}
    parameters = {"call": call, **given}
    return make_system(config("diffusers", folder, seed=seed, size=size, parameters=parameters))


def drawn(system: System, *tasks: Task) -> list[GenerationResult]:
    with system:
        return [system.draw(one) for one in tasks]


@pytest.mark.extras
@pytest.mark.usefixtures("_small_qwen")
@pytest.mark.parametrize(
    ("name", "counts", "way"),
    [("kontext", (0, 1, 2), "stitch"), ("klein", (0, 1, 2), "list"), ("edit_plus", (1, 2), "list")],
)
def test_every_number_of_inputs_gives_another_image(
    tiny: Write, images: tuple[ImageRef, ImageRef], name: str, counts: tuple[int, ...], way: str
) -> None:
    tasks = [task(*images[:count]) for count in counts]
    found = drawn(made(tiny(name), name), *tasks, task(*reversed(images)))
    assert [one.outcome for one in found] == [Outcome.OK] * len(found)
    assert len({one.image for one in found}) == len(found)
    ways = {0: None, 1: "alone", 2: way}
    for one, count in zip(found, (*counts, 2), strict=True):
        said = one.details["inputs"]
        assert (said["given"], said["used"], said.get("way")) == (count, count, ways[count])
        assert levels(one.image).shape == (48, 64, 3)
        assert one.details["size"] == {"asked": [64, 48], "came": [64, 48]}


@pytest.mark.extras
def test_seed_and_prompt_decide_the_image(tiny: Write, images: tuple[ImageRef, ImageRef]) -> None:
    import diffusers

    one = task(images[0])
    first, again, prompted = drawn(
        made(tiny("klein"), "klein"), one, one, task(images[0], prompt="a blue lake at night")
    )
    [anew] = drawn(made(tiny("klein"), "klein"), one)
    [other] = drawn(made(tiny("klein"), "klein", seed=1), one)
    assert first.image == again.image == anew.image
    assert len({first.image, prompted.image, other.image}) == 3
    assert (first.seed, other.seed) == (0, 1)
    said = json.loads(json.dumps(first.details))
    assert said["pipeline"] == "Flux2KleinPipeline"
    assert (said["dtype"], said["device"], said["commit"]) == ("float32", "cpu", None)
    assert said["versions"]["diffusers"] == diffusers.__version__


@pytest.mark.extras
def test_the_image_is_the_pipelines_own(tiny: Write) -> None:
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
    [found] = drawn(made(tiny("flux"), "flux", seed=5), task(prompt="a red barn"))
    np.testing.assert_array_equal(levels(found.image), np.asarray(expected))


@pytest.mark.extras
@pytest.mark.usefixtures("_small_qwen")
def test_guidance_of_qwen_does_not_wait_for_a_negative_prompt(
    tiny: Write, images: tuple[ImageRef, ImageRef]
) -> None:
    calls: list[dict[str, Any]] = [
        {},
        {"negative_prompt": " "},
        {"negative_prompt": "blurred"},
        {"true_cfg_scale": 1.0},
    ]
    folder, one = tiny("edit_plus"), task(images[0])
    plain, space, other, unguided = (
        drawn(made(folder, "edit_plus", call=call), one)[0].image for call in calls
    )
    assert plain == space
    assert len({plain, other, unguided}) == 3


@pytest.mark.extras
def test_the_size_that_came_is_told(tiny: Write, tmp_path: Path) -> None:
    """Kontext draws a size that it was trained on; FLUX.2 cuts the input's to multiples of 16."""
    wide, odd, one = (
        image_file(tmp_path, blocks(size, 1)) for size in ((300, 100), (100, 70), (64, 64))
    )
    shaped = made(tiny("kontext"), "kontext", size="match_input", call={"num_inference_steps": 1})
    [found] = drawn(shaped, task(wide))
    assert found.details["size"] == {"asked": [1568, 672], "came": [1568, 672]}
    [found] = drawn(made(tiny("klein"), "klein", size="auto"), task(odd, one))
    assert found.details["size"] == {"asked": None, "came": [96, 64]}


@pytest.mark.extras
def test_an_image_that_the_checker_holds_back_is_refused(tiny: Write) -> None:
    [found] = drawn(made(tiny("checked"), "checked"), task())
    assert (found.outcome, found.stage) == (Outcome.REFUSED, OutcomeStage.OUTPUT)
    assert (found.code, found.image) == ("nsfw_content_detected", None)


@pytest.mark.extras
def test_what_a_task_has_wrong_is_its_own_outcome(tiny: Write, tmp_path: Path) -> None:
    gone = ImageRef("f" * 64, tmp_path / "gone.png")
    small, good = (image_file(tmp_path, blocks(size, 1)) for size in ((32, 64), (64, 64)))
    bad, unseen, fine = drawn(made(tiny("klein"), "klein"), task(gone), task(small), task(good))
    assert (bad.outcome, bad.stage) == (Outcome.FAILED, OutcomeStage.INPUT)
    assert str(tmp_path) not in str(bad.text)
    assert (unseen.outcome, unseen.code) == (Outcome.UNSUPPORTED, "size_of_input")
    assert fine.outcome is Outcome.OK
    broken = made(tiny("flux"), "flux", call={"max_sequence_length": 100_000})
    many, *both = drawn(broken, task(good), task(), task())
    assert (many.outcome, many.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
    for found in both:
        assert (found.outcome, found.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)
        assert found.code == "ValueError"
        assert "`max_sequence_length` cannot be greater than 512" in str(found.text)


@pytest.mark.extras
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"call": {"guidence_scale": 1}}, "did you mean 'guidance_scale'?"),
        ({"offload": "model"}, "offload is 'model', and the device is the processor"),
    ],
)
def test_a_config_that_no_task_could_succeed_with_stops_the_run(
    tiny: Write, more: dict[str, Any], said: str
) -> None:
    system = made(tiny("kontext"), "kontext", **more)
    with pytest.raises(GenerationError, match=said) as caught, system:
        system.draw(task())
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_pickled_weights_are_not_read(tiny: Write, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "pickled"
    shutil.copytree(tiny("flux"), folder)
    safe = folder / "vae" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(safe), safe.with_suffix(".bin"))
    safe.unlink()
    with pytest.raises(GenerationError) as caught, made(folder, "flux") as system:
        system.draw(task())
    assert "expected a pipeline of diffusers with safetensors weights" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_a_processor_that_needs_torchvision_is_told(tiny: Write, tmp_path: Path) -> None:
    if find_spec("torchvision"):
        pytest.skip("torchvision is installed")
    folder = tmp_path / "with-videos"
    shutil.copytree(tiny("edit_plus"), folder)
    video = folder / "processor" / "video_preprocessor_config.json"
    video.write_text('{"video_processor_type": "Qwen2VLVideoProcessor"}')
    with pytest.raises(GenerationError) as caught, made(folder, "edit_plus") as system:
        system.draw(task())
    assert str(caught.value).endswith(
        "needs torchvision: install the one that belongs to your torch"
    )


@pytest.mark.extras
def test_leaving_frees_the_model(tiny: Write) -> None:
    system: Any = made(tiny("flux"), "flux")
    with system:
        assert system._loaded is None
        system.draw(task())
        part = weakref.ref(system._loaded.pipe.transformer)
        assert part() is not None
    gc.collect()
    assert part() is None


@pytest.mark.extras
@pytest.mark.parametrize("name", ["flux", "klein"])
def test_a_prompt_that_is_cut_is_told(tiny: Write, name: str) -> None:
    limit, long = 48 if name == "flux" else 64, "a fox in the snow " * 20
    call = {"num_inference_steps": 1, "max_sequence_length": limit}
    prompts = ("a fox", f"{long} at noon", f"{long} at dawn")
    system = made(tiny(name), name, call=call)
    short, noon, dawn = drawn(system, *(task(prompt=prompt) for prompt in prompts))
    assert noon.image == dawn.image != short.image
    for one in (noon, dawn):
        assert (one.details["prompt_cut"], one.details["prompt_tokens_used"]) == (True, limit)
        assert one.details["prompt_tokens"] > limit
    assert short.details["prompt_cut"] is False
    assert short.details["prompt_tokens_used"] == short.details["prompt_tokens"]


def needs_diffusers() -> Any:
    return pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)


@pytest.mark.extras
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_row_of_the_table_is_what_the_class_says_of_itself(name: str) -> None:
    found, kind = getattr(needs_diffusers(), name), KINDS[name]
    parameters = inspect.signature(found.__call__).parameters
    assert set(parameters) >= kind.arguments | set(kind.defaults) | OURS
    if kind.image:
        assert parameters[kind.image].default is None
    else:
        places = {one for one in parameters if "image" in one and "ip_adapter" not in one}
        assert places == {"num_images_per_prompt"}
    if kind.reader is not None:
        assert kind.reader.tokenizer in found._get_signature_keys(found)[0]
    assert pipeline_class(name, PLACE).kind is kind


@pytest.mark.extras
def test_the_numbers_of_the_table_are_those_of_diffusers() -> None:
    """Kontext's sizes, and what FLUX.2 refuses to look at."""
    needs_diffusers()
    from diffusers.pipelines.flux.pipeline_flux_kontext import PREFERRED_KONTEXT_RESOLUTIONS
    from diffusers.pipelines.flux2.image_processor import Flux2ImageProcessor

    assert sorted(KONTEXT_SIZES) == sorted(PREFERRED_KONTEXT_RESOLUTIONS)
    limits = inspect.signature(Flux2ImageProcessor.check_image_input).parameters
    kind = KINDS["Flux2Pipeline"]
    assert limits["min_side_length"].default == kind.shortest_side
    assert limits["max_aspect_ratio"].default == kind.longest_ratio


@pytest.mark.extras
@pytest.mark.parametrize(
    ("name", "said"),
    [
        *[
            (name, f"has no pipeline {name!r}: expected one of its own")
            for name in ("LumenPipeline", "os", "DiffusionPipe line", "UNet2DModel")
        ],
        *[
            (name, f"{name} draws over a noisy copy of its input")
            for name in ("FluxImg2ImgPipeline", "StableDiffusion3Img2ImgPipeline")
        ],
        *[
            (name, f"how {name} is called is not known")
            for name in ("LongCatImageEditPipeline", "WanPipeline", "DDPMPipeline")
        ],
        ("AudioLDM2Pipeline", "how AudioLDM2Pipeline is called is not known"),
        *[(name, None) for name in ("StableDiffusionXLPipeline", "SanaPipeline")],
    ],
)
def test_a_class_outside_of_the_table_may_draw_from_text_alone(name: str, said: str | None) -> None:
    needs_diffusers()
    if said is None:
        found = pipeline_class(name, PLACE)
        assert (found.kind.image, found.kind.multiple) == (None, 1)
        return
    with pytest.raises(GenerationError) as caught:
        pipeline_class(name, PLACE)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.extras
@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_system_is_called_as_its_pipeline_can_be(name: str) -> None:
    needs_diffusers()
    shipped = read_system(next(file for file in shipped_systems() if file.stem == name))
    found = pipeline_class(SHIPPED[name], "shipped")
    check_options(found, DiffusersSystem(shipped).options, shipped.size, "shipped")
