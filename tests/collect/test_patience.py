"""How long a crawl waits, by a clock of the test's own."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from echo_hf.collect.crawl import LongWaitError, Patience
from echo_hf.collect.platforms.base import Answer, Question, RateLimitedError
from tests.collect.platforms.simulated import Simulated

ASKED = Question("posts", ("p0",))


class Scripted(Simulated):
    """A platform that does one thing after the other."""

    def __init__(self, *script: Exception | Answer) -> None:
        super().__init__()
        self.script: Iterator[Exception | Answer] = iter(script)

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        """Does the next thing."""
        del question, cursor
        step = next(self.script)
        if isinstance(step, Exception):
            raise step
        return step


def asked(*script: Exception | Answer, **options: float) -> tuple[list[float], list[float]]:
    """How long it slept, and of which waits it told."""
    slept: list[float] = []
    told: list[float] = []
    patience = Patience(backoff_s=1.0, sleep=slept.append, **options)  # type: ignore[arg-type]
    platform = Scripted(*script)
    assert patience.until_done(lambda: platform.ask(ASKED), told.append) == Answer("{}")
    return slept, told


def test_it_waits_as_long_as_it_is_told() -> None:
    """And says so before; told again at once, it waits longer each time than it is told."""
    slept, told = asked(
        RateLimitedError(7.5), RateLimitedError(0), RateLimitedError(-3), Answer("{}")
    )

    assert slept == told == [7.5, 1.0, 2.0]


def test_it_tries_again_what_may_pass_and_tells_nobody() -> None:
    """Each wait is a random part of a time that doubles."""
    slept, told = asked(OSError("reset"), OSError("reset"), OSError("reset"), Answer("{}"))

    assert told == []
    assert len(slept) == 3
    assert all(0 <= wait <= longest for wait, longest in zip(slept, (1, 2, 4), strict=True))


def test_it_gives_up_after_so_many_attempts() -> None:
    """With the trouble itself."""
    with pytest.raises(OSError, match="third"):
        asked(OSError("first"), OSError("second"), OSError("third"), attempts=3)


@pytest.mark.parametrize("seconds", [7201.0, math.inf, math.nan])
def test_it_does_not_wait_for_ever(seconds: float) -> None:
    """More than two hours is for the next run."""
    with pytest.raises(LongWaitError) as caught:
        asked(RateLimitedError(seconds))

    assert str(caught.value.seconds) == str(seconds)


def test_a_limit_that_does_not_end_is_for_the_next_run() -> None:
    """A quota of a month that is told as one of two seconds, again and again."""
    with pytest.raises(LongWaitError):
        asked(*[RateLimitedError(2.0)] * 1000, longest_wait_s=100.0)


class Guarded(Simulated):
    """A platform that lets nobody in before the script is at its end."""

    def __init__(self, *script: Exception) -> None:
        super().__init__()
        self.script = list(script)
        self.left = 0

    def __enter__(self) -> Guarded:
        if self.script:
            raise self.script.pop(0)
        return self

    def __exit__(self, *_: object) -> None:
        self.left += 1


def test_signing_in_is_as_patient_as_asking() -> None:
    """Limits are waited for, what may pass is tried again, and the connection is let go of."""
    told: list[float] = []
    platform = Guarded(RateLimitedError(7.0), OSError("reset"))
    with Patience(backoff_s=0.001, sleep=lambda _: None).connected(platform, told.append) as given:
        assert (given, platform.left) == (platform, 0)

    assert (told, platform.left) == ([7.0], 1)
