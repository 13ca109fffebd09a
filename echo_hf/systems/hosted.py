"""Systems behind a server: connection, key, limits, prices, and the meaning of errors."""

from __future__ import annotations

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr

from echo_hf._infra.http_errors import ApiError, ErrorKind, HttpResponse, as_mapping, get_response
from echo_hf._infra.retry import RequestError
from echo_hf.config.checks import Section, StrictInt
from echo_hf.config.systems import OutputPrice, OutputSize, SystemConfig
from echo_hf.engines.prices import MILLION
from echo_hf.engines.server import ApiKey, Server, check_variable_name
from echo_hf.errors import EngineError, GenerationError, ImageError
from echo_hf.images.loader import PixelSize
from echo_hf.images.store import MAX_IMAGE_BYTES
from echo_hf.systems.base import (
    TEXTS,
    GenerationResult,
    OutcomeStage,
    Retired,
    Task,
    TransientError,
    failure_result,
    unsupported_task,
)
from echo_hf.systems.images import SentInput, prepare_input
from echo_hf.systems.registry import get_price, parse_options, require_model
from echo_hf.tables import Outcome

MAX_CONNECT_SECONDS = 10.0
NO_KEY = "none"  # for clients that need a key even where a server needs none
PATH_DIGITS = 16

InputCount = Annotated[StrictInt, Field(ge=0, le=1000)]


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
    fewest_inputs: InputCount = 0
    most_inputs: InputCount
    revision: str | None = None

    def signed_options(self, size: OutputSize) -> Iterable[str]:
        """Return the names of the options that decide an image."""
        del size
        return ("revision",)


OptionsT = TypeVar("OptionsT", bound=HostedOptions)


def check_options(config: SystemConfig, options: type[OptionsT]) -> OptionsT:
    place = f"system {config.name!r}"
    try:
        check_variable_name(config.parameters.get("api_key_env"))
        checked = parse_options(config, options)
        Server(checked.base_url).check()
    except EngineError as error:
        raise GenerationError(f"{place}: {error}") from None
    fewest, most = checked.fewest_inputs, checked.most_inputs
    if fewest > most:
        raise GenerationError(
            f"{place}: fewest_inputs is {fewest} and most_inputs {most}: expected no more than that"
        )
    return checked


def compute_cost(
    price: OutputPrice | None, images: int, tokens: Mapping[str, int | None]
) -> float | None:
    """Compute what an answer costs by kinds of tokens; null where a part is not known."""
    if price is None:
        return None
    if price.usd_per_image is not None:
        return price.usd_per_image * images
    cost = 0.0
    for kind in ("text_in", "image_in", "text_out", "image_out"):
        usd, number = getattr(price, kind), tokens.get(kind)
        if usd != 0 and number != 0:
            if usd is None or number is None:
                return None
            cost += usd * number
    return cost / MILLION


def scale_price(price: OutputPrice, share: float | None) -> OutputPrice | None:
    """Return a share of a price; null where the share is unknown."""
    if share is None:
        return None
    amounts = price.model_dump(exclude={"as_of"}, exclude_none=True)
    return price.model_copy(update={name: usd * share for name, usd in amounts.items()})


# Base64 has four characters for three bytes; the rest is room for texts.
MAX_ANSWER = 2 * MAX_IMAGE_BYTES
MAX_ERROR = 1_000_000
MIN_ERROR_STATUS = 300
# Headers about the encoding of a body, which is passed on decoded and in one piece.
HOP_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class UnreadableError(RequestError):
    """An answer that no further attempt would make readable: a web page, or too long."""

    def __init__(self, text: str) -> None:
        super().__init__(text, again=False)


def limit_responses(client_class: type[Any], timeout_s: float) -> type[Any]:
    """Derive a client that reads each answer whole, within limits of size and time."""

    def send(self: Any, request: Any, **options: Any) -> Any:
        deadline, body = time.monotonic() + timeout_s, bytearray()
        response = client_class.send(self, request, **{**options, "stream": True})
        limit = MAX_ERROR if response.status_code >= MIN_ERROR_STATUS else MAX_ANSWER
        with closing(response):
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > limit:
                    # The beginning of an error page is enough for its message.
                    if limit == MAX_ANSWER:
                        raise UnreadableError(f"the answer has more than {MAX_ANSWER} bytes")
                    break
                if time.monotonic() > deadline:
                    raise TimeoutError
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in HOP_HEADERS]
        fields = {"headers": headers, "content": bytes(body[:limit]), "request": request}
        return type(response)(response.status_code, **fields)

    return type("LimitedClient", (client_class,), {"send": send})


def http_library() -> Any:
    return import_module("httpx" if find_spec("httpx") is not None else "httpx2")


# Models that their makers have shut down: servers answer as if they had never existed.
SHUT_DOWN = frozenset({"dall-e-3", "gemini-2.0-flash-preview-image-generation", "gpt-image-1"})


class HostedSystem(ABC, Generic[OptionsT]):
    """Base of systems that ask a server, over one connection that opens at the first task."""

    concurrency = 8
    # Raised when requests are put in another way, which may change images.
    wording = 2

    # What the same seed gives, where it is sent and where it is not.
    seeded: ClassVar[str]
    unseeded: ClassVar[str]

    def __init__(self, config: SystemConfig, options: OptionsT, sends_seed: bool) -> None:
        self.config, self.options, self.model = config, options, require_model(config)
        self.price = get_price(config)
        self.determinism = self.seeded if sends_seed else self.unseeded
        self.seed = config.seed if sends_seed else None
        self.client: Any = None
        self.key, self._server = ApiKey(SecretStr("")), Server(options.base_url)
        self._closing, self._connecting = ExitStack(), Lock()

    @abstractmethod
    def connect(self, key: str, timeout_s: float) -> AbstractContextManager[Any]:
        """Open a client of the server."""

    @abstractmethod
    def look(self) -> ApiError | None:
        """Ask for the model, and return the error if there is one."""

    @abstractmethod
    def form(self, first_input: PixelSize | None) -> dict[str, Any]:
        """Return the size and form of the image to ask for, as the provenance has them."""

    @abstractmethod
    def ask(
        self, task: Task, inputs: Sequence[SentInput], form: Mapping[str, Any]
    ) -> GenerationResult:
        """Send a task to the server once."""

    def signature(self) -> Mapping[str, Any]:
        """Return all that decides an image and reaches the server, without key or address."""
        options, size = self.options, self.config.size
        # The path may contain names or keys of a gateway. Ports and input limits change no image.
        path = urlsplit(self._server.base_url).path.rstrip("/")
        return {
            "adapter": self.config.adapter,
            "wording": self.wording,
            "server": self._server.label,
            "path": hashlib.sha256(path.encode()).hexdigest()[:PATH_DIGITS],
            "model": self.model,
            "size": self.config.model_dump(mode="json")["size"],
            "seed": self.seed,
            **options.model_dump(
                mode="json", include=set(options.signed_options(size)), exclude_defaults=True
            ),
        }

    def preflight(self) -> Retired | None:
        """Ask the server for the model; null where it is there, or where nobody can say."""
        maker = type(self.options).model_fields["base_url"].default
        if self.model in SHUT_DOWN and self.options.base_url == maker:
            return Retired(f"{self.model} was shut down by its maker", "shut_down")
        self._connect()
        with self._hide_key(), suppress(RequestError):
            error = self.look()
            if error is None:
                return None
            if self._is_retired(error):
                return Retired(self.one_line(error.message), error.code)
            if error.find_kind(self.model) is ErrorKind.BAD_KEY or error.has_no_model(self.model):
                self._raise_for_config(error)
        return None

    def find_seed(self, task: Task) -> int | None:
        """Return the seed of a task's output; null where none is sent."""
        return None if self.seed is None else self.seed + task.draw

    def draw(self, task: Task) -> GenerationResult:
        prepared = self.prepare(task)
        if isinstance(prepared, GenerationResult):
            return prepared
        inputs, form = prepared
        return self.finish(task, inputs, form, lambda: self.ask(task, inputs, form))

    def prepare(
        self, task: Task
    ) -> GenerationResult | tuple[Sequence[SentInput], Mapping[str, Any]]:
        """Return the inputs to send and the form to ask for, or why the task cannot be sent."""
        options = self.options
        limits = options.fewest_inputs, options.most_inputs
        if unfit := unsupported_task(task, *limits, config=self.config):
            return unfit
        try:
            inputs = [prepare_input(image) for image in task.inputs]
        except ImageError as error:
            return failure_result(str(error), "input")
        self._connect()
        return inputs, self.form(inputs[0].size if inputs else None)

    def finish(
        self,
        task: Task,
        inputs: Sequence[SentInput],
        form: Mapping[str, Any],
        ask: Callable[[], GenerationResult],
    ) -> GenerationResult:
        """Return the result of asking, with what was sent in its details and no key anywhere."""
        hide = self.key.mask_in
        with self._hide_key():
            try:
                result = ask()
            except UnreadableError as error:
                result = failure_result(error.text, stage=OutcomeStage.ANSWER)
        pairs = ((name, getattr(result, name)) for name in TEXTS)
        texts: dict[str, Any] = {name: text and hide(text) for name, text in pairs}
        details = {**result.details, **form, "inputs": [sent.details() for sent in inputs]}
        safe_details = json.loads(hide(json.dumps(details, ensure_ascii=False)))
        return replace(result, **texts, seed=self.find_seed(task), details=safe_details)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()
        self.client = None

    def _connect(self) -> None:
        limit_s = self.config.limits.timeout_s
        with self._connecting:  # the first thread connects while the others wait
            if self.client is None:
                try:
                    self.key = self._server.read_key(self.options.api_key_env, os.environ)
                except EngineError as error:
                    raise GenerationError(f"system {self.config.name!r}: {error}") from None
                opened = self.connect(self.key.secret.get_secret_value() or NO_KEY, limit_s)
                self.client = self._closing.enter_context(opened)

    @contextmanager
    def _hide_key(self) -> Iterator[None]:
        try:
            yield
        except RequestError as error:
            code = error.code and self.one_line(error.code)
            raise TransientError(self.one_line(error.text), code, error.wait_s) from None
        except GenerationError as error:
            raise GenerationError(self.one_line(str(error))) from None

    def one_line(self, text: str) -> str:
        return " ".join(self.key.mask_in(text).split())

    def get_response(self, error: Exception) -> HttpResponse:
        """Return the response that the client raised an error for, or raise a `RequestError`."""
        return get_response(error, self._server.base_url, self.config.limits.timeout_s)

    def result_of_error(self, error: ApiError) -> GenerationResult:
        """Return the result of a task that was answered with an error."""
        result, meaning = failure_result(error.message, error.code), error.find_kind(self.model)
        if meaning is ErrorKind.REFUSED:
            details = as_mapping(error.error.get("moderation_details"))
            stage_name = details.get("moderation_stage", error.error.get("moderation_stage"))
            # An error instead of an answer is about the input, unless it says otherwise.
            stage = OutcomeStage.OUTPUT if stage_name == "output" else OutcomeStage.INPUT
            return replace(result, outcome=Outcome.REFUSED, stage=stage)
        if self._is_retired(error):
            return replace(result, outcome=Outcome.RETIRED)
        self._raise_for_config(error)
        if meaning is ErrorKind.MAY_PASS:
            raise TransientError(error.summary, error.code, error.wait_s)
        return replace(result, text=error.summary)

    def _is_retired(self, error: ApiError) -> bool:
        is_gone = self.model in SHUT_DOWN and error.has_no_model(self.model)
        return is_gone or error.find_kind(self.model) is ErrorKind.RETIRED

    def _raise_for_config(self, error: ApiError) -> None:
        advice = error.find_advice(self.model, self._server.base_url, self.options.api_key_env)
        if advice is not None:
            raise GenerationError(
                f"system {self.config.name!r}: {error.describe_answer(self._server.host)}: {advice}"
            )
