"""Images from a real server: where a request may go, what may come back, nothing asked twice."""

from __future__ import annotations

import gzip
import os
import signal
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from threading import Barrier, Event, Lock
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.collect.fetch import (
    FetchLedger,
    FetchResult,
    FetchStats,
    IpAddress,
    Unfetched,
    fetch_images,
    is_public,
)
from echo_hf.images.store import ImageStore
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
from tests.collect.loopback import ImageServer, answer
from tests.images_for_tests import encoded, png
from tests.stages_for_tests import ROOT


def fetched(
    server: ImageServer, store: ImageStore, urls: Sequence[str], *answers: str, **limits: Any
) -> list[FetchResult]:
    """What comes of addresses whose names lead to these, the last ones again and again."""
    left = list(answers)

    async def look_up(host: str, port: int) -> Sequence[IpAddress]:
        some = left.pop(0) if len(left) > 1 else left[0]
        return [ip_address(one) for one in some.split()]

    policy = policy_for(server, concurrency=1, **limits)
    return list(fetch_images(urls, store, policy=policy, resolve=look_up))


def test_a_request_says_who_asks_and_nothing_more(server: ImageServer, store: ImageStore) -> None:
    server.gives("/red", RED)
    fetch_one(server, store, server.leads("/", "/red", **{"Set-Cookie": "id=7; Path=/"}))
    assert [set(one) for one in server.headers] == [
        {"host", "accept", "accept-encoding", "user-agent"}
    ] * 2
    assert server.headers[1]["user-agent"].startswith("echo-hf/")
    assert server.headers[1]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("statuses", "reason", "attempts"),
    [
        ([404, 410], Unfetched.GONE, 1),
        ([401, 403, 451], Unfetched.FORBIDDEN, 1),
        ([408], Unfetched.TIMEOUT, 3),
        ([429], Unfetched.RATE_LIMITED, 3),
        ([503], Unfetched.SERVER_ERROR, 3),
        ([302, 206], Unfetched.SERVER_ERROR, 1),
    ],
)
def test_each_status_has_its_reason(
    server: ImageServer, store: ImageStore, statuses: list[int], reason: Unfetched, attempts: int
) -> None:
    for status in statuses:
        path = f"/{status}"
        result = fetch_one(server, store, server.says(path, *[status] * 9))
        assert (result.reason, result.attempts, result.sha256) == (reason, attempts, None)
        assert (result.detail, server.asked[path]) == (f"status {status}", attempts)


def test_redirects_are_followed_and_have_an_end(server: ImageServer, store: ImageStore) -> None:
    server.gives("/red", RED)
    for status in (301, 302, 303, 307, 308):
        server.leads("/second", server.url("/red"), status)
        first = server.leads(f"/{status}", "second", status)
        assert fetch_one(server, store, first).sha256 == digest_of(RED)
    server.asked.clear()
    server.leads("/b", "/a")
    assert fetch_one(server, store, server.leads("/a", "/b")).reason is Unfetched.TOO_MANY_REDIRECTS
    assert server.asked == {"/a": 1, "/b": 1}
    for number in range(9):
        server.leads(f"/{number}", f"/{number + 1}")
    result = fetch_one(server, store, server.url("/0"), max_redirects=2)
    assert result.reason is Unfetched.TOO_MANY_REDIRECTS
    assert server.asked.total() == 2 + 3


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("http://169.254.169.254:{port}/latest/meta-data/", Unfetched.PRIVATE_ADDRESS),
        ("http://127.0.0.2:{port}/", Unfetched.PRIVATE_ADDRESS),
        ("http://[::ffff:127.0.0.1]:{port}/red", Unfetched.PRIVATE_ADDRESS),
        ("http://0:{port}/red", Unfetched.PRIVATE_ADDRESS),
        ("http://127.0.0.1:22/", Unfetched.NOT_ALLOWED),
        ("http://mira:secret@127.0.0.1:{port}/red", Unfetched.NOT_ALLOWED),
        ("file:///etc/passwd", Unfetched.NOT_ALLOWED),
        ("data:image/png;base64,AAAA", Unfetched.NOT_ALLOWED),
    ],
)
def test_a_redirect_leads_nowhere_that_an_address_may_not(
    server: ImageServer, store: ImageStore, place: str, reason: Unfetched
) -> None:
    server.gives("/red", RED)
    result = fetch_one(server, store, server.leads("/a", place.format(port=server.port)))
    assert result.reason is reason
    assert "secret" not in result.detail
    assert server.asked == {"/a": 1}


@pytest.mark.parametrize(
    "url",
    [
        "http://pictures.example:8080/a.png",
        "http://mira:secret@pictures.example/a.png",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//pictures.example/a.png",
        "",
    ],
)
def test_what_is_no_plain_web_address_is_not_asked(store: ImageStore, url: str) -> None:
    async def nobody(host: str, port: int) -> Sequence[IpAddress]:
        raise AssertionError(host)

    (result,) = fetch_images([url], store, resolve=nobody)
    assert (result.url, result.reason, result.attempts) == (url, Unfetched.NOT_ALLOWED, 0)
    assert "secret" not in result.detail
    assert b"secret" not in store.root.with_name("fetched.sqlite").read_bytes()


def test_a_name_that_changes_its_address_leads_nowhere_else(
    server: ImageServer, store: ImageStore
) -> None:
    server.gives("/red", RED)
    server.says("/blue", 500, then=BLUE, Connection="close")
    urls = [server.url(path, "pictures.example") for path in ("/red", "/blue")]
    red, blue = fetched(server, store, urls, "127.0.0.1", "169.254.169.254")
    assert red.sha256 == digest_of(RED)
    assert server.headers[0]["host"] == f"pictures.example:{server.port}"
    assert (blue.reason, blue.attempts) == (Unfetched.PRIVATE_ADDRESS, 2)
    assert server.asked == {"/red": 1, "/blue": 1}


@pytest.mark.parametrize("name", ["pictures.example", "other.example"])
def test_a_certificate_must_be_made_out_to_the_name(
    store: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    with ImageServer(context) as server:
        server.gives("/red", RED)
        url = server.url("/red", "pictures.example", "https")
        (result,) = fetched(server, store, [url], "127.0.0.1")
    if name == "pictures.example":
        assert result.sha256 == digest_of(RED)
    else:
        assert (result.reason, result.attempts) == (Unfetched.UNREACHABLE, 1)
        assert "certificate" in result.detail


@pytest.mark.parametrize(
    ("data", "reason", "detail"),
    [
        (b"<!doctype html><title>Log in</title>", Unfetched.WRONG_TYPE, "html"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', Unfetched.WRONG_TYPE, "svg"),
        (b"", Unfetched.WRONG_TYPE, "not_a_picture"),
        # what is packed was refused, since it may unpack without end
        (gzip.compress(RED, mtime=0), Unfetched.WRONG_TYPE, "not_a_picture"),
        (png((40_000, 40_000), 8, 0, b""), Unfetched.TOO_LARGE, "too_many_pixels"),
        (png((30, 30), 8, 2, b"\x09" * 2730), Unfetched.UNDECODABLE, "damaged"),
    ],
)
def test_the_bytes_say_what_came(
    server: ImageServer, store: ImageStore, data: bytes, reason: Unfetched, detail: str
) -> None:
    result = fetch_one(server, store, server.gives("/a.png", data, "image/png"))
    assert (result.reason, result.attempts) == (reason, 1)
    assert result.detail.startswith(f"{detail}: ")
    assert not store.root.exists()


def test_the_limits_are_the_policys(server: ImageServer, store: ImageStore) -> None:
    url = server.gives("/a", NOISE)
    size = len(NOISE)
    too_many_bytes = fetch_one(server, store, url, most_bytes=size - 1)
    assert too_many_bytes.detail.startswith(f"{size} bytes announced")
    too_many_pixels = fetch_one(server, store, url, most_pixels=8099)
    assert too_many_pixels.detail.startswith("too_many_pixels: 90 x 90")
    at_the_limit = fetch_one(server, store, url, most_bytes=size, most_pixels=8100)
    assert at_the_limit.sha256 == digest_of(NOISE)
    pixel = encoded(Image.new("RGB", (1, 1)), "GIF")  # whatever it is good for
    assert fetch_one(server, store, server.gives("/b", pixel)).sha256 == digest_of(pixel)


def test_a_body_without_end_is_left(server: ImageServer, store: ImageStore) -> None:
    sent = Counter[str]()

    def endless(request: BaseHTTPRequestHandler) -> None:
        send_without_length(request)
        request.wfile.write(NOISE[:64])
        while not server.closing.is_set():
            sent["bytes"] += request.wfile.write(bytes(65_536))

    server.answers["/a"] = endless
    result = fetch_one(server, store, server.url("/a"), most_bytes=200_000)
    assert (result.reason, result.attempts) == (Unfetched.TOO_LARGE, 1)
    assert sent["bytes"] < 50_000_000


@pytest.mark.parametrize("where", ["body", "headers"])
def test_a_slow_drip_ends(server: ImageServer, store: ImageStore, where: str) -> None:
    def drip(request: BaseHTTPRequestHandler) -> None:
        if where == "body":
            send_without_length(request)
        else:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        for byte in NOISE * 100:
            request.wfile.write(bytes([byte]) if where == "body" else b"a")
            if server.closing.wait(0.02):
                return

    server.answers["/a"] = drip
    result = fetch_one(server, store, server.url("/a"), total_timeout_s=0.2, max_attempts=1)
    assert result.reason is Unfetched.TIMEOUT


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        # one that is not allowed is enough: the others may be bait
        ("127.0.0.1 10.0.0.1", Unfetched.PRIVATE_ADDRESS),
        ("::ffff:127.0.0.1", Unfetched.PRIVATE_ADDRESS),
        # the first that answers is taken
        ("127.0.0.9 127.0.0.1", None),
        ("", Unfetched.UNREACHABLE),
    ],
)
def test_every_address_of_a_name_counts(
    server: ImageServer, store: ImageStore, answers: str, reason: Unfetched | None
) -> None:
    server.gives("/red", RED)
    urls = [server.url("/red", "pictures.example")]
    limits = {"allow_addresses": ["127.0.0.0/8"], "max_attempts": 1}
    (result,) = fetched(server, store, urls, answers, **limits)
    assert (result.reason, server.asked.total()) == (reason, 0 if reason else 1)


SPECIAL = """0.0.0.1 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254
    169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1
    198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 ::
    ::1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::a00:1 64:ff9b::7f00:1 64:ff9b:1::1
    100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 4000::1 5f00::1 fc00::1 fd00::1 fe80::1
    fe80::1%eth0 2606:4700::1111%eth0 fec0::1 ff02::1"""
PUBLIC = """1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255
    128.0.0.1 169.253.255.255 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255
    198.20.0.0 223.255.255.255 2606:4700:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888
    64:ff9b::808:808"""


def test_special_addresses_are_not_public_and_their_neighbours_are() -> None:
    assert [text for text in SPECIAL.split() if is_public(ip_address(text))] == []
    assert [text for text in PUBLIC.split() if not is_public(ip_address(text))] == []


@given(st.ip_addresses())
def test_nothing_that_python_calls_special_is_public(address: IPv4Address | IPv6Address) -> None:
    special = not address.is_global or address.is_multicast or address.is_reserved
    translated = address in ip_network("64:ff9b::/96")
    assert translated or not (special and is_public(address))


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
        assert results[red].is_known == results[gone].is_known == (run > 0)


def test_an_image_that_left_the_store_is_fetched_again(
    server: ImageServer, store: ImageStore
) -> None:
    url = server.gives("/red", RED)
    store.path(fetch_one(server, store, url).sha256 or "").unlink()
    assert not fetch_one(server, store, url).is_known
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
    assert [one.is_known for one in results] == [True, True, False]
    assert [one.sha256 for one in results] == [digest_of(RED), digest_of(BLUE), digest_of(NOISE)]
    assert server.asked == {"/red": 1, "/blue": 1, "/noise": 2}


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
    assert (last[0].known_before, last[0].fetched) == (1, 0)
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


def test_a_store_that_cannot_be_written_ends_the_run(
    server: ImageServer, store: ImageStore
) -> None:
    store.root.parent.mkdir()
    store.root.write_text("in the way")
    with pytest.raises(OSError, match="pictures"):
        fetch_one(server, store, server.gives("/red", RED))


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
        found = here.read_known([had, late, lost])
        assert [found[url].sha256 for url in (had, late, lost)] == ["1", None, "2"]
        assert found[late].detail == "there"
    here.close()
