"""What the tests of the platforms share: a server that replays, and no key of anybody's."""

from __future__ import annotations

from collections.abc import Iterator

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
def keys(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return KEYS
