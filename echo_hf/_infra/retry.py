"""When a failed request is sent again: what may pass, how long to wait, how often to try."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import anyio
import tenacity

LONGEST_BACKOFF_S = 60.0
logger = logging.getLogger(__name__)

Given = TypeVar("Given")


class RequestError(Exception):
    """A request that came to nothing; another attempt may go better, after as long as is asked."""

    def __init__(
        self, text: str, code: str | None = None, *, again: bool = True, wait_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.text, self.code, self.again, self.wait_s = text, code, again, wait_s


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often something is tried, and how long to wait in between."""

    attempts: int
    backoff_s: float = 1.0  # before the second attempt at most; it doubles with each further one
    longest_wait_s: float = 300.0  # what asks to wait for longer is not tried again
    also: tuple[type[Exception], ...] = ()  # is tried again beside a `RequestError`

    def call(
        self, function: Callable[[], Given], sleep: Callable[[float], None] = time.sleep
    ) -> Given:
        """Calls until it succeeds, or no attempt is left: then the last error is raised."""
        return tenacity.Retrying(sleep=sleep, **self._rules())(function)

    async def call_async(self, function: Callable[[], Awaitable[Given]]) -> Given:
        return await tenacity.AsyncRetrying(sleep=anyio.sleep, **self._rules())(function)

    def may_pass(self, error: BaseException) -> bool:
        """Whether another attempt may go better, and soon enough."""
        if not isinstance(error, RequestError):
            return isinstance(error, self.also)
        return error.again and (error.wait_s is None or error.wait_s <= self.longest_wait_s)

    def _rules(self) -> dict[str, Any]:
        return {
            "stop": tenacity.stop_after_attempt(self.attempts),
            "retry": tenacity.retry_if_exception(self.may_pass),
            "wait": self._wait,
            "before_sleep": _log_retry,
            "reraise": True,
        }

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RequestError) and error.wait_s is not None:
            # At random a little later, so that not all come back at once.
            return error.wait_s + tenacity.wait_random(0, self.backoff_s)(state)
        longest = max(self.backoff_s, LONGEST_BACKOFF_S)
        return tenacity.wait_random_exponential(self.backoff_s, max=longest)(state)


def _log_retry(state: tenacity.RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    said = "attempt %d failed, the next one in %.1f s: %s: %s"
    logger.info(said, state.attempt_number, state.upcoming_sleep, type(error).__name__, error)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    lower = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            seconds = float(lower[name])
            if not math.isnan(seconds):
                return max(0.0, seconds * unit)
    when = _date(lower.get("retry-after", ""))
    if when is None:
        return None
    return max(0.0, when - (server_time(lower) if now is None else now))


def server_time(headers: Mapping[str, str]) -> float:
    """The time by the server's own clock, by which it tells others; this machine's without it."""
    return _date(headers.get("date", "")) or time.time()


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
