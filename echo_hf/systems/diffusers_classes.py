"""Which pipeline class of diffusers draws a model's images, and how it takes images and sizes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from echo_hf.config.checks import Whole
from echo_hf.errors import GenerationError, unknown
from echo_hf.systems.images import Pixels, nearest, within
from echo_hf.systems.local_models import LocalOptions

MEGAPIXEL = 1024 * 1024
# Shapes that FLUX.1 Kontext was trained on; each is also one when turned.
_KONTEXT_WIDE = (
    (1568, 672),
    (1504, 688),
    (1456, 720),
    (1392, 752),
    (1328, 800),
    (1248, 832),
    (1184, 880),
    (1104, 944),
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


INDEX = "model_index.json"
# Of every pipeline: one image, of the seed, as Pillow has it.
OURS = frozenset(
    {"generator", "num_images_per_prompt", "output_type", "return_dict", "latents", "self"}
)
IMAGES = ("image", "video", "frames")
PARTIAL_NOISE = "strength"
TEXT_TO_IMAGE = frozenset({"prompt", "height", "width"})


@dataclass(frozen=True, slots=True)
class PipelineClass:
    name: str
    kind: PipelineKind
    parameters: frozenset[str]


def class_named(index: Path, place: str) -> str:
    try:
        said = json.loads(index.read_bytes())
        name = said["_class_name"]
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
    import diffusers

    found = getattr(diffusers, name, None) if name.isidentifier() else None
    if not (inspect.isclass(found) and issubclass(found, diffusers.DiffusionPipeline)):
        raise GenerationError(
            f"{place}: diffusers {diffusers.__version__} has no pipeline {name!r}: expected one of "
            "its own, such as 'FluxKontextPipeline'; install a newer diffusers, or choose another "
            "model"
        )
    parameters = frozenset(inspect.signature(found.__call__).parameters)
    kind = KINDS.get(name) or _from_signature(name, parameters, place)
    return PipelineClass(name, kind, parameters)


def check_call(call: Mapping[str, Any], pipeline: PipelineClass, place: str) -> None:
    ours = OURS | pipeline.kind.arguments
    taken = next((name for name in call if name in ours), None)
    if taken is not None:
        raise GenerationError(
            f"{place}: parameters.call has {taken!r}, which follows from the task and from `size` "
            "and `seed`: leave it out"
        )
    for name in call:
        if name not in pipeline.parameters:
            kind = f"argument of {pipeline.name}"
            known = pipeline.parameters - ours
            raise GenerationError(unknown(kind, name, known, f"{place}: parameters.call"))


def _from_signature(name: str, parameters: frozenset[str], place: str) -> PipelineKind:
    images = sorted(one for one in parameters - OURS if _is_image(one))
    if images and PARTIAL_NOISE in parameters:
        raise GenerationError(
            f"{place}: {name} draws over a noisy copy of its input ({PARTIAL_NOISE!r}) and follows "
            f"no instruction: expected a pipeline that edits, one of {_editing()}"
        )
    if images or not parameters >= TEXT_TO_IMAGE:
        raise GenerationError(
            f"{place}: how {name} is called is not known: expected a pipeline that draws images "
            f"from text alone, or one of {_editing()}"
        )
    return PipelineKind(multiple=1)


def _is_image(parameter: str) -> bool:
    # An adapter's image is a style that may be left out, of pipelines from text too.
    if parameter.removeprefix("negative_").startswith("ip_adapter"):
        return False
    return any(word in parameter for word in IMAGES)


def _editing() -> str:
    return ", ".join(sorted(name for name, kind in KINDS.items() if kind.image))


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
