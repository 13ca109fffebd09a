"""Base of engines that ask a server: address, key, options, and sending within limits."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Self, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from echo_hf._infra.http_errors import (
    OK,
    ApiError,
    ErrorKind,
    HttpResponse,
    JsonObject,
    get_response,
    parse_error,
    read_api_error,
)
from echo_hf._infra.rate_limit import RateLimiter, run_concurrently
from echo_hf._infra.retry import RequestError, RetryPolicy
from echo_hf.config.checks import find_secrets
from echo_hf.engines.base import (
    Completion,
    CompletionStream,
    Request,
    StreamingEngine,
    check_installed,
    read_options,
)
from echo_hf.engines.checkpoint import failed_completion
from echo_hf.engines.pixels import PixelBudget
from echo_hf.engines.planner import estimate_request
from echo_hf.engines.prices import TokenPrice, find_price
from echo_hf.errors import EngineError

ENDPOINT_PATHS = ("/chat/completions", "/images/edits", "/images/generations", "/moderations")
PRIVATE_ENDINGS = (".local", ".localhost", ".localdomain", ".internal", ".lan", ".home.arpa")


@dataclass(frozen=True, slots=True)
class Server:
    base_url: str

    @property
    def host(self) -> str:
        return self._parts.hostname or ""

    @property
    def is_private(self) -> bool:
        """Whether it is this machine or in a private network, as far as its name tells."""
        try:
            return not ipaddress.ip_address(self.host).is_global
        except ValueError:
            return "." not in self.host or self.host.lower().endswith(PRIVATE_ENDINGS)

    @property
    def label(self) -> str:
        """Its name in signatures: moving a private server to another port changes no answer."""
        return "private" if self.is_private else self._parts.netloc.lower()

    def check(self) -> None:
        try:
            is_server = self._parts.scheme in ("http", "https") and self._parts.port != 0
        except ValueError:  # for a port that is no number
            is_server = False
        has_more = any(mark in self.base_url for mark in "?#@")
        has_endpoint = self.base_url.rstrip("/").endswith(ENDPOINT_PATHS)
        if has_more or has_endpoint or not (is_server and self.host):
            raise EngineError(
                f"base_url is {'not shown' if has_more else repr(self.base_url)}: expected an "
                "address such as 'http://127.0.0.1:8000/v1', without what requests add to it, such "
                "as /chat/completions, and the key in an environment variable"
            )

    def read_key(self, variable: str | None, environment: Mapping[str, str]) -> ApiKey:
        value = environment.get(variable, "").strip() if variable is not None else ""
        is_lacking = variable is not None and not value and not self.is_private
        if is_lacking or not (value.isascii() and value.isprintable()) or " " in value:
            raise EngineError(
                f"environment variable {variable!r} holds no key for {self.host!r}: set it to "
                "printable ASCII characters without spaces, or give api_key_env the name of "
                "another one, or null for a server without keys"
            )
        if value and self._parts.scheme == "http" and not self.is_private:
            raise EngineError(
                f"base_url is {self.base_url!r}, which would send the key unencrypted: expected "
                "https, or `api_key_env: null` for a server without keys"
            )
        return ApiKey(SecretStr(value))

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.base_url)


@dataclass(frozen=True, slots=True)
class ApiKey:
    secret: SecretStr

    def __bool__(self) -> bool:
        return bool(self.secret.get_secret_value())

    def mask_in(self, text: str) -> str:
        key = self.secret.get_secret_value()
        return text.replace(key, "(key)") if key else text


OPENAI_URL = "https://api.openai.com/v1"
MAX_CONCURRENCY = 1000  # connections that the client's pool holds
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

NonEmptyText = Annotated[str, Field(min_length=1)]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PixelCount = Annotated[int, Field(ge=1)]


class ServerOptions(BaseModel):
    """The options of every engine that asks a server; a key that is not here is an error.

    Attributes:
        reserved_keys: Keys of a request that the engine sets itself.
        model: Name of the model, as the server knows it.
        base_url: Where the server is, mostly ending in `/v1`.
        api_key_env: Environment variable that holds the key; null for a server without keys.
        concurrency: Most requests under way at a time.
        requests_per_minute: Most requests in the long run, null for no limit.
        tokens_per_minute: Most tokens in the long run, prompts and answers, null for no limit.
        timeout_s: Longest wait for one answer, in seconds.
        max_attempts: How often a request is sent before its failure is reported.
        backoff_s: Longest wait before the second attempt; it doubles with each further one.
        extra_body: Further keys of the request, as the server documents them.
        max_pixels: Most pixels of an image; null sends it as large as the server takes it.
        usd_per_million_prompt_tokens: Price that replaces the price list's.
        usd_per_million_completion_tokens: Price that replaces the price list's.
        usd_per_million_cached_tokens: Price of prompt tokens from the server's cache; null where
            they cost as much as others.
        revision: What tells one deployment of the model from another; part of the signature.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    reserved_keys: ClassVar[frozenset[str]] = frozenset({"model"})

    model: NonEmptyText
    base_url: str = OPENAI_URL
    api_key_env: str | None = "OPENAI_API_KEY"
    concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)] = 32
    requests_per_minute: PositiveNumber | None = None
    tokens_per_minute: PositiveNumber | None = None
    timeout_s: PositiveNumber = 300.0
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 5
    backoff_s: Annotated[float, Field(ge=0, le=60)] = 1.0
    extra_body: Mapping[str, Any] = {}
    max_pixels: PixelCount | None = None
    usd_per_million_prompt_tokens: Dollars | None = None
    usd_per_million_completion_tokens: Dollars | None = None
    usd_per_million_cached_tokens: Dollars | None = None
    revision: str | None = None

    @property
    def server(self) -> Server:
        return Server(self.base_url)

    @field_validator("extra_body")
    @classmethod
    def _check_extra_body(cls, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if conflicts := sorted(cls.reserved_keys & set(body)):
            raise ValueError(f"expected no {', '.join(conflicts)}, which the engine sets itself")
        try:
            json.dumps(body, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"expected what JSON can hold: {error}") from None
        return body

    @model_validator(mode="after")
    def _check_price(self) -> Self:
        prompt, cached = self.usd_per_million_prompt_tokens, self.usd_per_million_cached_tokens
        is_half = (prompt is None) != (self.usd_per_million_completion_tokens is None)
        if is_half or (cached is not None and prompt is None):
            raise ValueError(
                "expected usd_per_million_prompt_tokens and usd_per_million_completion_tokens "
                "together, or neither"
            )
        return self


OptionsT = TypeVar("OptionsT", bound=ServerOptions)


def read_server_options(model: type[OptionsT], options: Mapping[str, Any], kind: str) -> OptionsT:
    if (secret := next(find_secrets(options), None)) is not None:
        raise EngineError(
            f"engine {kind!r} has {secret!r}: put the secret into an environment variable and name "
            "that in api_key_env"
        )
    check_variable_name(options.get("api_key_env"))
    checked = read_options(model, options, kind)
    checked.server.check()
    return checked


def check_variable_name(name: object) -> None:
    """Refuse a name that no environment variable has; it may be the key, so it is not shown."""
    if isinstance(name, str) and not VARIABLE_NAME.fullmatch(name):
        raise EngineError(
            "api_key_env is not a name of an environment variable: expected letters, digits and _, "
            "such as OPENAI_API_KEY"
        )


UNSUPPORTED_CODES = frozenset({"unsupported_parameter", "unsupported_value"})
OPTIONAL_PARAMETERS = ("temperature", "top_p", "seed")
MAX_ERROR_LENGTH = 500
# Numbers of single calls: without them, what a dead server says is the same each time.
CALL_ID = re.compile(r"\b(?:req|chatcmpl|gen)[-_][\w-]{8,}|\b[0-9a-f-]{24,}\b")
BURST_SECONDS = 1.0
MAX_CONNECT_SECONDS = 10.0
THREAD_NAME = "echo-hf openai"
PLACEHOLDER_KEY = "none"  # what clients are given that want a key even for a server without
EXTRA = "openai"
PACKAGES = ("openai",)

SendBody = Callable[[JsonObject], Awaitable[HttpResponse]]


def make_client_options(base_url: str, key: ApiKey, timeout_s: float) -> dict[str, Any]:
    """Return the options of a client of the package `openai` that tries nothing again."""
    from openai import Timeout

    return {
        "api_key": key.secret.get_secret_value() or PLACEHOLDER_KEY,
        "base_url": base_url,
        "max_retries": 0,
        "timeout": Timeout(timeout_s, connect=min(timeout_s, MAX_CONNECT_SECONDS)),
    }


def error_completion(error: str) -> Completion:
    return Completion(None, error, "error")


class ServerEngine(StreamingEngine):
    """Asks one endpoint of a server: many requests at a time, within limits, with retries."""

    kind: ClassVar[str]
    hosted: ClassVar[bool] = True
    # Raised when the same request is put to servers in another way, which may change answers.
    wording: ClassVar[int] = 1
    sampling: ClassVar[tuple[str, ...]] = ()
    endpoint: ClassVar[str]  # as the client calls it
    no_document: ClassVar[str]  # what is said of a response that is none of this endpoint
    options: ServerOptions

    def __init__(self, options: ServerOptions, budget: PixelBudget | None) -> None:
        super().__init__()
        self.options, self._budget = options, budget
        self.plain_price = find_price(options)
        self.batch_price: TokenPrice | None = None
        self.batch_hours: float | None = None  # the longest that a batch takes, as the list has it
        self.requests = RateLimiter(options.requests_per_minute, burst_s=BURST_SECONDS)
        self.tokens = RateLimiter(options.tokens_per_minute, burst_s=BURST_SECONDS)
        self.retries = RetryPolicy(options.max_attempts, options.backoff_s)
        self._use_price(self.plain_price)
        self._key, self._is_reached = ApiKey(SecretStr("")), False

    def _use_price(self, price: TokenPrice | None) -> None:
        self._price = price
        self.usd_per_million_prompt_tokens = price and price.prompt
        self.usd_per_million_completion_tokens = price and price.completion

    def signature(self) -> Mapping[str, Any]:
        """Return everything that decides an answer; not the key, nor a private server's address."""
        options = self.options
        return {
            "kind": self.kind,
            "server": options.server.label,
            "model": options.model,
            "revision": options.revision,
            **{name: getattr(options, name) for name in self.sampling},
            "extra_body": dict(options.extra_body),
            "pixels": self._budget and self._budget._asdict(),
            "wording": self.wording,
        }

    @abstractmethod
    def prepare(self, request: Request) -> Any:
        """Render what is the same in all attempts; raises where that is impossible."""

    @abstractmethod
    async def send(self, request: Request, prepared: Any, send: SendBody) -> HttpResponse:
        """Make one attempt, in as many forms as the server needs to understand it."""

    @abstractmethod
    def read_answer(self, document: JsonObject, response: HttpResponse) -> Completion:
        """Read a request's completion from the response document."""

    def read_response(self, response: HttpResponse) -> Completion:
        """Turn a response into a completion; raises as `handle_error` does."""
        if response.status != OK:
            return self.handle_error(read_api_error(response))
        try:
            document = json.loads(response.text)
        except (ValueError, RecursionError) as error:
            return error_completion(f"the response is not a whole JSON document: {error}")
        if not isinstance(document, Mapping):
            return error_completion(f"{self.no_document}: it is not an object")
        if error_field := document.get("error"):
            return self.handle_error(parse_error(response, error_field))
        return self.read_answer(document, response)

    def handle_error(self, error: ApiError) -> Completion:
        """Turn a server's error into a completion, or raise.

        Raises:
            RequestError: It may pass.
            EngineError: No request would be answered.
        """
        options, meaning = self.options, error.find_kind(self.options.model)
        if meaning is ErrorKind.REFUSED:
            return Completion(None, error.message, "refusal")
        advice = error.find_advice(options.model, options.base_url, options.api_key_env)
        if error.param in OPTIONAL_PARAMETERS and error.codes & UNSUPPORTED_CODES:
            advice = f"set `{error.param}: null`, which sends none"
        if advice is not None:
            raise EngineError(f"{error.describe_answer(options.server.host)}: {advice}")
        if meaning is ErrorKind.MAY_PASS:
            raise RequestError(error.summary, wait_s=error.wait_s)
        return error_completion(error.summary)

    def _iterate_completions(self, requests: Iterator[Request]) -> CompletionStream:
        first = next(requests, None)
        if first is None:
            return
        check_installed(self.kind)
        options, self._is_reached = self.options, False
        self._key = options.server.read_key(options.api_key_env, os.environ)

        @asynccontextmanager
        async def open_client() -> AsyncIterator[Any]:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            # A redirect would take the posts to a server that nobody named.
            http = DefaultAsyncHttpxClient(follow_redirects=False)
            own = make_client_options(options.base_url, self._key, options.timeout_s)
            async with AsyncOpenAI(**own, http_client=http) as client:
                yield partial(self._process, client)

        numbered = enumerate(chain([first], requests))
        yield from run_concurrently(numbered, open_client, options.concurrency, THREAD_NAME)

    async def _process(self, client: Any, numbered: tuple[int, Request]) -> tuple[int, Completion]:
        from anyio import to_thread

        number, request = numbered
        try:
            if request.images:  # decoding must not stop the loop
                prepared = await to_thread.run_sync(self.prepare, request)
            else:
                prepared = self.prepare(request)
            attempt = partial(self._try_request, client, request, prepared)
            completion = await self.retries.call_async(attempt)
        except EngineError as error:
            raise EngineError(self._clean_message(str(error))) from None
        except RequestError as error:
            if not self._is_reached:
                advice = "start the server, or fix base_url; the same command resumes from here"
                raise EngineError(self._clean_message(f"{error}: {advice}")) from None
            completion = error_completion(str(error))
        except Exception as error:  # a request that nobody thought of is its own failure alone
            completion = failed_completion(error)
        message = completion.error and self._clean_message(completion.error)
        return number, replace(completion, error=message)

    async def _try_request(self, client: Any, request: Request, prepared: Any) -> Completion:
        estimated = 0 if self.options.tokens_per_minute is None else estimate_request(request)
        try:
            response = await self.send(request, prepared, partial(self._send, client, estimated))
            self._is_reached = True
            completion = self.read_response(response)
        except RequestError as error:
            self._is_reached |= not getattr(error, "unreached", False)
            if error.wait_s is not None and self.retries.can_retry(error):
                self.requests.hold(error.wait_s)
            error.args = (self._clean_message(str(error)),)  # as the log repeats it
            raise
        used = completion.usage.prompt + completion.usage.completion
        if used:  # the estimate stands where the server does not say
            self.tokens.settle(used - estimated)
        return completion

    async def _send(self, client: Any, tokens: int, body: JsonObject) -> HttpResponse:
        from anyio import fail_after
        from openai import APIConnectionError, APIStatusError, Omit

        options = self.options
        await self.requests.wait()
        await self.tokens.wait(tokens)
        headers = None if self._key else {"Authorization": Omit()}
        try:
            with fail_after(options.timeout_s):
                return await self._call(client, body, headers)
        except (APIStatusError, APIConnectionError, TimeoutError) as error:
            return get_response(error, options.base_url, options.timeout_s)

    async def _call(self, client: Any, body: JsonObject, headers: Any) -> HttpResponse:
        extras = {"extra_body": dict(self.options.extra_body) or None, "extra_headers": headers}
        create = attrgetter(f"{self.endpoint}.with_raw_response.create")(client)
        raw = await create(**body, **extras)
        return HttpResponse(raw.status_code, raw.headers, raw.text)

    def _clean_message(self, text: str) -> str:
        line = " ".join(CALL_ID.sub("(id)", self._key.mask_in(text)).split())
        return line if len(line) <= MAX_ERROR_LENGTH else line[: MAX_ERROR_LENGTH - 3] + "..."
