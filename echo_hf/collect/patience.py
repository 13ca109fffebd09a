"""How long a crawl waits, and how often it tries again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from echo_hf.collect.platforms.base import Answer, Platform, Question, RateLimitedError

LONGEST_BACKOFF_S = 60.0

Waits = Callable[[float], None]
Given = TypeVar("Given")


class LongWaitError(Exception):
    """The platform wants to be left alone for longer than a run should take.

    Attributes:
        seconds: For how long.
    """

    def __init__(self, seconds: float) -> None:
        """Says for how long."""
        super().__init__(f"asks to wait {seconds:.0f} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a question is asked, and how long the crawl waits in between.

    Attributes:
        attempts: How often a page is asked for that fails in a way that may pass.
        backoff_s: The first wait after such a failure; each next one is up to twice as long.
        longest_wait_s: Longest time that a platform may tell the crawl to wait for one page.
        sleep: Waits for so many seconds.
    """

    attempts: int = 6
    backoff_s: float = 1.0
    longest_wait_s: float = 2 * 3600.0
    sleep: Callable[[float], None] = time.sleep

    def ask(
        self, platform: Platform, question: Question, cursor: str | None, waits: Waits
    ) -> Answer:
        """Asks for a page until it is there.

        Args:
            platform: Who is asked.
            question: The question.
            cursor: Of the page before, null for the first one.
            waits: Told of each wait that the platform wants, in seconds, before it begins.

        Returns:
            The page.

        Raises:
            LongWaitError: The platform wants to be left alone for too long.
            OSError: It failed each time in a way that may pass.
            StaleCursorError: It no longer knows the cursor.
            UnanswerableError: It never answers this question.
            EchoError: It cannot be asked at all.
        """
        return self.until_done(lambda: platform.ask(question, cursor), waits)

    @contextmanager
    def connected(self, platform: Platform, waits: Waits) -> Iterator[Platform]:
        """Connects, which some platforms limit as they do questions; lets go in the end.

        Args:
            platform: Who is to be asked.
            waits: Told of each wait that the platform wants, in seconds, before it begins.

        Yields:
            The platform.
        """
        self.until_done(platform.__enter__, waits)
        with ExitStack() as leaving:
            leaving.push(platform)
            yield platform

    def until_done(self, call: Callable[[], Given], waits: Waits) -> Given:
        """Calls until it is answered; as `ask`, for whatever a platform is asked.

        Args:
            call: Asks.
            waits: Told of each wait that the platform wants, in seconds, before it begins.

        Returns:
            The answer.
        """
        trying = Retrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.attempts),
            retry=retry_if_exception_type(OSError),
            wait=wait_random_exponential(self.backoff_s, max=LONGEST_BACKOFF_S),
            reraise=True,
        )
        done: Given = trying(self._heeded, call, waits)
        return done

    def _heeded(self, call: Callable[[], Given], waits: Waits) -> Given:
        told, waited = 0, 0.0
        while True:
            try:
                return call()
            except RateLimitedError as error:
                seconds = self._wait(error.seconds, told)
            told += 1
            waited += seconds
            if waited > self.longest_wait_s:  # a limit of a month, told as one of a moment
                raise LongWaitError(seconds)
            waits(seconds)
            self.sleep(seconds)

    def _wait(self, seconds: float, told: int) -> float:
        """What to wait when told to, the second time in a row never less than the backoff."""
        if math.isnan(seconds) or seconds > self.longest_wait_s:
            raise LongWaitError(seconds)
        least = self.backoff_s * 2 ** min(told - 1, 6) if told else 0.0
        return max(seconds, least)
