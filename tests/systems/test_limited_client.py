"""Clients that read an answer only so long and so far."""

from __future__ import annotations

import gzip

import pytest

from echo_hf.systems.hosted import http_library, limited
from tests.engines.openai.loopback_server import Answer, LoopbackServer

pytest.importorskip("openai", reason="openai, of the extra `openai`, brings an HTTP library")
pytestmark = pytest.mark.extras


def test_an_answer_is_handed_on_whole(server: LoopbackServer) -> None:
    """Decoded, with its status and its own headers, and twice the same one."""
    packed = gzip.compress(b'{"a": "\xc3\xbc"}')
    headers = {"Content-Encoding": "gzip", "X-Request-Id": "r-1"}
    server.behave = lambda _: Answer(packed, 418, headers)
    with limited(http_library().Client, 20.0)() as client:
        for _ in range(2):
            answer = client.get(server.url)
            assert (answer.status_code, answer.json()) == (418, {"a": "ü"})
            assert answer.headers["x-request-id"] == "r-1"
            assert answer.headers["content-type"] == "application/json"
            assert str(answer.request.url) == server.url
