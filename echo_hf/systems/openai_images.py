"""Systems behind a server that draws images as OpenAI's does."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, field_validator, model_validator

from echo_hf._infra.http_errors import OK, Reply, api_error, error_in, mapping
from echo_hf._infra.retry import RequestError
from echo_hf.config.checks import Whole, Words
from echo_hf.config.systems import Price, Size, SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.engines.prices import cost_of, count, read_usage, usage_of
from echo_hf.engines.server import OPENAI
from echo_hf.errors import GenerationError, ImageError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Retired, Task
from echo_hf.systems.hosted import (
    LONGEST_CONNECT_S,
    NO_KEY,
    Connection,
    Host,
    HostedOptions,
    HostedSystem,
    Inputs,
    UnreadableError,
    fate,
    hosted_options,
    limited,
    retired_by,
)
from echo_hf.systems.images import (
    Pixels,
    SentInput,
    chosen_size,
    decoded,
    nearest,
    read_size,
    unusable,
    with_image,
    within,
    written,
)
from echo_hf.systems.plan import Billed, cost_usd
from echo_hf.systems.registry import register

Document = Mapping[str, Any]

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
    sizes: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    pixels: Annotated[Whole, Field(ge=256 * 256, le=100_000_000)] = 1024 * 1024
    extra: Mapping[str, Any] = {}

    def like(self, size: Pixels) -> Pixels:
        """The size of the model that is most like an image's."""
        if self.sizes is not None:
            return nearest(size, [read_size(one) for one in self.sizes])
        return within(size, self.pixels, STEP, LONGEST_SHAPE)

    def drawing(self) -> dict[str, Any]:
        """What is sent beside model, prompt, images and size, where the config says it."""
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
    options = hosted_options(config, OpenAIImagesOptions)
    if options.mode == "chat" and config.size != "auto":
        raise GenerationError(
            f"system {config.name!r}: size is {config.model_dump()['size']!r}, and mode chat has "
            "none: expected auto, or what the server takes in `extra`"
        )
    return options


SHUT_DOWN = "shutdown_date"
BEGINNING = 40
LACK = "the answer holds no image"
MODALITIES = ("image", "text")
FILTERED, REFUSAL, FINISHED = "content_filter", "refusal", "stop"


@contextmanager
def connected(host: Host, timeout_s: float) -> Iterator[Connection]:
    from openai import DefaultHttpxClient, OpenAI, Timeout

    key = host.key()
    client = OpenAI(
        # The client wants one even where the header is left out.
        api_key=key.secret.get_secret_value() or NO_KEY,
        base_url=host.server.base_url,
        max_retries=0,
        timeout=Timeout(timeout_s, connect=min(timeout_s, LONGEST_CONNECT_S)),
        # A redirect would take prompts and images to a server that nobody named.
        http_client=limited(DefaultHttpxClient, timeout_s)(follow_redirects=False),
    )
    with client:
        yield Connection(client, key, host, timeout_s)


def ask(connection: Connection, send: Callable[..., Any], **arguments: Any) -> Reply:
    """Sends a request, once."""
    from openai import APIConnectionError, APIStatusError, Omit

    headers = None if connection.key else {"Authorization": Omit()}
    try:
        with send(**arguments, extra_headers=headers) as response:
            return Reply(OK, response.headers, response.read().decode("utf-8", "replace"))
    except (APIStatusError, APIConnectionError, TimeoutError) as error:
        return connection.reply_in(error)


def read_document(text: str) -> Document | None:
    """The answer as an object; null when it is none, such as a web page."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def read_images(document: Document, price: Price | None) -> GenerationResult:
    data = document.get("data")
    entries = [mapping(one) for one in data] if isinstance(data, list) else []
    first = entries[0] if entries else {}
    usage = mapping(document.get("usage"))
    told = {name: document.get(name) for name in ("size", "quality", "background", "output_format")}
    as_drawn = {name: value for name, value in told.items() if isinstance(value, str)}
    known = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        revised_prompt=_text_or_none(first.get("revised_prompt")),
        model_reported=_text_or_none(document.get("model")),
        usage=_usage(usage),
        cost_usd=cost_usd(price, _billed(usage, len(entries))),
        details={"pictures": len(entries), "as_drawn": as_drawn},
    )
    encoded = _text_or_none(first.get("b64_json")) or _text_or_none(first.get("url"))
    return unusable(known, LACK) if encoded is None else _with_image(known, encoded)


def _usage(usage: Document) -> Usage | None:
    sent, drawn = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    if sent is None or drawn is None:
        return None
    cached = count(mapping(usage.get("input_tokens_details")).get("cached_tokens"))
    return Usage(sent, drawn, cached or 0)


def _billed(usage: Document, images: int) -> Billed:
    sent = mapping(usage.get("input_tokens_details"))
    # Where the answer does not tell them apart, all that came back is the image.
    whole = {"image_tokens": usage.get("output_tokens"), "text_tokens": 0}
    drawn = mapping(usage.get("output_tokens_details")) or whole
    return Billed(
        text_in=count(sent.get("text_tokens")),
        image_in=count(sent.get("image_tokens")),
        text_out=count(drawn.get("text_tokens")),
        image_out=count(drawn.get("image_tokens")),
        images=images,
    )


def read_chat(document: Document, price: Price | None) -> GenerationResult:
    choice = _choice_of(document)
    message, ended = mapping(choice.get("message")), _text_or_none(choice.get("finish_reason"))
    images = list(dict.fromkeys(_images(message)))
    tokens, cost = read_usage(document), cost_of(document, None)
    text = _text(message.get("content"))
    known = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        text=text,
        model_reported=_text_or_none(document.get("model")),
        usage=None if tokens is None else usage_of(tokens),
        cost_usd=cost_usd(price, Billed(images=len(images))) if cost is None else cost,
        details={"pictures": len(images), "as_drawn": {}},
    )
    if images:
        return _with_image(known, images[0])
    refused, refusal = replace(known, outcome=Outcome.REFUSED), message.get("refusal")
    if _text_or_none(refusal):
        return replace(refused, stage=OutcomeStage.INPUT, code=REFUSAL, text=refusal)
    if ended == FILTERED:
        return replace(refused, stage=OutcomeStage.OUTPUT, code=FILTERED, text=text or FILTERED)
    if ended == FINISHED and _holds_words_alone(message):
        return replace(known, outcome=Outcome.NO_IMAGE, code=ended)
    how = "" if ended is None else f" and ended with {ended!r}"
    return replace(unusable(known, LACK + how + (f": {text}" if text else "")), code=ended)


def _images(message: Document) -> Iterator[str]:
    # Routers put images beside the content, vllm-omni puts them into it, and some do both.
    for place in ("images", "content"):
        parts = message.get(place)
        for part in parts if isinstance(parts, list) else ():
            url = _text_or_none(mapping(mapping(part).get("image_url")).get("url"))
            if url is not None:
                yield url


def _holds_words_alone(message: Document) -> bool:
    """Whether nothing in a message could be an image in a form that is not known here."""
    if "content" not in message or message.get("images"):
        return False
    return all(
        part is None or isinstance(part, str) or mapping(part).get("type") == "text"
        for part in _parts(message["content"])
    )


def _text(content: Any) -> str | None:
    texts = (
        mapping(part).get("text") if isinstance(part, dict) else part for part in _parts(content)
    )
    return _text_or_none("\n".join(text for text in texts if isinstance(text, str)))


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _choice_of(document: Document) -> Document:
    choices = document.get("choices")
    return mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _with_image(known: GenerationResult, encoded: str) -> GenerationResult:
    try:
        return with_image(known, decoded(encoded))
    except ImageError as error:
        return unusable(known, str(error))


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


ADAPTER = "openai_images"
# Raised when the same task is put to servers in another way, which may change images.
WORDING = 2
SEEDED = "the seed is sent; the server says how far it repeats a picture"
UNSEEDED = "the server takes no seed: two pictures for one task differ"


class OpenAIImages(HostedSystem):
    """Asks the Images API of OpenAI or of a server like it, or a chat model that draws."""

    def __init__(self, config: SystemConfig) -> None:
        self._options = read_options(config)
        self._seed = config.seed if self._options.send_seed else None
        determinism = SEEDED if self._options.send_seed else UNSEEDED
        super().__init__(config, self._options, determinism, connected)

    def signature(self) -> Mapping[str, Any]:
        """What reaches the server and decides an image; neither its key nor a private address."""
        return self._described(ADAPTER, WORDING, self._seed)

    def _looked(self, connection: Connection) -> Retired | None:
        retrieve = connection.client.models.with_streaming_response.retrieve
        try:
            reply = ask(connection, retrieve, model=self._host.model)
        except RequestError:
            return None
        if reply.status != OK:
            return retired_by(api_error(reply), self._host)
        said = (read_document(reply.text) or {}).get(SHUT_DOWN)
        try:
            day = datetime.date.fromisoformat(_text_or_none(said) or "")
        except ValueError:
            return None
        is_over = day <= datetime.datetime.now(datetime.UTC).date()
        return Retired(f"{SHUT_DOWN} is {day}", SHUT_DOWN) if is_over else None

    def _asked(
        self, connection: Connection, task: Task, inputs: Sequence[SentInput]
    ) -> GenerationResult:
        size = chosen_size(
            self._config.size, inputs[0].size if inputs else None, self._options.like
        )
        told: dict[str, Any] = {
            "mode": self._options.mode,
            "size": None if size is None else list(size),
            "inputs": [one.details() for one in inputs],
        }
        try:
            reply = self._reply(connection, task, inputs, size)
        except UnreadableError as error:
            return GenerationResult(
                Outcome.FAILED, stage=OutcomeStage.ANSWER, text=error.text, details=told
            )
        drawn = self._read(reply)
        told["request_id"] = reply.headers.get("x-request-id")
        return replace(drawn, seed=self._seed, details={**drawn.details, **told})

    def _reply(
        self, connection: Connection, task: Task, inputs: Sequence[SentInput], size: Pixels | None
    ) -> Reply:
        model, client = self._host.model, connection.client
        seed = {} if self._seed is None else {"seed": self._seed}
        # Not every version of the client knows every key: those that may be missing go beside it.
        further = {**self._options.drawing(), **seed, **self._options.extra}
        if self._options.mode == "chat":
            images = [{"type": "image_url", "image_url": {"url": one.data_url}} for one in inputs]
            parts = [*images, {"type": "text", "text": task.prompt}]
            return ask(
                connection,
                client.chat.completions.with_streaming_response.create,
                model=model,
                messages=[{"role": "user", "content": parts if images else task.prompt}],
                extra_body={"modalities": list(MODALITIES), **further},
            )
        asked: dict[str, Any] = {"model": model, "prompt": task.prompt, "n": 1}
        if size is not None:
            asked["size"] = written(size)
        files = [
            (f"input_{number}.{one.ending}", one.data, one.mime_type)
            for number, one in enumerate(inputs, 1)
        ]
        if files:
            asked["image"] = files if len(files) > 1 else files[0]
        images = client.images.with_streaming_response
        send = images.edit if files else images.generate
        return ask(connection, send, **asked, extra_body=further or None)

    def _read(self, reply: Reply) -> GenerationResult:
        if reply.status != OK:
            return fate(api_error(reply), self._host)
        document = read_document(reply.text)
        if document is None:
            said = f"the answer is not a JSON object: it begins {reply.text[:BEGINNING]!r}"
            return GenerationResult(Outcome.FAILED, stage=OutcomeStage.ANSWER, text=said)
        error = document.get("error") or _choice_of(document).get("error")
        if error:
            return fate(error_in(reply, error), self._host)
        read = read_chat if self._options.mode == "chat" else read_images
        return read(document, self._config.price)


register(
    ADAPTER,
    "OpenAI's Images API and servers like it: gpt-image, vllm-omni, OpenRouter",
    extra="openai",
    packages=("openai",),
    key="OPENAI_API_KEY",
)(OpenAIImages)
