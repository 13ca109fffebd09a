"""The system that asks a server which draws pictures as OpenAI's does."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from echo_hf.engines.openai.reply import OK, Reply, fault_in, fault_of
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.retry_after import retry_after
from echo_hf.systems.base import Drawn, Retired, Task
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.hosted_faults import fate
from echo_hf.systems.hosted_system import HostedSystem
from echo_hf.systems.limited_client import TooMuchError
from echo_hf.systems.openai_images import chat, images
from echo_hf.systems.openai_images.answer import drawn_from, mapping, read_document
from echo_hf.systems.openai_images.connection import Connection, connected
from echo_hf.systems.openai_images.options import read_options
from echo_hf.systems.openai_images.preflight import look
from echo_hf.systems.registry import register
from echo_hf.systems.sent_pictures import SentInput
from echo_hf.systems.sizes import chosen_size, written

ADAPTER = "openai_images"
# Raised when the same task is put to servers in another way, which may change pictures.
WORDING = 2
SEEDED = "the seed is sent; the server says how far it repeats a picture"
UNSEEDED = "the server takes no seed: two pictures for one task differ"
BEGINNING = 40


class OpenAIImages(HostedSystem[Connection]):
    """Asks the Images API of OpenAI or of a server like it, or a chat model that draws.

    Args:
        config: The config of the system; `OpenAIImagesOptions` are its parameters.

    Raises:
        GenerationError: A parameter is unknown or has a bad value, or there is no model.
    """

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
        except TooMuchError as error:
            return replace(_unread(str(error)), details=asked)
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
            arguments = chat.arguments(model, task.prompt, inputs, further)
            return connection.ask(chat.address(client), arguments)
        arguments = images.arguments(model, task.prompt, inputs, size, further)
        return connection.ask(images.address(client, inputs), arguments)

    def _read(self, reply: Reply) -> Drawn:
        wait_s = retry_after(reply.headers)
        if reply.status != OK:
            return fate(fault_of(reply), self._host, wait_s)
        document = read_document(reply.text)
        if document is None:
            start = reply.text[:BEGINNING]
            return _unread(f"the answer is no JSON object: it begins {start!r}")
        error = document.get("error") or mapping(chat.choice_of(document)).get("error")
        if error:
            return fate(fault_in(error, OK), self._host, wait_s)
        is_chat = self._options.mode == "chat"
        said = chat.read_chat(document) if is_chat else images.read_images(document)
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
