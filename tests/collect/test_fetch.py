"""Many images from a real server: nothing is asked twice, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Barrier, Event, Lock

import pytest

from echo_hf.collect.fetch import FetchStats, fetch_images
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Unfetched
from tests.collect.fetching import BLUE, NOISE, RED, digest_of, fetch, fetch_one, policy_for
from tests.collect.server_for_tests import ImageServer, answer
from tests.stages_for_tests import ROOT


@pytest.fixture
def server() -> Iterator[ImageServer]:
    """A server without any images yet."""
    with ImageServer() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """A store that does not exist yet."""
    return ImageStore(tmp_path / "run" / "pictures")


def test_images_are_fetched_as_the_bytes_they_are(server: ImageServer, store: ImageStore) -> None:
    """What the server has lies in the store, unchanged, under its digest."""
    urls = [server.gives("/red", RED), server.gives("/blue", BLUE)]
    results = fetch(server, store, *urls)
    assert {one.url: one.sha256 for one in results} == {
        urls[0]: digest_of(RED),
        urls[1]: digest_of(BLUE),
    }
    assert all(one.reason is None and one.attempts == 1 and not one.known for one in results)
    assert store.open(digest_of(RED)) == RED


def test_an_address_is_asked_for_once_however_often_and_however_spelt_it_is_given(
    server: ImageServer, store: ImageStore
) -> None:
    """Each spelling has its result, and the server one request."""
    url = server.gives("/red", RED)
    spellings = [url, url, f"{url}#top", url.replace("http:", "HTTP:")]
    results = fetch(server, store, *spellings)
    assert [one.url for one in results] == list(dict.fromkeys(spellings))
    assert {one.sha256 for one in results} == {digest_of(RED)}
    assert server.asked == {"/red": 1}


def test_what_is_settled_is_not_asked_again_and_trouble_is(
    server: ImageServer, store: ImageStore
) -> None:
    """Another run asks for what failed, not for what it has and not for what was gone."""
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
    """The ledger alone is no image."""
    url = server.gives("/red", RED)
    store.path(fetch_one(server, store, url).sha256 or "").unlink()
    assert not fetch_one(server, store, url).known
    assert store.open(digest_of(RED)) == RED
    assert server.asked == {"/red": 2}


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
    """What a run had reported before it was killed is not asked for again."""
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
    """Who takes one result and goes leaves no thread behind and no request to come."""

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
    """The server sees that many together, and never one more."""
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

    urls = [server.url(f"/{number}") for number in range(at_once * 3)]
    server.answers.update({f"/{number}": meet for number in range(len(urls))})
    results = fetch(server, store, *urls, concurrency=concurrency, per_host=per_host)
    assert {one.sha256 for one in results} == {digest_of(RED)}
    assert most == at_once


def test_progress_is_told_after_each_outcome(server: ImageServer, store: ImageStore) -> None:
    """Numbers of what is known, fetched and refused add up to all."""
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
    assert last[0].seconds > 0


def test_a_store_that_cannot_be_written_ends_the_run(
    server: ImageServer, store: ImageStore
) -> None:
    """It is no image's fault, so it is not put down as one."""
    store.root.parent.mkdir()
    store.root.write_text("in the way")
    with pytest.raises(OSError, match="pictures"):
        fetch_one(server, store, server.gives("/red", RED))


def test_no_addresses_make_no_run(store: ImageStore) -> None:
    """Nothing is asked and nothing comes."""
    assert list(fetch_images([], store)) == []
