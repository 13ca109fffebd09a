"""What a config says about a Gemini model that draws."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictBool, field_validator

from echo_hf.config_fields import Words
from echo_hf.errors import GenerationError
from echo_hf.systems.config import FixedSize, Size, SystemConfig
from echo_hf.systems.hosted import HostedOptions, Inputs, hosted_options
from echo_hf.systems.sizes import Pixels

GEMINI = "https://generativelanguage.googleapis.com"
# The shapes that every image model of the family draws.
RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "21:9")
RATIO = re.compile(r"([1-9][0-9]{0,2}):([1-9][0-9]{0,2})")
CATEGORY = re.compile(r"HARM_CATEGORY_[A-Z_]+")
# Of how many inputs the first models make use, and later ones.
FIRST_MODELS = ("gemini-2.0-flash", "gemini-2.5-flash-image")
FIRST_MOST_INPUTS, MOST_INPUTS = 3, 14
SENT = ("api_version", "modalities", "image_size", "safety_settings")

Threshold = Literal[
    "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"
]


class GoogleOptions(HostedOptions):
    """The parameters of the adapter `google`.

    Attributes:
        base_url: Where the server is, without its version.
        api_key_env: Environment variable that holds the key; null for a gateway without keys.
        api_version: Of the API; the client's own default changes from version to version.
        most_inputs: Most input pictures of a task; 3 for `gemini-2.5-flash-image` and before, 14
            for later models, unless it is given.
        modalities: What the model may answer with; with text it can say why it draws nothing.
        aspect_ratios: Shapes that the model draws, for `size: match_input` and for a fixed size.
        image_size: `1K`, `2K` or `4K`; null leaves it to the model, and the first models take none.
        send_seed: Whether the config's seed is sent.
        safety_settings: Thresholds by category; those that are not named are the model's own.
    """

    base_url: str = GEMINI
    api_key_env: str | None = "GEMINI_API_KEY"
    api_version: Words = "v1beta"
    most_inputs: Inputs = MOST_INPUTS
    modalities: Annotated[tuple[Literal["TEXT", "IMAGE"], ...], Field(min_length=1)] = (
        "TEXT",
        "IMAGE",
    )
    aspect_ratios: Annotated[tuple[str, ...], Field(min_length=1)] = RATIOS
    image_size: Words | None = None
    send_seed: StrictBool = True
    safety_settings: Mapping[str, Threshold] = {}

    @property
    def ratios(self) -> dict[Pixels, str]:
        """The shapes, by their two numbers."""
        return {_numbers(one): one for one in self.aspect_ratios}

    def _sent(self, size: Size) -> Iterable[str]:
        likened = ("aspect_ratios",) if size == "match_input" else ()
        return ("revision", *SENT, *likened)

    @field_validator("aspect_ratios")
    @classmethod
    def _readable(cls, ratios: tuple[str, ...]) -> tuple[str, ...]:
        for ratio in ratios:
            _numbers(ratio)
        return ratios

    @field_validator("modalities")
    @classmethod
    def _drawn(cls, modalities: tuple[str, ...]) -> tuple[str, ...]:
        if "IMAGE" not in modalities:
            raise ValueError("expected IMAGE among them")
        return modalities

    @field_validator("safety_settings")
    @classmethod
    def _categories(cls, settings: Mapping[str, str]) -> Mapping[str, str]:
        odd = next((name for name in settings if not CATEGORY.fullmatch(name)), None)
        if odd is not None:
            raise ValueError(f"{odd!r} is no category: expected such as HARM_CATEGORY_HARASSMENT")
        return settings


def read_options(config: SystemConfig) -> GoogleOptions:
    """The parameters of a system of this adapter.

    Args:
        config: The config of the system.

    Returns:
        The parameters, checked; the number of inputs is that of the model, unless it is given.

    Raises:
        GenerationError: One is unknown or has a bad value, or a fixed size has no such shape.
    """
    most = FIRST_MOST_INPUTS if (config.model or "").startswith(FIRST_MODELS) else MOST_INPUTS
    parameters = {"most_inputs": most, **config.parameters}
    options = hosted_options(config.model_copy(update={"parameters": parameters}), GoogleOptions)
    size = config.size
    if isinstance(size, FixedSize) and ratio_of((size.width, size.height), options) is None:
        raise GenerationError(
            f"system {config.name!r}: size is {size.width} x {size.height}, and the model is asked "
            f"for a shape: expected auto, match_input, or one of {', '.join(options.aspect_ratios)}"
        )
    return options


def ratio_of(size: Pixels, options: GoogleOptions) -> str | None:
    """The name of a size's shape, null where the model does not draw it."""
    width, height = size
    return next((name for (w, h), name in options.ratios.items() if width * h == height * w), None)


def _numbers(ratio: str) -> Pixels:
    found = RATIO.fullmatch(ratio)
    if found is None:
        raise ValueError(f"{ratio!r} is no ratio: expected two numbers such as '3:2'")
    return int(found[1]), int(found[2])
