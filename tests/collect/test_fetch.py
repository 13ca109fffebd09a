"""Many images from a real server: nothing is asked twice, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Barrier, Event, Lock

import pytest

from echo_hf.collect.fetch import FetchLedger, FetchResult, FetchStats, fetch_images
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Unfetched
from tests.collect.fetching import (
    BLUE,
    NOISE,
    RED,
    digest_of,
    fetch,
    fetch_one,
    policy_for,
    send_without_length,
)
from tests.collect.loopback import answer
from tests.collect.server_for_tests import ImageServer
from tests.stages_for_tests import ROOT


def test_an_address_is_asked_for_once_however_often_and_however_spelt_it_is_given(
    server: ImageServer, store: ImageStore
) -> None:
    url = server.gives("/red", RED)
    spellings = [url, url, f"{url}#top", url.replace("http:", "HTTP:")]
    results = fetch(server, store, *spellings)
    assert [one.url for one in results] == list(dict.fromkeys(spellings))
    assert {one.sha256 for one in results} == {digest_of(RED)}
    assert server.asked == {"/red": 1}


def test_what_is_settled_is_not_asked_again_and_trouble_is(
    server: ImageServer, store: ImageStore
) -> None:
    red, gone = server.gives("/red", RED), server.url("/gone")
    failing = server.says("/failing", 500, 500, 500, 403, then=BLUE)
    for run, (reason, asked) in enumerate(
        [(Unfetched.SERVER_ERROR, 3), (Unfetched.FORBIDDEN, 4), (None, 5), (None, 5)]
    ):
        results = {one.url: one for one in fetch(server, store, red, gone, failing)}
        assert server.asked == {"/red": 1, "/gone": 1, "/failing": asked}
        assert results[failing].reason is reason
        assert results[red].sha256 == digest_of(RED)
        assert results[gone].reason is Unfetched.GONE
        assert results[red].known == results[gone].known == (run > 0)


def test_an_image_that_left_the_store_is_fetched_again(
    server: ImageServer, store: ImageStore
) -> None:
    url = server.gives("/red", RED)
    store.path(fetch_one(server, store, url).sha256 or "").unlink()
    assert not fetch_one(server, store, url).known
    assert (store.open(digest_of(RED)), server.asked) == (RED, {"/red": 2})


FETCHER = """
import sys
from pathlib import Path
from echo_hf.collect.fetch import fetch_images
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.store import ImageStore
store, port, urls = ImageStore(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3:]
policy = FetchPolicy(ports={port}, allow_addresses=["127.0.0.1/32"], concurrency=1)
for result in fetch_images(urls, store, policy=policy):
    print(result.sha256, flush=True)
"""


def test_a_killed_run_is_taken_up_where_it_ended(server: ImageServer, store: ImageStore) -> None:
    under_way, free = Event(), Event()

    def hang_first(request: BaseHTTPRequestHandler) -> None:
        under_way.set()
        free.wait(30)
        answer(request, 200, NOISE)

    urls = [server.gives("/red", RED), server.gives("/blue", BLUE), server.url("/noise")]
    server.answers["/noise"] = hang_first
    command = [sys.executable, "-c", FETCHER, str(store.root), str(server.port), *urls]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as fetcher:
        assert fetcher.stdout is not None
        printed = [fetcher.stdout.readline().strip() for _ in range(2)]
        assert under_way.wait(30)
        os.kill(fetcher.pid, signal.SIGKILL)
    assert printed == [digest_of(RED), digest_of(BLUE)]
    free.set()
    results = fetch(server, store, *urls)
    assert [one.known for one in results] == [True, True, False]
    assert [one.sha256 for one in results] == [digest_of(RED), digest_of(BLUE), digest_of(NOISE)]
    assert server.asked == {"/red": 1, "/blue": 1, "/noise": 2}


def test_leaving_early_stops_the_rest(server: ImageServer, store: ImageStore) -> None:
    def hang(request: BaseHTTPRequestHandler) -> None:
        server.closing.wait(30)

    server.answers["/blue"] = hang
    urls = [server.gives("/red", RED), server.url("/blue"), server.gives("/noise", NOISE)]
    results = fetch_images(urls, store, policy=policy_for(server, concurrency=1))
    assert next(results).sha256 == digest_of(RED)
    started = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 5
    assert server.asked["/noise"] == 0


@pytest.mark.parametrize(("concurrency", "per_host", "at_once"), [(3, 8, 3), (8, 2, 2)])
def test_as_many_as_allowed_are_under_way_and_no_more(
    server: ImageServer, store: ImageStore, concurrency: int, per_host: int, at_once: int
) -> None:
    together, lock, active, most = Barrier(at_once), Lock(), 0, 0

    def meet(request: BaseHTTPRequestHandler) -> None:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        together.wait(10)
        with lock:
            active -= 1
        answer(request, 200, RED)

    paths = [f"/{number}" for number in range(at_once * 3)]
    server.answers.update(dict.fromkeys(paths, meet))
    urls = map(server.url, paths)
    results = fetch(server, store, *urls, concurrency=concurrency, per_host=per_host)
    assert {one.sha256 for one in results} == {digest_of(RED)}
    assert most == at_once


def test_progress_is_told_after_each_outcome(server: ImageServer, store: ImageStore) -> None:
    urls = [server.gives("/red", RED), server.url("/gone"), "file:///etc/passwd"]
    fetch(server, store, urls[0])
    seen: list[tuple[int, int]] = []
    last: list[FetchStats] = []

    def progress(stats: FetchStats) -> None:
        seen.append((stats.done, stats.total))
        last[:] = [stats]

    list(fetch_images(urls, store, policy=policy_for(server), progress=progress))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert (last[0].known, last[0].fetched) == (1, 0)
    assert last[0].reasons == {Unfetched.NOT_ALLOWED: 1, Unfetched.GONE: 1}


def test_a_server_is_left_alone_as_long_as_it_asks_and_too_long_a_wait_is_left(
    server: ImageServer, store: ImageStore
) -> None:
    urls = [server.says("/a", 429, then=RED, Retry_After="1"), server.gives("/b", BLUE)]
    started = time.monotonic()
    results = fetch(server, store, *urls, concurrency=1)
    assert time.monotonic() - started >= 1
    assert [one.sha256 for one in results] == [digest_of(RED), digest_of(BLUE)]
    urls = [server.says("/c", 429, then=RED, Retry_After="3600"), server.gives("/d", BLUE)]
    results = fetch(server, store, *urls, concurrency=1)
    assert {one.reason for one in results} == {Unfetched.RATE_LIMITED}
    assert [one.attempts for one in results] == [1, 0]
    again = {one.sha256 for one in fetch(server, store, *urls)}
    assert again == {digest_of(RED), digest_of(BLUE)}


def test_a_silent_server_is_given_up(server: ImageServer, store: ImageStore) -> None:
    def keep_silent(request: BaseHTTPRequestHandler) -> None:
        server.closing.wait(30)

    server.answers["/a"] = keep_silent
    result = fetch_one(server, store, server.url("/a"), read_timeout_s=0.1, max_attempts=2)
    assert (result.reason, result.attempts) == (Unfetched.TIMEOUT, 2)


def test_nobody_there_is_unreachable(server: ImageServer, store: ImageStore) -> None:
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


def test_a_ledger_takes_what_was_fetched_before_what_failed_and_the_later_of_two(
    tmp_path: Path,
) -> None:
    had, late, lost = "https://a.example/had", "https://a.example/late", "https://a.example/lost"
    times = iter(range(9))
    ledgers = [FetchLedger(tmp_path / name / "fetched.sqlite") for name in ("here", "there")]
    here, there = ledgers
    for ledger, url, digest in (
        (here, had, "1"), (there, had, None), (here, late, None), (there, late, None),
        (here, lost, None), (there, lost, "2"),
    ):  # fmt: skip
        reason = None if digest else Unfetched.TIMEOUT
        ledger.record(FetchResult(url, digest, reason, ledger.path.parent.name, 1))
        ledger.execute("update fetches set asked_at = ? where url = ?", str(next(times)), url)
    there.close()

    for _ in range(2):
        assert here.take(there.path, [had, late, lost]) == ["2"]
        found = here.known([had, late, lost])
        assert [found[url].sha256 for url in (had, late, lost)] == ["1", None, "2"]
        assert found[late].detail == "there"
    here.close()
