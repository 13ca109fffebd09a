"""What is asked for again, when, and what is given up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from echo_hf.images.store import ImageStore
from echo_hf.reasons import Unfetched
from tests.collect.fetching import (
    BLUE,
    NOISE,
    RED,
    digest_of,
    fetch,
    fetch_one,
    send_without_length,
)
from tests.collect.server_for_tests import ImageServer, answer


@pytest.fixture
def server() -> Iterator[ImageServer]:
    """A server without any images yet."""
    with ImageServer() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """A store that does not exist yet."""
    return ImageStore(tmp_path / "run" / "pictures")


def test_a_failure_that_passes_is_got_over(server: ImageServer, store: ImageStore) -> None:
    """500 and 429, then the image."""
    result = fetch_one(server, store, server.says("/a", 500, 429, then=RED))
    assert (result.sha256, result.attempts) == (digest_of(RED), 3)


def test_a_server_is_left_alone_as_long_as_it_asks(server: ImageServer, store: ImageStore) -> None:
    """With Retry-After the next request, of another image too, comes no earlier."""
    urls = [server.says("/a", 429, then=RED, Retry_After="1"), server.gives("/b", BLUE)]
    started = time.monotonic()
    results = fetch(server, store, *urls, concurrency=1)
    assert time.monotonic() - started >= 1
    assert [one.sha256 for one in results] == [digest_of(RED), digest_of(BLUE)]


def test_a_server_that_asks_for_too_long_a_wait_is_left_for_another_run(
    server: ImageServer, store: ImageStore
) -> None:
    """Neither the image is waited for, nor are others of that host asked for."""
    urls = [server.says("/a", 429, then=RED, Retry_After="3600"), server.gives("/b", BLUE)]
    first, second = fetch(server, store, *urls, concurrency=1)
    assert (first.reason, first.attempts) == (Unfetched.RATE_LIMITED, 1)
    assert (second.reason, second.attempts) == (Unfetched.RATE_LIMITED, 0)
    assert server.asked == {"/a": 1}
    assert {one.sha256 for one in fetch(server, store, *urls)} == {digest_of(RED), digest_of(BLUE)}


def test_a_silent_server_is_given_up(server: ImageServer, store: ImageStore) -> None:
    """Silence longer than allowed ends an attempt, and the next one is made."""

    def keep_silent(request: BaseHTTPRequestHandler) -> None:
        server.closing.wait(30)

    server.answers["/a"] = keep_silent
    started = time.monotonic()
    result = fetch_one(server, store, server.url("/a"), read_timeout_s=0.1, max_attempts=2)
    assert (result.reason, result.attempts) == (Unfetched.TIMEOUT, 2)
    assert time.monotonic() - started < 5


def test_nobody_there_is_unreachable(server: ImageServer, store: ImageStore) -> None:
    """A port where nobody listens, and a name that does not exist."""
    with ImageServer() as other:
        port = other.port
    policy = {"ports": {port, 80}, "max_attempts": 2}
    urls = [f"http://127.0.0.1:{port}/a", "http://nobody.invalid/a"]
    results = {one.url: one for one in fetch(server, store, *urls, **policy)}
    assert {one.reason for one in results.values()} == {Unfetched.UNREACHABLE}
    assert results[urls[0]].attempts == 2


@pytest.mark.parametrize("announced", [True, False], ids=["with a length", "without"])
def test_a_body_that_is_cut_is_asked_for_again(
    server: ImageServer, store: ImageStore, announced: bool
) -> None:
    """A connection that ends early, whether or not the server had said how much would come."""

    def cut(request: BaseHTTPRequestHandler) -> None:
        if server.asked["/a"] > 1:
            answer(request, 200, NOISE)
            return
        if announced:
            request.send_response(200)
            request.send_header("Content-Length", str(len(NOISE)))
            request.end_headers()
        else:
            send_without_length(request)
        request.wfile.write(NOISE[: len(NOISE) // 2])
        request.close_connection = True

    server.answers["/a"] = cut
    result = fetch_one(server, store, server.url("/a"))
    assert (result.sha256, result.attempts) == (digest_of(NOISE), 2)


def test_a_body_that_is_always_cut_is_said(server: ImageServer, store: ImageStore) -> None:
    """Half an image is never kept."""

    def cut(request: BaseHTTPRequestHandler) -> None:
        send_without_length(request)
        request.wfile.write(NOISE[: len(NOISE) // 2])

    server.answers["/a"] = cut
    result = fetch_one(server, store, server.url("/a"))
    assert (result.reason, result.attempts) == (Unfetched.UNDECODABLE, 3)
    assert result.detail.startswith("truncated: ")
    assert not store.root.exists()
