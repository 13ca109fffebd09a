"""The one policy by which a request is sent again: the client's own is switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from echo_hf.engines.openai.faults import Verdict

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

LONGEST_BACKOFF_S = 60.0


def retrying(max_attempts: int, backoff_s: float) -> AsyncRetrying:
    """Sends again whatever may go better, after a wait.

    The wait is what the server asks for and a little more, so that not all come back at once, or
    else a random part of a time that doubles with each attempt.

    Args:
        max_attempts: How often a request is sent.
        backoff_s: Longest wait before the second attempt.

    Returns:
        A caller of functions that return a `Verdict`; it returns the last one.
    """
    from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt

    return AsyncRetrying(
        stop=stop_after_attempt(max_attempts),
        retry=retry_if_result(lambda verdict: verdict.again),
        wait=lambda state: _wait(state, backoff_s),
        retry_error_callback=_verdict,
    )


def _wait(state: RetryCallState, backoff_s: float) -> float:
    from tenacity import wait_random, wait_random_exponential

    asked = _verdict(state).wait_s
    if asked is not None:
        return asked + wait_random(0, backoff_s)(state)
    return wait_random_exponential(multiplier=backoff_s, max=LONGEST_BACKOFF_S)(state)


def _verdict(state: RetryCallState) -> Verdict:
    if state.outcome is None:
        raise RuntimeError("no attempt was made")
    verdict: Verdict = state.outcome.result()
    return verdict
