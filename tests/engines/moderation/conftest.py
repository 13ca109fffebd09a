"""A moderation server and an engine that asks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from echo_hf.engines.moderation import ModerationEngine
from tests.engines.moderation.moderations import moderation
from tests.engines.openai.conftest import (
    server,  # noqa: F401 - fixtures
)
from tests.engines.openai.loopback_server import LoopbackServer


@pytest.fixture
def engine(server: LoopbackServer) -> Callable[..., ModerationEngine]:  # noqa: F811
    """Makes engines that ask the server, which finds nothing wrong, and do not wait long."""
    server.behave = lambda _: moderation()

    def make(**options: object) -> ModerationEngine:
        return ModerationEngine(**{"base_url": server.url, "backoff_s": 0.001, **options})

    return make
