"""Systems behind a server that draws images as OpenAI's does."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, field_validator, model_validator

from echo_hf._infra.http_errors import (
    OK,
    ApiError,
    HttpResponse,
    JsonObject,
    as_mapping,
    parse_error,
    read_api_error,
)
from echo_hf._infra.retry import RequestError, RetryPolicy
from echo_hf.config.checks import StrictInt, Words
from echo_hf.config.systems import OutputPrice, OutputSize, SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.engines.batch_api import open_batch_api
from echo_hf.engines.batch_rows import BatchOptions, BatchSwitch, Row, make_row
from echo_hf.engines.batches import BatchAsking
from echo_hf.engines.prices import (
    compute_call_cost,
    find_batch_price,
    parse_count,
    parse_usage,
    read_billed_tokens,
)
from echo_hf.engines.server import OPENAI_URL, Server
from echo_hf.errors import EngineError, GenerationError
from echo_hf.images.loader import PixelSize
from echo_hf.systems.base import (
    GenerationResult,
    JsonMapping,
    OutcomeStage,
    Task,
    TransientError,
    failure_result,
)
from echo_hf.systems.hosted import (
    MAX_CONNECT_SECONDS,
    HostedOptions,
    HostedSystem,
    InputCount,
    check_options,
    compute_cost,
    limit_responses,
    scale_price,
)
from echo_hf.systems.images import (
    FILE_SUFFIXES,
    SentInput,
    add_image,
    nearest_size,
    pick_size,
    read_size,
    scale_size,
    unusable_image,
)
from echo_hf.systems.registry import register
from echo_hf.tables import Outcome

STEP = 16
MAX_SIDE_RATIO = 3.0
# Keys of a request that the adapter sets itself.
RESERVED_KEYS = {
    *("background", "image", "image[]", "input_fidelity", "messages", "modalities", "model"),
    *("moderation", "n", "output_format", "prompt", "quality", "seed", "size", "stream"),
}
IMAGE_OPTIONS = ("quality", "background", "moderation", "output_format", "input_fidelity")
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
        batch: Send tasks as files that the provider answers within a day, mostly at half the price:
            `true`, or the limits of such files.
        extra: Further keys of the request, as the server documents them.
    """

    base_url: str = OPENAI_URL
    api_key_env: str | None = "OPENAI_API_KEY"
    most_inputs: InputCount = 16
    mode: Literal["images", "chat"] = "images"
    quality: Words | None = None
    background: Words | None = None
    moderation: Words | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    input_fidelity: Words | None = None
    send_seed: StrictBool = False
    sizes: Annotated[tuple[SizeName, ...], Field(min_length=1)] | None = None
    pixels: Annotated[StrictInt, Field(ge=256 * 256, le=100_000_000)] = 1024 * 1024
    batch: BatchSwitch = None
    extra: JsonMapping = {}  # noqa: RUF012 - a Section is frozen

    def pick_size(self, size: PixelSize) -> PixelSize:
        if self.sizes is not None:
            return nearest_size(size, [read_size(name) for name in self.sizes])
        return scale_size(size, self.pixels, STEP, MAX_SIDE_RATIO)

    def select_image_options(self) -> dict[str, Any]:
        """Return the configured options that are sent beside model, prompt, images and size."""
        options = {name: getattr(self, name) for name in IMAGE_OPTIONS}
        return {name: value for name, value in options.items() if value is not None}

    def signed_options(self, size: OutputSize) -> Iterable[str]:
        own = "pixels" if self.sizes is None else "sizes"
        likened = (own,) if size == "match_input" else ()
        return ("revision", "mode", "extra", *IMAGE_OPTIONS, *likened)

    @field_validator("extra")
    @classmethod
    def _check_extra(cls, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        if reserved := sorted(RESERVED_KEYS & set(extra)):
            raise ValueError(f"expected no {', '.join(reserved)}, which the adapter sets itself")
        return extra

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.mode == "chat" and (names := sorted(self.select_image_options())):
            raise ValueError(f"mode chat takes no {', '.join(names)}: put it into `extra`")
        return self


SHOWN_CHARACTERS = 40
CHAT_URL, EDITS_URL = "/v1/chat/completions", "/v1/images/edits"
DRAWING_URL = "/v1/images/generations"
MAX_BATCH_IMAGES = 1000  # the images of a batch come back in one file

BatchResult = GenerationResult | TransientError
NO_IMAGE = "the answer holds no image"


def read_images(document: JsonObject, price: OutputPrice | None) -> GenerationResult:
    """Read the result of a task from an answer of the Images API."""
    counted = as_mapping(document.get("usage"))
    entries = [as_mapping(entry) for entry in _as_list(document.get("data"))]
    first = entries[0] if entries else {}
    sent = as_mapping(counted.get("input_tokens_details"))
    tokens_in = parse_count(counted.get("input_tokens"))
    tokens_out = parse_count(counted.get("output_tokens"))
    # Without details, all output tokens are those of the image.
    whole = {"image_tokens": tokens_out, "text_tokens": 0}
    received = as_mapping(counted.get("output_tokens_details")) or whole
    billed = {
        f"{kind}_{way}": parse_count(details.get(f"{kind}_tokens"))
        for way, details in (("in", sent), ("out", received))
        for kind in ("text", "image")
    }
    usage = None
    if tokens_in is not None and tokens_out is not None:
        usage = Usage(tokens_in, tokens_out, parse_count(sent.get("cached_tokens")) or 0)
    result = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        revised_prompt=_as_text(first.get("revised_prompt")),
        model_reported=_as_text(document.get("model")),
        usage=usage,
        cost_usd=compute_cost(price, len(entries), billed),
        details={"pictures": len(entries)},
    )
    encoded = _as_text(first.get("b64_json")) or _as_text(first.get("url"))
    return unusable_image(result, NO_IMAGE) if encoded is None else add_image(result, encoded)


def read_chat(document: JsonObject, price: OutputPrice | None) -> GenerationResult:
    """Read the result of a task from an answer of a chat model."""
    choice = _get_choice(document)
    message, ended = as_mapping(choice.get("message")), _as_text(choice.get("finish_reason"))
    content, beside = message.get("content"), message.get("images")
    parts = content if isinstance(content, list) else [content]
    texts = (part if isinstance(part, str) else as_mapping(part).get("text") for part in parts)
    text = _as_text("\n".join(text_part for text_part in texts if isinstance(text_part, str)))
    # Routers put images beside the content, vllm-omni puts them into it, and some do both.
    urls = list[str | None]()
    for part in (*_as_list(beside), *parts):
        urls.append(_as_text(as_mapping(as_mapping(part).get("image_url")).get("url")))
    images = list(dict.fromkeys(filter(None, urls)))
    tokens, cost = read_billed_tokens(document), compute_call_cost(document, None)
    result = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        text=text,
        model_reported=_as_text(document.get("model")),
        usage=None if tokens is None else parse_usage(tokens),
        cost_usd=compute_cost(price, len(images), {}) if cost is None else cost,
        details={"pictures": len(images)},
    )
    if images:
        return add_image(result, images[0])
    refused = replace(result, outcome=Outcome.REFUSED)
    if refusal := _as_text(message.get("refusal")):
        return replace(refused, stage=OutcomeStage.INPUT, code="refusal", text=refusal)
    if ended == "content_filter":
        return replace(refused, stage=OutcomeStage.OUTPUT, code=ended, text=text or ended)
    # Any other part might be an image in an unknown form.
    words_alone = all(
        part is None or isinstance(part, str) or as_mapping(part).get("type") == "text"
        for part in parts
    )
    if ended == "stop" and words_alone and "content" in message and not beside:
        return replace(result, outcome=Outcome.NO_IMAGE, code=ended)
    reason = NO_IMAGE if ended is None else f"{NO_IMAGE} and ended with {ended!r}"
    if text:
        reason = f"{reason}: {text}"
    return replace(unusable_image(result, reason), code=ended)


def _encode(inputs: Iterable[SentInput]) -> Iterator[str]:
    for image in inputs:
        yield f"data:{image.mime_type};base64,{base64.b64encode(image.data).decode()}"


def _get_choice(document: JsonObject) -> JsonObject:
    return as_mapping(next(iter(_as_list(document.get("choices"))), None))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_text(value: Any) -> str | None:
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
        options = check_options(config, OpenAIImagesOptions)
        if options.mode == "chat" and config.size != "auto":
            raise GenerationError(
                f"system {config.name!r}: size is {config.model_dump()['size']!r}, and mode chat "
                "has none: expected auto, or what the server takes in `extra`"
            )
        super().__init__(config, options, options.send_seed)
        self._finished_batches = set[str]()
        server, batch = Server(options.base_url), options.batch
        row = find_batch_price(server.label)
        # Who answers by oneself has one price.
        self.batch_share: float | None = row.share if row else 1.0 if server.is_private else None
        self.batch_hours: float | None = row.hours if row else None
        self.is_batched = batch is not None
        if batch is not None:
            if batch.folder is not None:
                raise GenerationError(
                    f"system {config.name!r}: batch.folder is {batch.folder!r}: expected none, as "
                    "`vllm run-batch` draws no images"
                )
            if batch.price_share is not None:
                self.batch_share = batch.price_share
            self.price = self.price and scale_price(self.price, self.batch_share)

    def connect(self, key: str, timeout_s: float) -> AbstractContextManager[Any]:
        from openai import DefaultHttpxClient, OpenAI, Timeout

        client: AbstractContextManager[Any] = OpenAI(
            api_key=key,
            base_url=self.options.base_url,
            max_retries=0,
            timeout=Timeout(timeout_s, connect=min(timeout_s, MAX_CONNECT_SECONDS)),
            # A redirect would send prompts and images to a server that nobody named.
            http_client=limit_responses(DefaultHttpxClient, timeout_s)(follow_redirects=False),
        )
        return client

    def look(self) -> ApiError | None:
        retrieve = self.client.models.with_streaming_response.retrieve
        reply = self._send(retrieve, model=self.model)
        return None if reply.status == OK else read_api_error(reply)

    def form(self, first_input: PixelSize | None) -> dict[str, Any]:
        size = pick_size(self.config.size, first_input, self.options.pick_size)
        return {"mode": self.options.mode, "size": None if size is None else list(size)}

    def ask(
        self, task: Task, inputs: Sequence[SentInput], form: Mapping[str, Any]
    ) -> GenerationResult:
        # Clients differ in the keys they know: those that may be unknown go into `extra_body`.
        arguments, further = self._make_arguments(task, inputs, form)
        if self.options.mode == "chat":
            send = self.client.chat.completions.with_streaming_response.create
        else:
            files = [
                (f"input_{number}.{FILE_SUFFIXES[image.mime_type]}", image.data, image.mime_type)
                for number, image in enumerate(inputs, 1)
            ]
            if files:
                arguments["image"] = files if len(files) > 1 else files[0]
            sending = self.client.images.with_streaming_response
            send = sending.edit if files else sending.generate
        return self._read_reply(self._send(send, **arguments, extra_body=further or None))

    def _read_reply(self, reply: HttpResponse) -> GenerationResult:
        document, is_chat = None, self.options.mode == "chat"
        with suppress(ValueError, RecursionError):  # such as a web page
            document = json.loads(reply.text)
        if reply.status != OK:
            result = self.result_of_error(read_api_error(reply))
        elif not isinstance(document, dict):
            beginning = self.key.mask_in(reply.text)[:SHOWN_CHARACTERS]
            message = f"the answer is not a JSON object: it begins {beginning!r}"
            result = failure_result(message, stage=OutcomeStage.ANSWER)
        elif error := document.get("error") or _get_choice(document).get("error"):
            result = self.result_of_error(parse_error(reply, error))
        elif is_chat:
            result = read_chat(document, self.price)
        else:
            result = read_images(document, self.price)
        request_id = reply.headers.get("x-request-id")
        return replace(result, details={**result.details, "request_id": request_id})

    def _make_arguments(
        self, task: Task, inputs: Sequence[SentInput], form: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what every server takes, and what some do, without the files of an edit."""
        options, size = self.options, form["size"]
        seed = {} if self.seed is None else {"seed": self.find_seed(task)}
        further: dict[str, Any] = {**options.select_image_options(), **seed, **options.extra}
        arguments: dict[str, Any] = {"model": self.model}
        if options.mode == "chat":
            images = [{"type": "image_url", "image_url": {"url": url}} for url in _encode(inputs)]
            parts = [*images, {"type": "text", "text": task.prompt}]
            arguments["messages"] = [{"role": "user", "content": parts if images else task.prompt}]
            return arguments, {"modalities": ["image", "text"], **further}
        arguments |= {"prompt": task.prompt, "n": 1}
        if size is not None:
            arguments["size"] = f"{size[0]}x{size[1]}"
        return arguments, further

    def draw_batch(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, BatchResult]]:
        """Yield the result of each task as its batch ends, or why another attempt may succeed."""
        own, batch = self.options, self.options.batch or BatchOptions()
        under_way = dict[int, tuple[Task, Sequence[SentInput], Mapping[str, Any]]]()
        unsent = list[tuple[Task, GenerationResult]]()

        def make_rows() -> Iterator[Row]:
            for number, task in enumerate(tasks):
                prepared = self.prepare(task)
                if isinstance(prepared, GenerationResult):
                    unsent.append((task, prepared))
                    continue
                inputs, form = prepared
                arguments, further = self._make_arguments(task, inputs, form)
                url = CHAT_URL if own.mode == "chat" else EDITS_URL if inputs else DRAWING_URL
                if url == EDITS_URL:
                    arguments["images"] = [{"image_url": image} for image in _encode(inputs)]
                under_way[number] = task, [replace(sent, data=b"") for sent in inputs], form
                # Equal prompts of two samples are two images.
                yield make_row(number, url, arguments | further, f"{task.sample_id} {task.draw}")

        def advise(error: ApiError) -> str | None:
            return error.find_advice(self.model, own.base_url, own.api_key_env)

        limits = batch.model_copy(update={"max_rows": min(batch.max_rows, MAX_BATCH_IMAGES)})
        policy = RetryPolicy(self.config.limits.attempts)
        timeout_s, finished = self.config.limits.timeout_s, self._finished_batches
        self._connect()
        try:
            with open_batch_api(own.base_url, self.key, timeout_s, policy, advise) as api:
                asking = BatchAsking(api, limits, self.signature(), finished)
                for number, response in asking.stream(make_rows()):
                    yield from unsent
                    unsent.clear()
                    task, inputs, form = under_way.pop(number)
                    try:
                        if isinstance(response, str):
                            raise TransientError(response, "batch")
                        ask = partial(self._read_reply, response)
                        yield task, self.finish(task, inputs, form, ask)
                    except TransientError as error:
                        yield task, error
                yield from unsent
        except (EngineError, RequestError) as error:
            message = self.one_line(f"system {self.config.name!r}: {error}")
            raise GenerationError(message) from None

    def _send(self, send: Callable[..., Any], **arguments: Any) -> HttpResponse:
        """Send a request once."""
        from openai import APIConnectionError, APIStatusError, Omit

        headers = None if self.key else {"Authorization": Omit()}
        try:
            with send(**arguments, extra_headers=headers) as response:
                text = response.read().decode("utf-8", "replace")
                return HttpResponse(OK, response.headers, text)
        except (APIStatusError, APIConnectionError, TimeoutError) as error:
            return self.get_response(error)
