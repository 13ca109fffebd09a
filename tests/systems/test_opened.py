"""Something that is made at its first use."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from echo_hf.systems.hosted import Opened


def test_it_is_made_once_for_all_threads() -> None:
    """Those that come second wait for the one that makes it."""
    events: list[str] = []
    together = threading.Barrier(4, timeout=20)

    @contextmanager
    def make() -> Iterator[object]:
        events.append("made")
        time.sleep(0.02)  # long enough for the others to come
        yield object()
        events.append("closed")

    opened = Opened(make)

    def get(_: int) -> object:
        together.wait()
        return opened.get()

    with ThreadPoolExecutor(4) as pool:
        things = list(pool.map(get, range(4)))
    assert len(set(map(id, things))) == 1
    assert events == ["made"]
    opened.close()
    opened.close()
    assert events == ["made", "closed"]
    opened.get()
    assert events == ["made", "closed", "made"]


def test_closing_what_was_never_made_does_nothing() -> None:
    """Nothing is made to be closed."""

    @contextmanager
    def make() -> Iterator[object]:
        pytest.fail("it was made")
        yield

    Opened(make).close()


def test_a_failure_to_make_it_is_tried_again() -> None:
    """Such as for a key that was missing."""
    tries: list[int] = []

    @contextmanager
    def make() -> Iterator[str]:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("not yet")
        yield "thing"

    opened = Opened(make)
    with pytest.raises(RuntimeError, match="not yet"):
        opened.get()
    assert opened.get() == "thing"
