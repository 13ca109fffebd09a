"""The fixture that serves the simulated platform for the time of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.collect.platforms.simulated import ADDRESS, Service, World, registered

Serve = Callable[..., Service]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as running:
        monkeypatch.syspath_prepend(registered(tmp_path / "plugin"))

        def served(world: World, limit_each: int = 0) -> Service:
            service = running.enter_context(Service(world, limit_each))
            monkeypatch.setenv(ADDRESS, service.address)
            return service

        yield served
