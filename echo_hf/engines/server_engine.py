"""An engine that asks a server: many requests at a time, within its rate limits, each retried."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakSet

from echo_hf._infra.http_errors import (
    OK,
    ApiError,
    Meaning,
    NoResponse,
    Reply,
    api_error,
    error_in,
    reply_in,
)
from echo_hf._infra.rate_limit import RateLimiter, finished
from echo_hf._infra.retry import RequestError, RetryPolicy
from echo_hf.engines.base import Completion, ImageRef, Request, check_installed
from echo_hf.engines.openai_messages import PixelRule, estimated_tokens
from echo_hf.engines.prices import price_for
from echo_hf.engines.server import ApiKey, ServerOptions
from echo_hf.errors import EchoError, EngineError

if TYPE_CHECKING:
    from openai import AsyncOpenAI


UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value"})
OPTIONAL = ("temperature", "top_p", "seed")

Document = Mapping[str, Any]


def failed(error: str) -> Completion:
    return Completion(None, error, "error")


def refused(reason: str, given: Completion | None = None) -> Completion:
    """A refusal, with the tokens and price of the call that ended so."""
    given = given or Completion(None)
    return Completion(None, reason, "refusal", given.usage, given.cost_usd)


def completion_of(error: ApiError, options: ServerOptions) -> Completion:
    """What a server's error makes of a request.

    Raises:
        RequestError: It may pass.
        EngineError: No request would be answered.
    """
    meaning = error.meaning(options.model)
    if meaning is Meaning.REFUSED:
        return refused(error.message)
    advice = error.advice(options.model, options.base_url, options.api_key_env)
    if error.param in OPTIONAL and error.codes & UNSUPPORTED:
        advice = f"set `{error.param}: null`, which sends none"
    if advice is not None:
        raise EngineError(f"{error.answered_by(options.server.host)}: {advice}")
    if meaning is Meaning.MAY_PASS:
        raise RequestError(error.said, wait_s=error.wait_s)
    return failed(error.said)


def read_document(reply: Reply, options: ServerOptions, otherwise: str) -> Document | Completion:
    """The object in a response, or what becomes of the request without one."""
    if reply.status != OK:
        return completion_of(api_error(reply), options)
    try:
        document = json.loads(reply.text)
    except (ValueError, RecursionError) as error:
        return failed(f"the response is not a whole JSON document: {error}")
    if not isinstance(document, Mapping):
        return failed(f"{otherwise}: it is not an object")
    if said := document.get("error"):
        return completion_of(error_in(reply, said), options)
    return document


Body = Mapping[str, Any]
Send = Callable[[Body], Awaitable[Reply]]

LONGEST_ERROR = 500
# Numbers of single calls: without them, what a dead server says is the same each time.
CALL_NUMBER = re.compile(r"\b(?:req|chatcmpl|gen)[-_][\w-]{8,}|\b[0-9a-f-]{24,}\b")


@dataclass(slots=True)
class Caller:
    engine: ServerEngine
    client: AsyncOpenAI
    key: ApiKey
    _is_reached: bool = field(default=False, init=False)

    async def numbered(self, request: tuple[int, Request]) -> tuple[int, Completion]:
        """The number of a request, and what the request comes to."""
        number, asked = request
        return number, await self.answer(asked)

    async def answer(self, request: Request) -> Completion:
        unfit = self.engine.unfit(request)
        if unfit is not None:
            return failed(unfit)
        try:
            attempt = partial(self._attempt, request, await self._prepared(request))
            completion = await self.engine.retries.call_async(attempt)
        except RequestError as error:
            completion = failed(self._shown(self._given_up(error)))
        except EngineError as error:
            raise EngineError(self._shown(str(error))) from None
        except Exception as error:  # a request that nobody thought of is its own failure alone
            known = isinstance(error, EchoError)
            completion = failed(str(error) if known else f"{type(error).__name__}: {error}")
        return replace(completion, error=completion.error and self._shown(completion.error))

    def _given_up(self, error: RequestError) -> str:
        if not self._is_reached:
            told = f"{error}: start the server, or fix base_url; the same command resumes from here"
            raise EngineError(self._shown(told)) from None
        longest = self.engine.retries.longest_wait_s
        if error.wait_s is None or error.wait_s <= longest:
            return str(error)
        asks = f"the server asks to wait {error.wait_s:.0f} s, longer than {longest:.0f} s"
        return f"{error}; {asks}"

    async def _prepared(self, request: Request) -> Any:
        from anyio import to_thread

        parts = (part for message in request.messages for part in message.parts)
        if any(isinstance(part, ImageRef) for part in parts):  # decoding must not stop the loop
            return await to_thread.run_sync(self.engine.prepared, request)
        return self.engine.prepared(request)

    async def _attempt(self, request: Request, prepared: Any) -> Completion:
        engine = self.engine
        estimated = 0 if engine.options.tokens_per_minute is None else estimated_tokens(request)
        try:
            reply = await engine.put(request, prepared, partial(self._sent, estimated))
            self._is_reached = True
            completion = engine.judged(reply)
        except RequestError as error:
            if not (isinstance(error, NoResponse) and error.unreached):
                self._is_reached = True
            if error.wait_s is not None and engine.retries.may_pass(error):
                engine.requests.hold(error.wait_s)
            error.args = (self._shown(str(error)),)  # as the log repeats it
            raise
        used = completion.usage.prompt + completion.usage.completion
        if used:  # the estimate stands where the server does not say
            engine.tokens.settle(used - estimated)
        return completion

    async def _sent(self, tokens: int, body: Body) -> Reply:
        from anyio import fail_after
        from openai import APIConnectionError, APIStatusError, Omit

        engine, options = self.engine, self.engine.options
        await engine.requests.turn()
        await engine.tokens.turn(tokens)
        headers = None if self.key else {"Authorization": Omit()}
        create = engine.create(self.client)
        try:
            with fail_after(options.timeout_s):
                raw = await create(**body, extra_headers=headers)
                return Reply(raw.status_code, raw.headers, raw.text)
        except (APIStatusError, APIConnectionError, TimeoutError) as error:
            return reply_in(error, options.base_url, options.timeout_s)

    def _shown(self, text: str) -> str:
        line = " ".join(CALL_NUMBER.sub("(id)", self.key.hidden_in(text)).split())
        return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 3] + "..."


BURST_S = 1.0
LONGEST_CONNECT_S = 10.0
THREAD = "echo-hf openai"
NO_KEY = "none"
EXTRA = "openai"
PACKAGES = ("openai",)

Answers = Generator[tuple[int, Completion], None, None]


class ServerEngine(ABC):
    """Asks one endpoint of a server."""

    kind: ClassVar[str]
    # Raised when the same request is put to servers in another way, which may change answers.
    wording: ClassVar[int] = 1
    sampling: ClassVar[tuple[str, ...]] = ()
    stored: bool = True
    options: ServerOptions

    def __init__(self, options: ServerOptions, rule: PixelRule | None) -> None:
        self.options, self._rule = options, rule
        price = price_for(options)
        self.requests = RateLimiter(options.requests_per_minute, burst_s=BURST_S)
        self.tokens = RateLimiter(options.tokens_per_minute, burst_s=BURST_S)
        self.retries = RetryPolicy(options.max_attempts, options.backoff_s)
        self._price = price
        self.usd_per_million_prompt_tokens = price and price.prompt
        self.usd_per_million_completion_tokens = price and price.completion
        self._running: WeakSet[Answers] = WeakSet()

    def signature(self) -> Mapping[str, Any]:
        """Everything that decides an answer; neither key nor address of a private server."""
        options = self.options
        return {
            "kind": self.kind,
            "server": options.server.label,
            "model": options.model,
            "revision": options.revision,
            **{name: getattr(options, name) for name in self.sampling},
            "extra_body": dict(options.extra_body),
            "pixels": None if self._rule is None else self._rule.describe(),
            "wording": self.wording,
        }

    def unfit(self, _: Request) -> str | None:
        """Why a request cannot be put here at all, null where it can."""
        return None

    @abstractmethod
    def prepared(self, request: Request) -> Any:
        """What of a request is the same in all attempts; images are read and encoded in it."""

    @abstractmethod
    async def put(self, request: Request, prepared: Any, send: Send) -> Reply:
        """One attempt, in as many ways as it takes for the server to understand."""

    @abstractmethod
    def create(self, client: AsyncOpenAI) -> Callable[..., Awaitable[Any]]:
        """The client's method that sends a body to this address and returns the raw response."""

    @abstractmethod
    def judged(self, reply: Reply) -> Completion:
        """What a response makes of a request; raises what `completion_of` does."""

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yields (number of the request, completion) as they are ready, in any order."""
        answers = self._answers(iter(requests))
        self._running.add(answers)
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for answers in list(self._running):
            answers.close()

    def _answers(self, requests: Iterator[Request]) -> Answers:
        first = next(requests, None)
        if first is None:
            return
        check_installed(self.kind)
        options = self.options
        key = options.server.key(options.api_key_env, os.environ)

        @asynccontextmanager
        async def opened() -> AsyncIterator[Any]:
            async with self._client(key) as client:
                yield Caller(self, client, key).numbered

        numbered = enumerate(chain([first], requests))
        yield from finished(numbered, opened, options.concurrency, THREAD)

    def _client(self, key: ApiKey) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

        timeout = self.options.timeout_s
        return AsyncOpenAI(
            # The client wants one even where the header is left out.
            api_key=key.secret.get_secret_value() or NO_KEY,
            base_url=self.options.base_url,
            max_retries=0,
            timeout=Timeout(timeout, connect=min(timeout, LONGEST_CONNECT_S)),
            # A redirect would take the posts to a server that nobody named.
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),
        )
