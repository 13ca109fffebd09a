"""Systems behind a server that draws images as OpenAI's does."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, Field, StrictBool, field_validator, model_validator

from echo_hf._infra.http_errors import mapping
from echo_hf.config.checks import Whole, Words
from echo_hf.config.systems import Price, Size, SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.engines.prices import cost_of, count, read_usage, usage_of
from echo_hf.engines.server import OPENAI
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, JsonMapping, Task
from echo_hf.systems.hosted import (
    HostedOptions,
    HostedSystem,
    Inputs,
    cost_usd,
    hosted_options,
    items,
    text_or_none,
)
from echo_hf.systems.images import (
    ENDINGS,
    Pixels,
    SentInput,
    chosen_size,
    nearest,
    read_size,
    unusable,
    with_image,
    within,
)
from echo_hf.systems.registry import register

STEP = 16
LONGEST_SHAPE = 3.0
# Keys of a request that the adapter sets itself.
OURS = {
    *("background", "image", "image[]", "input_fidelity", "messages", "modalities", "model"),
    *("moderation", "n", "output_format", "prompt", "quality", "seed", "size", "stream"),
}
DRAWING = ("quality", "background", "moderation", "output_format", "input_fidelity")
SizeName = Annotated[str, AfterValidator(lambda size: read_size(size) and size)]


class OpenAIImagesOptions(HostedOptions):
    """The parameters of the adapter `openai_images`.

    Attributes:
        base_url: Where the server is, mostly ending in `/v1`.
        api_key_env: Environment variable that holds the key; null for a server without keys.
        most_inputs: Most input images of a task.
        mode: `images` asks for images alone; `chat` asks a chat model that may answer with one.
        quality: As the server names it; null leaves it to the server, as for all that follow.
        background: Transparent, opaque or auto.
        moderation: How strictly requests are looked at.
        output_format: Of the encoded image.
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
    sizes: Annotated[tuple[SizeName, ...], Field(min_length=1)] | None = None
    pixels: Annotated[Whole, Field(ge=256 * 256, le=100_000_000)] = 1024 * 1024
    extra: JsonMapping = {}  # noqa: RUF012 - a Section is frozen

    def like(self, size: Pixels) -> Pixels:
        if self.sizes is not None:
            return nearest(size, [read_size(one) for one in self.sizes])
        return within(size, self.pixels, STEP, LONGEST_SHAPE)

    def drawing(self) -> dict[str, Any]:
        """What is sent beside model, prompt, images and size, where the config says it."""
        given = {name: getattr(self, name) for name in DRAWING}
        return {name: value for name, value in given.items() if value is not None}

    def sent(self, size: Size) -> Iterable[str]:
        own = "pixels" if self.sizes is None else "sizes"
        likened = (own,) if size == "match_input" else ()
        return ("revision", "mode", "extra", *DRAWING, *likened)

    @field_validator("extra")
    @classmethod
    def _not_ours(cls, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        if taken := sorted(OURS & set(extra)):
            raise ValueError(f"expected no {', '.join(taken)}, which the adapter sets itself")
        return extra

    @model_validator(mode="after")
    def _of_the_mode(self) -> Self:
        if self.mode == "chat" and (given := sorted(self.drawing())):
            raise ValueError(f"mode chat takes no {', '.join(given)}: put it into `extra`")
        return self


LACK = "the answer holds no image"


def read_images(document: Mapping[str, Any], price: Price | None) -> GenerationResult:
    """What an answer of the Images API makes of a task."""
    counted = mapping(document.get("usage"))
    entries = [mapping(one) for one in items(document.get("data"))]
    first = entries[0] if entries else {}
    sent = mapping(counted.get("input_tokens_details"))
    tokens_in, tokens_out = (count(counted.get(f"{way}_tokens")) for way in ("input", "output"))
    # Where the answer does not tell them apart, all that came back is the image.
    whole = {"image_tokens": tokens_out, "text_tokens": 0}
    drawn = mapping(counted.get("output_tokens_details")) or whole
    billed = {
        f"{kind}_{way}": count(told.get(f"{kind}_tokens"))
        for way, told in (("in", sent), ("out", drawn))
        for kind in ("text", "image")
    }
    usage = None
    if tokens_in is not None and tokens_out is not None:
        usage = Usage(tokens_in, tokens_out, count(sent.get("cached_tokens")) or 0)
    known = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        revised_prompt=text_or_none(first.get("revised_prompt")),
        model_reported=text_or_none(document.get("model")),
        usage=usage,
        cost_usd=cost_usd(price, len(entries), billed),
        details={"pictures": len(entries)},
    )
    encoded = text_or_none(first.get("b64_json")) or text_or_none(first.get("url"))
    return unusable(known, LACK) if encoded is None else with_image(known, encoded)


def read_chat(document: Mapping[str, Any], price: Price | None) -> GenerationResult:
    """What an answer of a chat model makes of a task."""
    choice = mapping(next(iter(items(document.get("choices"))), None))
    message, ended = mapping(choice.get("message")), text_or_none(choice.get("finish_reason"))
    content, beside = message.get("content"), message.get("images")
    parts = content if isinstance(content, list) else [content]
    texts = (one if isinstance(one, str) else mapping(one).get("text") for one in parts)
    text = text_or_none("\n".join(one for one in texts if isinstance(one, str)))
    # Routers put images beside the content, vllm-omni puts them into it, and some do both.
    shown = [mapping(mapping(one).get("image_url")) for one in (*items(beside), *parts)]
    images = list(dict.fromkeys(filter(None, (text_or_none(one.get("url")) for one in shown))))
    tokens, cost = read_usage(document), cost_of(document, None)
    known = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        text=text,
        model_reported=text_or_none(document.get("model")),
        usage=None if tokens is None else usage_of(tokens),
        cost_usd=cost_usd(price, len(images), {}) if cost is None else cost,
        details={"pictures": len(images)},
    )
    if images:
        return with_image(known, images[0])
    refused = replace(known, outcome=Outcome.REFUSED)
    if refusal := text_or_none(message.get("refusal")):
        return replace(refused, stage=OutcomeStage.INPUT, code="refusal", text=refusal)
    if ended == "content_filter":
        return replace(refused, stage=OutcomeStage.OUTPUT, code=ended, text=text or ended)
    # Nothing may be an image in a form that is not known here.
    words_alone = all(
        one is None or isinstance(one, str) or mapping(one).get("type") == "text" for one in parts
    )
    if ended == "stop" and words_alone and "content" in message and not beside:
        return replace(known, outcome=Outcome.NO_IMAGE, code=ended)
    how = "" if ended is None else f" and ended with {ended!r}"
    return replace(unusable(known, LACK + how + (f": {text}" if text else "")), code=ended)


@register(
    "openai_images",
    "OpenAI's Images API and servers like it: gpt-image, vllm-omni, OpenRouter",
    key="OPENAI_API_KEY",
)
class OpenAIImages(HostedSystem[OpenAIImagesOptions]):
    seeded = "the seed is sent; the server says how far it repeats a picture"
    unseeded = "the server takes no seed: two pictures for one task differ"

    def __init__(self, config: SystemConfig) -> None:
        options = hosted_options(config, OpenAIImagesOptions)
        if options.mode == "chat" and config.size != "auto":
            raise GenerationError(
                f"system {config.name!r}: size is {config.model_dump()['size']!r}, and mode chat "
                "has none: expected auto, or what the server takes in `extra`"
            )
        super().__init__(config, options, options.send_seed)

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    @property
    def model_path(self) -> str:
        return f"/models/{quote(self.model)}"

    def form(self, first_input: Pixels | None) -> dict[str, Any]:
        size = chosen_size(self.config.size, first_input, self.options.like)
        return {"mode": self.options.mode, "size": None if size is None else list(size)}

    def request(
        self, task: Task, inputs: Sequence[SentInput], form: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        options, size = self.options, form["size"]
        seed = {} if self.seed is None else {"seed": self.seed}
        further: dict[str, Any] = {**options.drawing(), **seed, **options.extra}
        if options.mode == "chat":
            data = [(one.mime_type, base64.b64encode(one.data).decode()) for one in inputs]
            urls = [f"data:{mime_type};base64,{encoded}" for mime_type, encoded in data]
            images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
            parts = [*images, {"type": "text", "text": task.prompt}]
            turns = [{"role": "user", "content": parts if images else task.prompt}]
            asked = {"messages": turns, "modalities": ["image", "text"]}
            return "/chat/completions", {"json": {"model": self.model, **asked, **further}}
        asked = {"model": self.model, "prompt": task.prompt, "n": 1}
        if size is not None:
            asked["size"] = f"{size[0]}x{size[1]}"
        asked |= further
        if not inputs:
            return "/images/generations", {"json": asked}
        name = "image" if len(inputs) == 1 else "image[]"
        files = [
            (name, (f"input_{number}.{ENDINGS[one.mime_type]}", one.data, one.mime_type))
            for number, one in enumerate(inputs, 1)
        ]
        # A form holds text alone.
        form_data = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in asked.items()
        }
        return "/images/edits", {"data": form_data, "files": files}

    def read(self, document: Mapping[str, Any]) -> GenerationResult:
        read = read_chat if self.options.mode == "chat" else read_images
        return read(document, self.price)
