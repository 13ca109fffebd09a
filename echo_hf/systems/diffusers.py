"""Systems whose images diffusers draws in this process."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from echo_hf.config.checks import Whole
from echo_hf.config.systems import FixedSize, Size, SystemConfig
from echo_hf.errors import GenerationError, unknown
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Task, unsupported_task
from echo_hf.systems.images import Pixels, as_png, chosen_size, nearest, stitched, within
from echo_hf.systems.local_models import LocalOptions, LocalSystem, unsupported
from echo_hf.systems.registry import deciding, options_of, register

INDEX = "model_index.json"
MEGAPIXEL = 1024 * 1024
# Shapes that FLUX.1 Kontext was trained on; each is also one when turned.
_KONTEXT_WIDE = (
    *((1568, 672), (1504, 688), (1456, 720), (1392, 752)),
    *((1328, 800), (1248, 832), (1184, 880), (1104, 944)),
)
KONTEXT_SIZES: tuple[Pixels, ...] = (
    (1024, 1024),
    *_KONTEXT_WIDE,
    *((height, width) for width, height in _KONTEXT_WIDE),
)
# Without a negative prompt, guidance of these pipelines does nothing.
TRUE_GUIDANCE = {"negative_prompt": " "}


@dataclass(frozen=True, slots=True)
class PromptReader:
    """How a class of pipelines makes tokens of a prompt, of which it reads a first number."""

    tokenizer: str = "tokenizer"
    chat: Mapping[str, Any] | None = None
    template: str | None = None
    template_start: str | None = None


@dataclass(frozen=True, slots=True)
class PipelineKind:
    image: str | None = None
    takes_list: bool = False
    fewest: int = 0
    multiple: int = 16
    sizes: tuple[Pixels, ...] = ()
    shortest_side: int = 1
    longest_ratio: float | None = None
    area: str | None = None
    resizes: str | None = None
    names_images: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    reader: PromptReader | None = None

    @property
    def arguments(self) -> frozenset[str]:
        """The arguments that are the task's, or follow from it; no config sets them."""
        own = {self.image, self.area, self.resizes} - {None}
        return frozenset({"prompt", "height", "width", *map(str, own)})

    def like(self, size: Pixels) -> Pixels:
        if self.sizes:
            return nearest(size, self.sizes)
        return within(size, MEGAPIXEL, self.multiple)


_T5 = PromptReader("tokenizer_2")
_FLUX_2 = PipelineKind("image", takes_list=True, shortest_side=64, longest_ratio=8)
KINDS: Mapping[str, PipelineKind] = {
    "Flux2KleinPipeline": replace(_FLUX_2, reader=PromptReader(chat={"enable_thinking": False})),
    "Flux2Pipeline": _FLUX_2,
    "FluxKontextPipeline": PipelineKind(
        "image", sizes=KONTEXT_SIZES, area="max_area", resizes="_auto_resize", reader=_T5
    ),
    "FluxPipeline": PipelineKind(reader=_T5),
    "GlmImagePipeline": PipelineKind("image", takes_list=True, multiple=32),
    "OmniGenPipeline": PipelineKind("input_images", takes_list=True, names_images=True),
    "QwenImage21Pipeline": PipelineKind("image", takes_list=True, multiple=32),
    "QwenImageEditPipeline": PipelineKind("image", fewest=1, defaults=TRUE_GUIDANCE),
    "QwenImageEditPlusPipeline": PipelineKind(
        "image", takes_list=True, fewest=1, defaults=TRUE_GUIDANCE
    ),
    "QwenImagePipeline": PipelineKind(
        defaults=TRUE_GUIDANCE,
        reader=PromptReader(
            template="prompt_template_encode", template_start="prompt_template_encode_start_idx"
        ),
    ),
    "StableDiffusion3Pipeline": PipelineKind(reader=PromptReader("tokenizer_3")),
    "ZImagePipeline": PipelineKind(reader=PromptReader(chat={"enable_thinking": True})),
}


# Of every pipeline: one image, of the seed, as Pillow has it.
OURS = frozenset(
    {"generator", "num_images_per_prompt", "output_type", "return_dict", "latents", "self"}
)
IMAGES = ("image", "video", "frames")
PARTIAL_NOISE = "strength"
TEXT_TO_IMAGE = frozenset({"prompt", "height", "width"})


# Qwen's processors load a part for videos, whether there are any or not.
VIDEOS = "torchvision"
LIMIT = "max_sequence_length"
PLACE = "<img><|image_{number}|></img>"
# Raised with every change of ours that changes images: a default, the stitching, the table of
# classes, the words that name images. What was drawn before is drawn anew then.
WORDING = 1
UNSAFE = "nsfw_content_detected"


@dataclass(frozen=True, slots=True)
class PipelineClass:
    name: str
    kind: PipelineKind
    parameters: frozenset[str]


def class_named(index: Path, place: str) -> str:
    """The class that a model's index names."""
    try:
        name = json.loads(index.read_bytes())["_class_name"]
    except (ValueError, KeyError, TypeError):
        raise GenerationError(
            f"{place}: {INDEX!r} of the model names no `_class_name`: expected a model as "
            "diffusers saves it"
        ) from None
    if not isinstance(name, str):
        raise GenerationError(
            f"{place}: the model's class {name!r} is code of its own, which is never run here: "
            "choose a model that diffusers itself knows, or run it with adapter 'command'"
        )
    return name


def pipeline_class(name: str, place: str) -> PipelineClass:
    """A class of diffusers; outside of the table, one that draws images from text alone."""
    import diffusers

    found = getattr(diffusers, name, None) if name.isidentifier() else None
    if not (inspect.isclass(found) and issubclass(found, diffusers.DiffusionPipeline)):
        raise GenerationError(
            f"{place}: diffusers {diffusers.__version__} has no pipeline {name!r}: expected one of "
            "its own, such as 'FluxKontextPipeline'; install a newer diffusers, or choose another "
            "model"
        )
    parameters = frozenset(inspect.signature(found.__call__).parameters)
    if name in KINDS:
        return PipelineClass(name, KINDS[name], parameters)
    # An adapter's image is a style that may be left out, of pipelines from text too.
    styles = ("ip_adapter", "negative_ip_adapter")
    has_images = any(
        word in one for one in parameters - OURS if not one.startswith(styles) for word in IMAGES
    )
    editing = ", ".join(sorted(name for name, kind in KINDS.items() if kind.image))
    if has_images and PARTIAL_NOISE in parameters:
        raise GenerationError(
            f"{place}: {name} draws over a noisy copy of its input ({PARTIAL_NOISE!r}) and follows "
            f"no instruction: expected a pipeline that edits, one of {editing}"
        )
    if has_images or not parameters >= TEXT_TO_IMAGE:
        raise GenerationError(
            f"{place}: how {name} is called is not known: expected a pipeline that draws images "
            f"from text alone, or one of {editing}"
        )
    return PipelineClass(name, PipelineKind(multiple=1), parameters)


class DiffusersOptions(LocalOptions):
    """Parameters of the adapter.

    Attributes:
        call: Arguments of the pipeline's call, such as `num_inference_steps`; the rest is at the
            pipeline's own defaults.
        offload: Whether what is not at work waits in the processor's memory: no part, whole
            `model`s, or layer by layer (`sequential`), which is slow.
        several_inputs: How several inputs are given: as a `list`, side by side in one image
            (`stitch`), the `first` alone, or not at all (`refuse`); `auto` is a list where the
            pipeline takes one, and otherwise stitched.
        stitched_pixels: Width times height of a stitched image, at most.
    """

    call: Mapping[str, Any] = {}
    offload: Literal["none", "model", "sequential"] = "none"
    several_inputs: Literal["auto", "list", "stitch", "first", "refuse"] = "auto"
    stitched_pixels: Annotated[Whole, Field(ge=4096, le=16 * MEGAPIXEL)] = MEGAPIXEL


def check_options(
    pipeline: PipelineClass, options: DiffusersOptions, size: Size, place: str
) -> None:
    """Checks that a pipeline can be called as a config says, and draws exactly its size."""
    kind = pipeline.kind
    ours = OURS | kind.arguments
    for name in options.call:
        if name in ours:
            raise GenerationError(
                f"{place}: parameters.call has {name!r}, which follows from the task and from "
                "`size` and `seed`: leave it out"
            )
        if name not in pipeline.parameters:
            what, known = f"argument of {pipeline.name}", pipeline.parameters - ours
            raise GenerationError(unknown(what, name, known, f"{place}: parameters.call"))
    if isinstance(size, FixedSize) and (size.width % kind.multiple or size.height % kind.multiple):
        raise GenerationError(
            f"{place}: size is {size.width} x {size.height}: expected sides that are multiples of "
            f"{kind.multiple}, which is what its pipeline draws"
        )
    if options.several_inputs == "list" and kind.image and not kind.takes_list:
        raise GenerationError(
            f"{place}: several_inputs is 'list', and {pipeline.name} takes a single image: "
            "expected stitch, first or refuse"
        )


def way_of(pipeline: PipelineClass, options: DiffusersOptions) -> str:
    """How several inputs are given."""
    if options.several_inputs != "auto":
        return options.several_inputs
    return "list" if pipeline.kind.takes_list else "stitch"


def not_taken(
    task: Task, pipeline: PipelineClass, options: DiffusersOptions
) -> GenerationResult | None:
    kind, name = pipeline.kind, pipeline.name
    if kind.image is None:
        return unsupported_task(task, 0, 0, name)
    if way_of(pipeline, options) == "refuse":
        return unsupported_task(task, kind.fewest, 1, f"{name} with several_inputs 'refuse'")
    return unsupported_task(task, kind.fewest, None, name)


def shown_images(
    images: Sequence[Image.Image], pipeline: PipelineClass, options: DiffusersOptions
) -> list[Image.Image]:
    way, kind = way_of(pipeline, options), pipeline.kind
    if len(images) < 2 or way == "list":
        return list(images)
    if way == "first":
        return [images[0]]
    return [stitched(images, kind.like, options.stitched_pixels, kind.multiple)]


def not_shown(images: Sequence[Image.Image], pipeline: PipelineClass) -> GenerationResult | None:
    kind = pipeline.kind
    for image in images:
        short, long = sorted(image.size)
        if short < kind.shortest_side or long > short * (kind.longest_ratio or long):
            text = f"{pipeline.name} does not see an image of {image.width} x {image.height}"
            return unsupported(OutcomeStage.INPUT, "size_of_input", text)
    return None


def given_inputs(
    task: Task, shown: Sequence[Image.Image], pipeline: PipelineClass, options: DiffusersOptions
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Prompt and images as a pipeline takes them, and what the provenance says of the inputs."""
    kind, count, prompt = pipeline.kind, len(task.inputs), task.prompt
    if kind.image is None or not shown:
        return {"prompt": prompt}, {"given": 0, "used": 0}
    if kind.names_images:
        places = (PLACE.format(number=number) for number in range(1, len(shown) + 1))
        prompt = " ".join([*places, prompt])
    arguments: dict[str, Any] = {"prompt": prompt}
    arguments[kind.image] = list(shown) if kind.takes_list else shown[0]
    way = way_of(pipeline, options) if count > 1 else "alone"
    details: dict[str, Any] = {"given": count, "used": count if way != "first" else 1, "way": way}
    if way == "stitch":
        details["stitched"] = list(shown[0].size)
        if kind.resizes is not None:
            arguments[kind.resizes] = False
    return arguments, details


def size_arguments(
    size: Size, first_input: Pixels | None, kind: PipelineKind
) -> tuple[dict[str, int], Pixels | None]:
    asked = chosen_size(size, first_input, kind.like)
    if asked is None:
        return {}, None
    area = {} if kind.area is None else {kind.area: asked[0] * asked[1]}
    return {"width": asked[0], "height": asked[1], **area}, asked


def prompt_length(
    pipe: Any, reader: PromptReader | None, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Counts the tokens of a prompt as a pipeline counts them; of some, nothing is known."""
    tokenizer = None if reader is None else getattr(pipe, reader.tokenizer, None)
    declared = inspect.signature(type(pipe).__call__).parameters.get(LIMIT)
    limit = arguments.get(LIMIT, declared and declared.default)
    if reader is None or tokenizer is None or not isinstance(limit, int):
        return {}
    words, before = arguments["prompt"], 0
    if reader.chat is not None:
        asked, how = [{"role": "user", "content": words}], dict(reader.chat)
        words = tokenizer.apply_chat_template(
            asked, tokenize=False, add_generation_prompt=True, **how
        )
    elif reader.template is not None:
        words = getattr(pipe, reader.template).format(words)
        before = getattr(pipe, reader.template_start or "")
    count = len(tokenizer(words).input_ids) - before
    used = min(count, limit)
    return {"prompt_tokens": count, "prompt_tokens_used": used, "prompt_cut": count > used}


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    pipe: Any
    pipeline: PipelineClass
    details: Mapping[str, Any]


@register(
    "diffusers",
    "open weights that diffusers runs in this process",
    extra="diffusers",
    packages=("torch", "diffusers", "transformers", "accelerate"),
)
class DiffusersSystem(LocalSystem[DiffusersOptions, LoadedPipeline]):
    determinism = (
        "The noise is drawn on the processor from the seed: the same seed gives the same picture "
        "on the same device with the same versions of torch and diffusers, and a slightly other "
        "one elsewhere."
    )
    expected = "a pipeline of diffusers with safetensors weights and no code of its own"
    smaller = "offload 'model' or 'sequential', a smaller dtype or a smaller model"

    def __init__(self, config: SystemConfig) -> None:
        super().__init__(config, options_of(config, DiffusersOptions), INDEX)

    def signature(self) -> dict[str, Any]:
        """What decides an image; the device and offloading do not."""
        config = self.config.model_dump(mode="json", include={"adapter", "size", "seed"})
        options = deciding(self.options, {"device", "offload", "revision"})
        return {**config, "wording": WORDING, **self.model.identity, **options}

    def preflight(self) -> None:
        """Looks for the model on this machine; nothing is downloaded, and nothing retires."""
        index = self.model.index_at_hand()
        if index is not None:
            class_named(index, self.place)

    def load(self, device: str) -> LoadedPipeline:
        """Loads the pipeline; what a config has wrong is found before the weights are read."""
        import diffusers
        import torch
        import transformers

        options = self.options
        if device == "cpu" and options.offload != "none":
            raise GenerationError(
                f"{self.place}: offload is {options.offload!r}, and the device is the processor: "
                "expected none"
            )
        name = class_named(self.model.fetched_index(), self.place)
        pipeline = pipeline_class(name, self.place)
        check_options(pipeline, options, self.config.size, self.place)
        try:
            pipe: Any = diffusers.DiffusionPipeline.from_pretrained(
                self.model.source,
                revision=self.model.pinned,
                dtype=getattr(torch, options.dtype),
                use_safetensors=True,
                trust_remote_code=False,
            )
        except Exception as error:
            if VIDEOS not in str(error).lower():
                raise
            raise GenerationError(
                f"{self.place}: the processor of {self.model.source!r} needs {VIDEOS}: install "
                "the one that belongs to your torch"
            ) from error
        pipe.set_progress_bar_config(disable=True)
        if options.offload == "model":
            pipe.enable_model_cpu_offload(device=device)
        elif options.offload == "sequential":
            pipe.enable_sequential_cpu_offload(device=device)
        else:
            pipe.to(device)
        libraries = (torch, diffusers, transformers)
        versions = {one.__name__: str(one.__version__) for one in libraries}
        details = {"pipeline": pipeline.name, **self.details(device, **versions)}
        return LoadedPipeline(pipe, pipeline, details)

    def unfit(self, loaded: LoadedPipeline, task: Task) -> GenerationResult | None:
        return not_taken(task, loaded.pipeline, self.options)

    def draw_with(
        self, loaded: LoadedPipeline, task: Task, inputs: tuple[Image.Image, ...]
    ) -> GenerationResult:
        import torch

        kind, seed = loaded.pipeline.kind, self.config.seed
        shown = shown_images(inputs, loaded.pipeline, self.options)
        if (unseen := not_shown(shown, loaded.pipeline)) is not None:
            return unseen
        given, told = given_inputs(task, shown, loaded.pipeline, self.options)
        first = inputs[0].size if inputs else None
        sizes, asked = size_arguments(self.config.size, first, kind)
        arguments = {**kind.defaults, **self.options.call, **given, **sizes}
        length = prompt_length(loaded.pipe, kind.reader, arguments)
        said = loaded.pipe(**arguments, generator=torch.Generator("cpu").manual_seed(seed))
        image = said.images[0]
        size = {"asked": list(asked) if asked else None, "came": list(image.size)}
        details = {**loaded.details, **length, "inputs": told, "size": size}
        if any(getattr(said, UNSAFE, None) or ()):
            return GenerationResult(
                Outcome.REFUSED,
                stage=OutcomeStage.OUTPUT,
                code=UNSAFE,
                text="the model's own checker held the image back",
                seed=seed,
                details=details,
            )
        return GenerationResult(Outcome.OK, as_png(image), seed=seed, details=details)
