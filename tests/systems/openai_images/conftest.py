"""Systems that ask the server of a test."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.systems.base import System
from echo_hf.systems.registry import make_system
from tests.engines.openai.loopback_server import LoopbackServer
from tests.systems.drawing_for_tests import KEY
from tests.systems.openai_images.images_for_tests import Make, config


@pytest.fixture
def make(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes systems that ask the server, with a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def of(further: dict[str, Any] | None = None, **parameters: Any) -> System:
        return make_system(config({"base_url": server.url, **parameters}, **(further or {})))

    return of
