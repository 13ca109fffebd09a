"""A task is tried until it has an outcome, as often as is allowed."""

from __future__ import annotations

from dataclasses import replace
from threading import Event, Thread

import pytest

from echo_hf._infra.rate_limit import RateLimiter
from echo_hf.engines.base import Usage
from echo_hf.errors import EngineError, GenerationError
from echo_hf.reasons import Outcome
from echo_hf.systems.base import GenerationResult, Task, TransientError
from echo_hf.systems.runner import LONGEST_TEXT, AttemptedTask, tried
from tests.systems.runs_for_tests import Acting, drawn_for, task

NOW = 0.0  # asks to wait no longer
PATIENCE_S = 30


class Hurried(Event):
    """Never set, and waited for by nobody."""

    def wait(self, timeout: float | None = None) -> bool:
        """Remembers nothing of how long it was to be waited for."""
        assert timeout is None or 0 <= timeout <= 60
        return False


def failing(times: int, wait_s: float = NOW) -> Acting:
    """A system that is busy so often before it draws."""
    left = iter(range(times))

    def act(one: Task) -> GenerationResult:
        if next(left, None) is not None:
            raise TransientError("busy", "429", wait_s)
        return drawn_for(one)

    return Acting(act)


@pytest.mark.parametrize("attempts", [1, 2, 5])
@pytest.mark.parametrize("failures", [0, 1, 4, 9])
def test_attempts_are_bounded(attempts: int, failures: int) -> None:
    """It draws when it was busy less often than is tried, and has failed otherwise."""
    system = failing(failures)
    one = tried(system, task(0), RateLimiter(), attempts, Hurried())
    assert one.attempts == len(system.asked) == min(attempts, failures + 1)
    if failures < attempts:
        assert one.drawn == drawn_for(task(0))
    else:
        drawn = one.drawn
        assert (drawn.outcome, drawn.stage, drawn.code) == ("failed", "request", "429")
        assert drawn.text == "busy"


@pytest.mark.parametrize("outcome", Outcome)
def test_an_outcome_is_not_tried_again(outcome: Outcome) -> None:
    """Only what may pass is: a refusal is an answer, and so is a failure that will not pass."""
    system = Acting(lambda _: GenerationResult(outcome))
    assert tried(system, task(0), RateLimiter(), 5, Hurried()).attempts == len(system.asked) == 1


def test_what_nobody_foresaw_is_tried_once() -> None:
    """Its type is the code, and its words are one line of bounded length, without a key."""

    def act(_: Task) -> GenerationResult:
        raise ValueError("at https://me:tulip@host/?key=abc\n" + "x" * 5000)

    system = Acting(act)
    one = tried(system, task(0), RateLimiter(), 5, Hurried())
    assert len(system.asked) == 1
    assert (one.drawn.outcome, one.drawn.code) == ("failed", "ValueError")
    text = one.drawn.text or ""
    assert len(text) == LONGEST_TEXT
    assert "\n" not in text
    assert ("tulip" in text, "abc" in text) == (False, False)


def test_an_exception_without_words_is_named() -> None:
    """So that the row says something."""

    def act(_: Task) -> GenerationResult:
        raise EngineError

    assert tried(Acting(act), task(0), RateLimiter(), 5, Hurried()).drawn.text == "EngineError"


def test_a_system_that_cannot_go_on_is_not_tried_again() -> None:
    """No task could succeed: that is no outcome of this one."""

    def act(_: Task) -> GenerationResult:
        raise GenerationError("no key")

    system = Acting(act)
    with pytest.raises(GenerationError, match="no key"):
        tried(system, task(0), RateLimiter(), 5, Hurried())
    assert len(system.asked) == 1


@pytest.mark.parametrize("seconds", [301.0, 1e30, float("inf"), float("nan")])
def test_nobody_waits_for_hours(seconds: float) -> None:
    """A wait that is too long is a failure, which says how long it was; others are not held."""
    system, limiter = failing(9, seconds), RateLimiter()
    one = tried(system, task(0), limiter, 5, Hurried())
    assert len(system.asked) == 1
    assert one.drawn.outcome == "failed"
    assert f"asks to wait {seconds:.0f} s" in (one.drawn.text or "")
    assert limiter.left_s(limiter.reserve()) == 0


def test_a_wait_that_is_asked_for_holds_the_others() -> None:
    """Until it is over, nobody begins; stopped meanwhile, the task has failed after one attempt."""
    limiter, stopped, held, ends = RateLimiter(), Event(), Event(), list[AttemptedTask]()
    system = failing(1, wait_s=250)
    limiter.hold, hold = lambda seconds: (hold(seconds), held.set()), limiter.hold  # type: ignore
    first = Thread(target=lambda: ends.append(tried(system, task(0), limiter, 5, stopped)))
    first.start()
    assert held.wait(PATIENCE_S)
    assert 200 < limiter.left_s(limiter.reserve()) <= 250
    stopped.set()
    first.join(PATIENCE_S)
    assert (ends[0].drawn.outcome, ends[0].attempts) == ("failed", 1)
    assert system.asked == ["s0"]


@pytest.mark.parametrize(
    ("paid", "last", "usage", "cost_usd"),
    [
        ([(10, 0.5), (5, 0.25)], (1, 0.125), 16, 0.875),
        ([(10, 0.5), (None, None)], (1, 0.125), 11, 0.625),
        ([(10, None)], (1, 0.125), 11, None),
        ([(None, 0.5)], (None, None), 0, None),
        ([(10, 0.5), (5, 0.25)], None, 15, 0.75),
        ([(None, None)], None, None, None),
        ([(None, None)], (1, 0.125), 1, 0.125),
    ],
)
def test_what_all_attempts_cost_adds_up(
    paid: list[tuple[int | None, float | None]],
    last: tuple[int | None, float | None] | None,
    usage: int | None,
    cost_usd: float | None,
) -> None:
    """Of those that failed as well, whether or not the last one drew; one unknown price is told."""
    left = iter(paid)

    def act(one: Task) -> GenerationResult:
        failure = next(left, None)
        if failure is not None:
            tokens, cost = failure
            raise TransientError("busy", None, NOW, None if tokens is None else Usage(tokens), cost)
        assert last is not None
        tokens, cost = last
        given = drawn_for(one)
        return replace(given, usage=None if tokens is None else Usage(tokens), cost_usd=cost)

    attempts = len(paid) + (last is not None)
    drawn = tried(Acting(act), task(0), RateLimiter(), attempts, Hurried()).drawn
    assert drawn.outcome == ("failed" if last is None else "ok")
    assert drawn.usage == (None if usage is None else Usage(usage))
    assert drawn.cost_usd == cost_usd


def test_only_the_last_attempt_is_timed() -> None:
    """The time of an attempt is not negative, and there is none where nothing was begun."""
    system, stopped = Acting(), Event()
    stopped.set()
    none = tried(system, task(0), RateLimiter(), 5, stopped)
    assert (none.attempts, none.latency_s, none.drawn.outcome) == (0, 0.0, "failed")
    assert system.asked == []
    assert tried(failing(1), task(0), RateLimiter(), 5, Hurried()).latency_s >= 0
