"""Systems behind a server that draws images as OpenAI's does."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, field_validator, model_validator

from echo_hf._infra.http_errors import OK, ApiError, Reply, api_error, error_in, mapping
from echo_hf.config.checks import Whole, Words
from echo_hf.config.systems import Price, Size, SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.engines.prices import cost_of, count, read_usage, usage_of
from echo_hf.engines.server import OPENAI
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, JsonMapping, Task, failed
from echo_hf.systems.hosted import (
    LONGEST_CONNECT_S,
    HostedOptions,
    HostedSystem,
    Inputs,
    cost_usd,
    hosted_options,
    limited,
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

Document = Mapping[str, Any]

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


BEGINNING = 40
LACK = "the answer holds no image"


def read_images(document: Document, price: Price | None) -> GenerationResult:
    """What an answer of the Images API makes of a task."""
    counted = mapping(document.get("usage"))
    entries = [mapping(one) for one in _items(document.get("data"))]
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
        revised_prompt=_text_or_none(first.get("revised_prompt")),
        model_reported=_text_or_none(document.get("model")),
        usage=usage,
        cost_usd=cost_usd(price, len(entries), billed),
        details={"pictures": len(entries)},
    )
    encoded = _text_or_none(first.get("b64_json")) or _text_or_none(first.get("url"))
    return unusable(known, LACK) if encoded is None else with_image(known, encoded)


def read_chat(document: Document, price: Price | None) -> GenerationResult:
    """What an answer of a chat model makes of a task."""
    choice = _choice_of(document)
    message, ended = mapping(choice.get("message")), _text_or_none(choice.get("finish_reason"))
    content, beside = message.get("content"), message.get("images")
    parts = content if isinstance(content, list) else [content]
    texts = (one if isinstance(one, str) else mapping(one).get("text") for one in parts)
    text = _text_or_none("\n".join(one for one in texts if isinstance(one, str)))
    # Routers put images beside the content, vllm-omni puts them into it, and some do both.
    shown = [mapping(mapping(one).get("image_url")) for one in (*_items(beside), *parts)]
    images = list(dict.fromkeys(filter(None, (_text_or_none(one.get("url")) for one in shown))))
    tokens, cost = read_usage(document), cost_of(document, None)
    known = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        text=text,
        model_reported=_text_or_none(document.get("model")),
        usage=None if tokens is None else usage_of(tokens),
        cost_usd=cost_usd(price, len(images), {}) if cost is None else cost,
        details={"pictures": len(images)},
    )
    if images:
        return with_image(known, images[0])
    refused = replace(known, outcome=Outcome.REFUSED)
    if refusal := _text_or_none(message.get("refusal")):
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


def _choice_of(document: Document) -> Document:
    return mapping(next(iter(_items(document.get("choices"))), None))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


@register(
    "openai_images",
    "OpenAI's Images API and servers like it: gpt-image, vllm-omni, OpenRouter",
    extra="openai",
    packages=("openai",),
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

    def connect(self, key: str, timeout_s: float) -> AbstractContextManager[Any]:
        from openai import DefaultHttpxClient, OpenAI, Timeout

        client: AbstractContextManager[Any] = OpenAI(
            api_key=key,
            base_url=self.options.base_url,
            max_retries=0,
            timeout=Timeout(timeout_s, connect=min(timeout_s, LONGEST_CONNECT_S)),
            # A redirect would take prompts and images to a server that nobody named.
            http_client=limited(DefaultHttpxClient, timeout_s)(follow_redirects=False),
        )
        return client

    def look(self) -> ApiError | None:
        retrieve = self.client.models.with_streaming_response.retrieve
        reply = self._reply(retrieve, model=self.model)
        return None if reply.status == OK else api_error(reply)

    def form(self, first_input: Pixels | None) -> dict[str, Any]:
        size = chosen_size(self.config.size, first_input, self.options.like)
        return {"mode": self.options.mode, "size": None if size is None else list(size)}

    def ask(
        self, task: Task, inputs: Sequence[SentInput], form: Mapping[str, Any]
    ) -> GenerationResult:
        options, is_chat, size = self.options, self.options.mode == "chat", form["size"]
        # Not every version of the client knows every key: those that may be missing go beside it.
        seed = {} if self.seed is None else {"seed": self.seed}
        further: dict[str, Any] = {**options.drawing(), **seed, **options.extra}
        asked: dict[str, Any] = {"model": self.model}
        if is_chat:
            data = [(one.mime_type, base64.b64encode(one.data).decode()) for one in inputs]
            urls = [f"data:{mime_type};base64,{encoded}" for mime_type, encoded in data]
            images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
            parts = [*images, {"type": "text", "text": task.prompt}]
            asked["messages"] = [{"role": "user", "content": parts if images else task.prompt}]
            further = {"modalities": ["image", "text"], **further}
            send = self.client.chat.completions.with_streaming_response.create
        else:
            asked |= {"prompt": task.prompt, "n": 1}
            if size is not None:
                asked["size"] = f"{size[0]}x{size[1]}"
            files = [
                (f"input_{number}.{ENDINGS[one.mime_type]}", one.data, one.mime_type)
                for number, one in enumerate(inputs, 1)
            ]
            if files:
                asked["image"] = files if len(files) > 1 else files[0]
            sending = self.client.images.with_streaming_response
            send = sending.edit if files else sending.generate
        reply = self._reply(send, **asked, extra_body=further or None)
        document = None
        with suppress(ValueError, RecursionError):  # such as a web page
            document = json.loads(reply.text)
        if reply.status != OK:
            drawn = self.fate(api_error(reply))
        elif not isinstance(document, dict):
            beginning = self.key.hidden_in(reply.text)[:BEGINNING]
            said = f"the answer is not a JSON object: it begins {beginning!r}"
            drawn = failed(said, stage=OutcomeStage.ANSWER)
        elif error := document.get("error") or _choice_of(document).get("error"):
            drawn = self.fate(error_in(reply, error))
        else:
            drawn = (read_chat if is_chat else read_images)(document, self.price)
        request_id = reply.headers.get("x-request-id")
        return replace(drawn, details={**drawn.details, "request_id": request_id})

    def _reply(self, send: Callable[..., Any], **arguments: Any) -> Reply:
        """Sends a request, once."""
        from openai import APIConnectionError, APIStatusError, Omit

        headers = None if self.key else {"Authorization": Omit()}
        try:
            with send(**arguments, extra_headers=headers) as response:
                return Reply(OK, response.headers, response.read().decode("utf-8", "replace"))
        except (APIStatusError, APIConnectionError, TimeoutError) as error:
            return self.reply_in(error)
