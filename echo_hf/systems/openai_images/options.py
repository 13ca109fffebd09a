"""What a config says about a server that draws pictures as OpenAI's does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, field_validator, model_validator

from echo_hf.config_fields import Whole, Words
from echo_hf.engines.openai.server_options import OPENAI
from echo_hf.errors import GenerationError
from echo_hf.systems.config import Size, SystemConfig
from echo_hf.systems.hosted import HostedOptions, Inputs, hosted_options
from echo_hf.systems.sizes import Pixels, nearest, read_size, within

STEP = 16
LONGEST_SHAPE = 3.0
OURS = frozenset(
    {
        "background",
        "image",
        "image[]",
        "input_fidelity",
        "messages",
        "modalities",
        "model",
        "moderation",
        "n",
        "output_format",
        "prompt",
        "quality",
        "seed",
        "size",
        "stream",
    }
)
DRAWING = ("quality", "background", "moderation", "output_format", "input_fidelity")


class OpenAIImagesOptions(HostedOptions):
    """The parameters of the adapter `openai_images`.

    Attributes:
        base_url: Where the server is, mostly ending in `/v1`.
        api_key_env: Environment variable that holds the key; null for a server without keys.
        most_inputs: Most input pictures of a task.
        mode: `images` asks for pictures alone; `chat` asks a chat model that may answer with one.
        quality: As the server names it; null leaves it to the server, as for all that follow.
        background: Transparent, opaque or auto.
        moderation: How strictly requests are looked at.
        output_format: Of the encoded picture.
        input_fidelity: How closely an edit keeps to its inputs.
        send_seed: Whether the config's seed is sent; OpenAI's own models take none.
        sizes: Sizes that the model draws, for `size: match_input`; null for one that draws any in
            steps of 16 pixels, at most three times as long as wide.
        pixels: Most pixels of such a size, where `sizes` names none.
        extra: Further keys of the request, as the server documents them.
    """

    base_url: str = OPENAI
    api_key_env: str | None = "OPENAI_API_KEY"
    most_inputs: Inputs = 16
    mode: Literal["images", "chat"] = "images"
    quality: Words | None = None
    background: Words | None = None
    moderation: Words | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    input_fidelity: Words | None = None
    send_seed: StrictBool = False
    sizes: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    pixels: Annotated[Whole, Field(ge=256 * 256, le=100_000_000)] = 1024 * 1024
    extra: Mapping[str, Any] = {}

    def like(self, size: Pixels) -> Pixels:
        """The size of the model that is most like a picture's."""
        if self.sizes is not None:
            return nearest(size, [read_size(one) for one in self.sizes])
        return within(size, self.pixels, STEP, LONGEST_SHAPE)

    def drawing(self) -> dict[str, Any]:
        """What is sent beside model, prompt, pictures and size, where the config says it."""
        given = {name: getattr(self, name) for name in DRAWING}
        return {name: value for name, value in given.items() if value is not None}

    def _sent(self, size: Size) -> Iterable[str]:
        own = "pixels" if self.sizes is None else "sizes"
        likened = (own,) if size == "match_input" else ()
        return ("revision", "mode", "extra", *DRAWING, *likened)

    @field_validator("sizes")
    @classmethod
    def _readable(cls, sizes: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for size in sizes or ():
            read_size(size)
        return sizes

    @field_validator("extra")
    @classmethod
    def _not_ours(cls, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        taken = sorted(OURS & set(extra))
        if taken:
            raise ValueError(f"expected no {', '.join(taken)}, which the adapter sets itself")
        try:
            json.dumps(extra, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"expected what JSON can hold: {error}") from None
        return extra

    @model_validator(mode="after")
    def _of_the_mode(self) -> Self:
        given = sorted(self.drawing())
        if self.mode == "chat" and given:
            raise ValueError(f"mode chat takes no {', '.join(given)}: put it into `extra`")
        return self


def read_options(config: SystemConfig) -> OpenAIImagesOptions:
    """The parameters of a system of this adapter.

    Args:
        config: The config of the system.

    Returns:
        The parameters, checked.

    Raises:
        GenerationError: One is unknown or has a bad value, or the mode knows no sizes.
    """
    options = hosted_options(config, OpenAIImagesOptions)
    if options.mode == "chat" and config.size != "auto":
        raise GenerationError(
            f"system {config.name!r}: size is {config.model_dump()['size']!r}, and mode chat has "
            "none: expected auto, or what the server takes in `extra`"
        )
    return options
