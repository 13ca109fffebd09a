"""When to retry a failed request, how long to wait, and how often."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import anyio
import tenacity

MAX_BACKOFF_SECONDS = 60.0
logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


class RequestError(Exception):
    """A failed request; another attempt may succeed, after `wait_s` seconds if given."""

    def __init__(
        self, text: str, code: str | None = None, *, again: bool = True, wait_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.text, self.code, self.again, self.wait_s = text, code, again, wait_s


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try, and how long to wait in between."""

    attempts: int
    backoff_s: float = 1.0  # before the second attempt at most; it doubles with each further one
    longest_wait_s: float = 300.0  # what asks to wait for longer is not tried again
    also: tuple[type[Exception], ...] = ()  # is tried again beside a `RequestError`

    def call(
        self, function: Callable[[], ResultT], sleep: Callable[[float], None] = time.sleep
    ) -> ResultT:
        """Call until it succeeds or no attempt is left, then raise the last error."""
        return tenacity.Retrying(sleep=sleep, **self._build_rules())(function)

    async def call_async(self, function: Callable[[], Awaitable[ResultT]]) -> ResultT:
        return await tenacity.AsyncRetrying(sleep=anyio.sleep, **self._build_rules())(function)

    def can_retry(self, error: BaseException) -> bool:
        """Return whether another attempt may succeed soon enough."""
        if not isinstance(error, RequestError):
            return isinstance(error, self.also)
        return error.again and (error.wait_s is None or error.wait_s <= self.longest_wait_s)

    def _build_rules(self) -> dict[str, Any]:
        return {
            "stop": tenacity.stop_after_attempt(self.attempts),
            "retry": tenacity.retry_if_exception(self.can_retry),
            "wait": self._wait_seconds,
            "before_sleep": _log_retry,
            "reraise": True,
        }

    def _wait_seconds(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RequestError) and error.wait_s is not None:
            # At random a little later, so that not all come back at once.
            return error.wait_s + tenacity.wait_random(0, self.backoff_s)(state)
        longest = max(self.backoff_s, MAX_BACKOFF_SECONDS)
        return tenacity.wait_random_exponential(self.backoff_s, max=longest)(state)


def _log_retry(state: tenacity.RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    kind, reason = type(error).__name__, "not shown" if _hiding else error
    message = "attempt %d failed, the next one in %.1f s: %s: %s"
    logger.info(message, state.attempt_number, state.upcoming_sleep, kind, reason)


_hiding = list[bool]()  # while it has any, in all threads


@contextmanager
def hide_errors() -> Iterator[None]:
    """Keep out of the log what failed attempts say, where it may quote what nobody may see."""
    _hiding.append(True)
    try:
        yield
    finally:
        _hiding.pop()


def parse_retry_after(headers: Mapping[str, str], clock_time: float | None = None) -> float | None:
    lower = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            seconds = float(lower[name])
            if not math.isnan(seconds):
                return max(0.0, seconds * unit)
    retry_time = _parse_date(lower.get("retry-after", ""))
    if retry_time is None:
        return None
    return max(0.0, retry_time - (read_server_time(lower) if clock_time is None else clock_time))


def read_server_time(headers: Mapping[str, str]) -> float:
    """Return the server's clock time from its headers, else this machine's."""
    return _parse_date(headers.get("date", "")) or time.time()


def _parse_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
