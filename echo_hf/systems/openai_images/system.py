"""The system that asks a server which draws pictures as OpenAI's does."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from echo_hf.engines.openai.reply import OK, Reply, fault_in, fault_of
from echo_hf.errors import GenerationError, PictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.retry_after import retry_after
from echo_hf.systems.base import Drawn, Passing, Retired, Task, register
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.hosted import CONCURRENCY, Host, one_line, unfit, without_key
from echo_hf.systems.hosted_faults import fate
from echo_hf.systems.openai_images import chat, images
from echo_hf.systems.openai_images.answer import drawn_from, mapping, read_document
from echo_hf.systems.openai_images.connection import Connection, TooMuchError, connected
from echo_hf.systems.openai_images.options import read_options
from echo_hf.systems.openai_images.preflight import look
from echo_hf.systems.opened import Opened
from echo_hf.systems.sent_pictures import SentInput, sent_input
from echo_hf.systems.sizes import chosen_size, written

ADAPTER = "openai_images"
# Raised when the same task is put to servers in another way, which may change pictures.
WORDING = 1
SEEDED = "the seed is sent; the server says how far it repeats a picture"
UNSEEDED = "the server takes no seed: two pictures for one task differ"


class OpenAIImages:
    """Asks the Images API of OpenAI or of a server like it, or a chat model that draws.

    Args:
        config: The config of the system; `OpenAIImagesOptions` are its parameters.

    Raises:
        GenerationError: A parameter is unknown or has a bad value, or there is no model.
    """

    concurrency = CONCURRENCY

    def __init__(self, config: SystemConfig) -> None:
        self._config = config
        self._options = read_options(config)
        self._host = Host.of(config, self._options)
        self.determinism = SEEDED if self._options.send_seed else UNSEEDED
        timeout_s = config.limits.timeout_s
        self._connection = Opened(lambda: connected(self._host, timeout_s))

    def signature(self) -> Mapping[str, Any]:
        """Everything that decides a picture; neither key nor address of a private server."""
        chosen = self._options.model_dump(mode="json", exclude={"base_url", "api_key_env"})
        return {
            "adapter": ADAPTER,
            "wording": WORDING,
            "server": self._host.server.label,
            "model": self._host.model,
            "size": self._config.model_dump(mode="json")["size"],
            "seed": self._seed,
            **chosen,
        }

    def preflight(self) -> Retired | None:
        """Asks the server for the model; null where it is there, and where none is told.

        Raises:
            GenerationError: There is no usable key, or the server does not accept it.
        """
        connection = self._connection.get()
        try:
            found = look(connection, datetime.datetime.now(datetime.UTC).date())
        except GenerationError as error:
            raise GenerationError(one_line(str(error), connection.key)) from None
        return None if found is None else Retired(one_line(found.text, connection.key), found.code)

    def draw(self, task: Task) -> Drawn:
        """Draws the picture that a task asks for.

        Args:
            task: The task.

        Returns:
            What became of it.

        Raises:
            Passing: The server is busy, late, or out of reach.
            GenerationError: No task could succeed, such as with a wrong key.
        """
        misfit = unfit(task, self._options)
        if misfit is not None:
            return misfit
        try:
            inputs = [sent_input(one) for one in task.inputs]
        except PictureError as error:
            return Drawn(Outcome.FAILED, stage=OutcomeStage.REQUEST, code="input", text=str(error))
        connection = self._connection.get()
        try:
            return without_key(self._asked(connection, task, inputs), connection.key)
        except Passing as error:
            text = one_line(error.text, connection.key)
            raise Passing(text, error.code, error.wait_s) from None
        except GenerationError as error:
            raise GenerationError(one_line(str(error), connection.key)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def _seed(self) -> int | None:
        return self._config.seed if self._options.send_seed else None

    def _asked(self, connection: Connection, task: Task, inputs: Sequence[SentInput]) -> Drawn:
        size = chosen_size(
            self._config.size, inputs[0].size if inputs else None, self._options.like
        )
        asked = {
            "mode": self._options.mode,
            "size": None if size is None else list(size),
            "inputs": [one.details() for one in inputs],
        }
        try:
            reply = self._reply(connection, task, inputs, None if size is None else written(size))
        except TooMuchError as error:
            return _failed(str(error), asked)
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
            return _failed(f"the answer is no JSON object: it begins {reply.text[:40]!r}", {})
        error = document.get("error") or mapping(chat.choice_of(document)).get("error")
        if error:
            return fate(fault_in(error, OK), self._host, wait_s)
        is_chat = self._options.mode == "chat"
        said = chat.read_chat(document) if is_chat else images.read_images(document)
        return drawn_from(said, self._config.price)


def _failed(why: str, details: Mapping[str, Any]) -> Drawn:
    return Drawn(Outcome.FAILED, stage=OutcomeStage.ANSWER, text=why, details=details)


register(
    ADAPTER,
    "OpenAI's Images API and servers like it: gpt-image, vllm-omni, OpenRouter",
    extra="openai",
    packages=("openai",),
    key="OPENAI_API_KEY",
)(OpenAIImages)
