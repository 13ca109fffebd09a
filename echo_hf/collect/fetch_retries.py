"""The one policy by which a picture is asked for again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random,
    wait_random_exponential,
)

from echo_hf.collect.fetch_hosts import Hosts
from echo_hf.collect.fetch_ledger import Entry
from echo_hf.collect.fetch_policy import FetchPolicy
from echo_hf.collect.fetch_trouble import FetchError

LONGEST_BACKOFF_S = 60.0

Keep = Callable[[str], Awaitable[str]]


@dataclass(frozen=True)
class Attempts:
    """Asks as often as it makes sense.

    Attributes:
        policy: Says how often, and how long to wait.
        hosts: Where the requests go.
    """

    policy: FetchPolicy
    hosts: Hosts

    async def make(self, url: str, keep: Keep) -> tuple[Entry, int]:
        """Asks for a picture until it is there or no attempt is left.

        The wait is what the server asks for and a little more, so that not all come back at once,
        or else a random part of a time that doubles with each attempt.

        Args:
            url: A web address.
            keep: Fetches what is there, keeps it, and gives its digest.

        Returns:
            What became of it, and how often the server was asked.
        """
        times = 0

        async def once() -> str:
            nonlocal times
            async with self.hosts.visit(url):
                times += 1
                return await keep(url)

        retrying = AsyncRetrying(
            sleep=anyio.sleep,
            stop=stop_after_attempt(self.policy.max_attempts),
            retry=retry_if_exception(self._may_go_better),
            wait=self._wait,
            reraise=True,
        )
        try:
            return Entry(await retrying(once), None), times
        except FetchError as error:
            return Entry(None, error.reason, error.detail), times

    def _may_go_better(self, error: BaseException) -> bool:
        if not isinstance(error, FetchError) or not error.again:
            return False
        return error.wait_s is None or error.wait_s <= self.policy.longest_wait_s

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, FetchError) and error.wait_s is not None:
            return error.wait_s + wait_random(0, self.policy.backoff_s)(state)
        longest = max(self.policy.backoff_s, LONGEST_BACKOFF_S)
        return wait_random_exponential(self.policy.backoff_s, max=longest)(state)
