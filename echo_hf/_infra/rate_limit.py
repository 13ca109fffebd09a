"""How much may begin in a minute, and not before a server wants to be asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock

import anyio

# Threads cannot wait for as long as a rate may ask for; whoever wakes early waits again.
LONGEST_SLEEP_S = 3600.0


class RateLimiter:
    """Spreads what begins evenly over time; for threads and tasks.

    Args:
        per_minute: Most that begins in a minute, in the long run; null for no limit.
        burst_s: The share of this time may begin early.
        clock: The time in seconds.
    """

    def __init__(
        self,
        per_minute: float | None = None,
        *,
        burst_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._each_s = 60.0 / per_minute if per_minute else 0.0
        self._burst_s, self._clock, self._lock = burst_s, clock, Lock()
        # Places are of a clock that stands still while all are held, so that a hold moves them all.
        self._free_at = self._held_until = float("-inf")
        self._stood_still_s = 0.0

    def reserve(self, amount: float = 1.0) -> float:
        """Takes the next place."""
        with self._lock:
            now = max(self._clock(), self._held_until) - self._stood_still_s
            place = max(now, self._free_at)
            self._free_at = place + amount * self._each_s
            return place - self._burst_s

    def left_s(self, place: float) -> float:
        """Seconds until a place, as far as it is known now."""
        with self._lock:
            begins = max(self._held_until, place + self._stood_still_s)
            return max(0.0, begins - self._clock())

    def settle(self, amount: float) -> None:
        """Counts what was more, or less when negative, than had been reserved."""
        with self._lock:
            self._free_at += amount * self._each_s

    def hold(self, seconds: float) -> None:
        """Lets nothing begin for a while, because the server asks to wait."""
        with self._lock:
            now = self._clock()
            until = max(self._held_until, now + max(0.0, seconds))
            self._stood_still_s += until - max(self._held_until, now)
            self._held_until = until

    async def turn(self, amount: float = 1.0) -> None:
        """Waits for the next place, in a task."""
        place = self.reserve(amount)
        while (left := self.left_s(place)) > 0:
            await anyio.sleep(min(left, LONGEST_SLEEP_S))

    def turn_unless(self, stopped: Event, amount: float = 1.0) -> bool:
        """Waits for the next place, in a thread; false where it is stopped before."""
        place = self.reserve(amount)
        while not stopped.is_set() and (left := self.left_s(place)) > 0:
            stopped.wait(min(left, LONGEST_SLEEP_S))
        return not stopped.is_set()
