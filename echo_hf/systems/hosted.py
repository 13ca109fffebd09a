"""Systems that are asked over the network: address, key, limits, and what errors make of a task."""

from __future__ import annotations

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field

from echo_hf._infra.http_errors import ApiError, Meaning, Reply, reply_in
from echo_hf._infra.retry import RequestError
from echo_hf.config.checks import Section, Whole
from echo_hf.config.systems import Size, SystemConfig
from echo_hf.engines.server import ApiKey, Server, check_variable
from echo_hf.errors import EngineError, GenerationError, ImageError
from echo_hf.images.store import MOST_BYTES
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import (
    GenerationResult,
    Retired,
    Task,
    TransientError,
    by_config,
    unsupported_task,
)
from echo_hf.systems.images import SentInput, sent_input
from echo_hf.systems.registry import model_of, options_of

CONCURRENCY = 8
LONGEST_CONNECT_S = 10.0
NO_KEY = "none"
PATH_DIGITS = 16

Inputs = Annotated[Whole, Field(ge=0, le=1000)]


class HostedOptions(Section):
    """The options of every adapter that asks a server.

    Attributes:
        base_url: Where the server is.
        api_key_env: Environment variable that holds the key; null for a server without keys.
        fewest_inputs: Fewest input images of a task; 1 for a model that only edits.
        most_inputs: Most input images of a task; 0 for a model that takes none.
        revision: What tells one deployment of the model from another.
    """

    base_url: str
    api_key_env: str | None
    fewest_inputs: Inputs = 0
    most_inputs: Inputs
    revision: str | None = None

    def signed(self, size: Size) -> dict[str, Any]:
        """Those that reach a request, as JSON holds them; defaults are left out."""
        return self.model_dump(mode="json", include=set(self._sent(size)), exclude_defaults=True)

    def _sent(self, size: Size) -> Iterable[str]:
        del size
        return ("revision",)


Checked = TypeVar("Checked", bound=HostedOptions)


def hosted_options(config: SystemConfig, options: type[Checked]) -> Checked:
    place = f"system {config.name!r}"
    try:
        check_variable(config.parameters.get("api_key_env"))
        read = options_of(config, options)
        Server(read.base_url).check()
    except EngineError as error:
        raise GenerationError(f"{place}: {error}") from None
    if read.fewest_inputs > read.most_inputs:
        raise GenerationError(
            f"{place}: fewest_inputs is {read.fewest_inputs} and most_inputs {read.most_inputs}: "
            "expected no more than that"
        )
    return read


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    server: Server
    model: str
    api_key_env: str | None

    @classmethod
    def of(cls, config: SystemConfig, options: HostedOptions) -> Host:
        return cls(config.name, Server(options.base_url), model_of(config), options.api_key_env)

    @property
    def path(self) -> str:
        """A digest of the path on the server, which may hold names or keys of a gateway."""
        path = urlsplit(self.server.base_url).path.rstrip("/")
        return hashlib.sha256(path.encode()).hexdigest()[:PATH_DIGITS]

    def key(self) -> ApiKey:
        try:
            return self.server.key(self.api_key_env, os.environ)
        except EngineError as error:
            raise GenerationError(f"system {self.name!r}: {error}") from None


def without_key(drawn: GenerationResult, key: ApiKey) -> GenerationResult:
    """An outcome in which no text repeats the key, or is more than a file can hold."""
    texts: dict[str, Any] = {
        name: _storable(key.hidden_in(text))
        for name in ("code", "text", "revised_prompt", "model_reported")
        if (text := getattr(drawn, name)) is not None
    }
    details = json.dumps(drawn.details, ensure_ascii=False)
    return replace(drawn, **texts, details=json.loads(_storable(key.hidden_in(details))))


def _storable(text: str) -> str:
    # Half of a surrogate pair is no text that a file could hold.
    return text.encode("utf-8", "replace").decode()


def one_line(text: str, key: ApiKey) -> str:
    return " ".join(key.hidden_in(text).split())


# Models whose makers have shut them down, and answer as if they had never been there.
SHUT_DOWN = frozenset({"dall-e-3", "gemini-2.0-flash-preview-image-generation", "gpt-image-1"})
STAGES = {"input": OutcomeStage.INPUT, "output": OutcomeStage.OUTPUT}
UNTOLD = "untold"
MOST_CATEGORIES = 20


def fate(error: ApiError, host: Host) -> GenerationResult:
    """What becomes of a task that was answered with an error."""
    meaning = error.meaning(host.model)
    if meaning is Meaning.REFUSED:
        return _refused(error)
    if _is_retired(error, host):
        stage = OutcomeStage.REQUEST
        return GenerationResult(Outcome.RETIRED, stage=stage, code=error.code, text=error.message)
    _raise_for_config(error, host)
    if meaning is Meaning.MAY_PASS:
        raise TransientError(error.said, error.code, error.wait_s)
    return GenerationResult(
        Outcome.FAILED, stage=OutcomeStage.REQUEST, code=error.code, text=error.said
    )


def retired_by(error: ApiError, host: Host) -> Retired | None:
    """What a question for the model alone comes to."""
    if _is_retired(error, host):
        return Retired(error.message, error.code)
    if error.meaning(host.model) is Meaning.BAD_KEY or error.lacks_model(host.model):
        _raise_for_config(error, host)
    return None


def _is_retired(error: ApiError, host: Host) -> bool:
    lacks = host.model in SHUT_DOWN and error.lacks_model(host.model)
    return lacks or error.meaning(host.model) is Meaning.RETIRED


def _raise_for_config(error: ApiError, host: Host) -> None:
    advice = error.advice(host.model, host.server.base_url, host.api_key_env)
    if advice is not None:
        raise GenerationError(
            f"system {host.name!r}: {error.answered_by(host.server.host)}: {advice}"
        )


def _refused(error: ApiError) -> GenerationResult:
    # An error in place of an answer is about the request, unless it says otherwise.
    details = error.error.get("moderation_details")
    details = details if isinstance(details, dict) else {}
    told = details.get("moderation_stage", error.error.get("moderation_stage"))
    told = told if isinstance(told, str) else UNTOLD
    categories = details.get("categories")
    named = categories if isinstance(categories, list) else []
    named = [one for one in named if isinstance(one, str)][:MOST_CATEGORIES]
    return GenerationResult(
        Outcome.REFUSED,
        stage=STAGES.get(told, OutcomeStage.INPUT),
        code=error.code,
        text=error.message,
        details={"moderation_stage": told, "moderation_categories": named},
    )


# Base64 takes four characters for three bytes; the rest is room for texts.
MOST_ANSWER = 2 * MOST_BYTES
MOST_OF_AN_ERROR = 1_000_000
LEAST_ERROR = 300
# The body is handed on as it was read: decoded, and in one piece.
OF_THE_WAY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class UnreadableError(RequestError):
    """An answer that no attempt would make readable: a web page, or more than is kept."""

    def __init__(self, text: str) -> None:
        super().__init__(text, again=False)


def limited(client_class: type[Any], timeout_s: float) -> type[Any]:
    """A client that has read each answer whole before it hands it on."""

    def send(self: Any, request: Any, **options: Any) -> Any:
        until = time.monotonic() + timeout_s
        response = client_class.send(self, request, **{**options, "stream": True})
        with closing(response):
            body = _body(response, until)
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in OF_THE_WAY]
        return type(response)(response.status_code, headers=headers, content=body, request=request)

    return type("LimitedClient", (client_class,), {"send": send})


def http_library() -> Any:
    return import_module("httpx" if find_spec("httpx") is not None else "httpx2")


def _body(response: Any, until: float) -> bytes:
    is_error, data = response.status_code >= LEAST_ERROR, bytearray()
    for chunk in response.iter_bytes():
        data += chunk
        if is_error and len(data) > MOST_OF_AN_ERROR:
            return bytes(data[:MOST_OF_AN_ERROR])
        if len(data) > MOST_ANSWER:
            raise UnreadableError(f"the answer has more than {MOST_ANSWER} bytes")
        if time.monotonic() > until:
            raise TimeoutError
    return bytes(data)


@dataclass(frozen=True, slots=True)
class Connection:
    client: Any
    key: ApiKey
    host: Host
    timeout_s: float

    def reply_in(self, error: Exception) -> Reply:
        """The response that the client raised an error of; raises what `reply_in` does."""
        return reply_in(error, self.host.server.base_url, self.timeout_s)


Connect = Callable[[Host, float], AbstractContextManager[Connection]]


class HostedSystem(ABC):
    """Asks a server for each task, over one connection that opens at the first."""

    concurrency = CONCURRENCY

    def __init__(
        self,
        config: SystemConfig,
        options: HostedOptions,
        determinism: str,
        connect: Connect,
    ) -> None:
        self.determinism = determinism
        self._config = config
        self._given = options
        self._host = Host.of(config, options)
        self._connect = partial(connect, self._host, config.limits.timeout_s)
        self._connection: Connection | None = None
        self._closing, self._connecting = ExitStack(), Lock()

    @abstractmethod
    def signature(self) -> Mapping[str, Any]:
        """Everything that decides an image; neither key nor address of a private server."""

    @abstractmethod
    def _looked(self, connection: Connection) -> Retired | None:
        """Asks whether the model is still there."""

    @abstractmethod
    def _asked(
        self, connection: Connection, task: Task, inputs: Sequence[SentInput]
    ) -> GenerationResult:
        """Puts a task to the server once."""

    def preflight(self) -> Retired | None:
        """Asks the server for the model; null where it is there, and where none is told."""
        maker = type(self._given).model_fields["base_url"].default
        if self._host.model in SHUT_DOWN and self._given.base_url == maker:
            return Retired(f"{self._host.model} was shut down by its maker", "shut_down")
        connection = self._connected()
        with _hidden(connection.key):
            found = self._looked(connection)
        return None if found is None else Retired(one_line(found.text, connection.key), found.code)

    def draw(self, task: Task) -> GenerationResult:
        unfit = unsupported_task(task, self._given.fewest_inputs, self._given.most_inputs)
        if unfit is not None:
            return by_config(unfit, self._config)
        try:
            inputs = [sent_input(one) for one in task.inputs]
        except ImageError as error:
            return GenerationResult(
                Outcome.FAILED, stage=OutcomeStage.REQUEST, code="input", text=str(error)
            )
        connection = self._connected()
        with _hidden(connection.key):
            return without_key(self._asked(connection, task, inputs), connection.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()
        self._connection = None

    def _connected(self) -> Connection:
        with self._connecting:  # whichever thread comes first, while the others wait
            if self._connection is None:
                self._connection = self._closing.enter_context(self._connect())
            return self._connection

    def _described(self, adapter: str, wording: int, seed: int | None) -> dict[str, Any]:
        # Ports, variables and numbers of inputs change no image.
        return {
            "adapter": adapter,
            "wording": wording,
            "server": self._host.server.label,
            "path": self._host.path,
            "model": self._host.model,
            "size": self._config.model_dump(mode="json")["size"],
            "seed": seed,
            **self._given.signed(self._config.size),
        }


@contextmanager
def _hidden(key: ApiKey) -> Iterator[None]:
    """Keeps the key out of what goes through."""
    try:
        yield
    except RequestError as error:
        code = None if error.code is None else one_line(error.code, key)
        raise TransientError(one_line(error.text, key), code, error.wait_s) from None
    except GenerationError as error:
        raise GenerationError(one_line(str(error), key)) from None
