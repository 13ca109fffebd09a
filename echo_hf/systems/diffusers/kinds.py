"""How each class of pipelines takes pictures and sizes: what no signature says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from echo_hf.systems.sizes import Pixels, nearest, within

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
    """How a class of pipelines makes tokens of a prompt, of which it reads a first number.

    Attributes:
        tokenizer: The part that makes them; of several, that of the longest prompt.
        chat: Arguments of its chat template; null where the prompt is no turn of a chat.
        template: The pipeline's attribute with a text around the prompt; null for none.
        template_start: The one with how many tokens of that text are not read.
    """

    tokenizer: str = "tokenizer"
    chat: Mapping[str, Any] | None = None
    template: str | None = None
    template_start: str | None = None


@dataclass(frozen=True, slots=True)
class PipelineKind:
    """How a class of pipelines is called.

    Attributes:
        picture: Its argument for input pictures; null for text to image alone.
        takes_list: Whether that argument is a list of pictures for one output.
        fewest: Fewest inputs.
        multiple: What the sides of its outputs are multiples of.
        sizes: The sizes it was trained on; empty where any of `MEGAPIXEL` will do.
        shortest_side: Shortest side of an input, in pixels.
        longest_ratio: Most that the longer side of an input has of the shorter; null for any.
        area: Its argument for the number of pixels to draw.
        resizes: Its argument for resizing an input to one of `sizes`.
        names_pictures: Whether the prompt has to name each picture, as OmniGen's does.
        defaults: Arguments that a config may change.
        reader: How it reads a prompt; null where nothing is cut, or that is not known.
    """

    picture: str | None = None
    takes_list: bool = False
    fewest: int = 0
    multiple: int = 16
    sizes: tuple[Pixels, ...] = ()
    shortest_side: int = 1
    longest_ratio: float | None = None
    area: str | None = None
    resizes: str | None = None
    names_pictures: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    reader: PromptReader | None = None

    @property
    def arguments(self) -> frozenset[str]:
        """The arguments that are the task's, or follow from it; no config sets them."""
        own = {self.picture, self.area, self.resizes} - {None}
        return frozenset({"prompt", "height", "width", *map(str, own)})

    def like(self, size: Pixels) -> Pixels:
        """The size of its own that is most like that of a picture.

        Args:
            size: Width and height of the picture.

        Returns:
            Width and height.

        Example:
            >>> KINDS["FluxKontextPipeline"].like((4000, 3000))
            (1184, 880)
            >>> KINDS["Flux2Pipeline"].like((4000, 3000))
            (1168, 880)
        """
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
    "OmniGenPipeline": PipelineKind("input_images", takes_list=True, names_pictures=True),
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
