"""When a request is sent again, and after how long."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.retry import RequestError, RetryPolicy, parse_retry_after

BUSY = RequestError("busy")


def run(policy: RetryPolicy, *errors: Exception) -> tuple[Exception | None, int, list[float]]:
    left, waits, attempts = list(errors), list[float](), 0

    def attempt() -> None:
        nonlocal attempts
        attempts += 1
        if left:
            raise left.pop(0)

    try:
        policy.call(attempt, waits.append)
    except Exception as error:
        return error, attempts, waits
    return None, attempts, waits


def test_it_is_tried_until_it_succeeds_or_no_attempt_is_left() -> None:
    policy = RetryPolicy(3, also=(OSError,))
    final, other = RequestError("no", again=False), ValueError("no")
    assert run(policy)[:2] == (None, 1)
    assert run(policy, BUSY, OSError("reset"))[:2] == (None, 3)
    assert run(policy, *[BUSY] * 9)[:2] == (BUSY, 3)
    assert run(policy, final)[:2] == (final, 1)
    assert run(policy, other)[:2] == (other, 1)


def test_waits_grow_and_are_random() -> None:
    runs = [run(RetryPolicy(10, 2.0), *[BUSY] * 9)[2] for _ in range(50)]
    bounds = [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    for waits in runs:
        assert all(0 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    # Uniform draws: of 50, the largest is above half of its bound but for 1 in 2**50.
    assert all(max(waits[at] for waits in runs) > bound / 2 for at, bound in enumerate(bounds))
    assert len({waits[0] for waits in runs}) > 40


def test_the_wait_that_is_asked_for_is_kept() -> None:
    """A little longer at random, so that not all come back at once; none that is too long."""
    runs = [run(RetryPolicy(2), RequestError("busy", wait_s=300.0))[2] for _ in range(50)]
    assert all(300.0 <= wait <= 301.0 for [wait] in runs)
    assert len({wait for [wait] in runs}) > 40
    for wait_s in (301.0, float("inf"), float("nan")):
        assert run(RetryPolicy(5), RequestError("busy", wait_s=wait_s))[1:] == (1, [])


def test_a_task_is_retried_as_a_thread_is(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, left = list[float](), [BUSY, RequestError("busy", wait_s=5.0)]

    async def noted(seconds: float) -> None:
        waits.append(seconds)

    async def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    monkeypatch.setattr(anyio, "sleep", noted)
    assert asyncio.run(RetryPolicy(3).call_async(attempt)) == "done"
    assert 0 <= waits[0] <= 1
    assert 5 <= waits[1] <= 6


# Wed, 21 Oct 2015 07:28:00 GMT is the example of RFC 9110; 1445412480 s after 1970.
DATE, SECONDS = "Wed, 21 Oct 2015 07:28:00 GMT", 1445412480


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2015 07:27:15 GMT"}, 45.0),
        ({"retry-after": DATE}, 0.0),
    ],
    ids=str,
)
def test_seconds_and_dates_are_read(headers: dict[str, str], expected: float | None) -> None:
    assert parse_retry_after(headers) == expected


def test_a_date_counts_from_now_where_the_server_has_no_clock() -> None:
    assert parse_retry_after({"retry-after": DATE}, clock_time=SECONDS - 60) == 60.0


@given(st.text())
def test_no_header_breaks_it(text: str) -> None:
    wait = parse_retry_after({"retry-after": text, "date": text})
    assert wait is None or wait >= 0
