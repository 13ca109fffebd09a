"""Systems that diffusers runs in this process."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from PIL import Image
from pydantic import Field

from echo_hf.config.checks import StrictInt
from echo_hf.config.systems import FixedSize, OutputSize, SystemConfig
from echo_hf.errors import GenerationError, unknown
from echo_hf.images.loader import PixelSize
from echo_hf.systems.base import GenerationResult, OutcomeStage, Task, unsupported_task
from echo_hf.systems.images import nearest_size, pick_size, scale_size, stitch, to_png
from echo_hf.systems.local_models import LocalOptions, LocalSystem
from echo_hf.systems.registry import parse_options, register
from echo_hf.tables import Outcome

INDEX = "model_index.json"
MEGAPIXEL = 1024 * 1024
# Sizes that FLUX.1 Kontext was trained on; each also in portrait format.
_WIDE = (
    *((1568, 672), (1504, 688), (1456, 720), (1392, 752)),
    *((1328, 800), (1248, 832), (1184, 880), (1104, 944)),
)
_HIGH = tuple((high, wide) for wide, high in _WIDE)
KONTEXT_SIZES: tuple[PixelSize, ...] = ((1024, 1024), *_WIDE, *_HIGH)
# Without a negative prompt, these pipelines ignore their guidance.
TRUE_GUIDANCE = {"negative_prompt": " "}


@dataclass(frozen=True, slots=True)
class PromptReader:
    """How a class of pipelines tokenizes a prompt, of which it reads a limited number of tokens."""

    tokenizer: str = "tokenizer"
    chat: Mapping[str, Any] | None = None
    template: str | None = None
    template_start: str | None = None

    def count(self, pipe: Any, text: str) -> int | None:
        """Count the tokens that are limited; null where the pipeline has no such tokenizer."""
        tokenizer, prefix = getattr(pipe, self.tokenizer, None), 0
        if tokenizer is None:
            return None
        if self.chat is not None:
            turns = [{"role": "user", "content": text}]
            text = tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, **self.chat
            )
        elif self.template is not None:
            text = getattr(pipe, self.template).format(text)
            prefix = getattr(pipe, self.template_start or "")
        return len(tokenizer(text).input_ids) - prefix


@dataclass(frozen=True, slots=True)
class PipelineKind:
    """How a class of pipelines is called: the arguments of its images, and the sizes it draws."""

    image: str | None = None
    takes_list: bool = False
    fewest: int = 0
    multiple: int = 16
    sizes: tuple[PixelSize, ...] = ()
    area: str | None = None
    resizes: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    reader: PromptReader | None = None

    @property
    def arguments(self) -> frozenset[str]:
        """Return the arguments that follow from the task, which no config sets."""
        own = filter(None, (self.image, self.area, self.resizes))
        return frozenset({"prompt", "height", "width", *own})

    def pick_size(self, size: PixelSize) -> PixelSize:
        if self.sizes:
            return nearest_size(size, self.sizes)
        return scale_size(size, MEGAPIXEL, self.multiple)


_T5_READER, _LIST_KIND = PromptReader("tokenizer_2"), PipelineKind("image", takes_list=True)
KINDS: Mapping[str, PipelineKind] = {
    "Flux2KleinPipeline": replace(_LIST_KIND, reader=PromptReader(chat={"enable_thinking": False})),
    "Flux2Pipeline": _LIST_KIND,
    "FluxKontextPipeline": PipelineKind(
        "image", sizes=KONTEXT_SIZES, area="max_area", resizes="_auto_resize", reader=_T5_READER
    ),
    "FluxPipeline": PipelineKind(reader=_T5_READER),
    "QwenImage21Pipeline": replace(_LIST_KIND, multiple=32),
    "QwenImageEditPipeline": PipelineKind("image", fewest=1, defaults=TRUE_GUIDANCE),
    "QwenImageEditPlusPipeline": replace(_LIST_KIND, fewest=1, defaults=TRUE_GUIDANCE),
    "QwenImagePipeline": PipelineKind(
        defaults=TRUE_GUIDANCE,
        reader=PromptReader(
            template="prompt_template_encode", template_start="prompt_template_encode_start_idx"
        ),
    ),
    "StableDiffusion3Pipeline": PipelineKind(reader=PromptReader("tokenizer_3")),
    "ZImagePipeline": PipelineKind(reader=PromptReader(chat={"enable_thinking": True})),
}


# Arguments that are set for every pipeline: one image, from the seed, as a Pillow image.
RESERVED = {"generator", "num_images_per_prompt", "output_type", "return_dict", "latents", "self"}
IMAGE_WORDS = ("image", "video", "frames")
TEXT_TO_IMAGE = frozenset({"prompt", "height", "width"})
UNSAFE_FLAG = "nsfw_content_detected"
LENGTH_ARGUMENT = "max_sequence_length"


def import_pipeline_class(index: Path, place: str) -> str:
    with suppress(ValueError, KeyError, TypeError):
        name = json.loads(index.read_bytes())["_class_name"]
        if isinstance(name, str):  # else it is a class of the model's own code
            return name
    raise GenerationError(
        f"{place}: {INDEX!r} of the model names no class of diffusers: expected a model as it "
        "saves them; code that comes with a model is never run here, but by adapter 'command'"
    )


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
    stitched_pixels: Annotated[StrictInt, Field(ge=4096, le=16 * MEGAPIXEL)] = MEGAPIXEL


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A class of pipelines, and how a config wants it to be called."""

    name: str
    kind: PipelineKind
    parameters: frozenset[str]
    options: DiffusersOptions

    @classmethod
    def from_name(cls, name: str, options: DiffusersOptions, place: str) -> Self:
        """Find a class of diffusers; one that is not in `KINDS` has to draw from text alone."""
        import diffusers

        candidate = getattr(diffusers, name, None) if name.isidentifier() else None
        base, call = diffusers.DiffusionPipeline, object
        is_pipeline = inspect.isclass(candidate) and issubclass(candidate, base)
        if candidate is not None and is_pipeline:
            call = candidate.__call__
        parameters = frozenset(inspect.signature(call).parameters)
        # An adapter's image is an optional style, which pipelines from text may have too.
        styles = ("ip_adapter", "negative_ip_adapter")
        own = [arg for arg in parameters - RESERVED if not arg.startswith(styles)]
        has_images = any(word in arg for arg in own for word in IMAGE_WORDS)
        if not (name in KINDS and is_pipeline) and (has_images or not parameters >= TEXT_TO_IMAGE):
            editing = ", ".join(sorted(name for name, kind in KINDS.items() if kind.image))
            raise GenerationError(
                f"{place}: how {name!r} of diffusers {diffusers.__version__} follows an "
                "instruction is not known: expected a pipeline that draws images from text "
                f"alone, or one of {editing}; install a newer diffusers, or choose another model"
            )
        return cls(name, KINDS.get(name, PipelineKind(multiple=1)), parameters, options)

    def check(self, size: OutputSize, place: str) -> None:
        """Check that the config's arguments and size are those of the pipeline."""
        kind, reserved = self.kind, RESERVED | self.kind.arguments
        for name in self.options.call:
            if name in reserved:
                raise GenerationError(
                    f"{place}: parameters.call has {name!r}, which follows from the task and from "
                    "`size` and `seed`: leave it out"
                )
            if name not in self.parameters:
                what, allowed = f"argument of {self.name}", self.parameters - reserved
                raise GenerationError(unknown(what, name, allowed, f"{place}: parameters.call"))
        sides = [size.width, size.height] if isinstance(size, FixedSize) else []
        if any(side % kind.multiple for side in sides):
            raise GenerationError(
                f"{place}: size is {sides[0]} x {sides[1]}: expected sides that are multiples of "
                f"{kind.multiple}, which is what its pipeline draws"
            )
        if self.options.several_inputs == "list" and kind.image and not kind.takes_list:
            raise GenerationError(
                f"{place}: several_inputs is 'list', and {self.name} takes a single image: "
                "expected stitch, first or refuse"
            )

    @property
    def way(self) -> str:
        """Return how several inputs are given."""
        usual = "list" if self.kind.takes_list else "stitch"
        return usual if self.options.several_inputs == "auto" else self.options.several_inputs

    def check_task(self, task: Task) -> GenerationResult | None:
        if self.kind.image is None:
            return unsupported_task(task, 0, 0, self.name)
        is_one = self.way == "refuse"
        taker = f"{self.name} with several_inputs 'refuse'" if is_one else self.name
        return unsupported_task(task, self.kind.fewest, 1 if is_one else None, taker)

    def build_inputs(self, images: Sequence[Image.Image]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the images as arguments of the call, and what the provenance says of them."""
        kind, count = self.kind, len(images)
        if kind.image is None or not images:
            return {}, {"given": 0, "used": 0}
        way, sent, arguments = self.way if count > 1 else "alone", list(images), dict[str, Any]()
        details: dict[str, Any] = {"given": count, "used": count, "way": way}
        if way == "first":
            sent, details["used"] = sent[:1], 1
        elif way == "stitch":
            sheet = stitch(images, kind.pick_size, self.options.stitched_pixels, kind.multiple)
            sent, details["stitched"] = [sheet], list(sheet.size)
            if kind.resizes is not None:
                arguments[kind.resizes] = False
        return {**arguments, kind.image: sent if kind.takes_list else sent[0]}, details

    def size_arguments(self, size: OutputSize, first_input: PixelSize | None) -> dict[str, int]:
        """Return the size to draw; empty where the pipeline chooses it."""
        chosen = pick_size(size, first_input, self.kind.pick_size)
        if chosen is None:
            return {}
        area = {} if self.kind.area is None else {self.kind.area: chosen[0] * chosen[1]}
        return {"width": chosen[0], "height": chosen[1], **area}

    def count_prompt(self, pipe: Any, prompt: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Count the tokens of a prompt as its pipeline does; empty where that is not known."""
        declared = inspect.signature(type(pipe).__call__).parameters.get(LENGTH_ARGUMENT)
        limit = arguments.get(LENGTH_ARGUMENT, declared and declared.default)
        reader = self.kind.reader
        count = None if reader is None else reader.count(pipe, prompt)
        if count is None or not isinstance(limit, int):
            return {}
        used = min(count, limit)
        return {"prompt_tokens": count, "prompt_tokens_used": used, "prompt_cut": count > used}


# The pipeline, how it is called, and details of the machine for the provenance.
LoadedPipeline = tuple[Any, Pipeline, Mapping[str, Any]]


@register(
    "diffusers",
    "open weights that diffusers runs in this process",
    extra="diffusers",
    packages=("torch", "diffusers", "transformers", "accelerate"),
    devices=True,
)
class DiffusersSystem(LocalSystem[DiffusersOptions, LoadedPipeline]):
    determinism = (
        "The noise is drawn on the processor from the seed: the same seed gives the same picture "
        "on the same device with the same versions of torch and diffusers, and a slightly other "
        "one elsewhere."
    )
    wording = 1
    places = frozenset({"device", "offload", "revision"})
    expected = "a pipeline of diffusers with safetensors weights and no code of its own"
    smaller = "offload 'model' or 'sequential', a smaller dtype or a smaller model"

    def __init__(self, config: SystemConfig) -> None:
        super().__init__(config, parse_options(config, DiffusersOptions), INDEX)

    def signature(self) -> dict[str, Any]:
        """Return all that decides an image; device and offloading do not."""
        return {**super().signature(), "size": self.config.model_dump(mode="json")["size"]}

    def preflight(self) -> None:
        """Look for the model on this machine; nothing is downloaded."""
        super().preflight()
        if index := self.model.find_index():
            import_pipeline_class(index, self.place)

    def load(self, device: str) -> LoadedPipeline:
        """Load the pipeline; errors of a config are found before the weights are read."""
        import diffusers
        import torch
        import transformers

        options = self.options
        if device == "cpu" and options.offload != "none":
            raise GenerationError(
                f"{self.place}: offload is {options.offload!r}, and the device is the processor: "
                "expected none"
            )
        name = import_pipeline_class(self.model.fetch_index(), self.place)
        pipeline = Pipeline.from_name(name, options, self.place)
        pipeline.check(self.config.size, self.place)
        safe = {"use_safetensors": True, "trust_remote_code": False}
        dtype, revision = getattr(torch, options.dtype), self.model.load_revision
        pipe: Any = diffusers.DiffusionPipeline.from_pretrained(
            self.model.source, revision=revision, dtype=dtype, **safe
        )
        pipe.set_progress_bar_config(disable=True)
        if options.offload == "model":
            pipe.enable_model_cpu_offload(device=device)
        elif options.offload == "sequential":
            pipe.enable_sequential_cpu_offload(device=device)
        else:
            pipe.to(device)
        details = {"pipeline": name, **self.describe(device, torch, diffusers, transformers)}
        return pipe, pipeline, details

    def check_task(self, loaded: LoadedPipeline, task: Task) -> GenerationResult | None:
        return loaded[1].check_task(task)

    def draw_with(
        self, loaded: LoadedPipeline, task: Task, inputs: tuple[Image.Image, ...]
    ) -> GenerationResult:
        import torch

        (pipe, pipeline, details), seed = loaded, self.config.seed + task.draw
        image_arguments, input_details = pipeline.build_inputs(inputs)
        size = pipeline.size_arguments(self.config.size, inputs[0].size if inputs else None)
        arguments = {**pipeline.kind.defaults, **self.options.call, **image_arguments, **size}
        length = pipeline.count_prompt(pipe, task.prompt, arguments)
        generator = torch.Generator("cpu").manual_seed(seed)
        output = pipe(prompt=task.prompt, **arguments, generator=generator)
        image = output.images[0]
        sizes = {"asked": [size["width"], size["height"]] if size else None, "came": [*image.size]}
        all_details = {**details, **length, "inputs": input_details, "size": sizes}
        result = GenerationResult(Outcome.OK, to_png(image), seed=seed, details=all_details)
        if not any(getattr(output, UNSAFE_FLAG, None) or ()):
            return result
        text = "the model's own checker held the image back"
        refused = replace(result, outcome=Outcome.REFUSED, stage=OutcomeStage.OUTPUT)
        return replace(refused, code=UNSAFE_FLAG, image=None, text=text)
