"""A server that draws, and the environment of those who ask it."""

from __future__ import annotations

import pytest

from tests.engines.conftest import server as server

# What stands for other people's package is no part of the tests.
collect_ignore = ["bagel_checkout"]
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *(proxy.lower() for proxy in PROXIES), *KEYS):
        monkeypatch.delenv(name, raising=False)
