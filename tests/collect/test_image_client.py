"""One image from a real server: where a request may go, and what may come back."""

from __future__ import annotations

import gzip
import ssl
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme
from PIL import Image

from echo_hf.collect.fetch import fetch_images
from echo_hf.collect.network import Address
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Unfetched
from tests.collect.fetching import (
    BLUE,
    NOISE,
    RED,
    digest_of,
    fetch_one,
    policy_for,
    send_without_length,
)
from tests.collect.server_for_tests import ImageServer, answer
from tests.images_for_tests import encoded, png


@pytest.fixture
def server() -> Iterator[ImageServer]:
    """A server without any images yet."""
    with ImageServer() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """A store that does not exist yet."""
    return ImageStore(tmp_path / "run" / "pictures")


def test_a_request_says_who_asks_and_nothing_more(server: ImageServer, store: ImageStore) -> None:
    """No login, no referrer, and no cookie, not even one that the server has just set."""
    server.gives("/red", RED)
    fetch_one(server, store, server.leads("/", "/red", **{"Set-Cookie": "id=7; Path=/"}))
    assert [set(one) for one in server.headers] == [
        {"host", "accept", "accept-encoding", "user-agent"}
    ] * 2
    assert server.headers[1]["user-agent"].startswith("echo-hf/")
    assert server.headers[1]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("status", "reason", "attempts"),
    [
        (404, Unfetched.GONE, 1),
        (410, Unfetched.GONE, 1),
        (401, Unfetched.FORBIDDEN, 1),
        (403, Unfetched.FORBIDDEN, 1),
        (451, Unfetched.FORBIDDEN, 1),
        (408, Unfetched.TIMEOUT, 3),
        (429, Unfetched.RATE_LIMITED, 3),
        (500, Unfetched.SERVER_ERROR, 3),
        (503, Unfetched.SERVER_ERROR, 3),
        (302, Unfetched.SERVER_ERROR, 1),
        (206, Unfetched.SERVER_ERROR, 1),
    ],
)
def test_each_status_has_its_reason(
    server: ImageServer, store: ImageStore, status: int, reason: Unfetched, attempts: int
) -> None:
    """Only what may go better is asked for again, and no more often than allowed."""
    result = fetch_one(server, store, server.says("/a", *[status] * 9))
    assert (result.reason, result.attempts, result.sha256) == (reason, attempts, None)
    assert result.detail == f"status {status}"
    assert server.asked == {"/a": attempts}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(server: ImageServer, store: ImageStore, status: int) -> None:
    """From place to place, also to one given by its path alone."""
    server.gives("/red", RED)
    server.leads("/second", server.url("/red"), status)
    assert fetch_one(server, store, server.leads("/first", "second", status)).sha256 == digest_of(
        RED
    )


def test_redirects_have_an_end(server: ImageServer, store: ImageStore) -> None:
    """A circle is left at once, an endless chain at the limit; neither is tried again."""
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
        ("http://[::1]:{port}/", Unfetched.PRIVATE_ADDRESS),
        ("http://[::ffff:127.0.0.1]:{port}/red", Unfetched.PRIVATE_ADDRESS),
        ("http://0:{port}/red", Unfetched.PRIVATE_ADDRESS),
        ("http://127.0.0.1:22/", Unfetched.NOT_ALLOWED),
        ("http://mira:secret@127.0.0.1:{port}/red", Unfetched.NOT_ALLOWED),
        ("file:///etc/passwd", Unfetched.NOT_ALLOWED),
        ("ftp://127.0.0.1/red", Unfetched.NOT_ALLOWED),
        ("data:image/png;base64,AAAA", Unfetched.NOT_ALLOWED),
    ],
)
def test_a_redirect_leads_nowhere_that_an_address_may_not(
    server: ImageServer, store: ImageStore, place: str, reason: Unfetched
) -> None:
    """Each hop is checked as the first one is, and no second request is made."""
    server.gives("/red", RED)
    result = fetch_one(server, store, server.leads("/a", place.format(port=server.port)))
    assert result.reason is reason
    assert "secret" not in result.detail
    assert server.asked == {"/a": 1}


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:7f00:1]"],
)
def test_no_spelling_of_this_machine_is_asked(
    server: ImageServer, store: ImageStore, host: str
) -> None:
    """Names and numbers are judged by the address that they resolve to."""
    server.gives("/red", RED)
    url = server.url("/red", host)
    result = fetch_one(server, store, url, allow_addresses=[])
    assert result.reason is Unfetched.PRIVATE_ADDRESS
    assert not server.asked


@pytest.mark.parametrize(
    "url",
    [
        "http://pictures.example:8080/a.png",
        "https://pictures.example:22/a.png",
        "http://mira:secret@pictures.example/a.png",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//pictures.example/a.png",
        "a.png",
        "",
    ],
)
def test_what_is_no_plain_web_address_is_not_asked(store: ImageStore, url: str) -> None:
    """Schemes, logins and ports are refused before any name is looked up, and not remembered."""

    async def nobody(host: str, port: int) -> Sequence[Address]:
        raise AssertionError(host)

    (result,) = fetch_images([url], store, resolve=nobody)
    assert (result.url, result.reason, result.attempts) == (url, Unfetched.NOT_ALLOWED, 0)
    assert "secret" not in result.detail
    assert b"secret" not in store.root.with_name("fetched.sqlite").read_bytes()


def test_a_name_that_changes_its_address_leads_nowhere_else(
    server: ImageServer, store: ImageStore
) -> None:
    """The connection goes to the address that was checked, under the name that was asked for."""
    answers = ["127.0.0.1", "169.254.169.254"]

    async def look_up(host: str, port: int) -> Sequence[Address]:
        return [ip_address(answers.pop(0))]

    server.gives("/red", RED)
    server.says("/blue", 500, then=BLUE, Connection="close")
    urls = [server.url(path, "pictures.example") for path in ("/red", "/blue")]
    policy = policy_for(server, concurrency=1)
    red, blue = fetch_images(urls, store, policy=policy, resolve=look_up)
    assert red.sha256 == digest_of(RED)
    assert server.headers[0]["host"] == f"pictures.example:{server.port}"
    assert (blue.reason, blue.attempts) == (Unfetched.PRIVATE_ADDRESS, 2)
    assert server.asked == {"/red": 1, "/blue": 1}


@pytest.mark.parametrize("name", ["pictures.example", "other.example"])
def test_a_certificate_must_be_made_out_to_the_name(
    store: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Connecting to a checked address does not weaken https, and a wrong one is asked once."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)

    async def look_up(host: str, port: int) -> Sequence[Address]:
        return [ip_address("127.0.0.1")]

    with ImageServer(context) as server:
        server.gives("/red", RED)
        url = server.url("/red", "pictures.example", "https")
        (result,) = fetch_images([url], store, policy=policy_for(server), resolve=look_up)
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
        (b"%PDF-1.7 and so on", Unfetched.WRONG_TYPE, "not_a_picture"),
        (b"", Unfetched.WRONG_TYPE, "not_a_picture"),
        (png((40_000, 40_000), 8, 0, b""), Unfetched.TOO_LARGE, "too_many_pixels"),
        (png((30, 30), 8, 2, b"\x09" * 2730), Unfetched.UNDECODABLE, "damaged"),
    ],
)
def test_the_bytes_say_what_came(
    server: ImageServer, store: ImageStore, data: bytes, reason: Unfetched, detail: str
) -> None:
    """Whatever the server calls it; what is no image is not kept and not asked for again."""
    result = fetch_one(server, store, server.gives("/a.png", data, "image/png"))
    assert (result.reason, result.attempts) == (reason, 1)
    assert result.detail.startswith(f"{detail}: ")
    assert not store.root.exists()


def test_an_image_under_another_name_is_an_image(server: ImageServer, store: ImageStore) -> None:
    """The header is as little believed when it says less than there is."""
    url = server.gives("/download.php", RED, "text/html")
    assert fetch_one(server, store, url).sha256 == digest_of(RED)


def test_a_single_pixel_is_an_image(server: ImageServer, store: ImageStore) -> None:
    """What it is good for is not for the fetcher to say: the bytes are kept."""
    pixel = encoded(Image.new("RGB", (1, 1)), "GIF")
    assert fetch_one(server, store, server.gives("/a", pixel)).sha256 == digest_of(pixel)


def test_the_limits_are_the_policys(server: ImageServer, store: ImageStore) -> None:
    """Bytes as announced, and pixels as the image says, at the limit and one beyond."""
    url = server.gives("/a", NOISE)
    size = len(NOISE)
    too_many_bytes = fetch_one(server, store, url, most_bytes=size - 1)
    assert too_many_bytes.detail.startswith(f"{size} bytes announced")
    too_many_pixels = fetch_one(server, store, url, most_pixels=8099)
    assert too_many_pixels.detail.startswith("too_many_pixels: 90 x 90")
    at_the_limit = fetch_one(server, store, url, most_bytes=size, most_pixels=8100)
    assert at_the_limit.sha256 == digest_of(NOISE)


def test_a_body_without_end_is_left(server: ImageServer, store: ImageStore) -> None:
    """It is read as far as an image may be long, and no further."""
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
    """A byte now and then keeps no connection open beyond the time for all of it."""

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
    started = time.monotonic()
    result = fetch_one(server, store, server.url("/a"), total_timeout_s=0.3, max_attempts=1)
    assert result.reason is Unfetched.TIMEOUT
    assert time.monotonic() - started < 5


def test_a_packed_image_is_kept_unpacked_and_a_bomb_is_not(
    server: ImageServer, store: ImageStore
) -> None:
    """Some servers pack although nobody asked; the limit counts what comes out."""
    packed = {"/good": gzip.compress(RED), "/bomb": gzip.compress(NOISE[:64] + bytes(30_000_000))}
    for path, data in packed.items():
        server.answers[path] = lambda request, data=data: answer(  # type: ignore[misc]
            request, 200, data, {"Content-Encoding": "gzip"}
        )
    assert fetch_one(server, store, server.url("/good")).sha256 == digest_of(RED)
    assert len(packed["/bomb"]) < 50_000
    result = fetch_one(server, store, server.url("/bomb"), most_bytes=1_000_000)
    assert (result.reason, result.attempts) == (Unfetched.TOO_LARGE, 1)
