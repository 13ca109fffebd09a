"""How fast tasks are begun: so many in a minute, and none while a system asks to wait."""

from __future__ import annotations

import time
from threading import Event, Lock

MINUTE_S = 60.0
# Threads cannot wait for as long as a rate may ask for; whoever wakes early waits again.
LONGEST_SLEEP_S = 3600.0


class Pace:
    """The beginning of tasks, spread evenly over time; for several threads.

    Args:
        per_minute: Most tasks begun in a minute; null for no limit.

    Attributes:
        stopped: Set when nothing is to begin any more; every wait ends then.
    """

    def __init__(self, per_minute: float | None = None) -> None:
        self._between_s = MINUTE_S / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = Lock()
        self.stopped = Event()

    def begin(self) -> bool:
        """Waits until a task may begin.

        Returns:
            Whether it may; false when nothing is to begin any more.
        """
        # A wait that another task was told of meanwhile holds for this one, too.
        while not self.stopped.is_set() and (seconds := self._seconds_left()) > 0:
            self.stopped.wait(min(seconds, LONGEST_SLEEP_S))
        return not self.stopped.is_set()

    def hold(self, seconds: float) -> None:
        """Lets no task begin for a while: the system asked for it.

        Args:
            seconds: How long, from now.
        """
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def _seconds_left(self) -> float:
        """Seconds until a task may begin; 0 takes this turn."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return self._next - now
            self._next = now + self._between_s
            return 0.0
