"""An engine that asks a server: requests go many at a time, answers come as they are ready."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakSet

from echo_hf.engines.base import Completion, Request, check_installed
from echo_hf.engines.openai.caller import Caller
from echo_hf.engines.openai.endpoint import Endpoint
from echo_hf.engines.openai.limits import Limits
from echo_hf.engines.openai.prices import Price
from echo_hf.engines.openai.server_options import ServerOptions
from echo_hf.engines.openai.worker import working

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from echo_hf.engines.openai.server import ApiKey

LONGEST_CONNECT_S = 10.0
NO_KEY = "none"
EXTRA = "openai"
PACKAGES = ("openai", "tenacity", "anyio")

Answers = Generator[tuple[int, Completion], None, None]


class ServerEngine(ABC):
    """Asks one endpoint of a server.

    Args:
        options: Where the server is, and how fast it may be asked.
        endpoint: What it is asked for.
        price: Price of the model's tokens, null when unknown.

    Attributes:
        kind: The name under which the engine is registered.
        stored: Its answers are kept.
        options: The options, checked.
    """

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
        """Yields (number of the request, completion) as they are ready, in any order.

        At most `concurrency` requests are under way. Closing the iterator, or leaving the engine's
        context, cancels them.

        Args:
            requests: What to ask, taken one by one as there is room.

        Returns:
            The completions.

        Raises:
            EngineError: There is no usable key, or no request could succeed.
            MissingExtraError: The client is not installed.
        """
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
