"""An engine that asks a server: many requests at a time, within its rate limits, each retried."""

from __future__ import annotations

import os
import re
import time
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
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self
from weakref import WeakSet

from echo_hf.engines.base import Completion, ImageRef, Request, check_installed
from echo_hf.engines.openai_messages import estimated_tokens
from echo_hf.engines.prices import Price
from echo_hf.engines.server import ApiKey, ServerOptions
from echo_hf.engines.server_errors import OK, Reply, Silence, Verdict, failed
from echo_hf.errors import EchoError, EngineError

if TYPE_CHECKING:
    from anyio import Event
    from anyio.abc import TaskGroup, TaskStatus
    from anyio.from_thread import BlockingPortal
    from openai import AsyncOpenAI
    from tenacity import AsyncRetrying, RetryCallState


Body = Mapping[str, Any]
Send = Callable[[Body], Awaitable[Reply | Silence]]


class Endpoint(Protocol):
    """What differs between the things a server can be asked for."""

    def unfit(self, request: Request, /) -> str | None:
        """Why a request cannot be put here at all, null where it can."""
        ...

    def prepared(self, request: Request) -> Any:
        """What of a request is the same in all attempts; pictures are read and encoded in it."""
        ...

    async def put(self, request: Request, prepared: Any, send: Send) -> Reply | Silence:
        """One attempt, in as many ways as it takes for the server to understand."""
        ...

    def create(self, client: AsyncOpenAI) -> Callable[..., Awaitable[Any]]:
        """The client's method that sends a body to this address and returns the raw response."""
        ...

    def judged(self, reply: Reply | Silence) -> Verdict:
        """What becomes of an attempt."""
        ...


BURST_S = 1.0


@dataclass
class TokenBucket:
    """Lets an amount through a minute in the long run, and never much more at once."""

    per_minute: float
    clock: Callable[[], float] = time.monotonic
    _free_at: float = field(default=float("-inf"), init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def reserve(self, amount: float) -> float:
        """Takes the next place."""
        with self._lock:
            now = self.clock()
            start = max(now, self._free_at)
            self._free_at = start + self._seconds(amount)
            return max(0.0, start - BURST_S - now)

    def settle(self, amount: float) -> None:
        """Counts what was more, or less when negative, than had been reserved."""
        with self._lock:
            self._free_at += self._seconds(amount)

    def _seconds(self, amount: float) -> float:
        return amount * 60.0 / self.per_minute


@dataclass
class Limits:
    """The limits of one server.

    Attributes:
        requests: Bucket of requests, null for no limit.
        tokens: Bucket of tokens, null for no limit.
        clock: The time in seconds.
    """

    requests: TokenBucket | None = None
    tokens: TokenBucket | None = None
    clock: Callable[[], float] = time.monotonic
    _closed_until: float = field(default=float("-inf"), init=False)

    @classmethod
    def per_minute(cls, requests: float | None, tokens: float | None) -> Limits:
        """Limits by what may go a minute; null for no limit."""
        return cls(_bucket(requests), _bucket(tokens))

    def reserve(self, tokens: int) -> float:
        """Takes the next place in both buckets."""
        waits = [self._closed_until - self.clock(), 0.0]
        if self.requests is not None:
            waits.append(self.requests.reserve(1))
        if self.tokens is not None:
            waits.append(self.tokens.reserve(tokens))
        return max(waits)

    def settle(self, estimated: int, used: int) -> None:
        """Counts the tokens that a request really took, in place of the estimate."""
        if self.tokens is not None:
            self.tokens.settle(used - estimated)

    def close_for(self, seconds: float) -> None:
        """Holds back every request, because the server asked one of them to wait."""
        self._closed_until = max(self._closed_until, self.clock() + seconds)


def _bucket(per_minute: float | None) -> TokenBucket | None:
    return None if per_minute is None else TokenBucket(per_minute)


LONGEST_BACKOFF_S = 60.0


def retrying(max_attempts: int, backoff_s: float) -> AsyncRetrying:
    """Sends again whatever may go better, after a wait."""
    from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt

    return AsyncRetrying(
        stop=stop_after_attempt(max_attempts),
        retry=retry_if_result(lambda verdict: verdict.again),
        wait=lambda state: _wait(state, backoff_s),
        retry_error_callback=_verdict,
    )


def _wait(state: RetryCallState, backoff_s: float) -> float:
    from tenacity import wait_random, wait_random_exponential

    asked = _verdict(state).wait_s
    if asked is not None:
        return asked + wait_random(0, backoff_s)(state)
    return wait_random_exponential(multiplier=backoff_s, max=LONGEST_BACKOFF_S)(state)


def _verdict(state: RetryCallState) -> Verdict:
    if state.outcome is None:
        raise RuntimeError("no attempt was made")
    verdict: Verdict = state.outcome.result()
    return verdict


LONGEST_ERROR = 500
# Names, because clients stand on either of two libraries that have the same ones.
UNREACHED = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})
# Numbers of single calls: without them, what a dead server says is the same each time.
CALL_NUMBER = re.compile(r"\b(?:req|chatcmpl|gen)[-_][\w-]{8,}|\b[0-9a-f-]{24,}\b")


@dataclass(slots=True)
class Caller:
    """Asks one server."""

    options: ServerOptions
    client: AsyncOpenAI
    key: ApiKey
    endpoint: Endpoint
    limits: Limits
    _is_reached: bool = field(default=False, init=False)

    async def answer(self, request: Request) -> Completion:
        """What a request comes to."""
        unfit = self.endpoint.unfit(request)
        if unfit is not None:
            return failed(unfit)
        policy = retrying(self.options.max_attempts, self.options.backoff_s)
        try:
            prepared = await self._prepared(request)
            verdict: Verdict = await policy(self._attempt, request, prepared)
            completion = verdict.completion
            if not self._is_reached:
                raise EngineError(
                    f"{completion.error}: start the server, or mend base_url; the same command "
                    "goes on from here"
                )
        except EngineError as error:
            raise EngineError(self._shown(str(error))) from None
        except Exception as error:  # a request that nobody thought of is its own failure alone
            known = isinstance(error, EchoError)
            completion = failed(str(error) if known else f"{type(error).__name__}: {error}")
        return replace(completion, error=completion.error and self._shown(completion.error))

    async def _prepared(self, request: Request) -> Any:
        from anyio import to_thread

        parts = (part for message in request.messages for part in message.parts)
        if any(isinstance(part, ImageRef) for part in parts):  # decoding must not stop the loop
            return await to_thread.run_sync(self.endpoint.prepared, request)
        return self.endpoint.prepared(request)

    async def _attempt(self, request: Request, prepared: Any) -> Verdict:
        estimated = 0 if self.limits.tokens is None else estimated_tokens(request)
        reply = await self.endpoint.put(request, prepared, partial(self._sent, estimated))
        self._is_reached = self._is_reached or not (isinstance(reply, Silence) and reply.unreached)
        verdict = self.endpoint.judged(reply)
        if verdict.again and verdict.wait_s is not None:
            self.limits.close_for(verdict.wait_s)
        if isinstance(reply, Reply) and reply.status == OK:
            usage = verdict.completion.usage
            # The estimate stands where the server does not say.
            self.limits.settle(estimated, usage.prompt + usage.completion or estimated)
        return verdict

    async def _sent(self, tokens: int, body: Body) -> Reply | Silence:
        from anyio import sleep

        await sleep(self.limits.reserve(tokens))
        return await self._reply(body)

    async def _reply(self, body: Body) -> Reply | Silence:
        from anyio import fail_after
        from openai import APIConnectionError, APIStatusError, APITimeoutError, Omit

        headers = None if self.key else {"Authorization": Omit()}
        create = self.endpoint.create(self.client)
        try:
            with fail_after(self.options.timeout_s):
                raw = await create(**body, extra_headers=headers)
                return Reply(raw.status_code, raw.headers, raw.text)
        except APIStatusError as error:
            response = error.response
            return Reply(response.status_code, response.headers, response.text)
        except APIConnectionError as error:
            unreached = type(error.__cause__).__name__ in UNREACHED
            if not isinstance(error, APITimeoutError) or unreached:
                said = _said(error)
                lost = f"the connection to {self.options.base_url!r} failed: {said}"
                return Silence(lost, unreached)
        except TimeoutError:
            pass
        return Silence(f"no answer within {self.options.timeout_s:g} s")

    def _shown(self, text: str) -> str:
        line = " ".join(CALL_NUMBER.sub("(id)", self.key.hidden_in(text)).split())
        return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 3] + "..."


def _said(error: BaseException) -> str:
    """What the system said first, under all that the libraries made of it."""
    cause = error.__cause__ or error.__context__
    return _said(cause) if cause else str(error) or type(error).__name__


THREAD = "echo-hf openai"


@dataclass
class Worker:
    """Requests under way."""

    portal: BlockingPortal
    tasks: TaskGroup
    caller: Caller
    _under_way: int = 0
    _finished: SimpleQueue[tuple[int, Completion | BaseException]] = field(
        default_factory=SimpleQueue
    )

    def __len__(self) -> int:
        return self._under_way

    def start(self, number: int, request: Request) -> None:
        """Begins a request; it is the caller's task to bound how many are under way."""
        self.portal.call(self._spawn, number, request)
        self._under_way += 1

    def finished(self) -> Iterator[tuple[int, Completion]]:
        """Waits for the next request to end, and yields all that have."""
        error: BaseException | None = None
        first = True
        while first or not self._finished.empty():
            number, result = self._finished.get()
            self._under_way -= 1
            first = False
            if isinstance(result, BaseException):
                error = result
            else:
                yield number, result
        if error is not None:
            raise error

    def _spawn(self, number: int, request: Request) -> None:
        # Without its result, which the portal would wait for.
        self.tasks.start_soon(self._answer, number, request)

    async def _answer(self, number: int, request: Request) -> None:
        try:
            completion = await self.caller.answer(request)
        except BaseException as error:  # whatever happens is reported: somebody waits for it
            self._finished.put((number, error))
            if not isinstance(error, Exception):
                raise
        else:
            self._finished.put((number, completion))


@contextmanager
def working(caller: Callable[[], AbstractAsyncContextManager[Caller]]) -> Iterator[Worker]:
    """Runs a worker; leaving cancels what is under way, closes the client, and joins the thread."""
    from anyio import Event
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal(name=THREAD) as portal:
        stop = portal.call(Event)
        closed, (tasks, opened) = portal.start_task(_serve, caller, stop)
        try:
            yield Worker(portal, tasks, opened)
        finally:
            portal.call(stop.set)
            closed.result()


async def _serve(
    opened: Callable[[], AbstractAsyncContextManager[Caller]],
    stop: Event,
    *,
    task_status: TaskStatus[tuple[TaskGroup, Caller]],
) -> None:
    from anyio import create_task_group

    async with opened() as caller, create_task_group() as tasks:
        task_status.started((tasks, caller))
        await stop.wait()
        tasks.cancel_scope.cancel()


LONGEST_CONNECT_S = 10.0
NO_KEY = "none"
EXTRA = "openai"
PACKAGES = ("openai", "tenacity", "anyio")

Answers = Generator[tuple[int, Completion], None, None]


class ServerEngine(ABC):
    """Asks one endpoint of a server."""

    kind: ClassVar[str]
    stored: bool = True
    options: ServerOptions

    def __init__(self, options: ServerOptions, endpoint: Endpoint, price: Price | None) -> None:
        self.options = options
        self._endpoint = endpoint
        self._price = price
        self._limits = Limits.per_minute(options.requests_per_minute, options.tokens_per_minute)
        self._running: WeakSet[Answers] = WeakSet()

    @property
    def usd_per_million_prompt_tokens(self) -> float | None:
        """Price of what is asked, null when unknown."""
        return None if self._price is None else self._price.prompt

    @property
    def usd_per_million_completion_tokens(self) -> float | None:
        """Price of what is answered, null when unknown."""
        return None if self._price is None else self._price.completion

    @abstractmethod
    def signature(self) -> Mapping[str, Any]:
        """Everything that decides an answer; neither key nor address of a private server."""

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
        with working(lambda: self._caller(key)) as worker:
            for number, request in enumerate(chain([first], requests)):
                worker.start(number, request)
                if len(worker) >= options.concurrency:
                    yield from worker.finished()
            while worker:
                yield from worker.finished()

    @asynccontextmanager
    async def _caller(self, key: ApiKey) -> AsyncIterator[Caller]:
        async with self._client(key) as client:
            yield Caller(self.options, client, key, self._endpoint, self._limits)

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
