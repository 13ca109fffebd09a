"""The engine: requests go to a server many at a time, answers come back as they are ready."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from echo_hf.engines.base import Completion, Request, check_installed, register
from echo_hf.engines.openai.caller import Caller
from echo_hf.engines.openai.dialect import Dialects
from echo_hf.engines.openai.limits import Limits
from echo_hf.engines.openai.options import read_options
from echo_hf.engines.openai.pictures import pixel_rule
from echo_hf.engines.openai.prices import price_for
from echo_hf.engines.openai.worker import working

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from echo_hf.engines.openai.server import ApiKey

# Raised when the same request is put to servers in another way, which may change answers.
WORDING = 1
LONGEST_CONNECT_S = 10.0
NO_KEY = "none"

Answers = Generator[tuple[int, Completion], None, None]


class OpenAIEngine:
    """Asks a server that speaks OpenAI's chat completions.

    Args:
        **options: See `Options`; `model` is wanted.

    Attributes:
        stored: Its answers are kept.

    Raises:
        EngineError: An option is unknown or not what it should be.
    """

    stored: bool = True

    def __init__(self, **options: Any) -> None:
        self.options = read_options(options)
        self._rule = pixel_rule(self.options)
        self._price = price_for(self.options)
        self._limits = Limits.per_minute(
            self.options.requests_per_minute, self.options.tokens_per_minute
        )
        self._dialects = Dialects(self.options)
        self._running: WeakSet[Answers] = WeakSet()

    @property
    def usd_per_million_prompt_tokens(self) -> float | None:
        """Price of what is asked, null when unknown."""
        return None if self._price is None else self._price.prompt

    def signature(self) -> Mapping[str, Any]:
        """Everything that decides an answer; neither key nor address of a private server."""
        options = self.options
        return {
            "kind": "openai",
            "server": options.server.label,
            "model": options.model,
            "revision": options.revision,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "seed": options.seed,
            "structured": options.structured,
            "extra_body": dict(options.extra_body),
            "pixels": None if self._rule is None else self._rule.describe(),
            "wording": WORDING,
        }

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
        check_installed("openai")
        key = self.options.server.key(self.options.api_key_env, os.environ)
        with working(lambda: self._caller(key)) as worker:
            for number, request in enumerate(chain([first], requests)):
                worker.start(number, request)
                if len(worker) >= self.options.concurrency:
                    yield from worker.finished()
            while worker:
                yield from worker.finished()

    @asynccontextmanager
    async def _caller(self, key: ApiKey) -> AsyncIterator[Caller]:
        async with self._client(key) as client:
            yield Caller(
                options=self.options,
                client=client,
                key=key,
                rule=self._rule,
                price=self._price,
                limits=self._limits,
                dialects=self._dialects,
            )

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


register(
    "openai",
    "a server: vllm serve on many GPUs, or a provider",
    extra="openai",
    packages=("openai", "tenacity", "anyio"),
)(OpenAIEngine)
