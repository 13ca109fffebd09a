"""One task, tried until it has an outcome or no attempt is left."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
)
from tenacity.wait import wait_random_exponential

from echo_hf.engines.base import Usage
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn, Passing, System, Task
from echo_hf.systems.costs import added
from echo_hf.systems.pace import Pace
from echo_hf.systems.secrecy import without_secrets

LONGEST_WAIT_S = 300.0
LONGEST_TEXT = 1000
_BACKOFF = wait_random_exponential(multiplier=1, max=60)


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a task after all its attempts.

    Attributes:
        drawn: The last attempt's outcome, with tokens and price of all of them.
        attempts: How many there were.
        latency_s: Seconds that the last one took.
    """

    drawn: Drawn
    attempts: int
    latency_s: float


def tried(system: System, task: Task, pace: Pace, attempts: int) -> Tried:
    """Gives a task to a system, again when a failure may pass.

    Args:
        system: The system.
        task: The task.
        pace: When an attempt may begin; held for all tasks when the system asks to wait.
        attempts: Most attempts.

    Returns:
        What became of it. A failure that did not pass, or one that nobody foresaw, has the
        outcome `failed`.

    Raises:
        GenerationError: No task could succeed.
    """
    last = _Attempt(system, task, pace)
    retrying = Retrying(
        stop=stop_after_attempt(attempts),
        wait=last.wait_s,
        retry=retry_if_exception(last.may_pass),
        sleep=sleep_using_event(pace.stopped),
        reraise=True,
    )
    try:
        drawn = retrying(last)
    except Passing as passing:
        return last.ended(_not_passed(passing), 0.0)
    return last.ended(drawn, drawn.cost_usd)


class _Attempt:
    """The attempts of one task, counted and timed."""

    def __init__(self, system: System, task: Task, pace: Pace) -> None:
        self._system, self._task, self._pace = system, task, pace
        self.number, self.latency_s = 0, 0.0
        self._paid: list[Passing] = []

    def __call__(self) -> Drawn:
        if not self._pace.begin():
            raise Passing("it was stopped before it began")
        self.number += 1
        began = time.monotonic()
        try:
            return _drawn(self._system.draw(self._task))
        except Passing as passing:
            if passing.usage is not None or passing.cost_usd is not None:
                self._paid.append(passing)
            raise
        except (GenerationError, KeyboardInterrupt):
            raise
        # Whatever a library trips over is this task's failure alone. Some raise what is no
        # Exception: SystemExit, or the panic of a library in Rust.
        except BaseException as error:
            return failed_by(error)
        finally:
            self.latency_s = time.monotonic() - began

    def ended(self, drawn: Drawn, cost_usd: float | None) -> Tried:
        """The task after its last attempt.

        Args:
            drawn: What became of it.
            cost_usd: What that costs beside the attempts that failed, null when unknown.
        """
        if self._paid:
            told = (drawn.usage, *(one.usage for one in self._paid))
            used = [usage for usage in told if usage is not None]
            costs = [one.cost_usd for one in self._paid]
            drawn = replace(drawn, usage=sum(used, Usage()), cost_usd=added(cost_usd, *costs))
        return Tried(drawn, self.number, self.latency_s)

    def may_pass(self, error: BaseException) -> bool:
        """Whether another attempt may go better, and is wanted."""
        if not isinstance(error, Passing) or self._pace.stopped.is_set():
            return False
        return (error.wait_s or 0.0) <= LONGEST_WAIT_S

    def wait_s(self, state: RetryCallState) -> float:
        """How long to wait before the next attempt; all tasks wait when the system says so."""
        passing = state.outcome.exception() if state.outcome else None
        asked = passing.wait_s if isinstance(passing, Passing) else None
        if asked is None:
            return float(_BACKOFF(state))
        self._pace.hold(asked)
        return 0.0


def _drawn(given: object) -> Drawn:
    if not isinstance(given, Drawn):
        raise TypeError(f"the adapter gave {type(given).__name__}, expected Drawn")
    return given


def _not_passed(passing: Passing) -> Drawn:
    asks = f"; it asks to wait {passing.wait_s:.0f} s" if passing.wait_s else ""
    text = without_secrets(passing.text)[:LONGEST_TEXT] + asks
    return Drawn(Outcome.FAILED, stage=OutcomeStage.REQUEST, code=passing.code, text=text)


def failed_by(error: BaseException) -> Drawn:
    """What becomes of a task that something unforeseen happened to.

    Args:
        error: What was raised.

    Returns:
        A failure that is named by its type.
    """
    kind = type(error).__name__
    said = without_secrets(" ".join(str(error).split()))[:LONGEST_TEXT]
    return Drawn(Outcome.FAILED, stage=OutcomeStage.REQUEST, code=kind, text=said or kind)
