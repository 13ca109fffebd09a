"""One image from a real server: where a request may go, and what may come back."""

from __future__ import annotations

import gzip
import socket
import ssl
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from pathlib import Path

import anyio
import httpcore2
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.collect.fetch import (
    Address,
    Body,
    CheckedNetwork,
    FetchResult,
    PrivateAddressError,
    fetch_images,
    is_public,
)
from echo_hf.images.decode import BadImageError
from echo_hf.images.store import ImageStore
from echo_hf.reasons import BadImage, Unfetched
from tests.collect.fetching import (
    BLUE,
    NOISE,
    RED,
    digest_of,
    fetch_one,
    policy_for,
    send_without_length,
)
from tests.collect.server_for_tests import ImageServer
from tests.images_for_tests import encoded, noise, png


def fetched(
    server: ImageServer, store: ImageStore, urls: Sequence[str], *answers: str
) -> list[FetchResult]:
    """What comes of addresses whose names lead to these, the last one again and again."""
    left = list(answers)

    async def look_up(host: str, port: int) -> Sequence[Address]:
        return [ip_address(left.pop(0) if len(left) > 1 else left[0])]

    policy = policy_for(server, concurrency=1)
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
    async def nobody(host: str, port: int) -> Sequence[Address]:
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


LOOPBACK = (ip_network("127.0.0.0/8"),)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def _connect(
    listener: socket.socket, allowed: Sequence[IPv4Network], *answers: str
) -> tuple[str, int]:
    """To whom a name with these addresses leads."""
    port = listener.getsockname()[1]

    async def look_up(host: str, port: int) -> list[Address]:
        return [ip_address(text) for text in answers]

    async def connect() -> tuple[str, int]:
        network = CheckedNetwork(allowed, look_up)
        stream = await network.connect_tcp("pictures.example", port, timeout=5)
        place: tuple[str, int] = stream.get_extra_info("server_addr")
        await stream.aclose()
        return place

    place = anyio.run(connect)
    listener.accept()[0].close()
    return place


@pytest.mark.parametrize(
    ("allowed", "answers"),
    [
        ((), ["127.0.0.1"]),
        # one address that is not allowed is enough
        (LOOPBACK, ["127.0.0.1", "10.0.0.1"]),
        (LOOPBACK, ["::ffff:127.0.0.1"]),
    ],
)
def test_a_private_address_is_refused_before_a_connection(
    listener: socket.socket, allowed: Sequence[IPv4Network], answers: list[str]
) -> None:
    with pytest.raises(PrivateAddressError, match=r"pictures\.example is "):
        _connect(listener, allowed, *answers)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_an_allowed_network_is_connected_to_by_the_first_address_that_answers(
    listener: socket.socket,
) -> None:
    place = ("127.0.0.1", listener.getsockname()[1])
    assert _connect(listener, LOOPBACK, "127.0.0.9", "127.0.0.1") == place
    with pytest.raises(httpcore2.ConnectError):
        _connect(listener, LOOPBACK)
    with pytest.raises(httpcore2.ConnectError, match=r"nobody\.invalid"):
        anyio.run(CheckedNetwork(LOOPBACK).connect_tcp, "nobody.invalid", 80, 5)


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


IMAGE = encoded(noise((64, 64)), "PNG")
ENDLESS = IMAGE[:64] + bytes(64 * 1024 * 1024)
PACKERS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}


def _whole(encoding: str | None, data: bytes, most: int, size: int = 4096) -> bytes:
    body = Body(encoding, most)
    for at in range(0, len(data), size):
        body.add(data[at : at + size])
    return body.whole()


@pytest.mark.parametrize("encoding", [None, "", "identity", " GZIP ", *PACKERS])
def test_an_image_comes_out_as_its_bytes(encoding: str | None) -> None:
    packed = PACKERS.get((encoding or "").strip().lower(), bytes)(IMAGE)
    for size in (1, 1000, len(packed)):
        assert _whole(encoding, packed, len(packed) + len(IMAGE), size) == IMAGE


@pytest.mark.parametrize(
    ("encoding", "data", "most", "reason"),
    [
        ("br", IMAGE, 100_000, BadImage.DAMAGED),
        ("gzip, gzip", gzip.compress(gzip.compress(IMAGE)), 100_000, BadImage.DAMAGED),
        ("gzip", IMAGE, 100_000, BadImage.DAMAGED),
        ("gzip", gzip.compress(IMAGE)[:-20], 100_000, BadImage.TRUNCATED),
        ("gzip", gzip.compress(b"<svg/>"), 100_000, BadImage.SVG),
        (None, IMAGE, len(IMAGE) - 1, BadImage.TOO_MANY_BYTES),
        ("gzip", gzip.compress(IMAGE), len(IMAGE) - 1, BadImage.TOO_MANY_BYTES),
    ],
    ids=range(7),
)
def test_what_cannot_be_an_image_has_its_reason(
    encoding: str | None, data: bytes, most: int, reason: BadImage
) -> None:
    with pytest.raises(BadImageError) as caught:
        _whole(encoding, data, most)
    assert caught.value.reason is reason


def test_a_bomb_is_unpacked_no_further_than_the_limit() -> None:
    packed, most = gzip.compress(ENDLESS), 100_000
    assert len(packed) < 80_000
    tracemalloc.start()
    try:
        with pytest.raises(BadImageError):
            _whole("gzip", packed, most, len(packed))
        assert tracemalloc.get_traced_memory()[1] < 10 * most
    finally:
        tracemalloc.stop()
