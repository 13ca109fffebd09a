"""A web server that gives recorded answers and remembers what it was asked; nobody's keys."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.collect.loopback import Loopback, answer


@dataclass(frozen=True)
class Reply:
    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


NOTHING = Reply({"error": "NotFound", "message": "nothing is recorded"}, 404)


@dataclass(frozen=True)
class Request:
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


class ReplayServer(Loopback):
    def __init__(self) -> None:
        self.replies: dict[str, list[Reply]] = defaultdict(list)
        self.asked: list[Request] = []
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def gives(self, path: str, *replies: Any) -> None:
        self.replies[path] += [one if isinstance(one, Reply) else Reply(one) for one in replies]

    def queries(self, path: str) -> list[dict[str, list[str]]]:
        return [request.query for request in self.asked if request.path == path]

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Request(parts.path, parse_qs(parts.query), headers))
        left = self.replies.get(parts.path, [NOTHING])
        reply = left.pop(0) if len(left) > 1 else left[0]
        kind = {"Content-Type": "application/json; charset=utf-8"}
        answer(request, reply.status, reply.data, {**kind, **reply.headers})


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
