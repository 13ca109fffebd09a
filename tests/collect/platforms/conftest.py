"""What the tests of the platforms share: a server that replays, and no key of anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collect.platforms.replaying import ReplayServer

KEYS = {
    "X_BEARER_TOKEN": "x-key-of-nobody",
    "BLUESKY_HANDLE": "mira.example",
    "BLUESKY_APP_PASSWORD": "bluesky-key-of-nobody",
    "MASTODON_ACCESS_TOKEN": "mastodon-key-of-nobody",
}


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as running:
        yield running


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return KEYS
