"""How fast requests may go: token buckets for requests and for tokens, shared by all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

BURST_S = 1.0


@dataclass
class TokenBucket:
    """Lets an amount through a minute in the long run, and never much more at once.

    Places are given in the order of asking. Between any two of them there goes no more than the
    rate allows for that time and `BURST_S`, beside what asked last.

    Attributes:
        per_minute: The amount.
        clock: The time in seconds.
    """

    per_minute: float
    clock: Callable[[], float] = time.monotonic
    _free_at: float = field(default=float("-inf"), init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def reserve(self, amount: float) -> float:
        """Takes the next place.

        Args:
            amount: How much goes through in it.

        Returns:
            Seconds to wait for it.
        """
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
        """Takes the next place in both buckets.

        Args:
            tokens: Estimate of the request's prompt.

        Returns:
            Seconds to wait for it.
        """
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
