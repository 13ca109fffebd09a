"""Ask a server for one image: redirects checked, size limited, format told by the bytes."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from urllib.parse import urljoin, urlsplit

import anyio
import httpcore2

from echo_hf._infra.http_errors import may_pass
from echo_hf._infra.retry import retry_after
from echo_hf.collect.fetch_ledger import FetchError, as_fetch_error
from echo_hf.collect.network import CheckedNetwork, Resolve, resolve
from echo_hf.collect.urls import web_url
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.decode import FIRST_BYTES, BadImageError, format_of, kind_of_other
from echo_hf.reasons import BadImage, Unfetched

PLAIN = frozenset({"", "identity"})
ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
EITHER_ZLIB_OR_GZIP = 47


class Body:
    def __init__(self, encoding: str | None, most_bytes: int) -> None:
        name = (encoding or "").strip().lower()
        if name not in PLAIN | ZLIB:
            raise BadImageError(BadImage.DAMAGED, f"packed as {name[:40]!r}, which was refused")
        self._unpacker = zlib.decompressobj(EITHER_ZLIB_OR_GZIP) if name in ZLIB else None
        self._most = most_bytes
        self._came = 0
        self._data = bytearray()
        self._known = False

    def add(self, piece: bytes) -> None:
        self._came += len(piece)
        self._data += self._unpacked(piece)
        if max(self._came, len(self._data)) > self._most:
            raise BadImageError(BadImage.TOO_MANY_BYTES, f"expected at most {self._most} bytes")
        if len(self._data) >= FIRST_BYTES and not self._known:
            self._check_kind()

    def whole(self) -> bytes:
        if self._unpacker and not self._unpacker.eof:
            raise BadImageError(BadImage.TRUNCATED, f"{self._came} packed bytes without end")
        self._check_kind()
        return bytes(self._data)

    def _unpacked(self, piece: bytes) -> bytes:
        if self._unpacker is None:
            return piece
        try:
            # One more than allowed is enough to know, whatever would follow.
            return self._unpacker.decompress(piece, self._most + 1 - len(self._data))
        except zlib.error as error:
            raise BadImageError(BadImage.DAMAGED, f"cannot be unpacked: {error}") from error

    def _check_kind(self) -> None:
        first = bytes(self._data[:FIRST_BYTES])
        if format_of(first) is None:
            raise BadImageError(kind_of_other(first), f"it begins with {first[:16]!r}")
        self._known = True


REDIRECTS = frozenset({301, 302, 303, 307, 308})
DEFAULT_PORTS = {"http": 80, "https": 443}
KEPT_ALIVE_S = 5.0


@dataclass(frozen=True)
class ImageClient:
    policy: FetchPolicy
    connections: httpcore2.AsyncConnectionPool

    async def fetch(self, url: str) -> bytes:
        with as_fetch_error(), anyio.fail_after(self.policy.total_timeout_s):
            seen: list[str] = []
            while url not in seen and len(seen) <= self.policy.max_redirects:
                seen.append(url)
                found = await self._ask(allowed_url(url, self.policy))
                if isinstance(found, bytes):
                    return found
                url = urljoin(url, found)
        raise FetchError(Unfetched.TOO_MANY_REDIRECTS, f"{len(seen)} requests")

    async def _ask(self, url: str) -> bytes | str:
        """The bytes, or the place to which the server points instead."""
        timeouts = {
            "connect": self.policy.connect_timeout_s,
            "read": self.policy.read_timeout_s,
            "write": self.policy.read_timeout_s,
        }
        async with self.connections.stream(
            "GET", url, headers=_headers(), extensions={"timeout": timeouts}
        ) as response:
            given = {key.decode("latin-1").lower(): _text(value) for key, value in response.headers}
            if response.status in REDIRECTS and given.get("location"):
                return given["location"]
            if response.status != 200:
                raise refusal(response.status, given)
            return await self._body(response, given)

    async def _body(self, response: httpcore2.Response, given: dict[str, str]) -> bytes:
        announced = given.get("content-length", "")
        if announced.isdecimal() and int(announced) > self.policy.most_bytes:
            raise FetchError(
                Unfetched.TOO_LARGE,
                f"{announced[:20]} bytes announced, expected at most {self.policy.most_bytes}",
            )
        body = Body(given.get("content-encoding"), self.policy.most_bytes)
        async for piece in response.aiter_stream():
            body.add(piece)
        return body.whole()


@asynccontextmanager
async def image_client(
    policy: FetchPolicy, resolve: Resolve = resolve
) -> AsyncIterator[ImageClient]:
    """Opens a client; leaving closes its connections."""
    network = CheckedNetwork(policy.allow_addresses, resolve)
    async with httpcore2.AsyncConnectionPool(
        # Made once: it reads all certificates of the system.
        ssl_context=httpcore2.default_ssl_context(),
        max_connections=policy.concurrency,
        keepalive_expiry=KEPT_ALIVE_S,
        network_backend=network,
    ) as connections:
        yield ImageClient(policy, connections)


def allowed_url(url: str, policy: FetchPolicy) -> str:
    address = web_url(url)
    if address is None:
        raise FetchError(Unfetched.NOT_ALLOWED, "expected an address with http or https")
    # What a login in it says belongs in no message.
    if "@" in urlsplit(url.strip()).netloc:
        raise FetchError(Unfetched.NOT_ALLOWED, "a login in the address")
    parts = urlsplit(address)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    if port not in policy.ports:
        expected = ", ".join(map(str, sorted(policy.ports)))
        raise FetchError(Unfetched.NOT_ALLOWED, f"port {port}, expected {expected}")
    return address


def refusal(status: int, headers: dict[str, str]) -> FetchError:
    reason = {404: Unfetched.GONE, 408: Unfetched.TIMEOUT, 410: Unfetched.GONE}.get(status)
    if status == 429:
        reason = Unfetched.RATE_LIMITED
    elif reason is None:
        is_ours = 400 <= status < 500 and not may_pass(status)
        reason = Unfetched.FORBIDDEN if is_ours else Unfetched.SERVER_ERROR
    again = may_pass(status)
    wait_s = retry_after(headers) if again else None
    return FetchError(reason, f"status {status}", again=again, wait_s=wait_s)


def _headers() -> list[tuple[str, str]]:
    return [
        ("Accept", "image/*"),
        # Images are compressed already, and what unpacks may unpack without end.
        ("Accept-Encoding", "identity"),
        ("User-Agent", f"echo-hf/{version('echo-hf')}"),
    ]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
