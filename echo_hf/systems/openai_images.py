"""Systems behind a server that draws images as OpenAI's does."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, field_validator, model_validator

from echo_hf._infra.http_errors import OK, Reply, api_error, error_in
from echo_hf._infra.retry import RequestError
from echo_hf.config.checks import Whole, Words
from echo_hf.config.systems import Size, SystemConfig
from echo_hf.engines.server import OPENAI
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems import openai_images_api
from echo_hf.systems.base import Drawn, Retired, Task
from echo_hf.systems.hosted import (
    Connection,
    HostedOptions,
    HostedSystem,
    Inputs,
    UnreadableError,
    fate,
    hosted_options,
    retired_by,
)
from echo_hf.systems.images import (
    Pixels,
    SentInput,
    chosen_size,
    nearest,
    read_size,
    within,
    written,
)
from echo_hf.systems.openai_images_api import (
    ask,
    connected,
    drawn_from,
    mapping,
    read_document,
    text_or_none,
)
from echo_hf.systems.registry import register

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
    """The parameters of a system of this adapter."""
    options = hosted_options(config, OpenAIImagesOptions)
    if options.mode == "chat" and config.size != "auto":
        raise GenerationError(
            f"system {config.name!r}: size is {config.model_dump()['size']!r}, and mode chat has "
            "none: expected auto, or what the server takes in `extra`"
        )
    return options


SHUT_DOWN = "shutdown_date"


def look(connection: Connection, today: datetime.date) -> Retired | None:
    """Asks a server for a model."""
    retrieve = connection.client.models.with_streaming_response.retrieve
    try:
        reply = ask(connection, retrieve, {"model": connection.host.model})
    except RequestError:
        return None
    if reply.status != OK:
        return retired_by(api_error(reply), connection.host)
    return _shut_down(read_document(reply.text) or {}, today)


def _shut_down(document: Mapping[str, Any], today: datetime.date) -> Retired | None:
    said = text_or_none(document.get(SHUT_DOWN))
    try:
        day = datetime.date.fromisoformat(said or "")
    except ValueError:
        return None
    return Retired(f"{SHUT_DOWN} is {day}", SHUT_DOWN) if day <= today else None


ADAPTER = "openai_images"
# Raised when the same task is put to servers in another way, which may change pictures.
WORDING = 2
SEEDED = "the seed is sent; the server says how far it repeats a picture"
UNSEEDED = "the server takes no seed: two pictures for one task differ"
BEGINNING = 40


class OpenAIImages(HostedSystem):
    """Asks the Images API of OpenAI or of a server like it, or a chat model that draws."""

    def __init__(self, config: SystemConfig) -> None:
        self._options = read_options(config)
        self._seed = config.seed if self._options.send_seed else None
        determinism = SEEDED if self._options.send_seed else UNSEEDED
        super().__init__(config, self._options, determinism, connected)

    def signature(self) -> Mapping[str, Any]:
        """What reaches the server and decides a picture; neither its key nor a private address."""
        return self._described(ADAPTER, WORDING, self._seed)

    def _looked(self, connection: Connection) -> Retired | None:
        return look(connection, datetime.datetime.now(datetime.UTC).date())

    def _asked(self, connection: Connection, task: Task, inputs: Sequence[SentInput]) -> Drawn:
        first = inputs[0].size if inputs else None
        size = chosen_size(self._config.size, first, self._options.like)
        asked = {
            "mode": self._options.mode,
            "size": None if size is None else list(size),
            "inputs": [one.details() for one in inputs],
        }
        try:
            reply = self._reply(connection, task, inputs, None if size is None else written(size))
        except UnreadableError as error:
            return replace(_unread(error.text), details=asked)
        drawn = self._read(reply)
        told = {**drawn.details, **asked, "request_id": reply.headers.get("x-request-id")}
        return replace(drawn, seed=self._seed, details=told)

    def _reply(
        self, connection: Connection, task: Task, inputs: Sequence[SentInput], size: str | None
    ) -> Reply:
        model, client = self._host.model, connection.client
        seed = {} if self._seed is None else {"seed": self._seed}
        further = {**self._options.drawing(), **seed, **self._options.extra}
        if self._options.mode == "chat":
            arguments = openai_images_api.chat_arguments(model, task.prompt, inputs, further)
            return ask(connection, openai_images_api.chat_address(client), arguments)
        arguments = openai_images_api.arguments(model, task.prompt, inputs, size, further)
        return ask(connection, openai_images_api.address(client, inputs), arguments)

    def _read(self, reply: Reply) -> Drawn:
        if reply.status != OK:
            return fate(api_error(reply), self._host)
        document = read_document(reply.text)
        if document is None:
            start = reply.text[:BEGINNING]
            return _unread(f"the answer is no JSON object: it begins {start!r}")
        error = document.get("error") or mapping(openai_images_api.choice_of(document)).get("error")
        if error:
            return fate(error_in(reply, error), self._host)
        is_chat = self._options.mode == "chat"
        said = (
            openai_images_api.read_chat(document)
            if is_chat
            else openai_images_api.read_images(document)
        )
        return drawn_from(said, self._config.price)


def _unread(why: str) -> Drawn:
    return Drawn(Outcome.FAILED, stage=OutcomeStage.ANSWER, text=why)


register(
    ADAPTER,
    "OpenAI's Images API and servers like it: gpt-image, vllm-omni, OpenRouter",
    extra="openai",
    packages=("openai",),
    key="OPENAI_API_KEY",
)(OpenAIImages)
