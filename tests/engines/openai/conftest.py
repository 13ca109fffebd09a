"""A server and engines that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from echo_hf.engines.openai import OpenAIEngine
from tests.engines.openai.loopback_server import LoopbackServer, running

KEY = "sk-test-0123456789abcdefghij-ABCDEFGHIJ"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with running() as loopback:
        yield loopback


@pytest.fixture
def engine(server: LoopbackServer) -> Callable[..., OpenAIEngine]:

    def make(**options: object) -> OpenAIEngine:
        usual = {"model": "tiny", "base_url": server.url, "backoff_s": 0.001}
        return OpenAIEngine(**{**usual, **options})

    return make
