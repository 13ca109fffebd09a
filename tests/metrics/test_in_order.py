"""Work in threads: in order, a few items ahead, and without threads left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from echo_hf.errors import ScoreError
from echo_hf.metrics.image_features import AHEAD, in_order


@pytest.mark.parametrize("threads", [1, 2, 7, None])
def test_results_come_in_the_order_of_the_items(threads: int | None) -> None:
    """However long each of them takes."""

    def slow_when_even(number: int) -> int:
        time.sleep(0.002 if number % 2 == 0 else 0)
        return -number

    assert list(in_order(slow_when_even, range(40), threads=threads)) == [-n for n in range(40)]


def test_only_a_few_items_are_taken_ahead() -> None:
    """What is held at once depends on the threads, not on the number of items."""
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = in_order(abs, items(), threads=3)
    for number in range(20):
        assert next(results) == number
        assert taken <= number + AHEAD * 3
    results.close()  # type: ignore[attr-defined]


def test_two_threads_work_at_the_same_time() -> None:
    """Each of two pieces of work waits for the other, which one thread could never do."""
    both = threading.Barrier(2, timeout=30)
    assert sorted(in_order(lambda _: both.wait(), [0, 0], threads=2)) == [0, 1]


def test_an_error_comes_where_its_result_would() -> None:
    """What was done before it is given first, and no thread is left."""
    before = threading.active_count()
    results = in_order(lambda number: 1 // number, [1, -1, 0, 1], threads=2)
    assert [next(results), next(results)] == [1, -1]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_threads_are_a_number(threads: object) -> None:
    """Anything else is refused before an item is taken."""
    with pytest.raises(ScoreError, match=r"threads is .*: expected a whole number from 1, or null"):
        in_order(abs, [1], threads=threads)  # type: ignore[arg-type]
