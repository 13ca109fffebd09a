"""When a request is sent again, and after how long."""

from __future__ import annotations

import asyncio

import pytest

from echo_hf.engines.base import Completion
from echo_hf.engines.server_engine import retrying
from echo_hf.engines.server_errors import Verdict, failed

GOOD = Verdict(Completion("red"))
DOWN = Verdict(failed("down"), again=True)
FINAL = Verdict(failed("no such picture"))


def _run(
    *verdicts: Verdict, max_attempts: int = 10, backoff_s: float = 1.0
) -> tuple[Verdict, list[float]]:
    waits: list[float] = []
    rest = list(verdicts)

    async def attempt() -> Verdict:
        return rest.pop(0)

    async def noted(seconds: float) -> None:
        waits.append(seconds)

    policy = retrying(max_attempts, backoff_s).copy(sleep=noted)
    return asyncio.run(policy(attempt)), waits


def test_an_answer_is_not_asked_for_again() -> None:
    """Nor is a failure that would be the same."""
    assert _run(GOOD) == (GOOD, [])
    assert _run(FINAL) == (FINAL, [])


def test_the_last_verdict_counts() -> None:
    """After an answer, or after the last attempt."""
    verdict, waits = _run(DOWN, DOWN, GOOD)
    assert (verdict, len(waits)) == (GOOD, 2)
    verdict, waits = _run(*[DOWN] * 4, max_attempts=4)
    assert (verdict, len(waits)) == (DOWN, 3)
    assert _run(DOWN, max_attempts=1) == (DOWN, [])


def test_waits_grow_and_are_random() -> None:
    """Each is below a bound that doubles, up to a minute, and they differ."""
    runs = [_run(*[DOWN] * 9, GOOD, backoff_s=2.0)[1] for _ in range(50)]
    bounds = [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    for waits in runs:
        assert all(0 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    # Uniform draws: of 50, the largest is above half of its bound but for 1 in 2**50.
    assert all(max(run[at] for run in runs) > bound / 2 for at, bound in enumerate(bounds))
    assert len({run[0] for run in runs}) > 40


@pytest.mark.parametrize("wait_s", [0.0, 7.0])
def test_the_servers_own_wait_is_kept(wait_s: float) -> None:
    """Never shorter; a little longer at random, so that not all come back at once."""
    runs = [_run(Verdict(failed("busy"), True, wait_s), GOOD)[1] for _ in range(50)]
    assert all(wait_s <= wait <= wait_s + 1 for [wait] in runs)
    assert len({wait for [wait] in runs}) > 40
