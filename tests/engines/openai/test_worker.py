"""What a worker hands over."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.engines.base import Completion
from echo_hf.engines.server_engine import Worker
from echo_hf.errors import EngineError

UNUSED: Any = None


def _worker(*finished: tuple[int, Completion | BaseException]) -> Worker:
    worker = Worker(UNUSED, UNUSED, UNUSED, len(finished))
    for each in finished:
        worker._finished.put(each)
    return worker


def test_all_that_is_finished_is_handed_over() -> None:
    """In the order in which it ended, and it is under way no longer."""
    done = [(4, Completion("red")), (2, Completion("blue"))]
    worker = _worker(*done)
    assert list(worker.finished()) == done
    assert len(worker) == 0


def test_an_error_comes_after_the_answers() -> None:
    """What was paid for is handed over first."""
    worker = _worker((0, EngineError("no key")), (1, Completion("red")))
    got = []
    with pytest.raises(EngineError, match="no key"):
        got.extend(worker.finished())
    assert got == [(1, Completion("red"))]
    assert len(worker) == 0
