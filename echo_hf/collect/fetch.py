"""Fetch images by their addresses, each once: from public addresses only, and politely."""

from __future__ import annotations

import datetime
import hashlib
import json
import socket
import sqlite3
import ssl
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import chain
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import anyio
import httpcore2
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from echo_hf._infra.http_errors import is_transient, iterate_causes
from echo_hf._infra.rate_limit import RateLimiter, Work, run_concurrently
from echo_hf._infra.retry import RequestError, RetryPolicy, parse_retry_after
from echo_hf._infra.sqlite import Database, select_by_keys
from echo_hf.collect.urls import web_url
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.loader import (
    HEAD_BYTES,
    BadImage,
    BadImageError,
    detect_format,
    detect_other_format,
)
from echo_hf.images.store import ImageStore
from echo_hf.reasons import NoticeReason


class Unfetched(NoticeReason):
    """Why the image of an address is not there."""

    NOT_REQUESTED = "not_requested", "it was not requested: fetching is off, or the run is offline"
    GONE = "gone", "the server has no such image (404 or 410)"
    FORBIDDEN = "forbidden", "the server refuses the request (another 4xx)"
    RATE_LIMITED = "rate_limited", "the server asks for fewer requests, or to wait too long"
    SERVER_ERROR = "server_error", "the server failed, or gave an answer without an image"
    TIMEOUT = "timeout", "the server took too long"
    UNREACHABLE = "unreachable", "no connection could be made or kept"
    PRIVATE_ADDRESS = "private_address", "the host's address is not one of the public internet"
    NOT_ALLOWED = "not_allowed", "the address has a scheme, a port or a login that is not allowed"
    TOO_MANY_REDIRECTS = "too_many_redirects", "the address led from one to the next without end"
    TOO_LARGE = "too_large", "the image has more bytes or pixels than are fetched"
    WRONG_TYPE = "wrong_type", "the response is not an image in a supported format"
    UNDECODABLE = "undecodable", "what came begins as an image does, but cannot be decoded"


FETCH_LEDGER_FILE = "fetched.sqlite"
DECODER_COUNT = 2
THREAD_NAME = "echo-hf fetch"


IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

GLOBAL_UNICAST = IPv6Network("2000::/3")
# Behind this prefix a network without IPv4 reaches the public IPv4 address in the last 32 bits.
TRANSLATED_IPV4 = IPv6Network("64:ff9b::/96")
SPECIAL_NETWORKS: tuple[IpNetwork, ...] = tuple(
    ip_network(text)
    for line in (
        "0.0.0.0/8 10.0.0.0/8 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16",  # private, loopback
        "100.64.0.0/10",  # shared behind a provider's translation
        "169.254.0.0/16",  # link-local, and where clouds keep their metadata
        "192.0.0.0/24 2001::/23",  # protocol assignments, and tunnels that hide an IPv4 address
        "192.88.99.0/24 2002::/16",  # relays and tunnels to IPv6
        "192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 2620:4f:8000::/48",  # name servers' own
        "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",  # documentation
        "198.18.0.0/15 224.0.0.0/4 240.0.0.0/4",  # benchmarking, multicast, reserved, broadcast
    )
    for text in line.split()
)
MAX_ADDRESSES_TRIED = 4
REDIRECTS = frozenset({301, 302, 303, 307, 308})
DEFAULT_PORTS = {"http": 80, "https": 443}
KEEP_ALIVE_S = 5.0
MAX_DETAIL_CHARACTERS = 200
UNFETCHED_BY_BAD_IMAGE = {
    BadImage.TOO_MANY_BYTES: Unfetched.TOO_LARGE,
    BadImage.TOO_MANY_PIXELS: Unfetched.TOO_LARGE,
    BadImage.TRUNCATED: Unfetched.UNDECODABLE,
    BadImage.DAMAGED: Unfetched.UNDECODABLE,
}
UNFETCHED_BY_STATUS = {
    404: Unfetched.GONE,
    408: Unfetched.TIMEOUT,
    410: Unfetched.GONE,
    429: Unfetched.RATE_LIMITED,
}


def is_public(address: IpAddress) -> bool:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address in TRANSLATED_IPV4:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address not in GLOBAL_UNICAST:
            return False
    return not any(address in network for network in SPECIAL_NETWORKS)


Resolver = Callable[[str, int], Awaitable[Sequence[IpAddress]]]


class PrivateAddressError(Exception):
    """Raised when a host resolves to an address that is not on the public internet."""


async def resolve(host: str, port: int) -> Sequence[IpAddress]:
    """Resolve a host's name in a thread, which is abandoned when the caller gives up."""

    def look_up() -> list[tuple[object, ...]]:
        return [info[4] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]

    socket_addresses = await run_sync(look_up, abandon_on_cancel=True)
    return list(dict.fromkeys(ip_address(str(place[0])) for place in socket_addresses))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """A network that connects to public addresses only, and to no Unix socket."""

    def __init__(self, allowed: Sequence[IpNetwork] = (), resolve: Resolver = resolve) -> None:
        self._allowed = tuple(allowed)
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            with anyio.fail_after(timeout):
                addresses = await self._resolve(host, port)
                for address in addresses:
                    # A single private address is enough: the public ones may be bait.
                    is_allowed = any(address in network for network in self._allowed)
                    if not is_allowed and not is_public(address):
                        raise PrivateAddressError(f"{host} is {address}")
                tried = addresses[:MAX_ADDRESSES_TRIED]
                # Share the time, so that an address that never answers leaves some for the next.
                timeout_share = None if timeout is None else timeout / max(1, len(tried))
                for address in tried:
                    with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                        return await self._network.connect_tcp(
                            str(address), port, timeout_share, local_address, socket_options
                        )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"no connection to {host} in {timeout} s") from error
        except socket.gaierror as error:
            raise httpcore2.ConnectError(f"{host}: {error.strerror}") from error
        raise httpcore2.ConnectError(f"{host} has no address that answers")


class FetchError(RequestError):
    def __init__(
        self, reason: Unfetched, detail: str, *, retry: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(f"{reason}: {detail}", again=retry, wait_s=wait_s)
        self.reason = reason
        self.detail = " ".join(detail.split())[:MAX_DETAIL_CHARACTERS]


@contextmanager
def as_fetch_error() -> Iterator[None]:
    try:
        yield
    except PrivateAddressError as error:
        raise FetchError(Unfetched.PRIVATE_ADDRESS, str(error)) from error
    except (TimeoutError, httpcore2.TimeoutException) as error:
        message = str(error) or type(error).__name__
        raise FetchError(Unfetched.TIMEOUT, message, retry=True) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        # Permanent: the name does not exist, or the certificate is not valid for it.
        is_permanent = any(
            (isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME)
            or isinstance(cause, ssl.SSLCertVerificationError)
            for cause in iterate_causes(error)
        )
        message = str(error) or type(error).__name__
        raise FetchError(Unfetched.UNREACHABLE, message, retry=not is_permanent) from error
    except BadImageError as error:
        reason = UNFETCHED_BY_BAD_IMAGE.get(error.reason, Unfetched.WRONG_TYPE)
        # A truncated file may have been cut short in transfer.
        retry = error.reason is BadImage.TRUNCATED
        detail = f"{error.reason}: {error.detail}"
        raise FetchError(reason, detail, retry=retry) from error


def check_format(data: bytes | bytearray) -> None:
    first = bytes(data[:HEAD_BYTES])
    if detect_format(first) is None:
        raise BadImageError(detect_other_format(first), f"it begins with {first[:16]!r}")


@dataclass(frozen=True)
class ImageClient:
    policy: FetchPolicy
    connections: httpcore2.AsyncConnectionPool

    async def fetch(self, url: str) -> bytes:
        with as_fetch_error(), anyio.fail_after(self.policy.total_timeout_s):
            visited: list[str] = []
            while url not in visited and len(visited) <= self.policy.max_redirects:
                visited.append(url)
                answer = await self._ask(check_url(url, self.policy))
                if isinstance(answer, bytes):
                    return answer
                url = urljoin(url, answer)
        raise FetchError(Unfetched.TOO_MANY_REDIRECTS, f"{len(visited)} requests")

    async def _ask(self, url: str) -> bytes | str:
        """Return the bytes, or the address that the server redirects to."""
        limit = self.policy.read_timeout_s
        timeouts = {"connect": self.policy.connect_timeout_s, "read": limit, "write": limit}
        headers = [
            ("Accept", "image/*"),
            # Images are compressed already, and a compressed body may expand without limit.
            ("Accept-Encoding", "identity"),
            ("User-Agent", f"echo-hf/{version('echo-hf')}"),
        ]
        async with self.connections.stream(
            "GET", url, headers=headers, extensions={"timeout": timeouts}
        ) as response:
            response_headers = {
                key.decode("latin-1").lower(): value.decode("utf-8", "replace")
                for key, value in response.headers
            }
            status, max_bytes = response.status, self.policy.most_bytes
            if status in REDIRECTS and response_headers.get("location"):
                return response_headers["location"]
            if status != 200:
                retry = is_transient(status)
                forbidden = Unfetched.FORBIDDEN if status >= 400 and not retry else None
                reason = UNFETCHED_BY_STATUS.get(status) or forbidden or Unfetched.SERVER_ERROR
                wait_s = parse_retry_after(response_headers) if retry else None
                raise FetchError(reason, f"status {status}", retry=retry, wait_s=wait_s)
            announced = response_headers.get("content-length", "")
            if announced.isdecimal() and int(announced) > max_bytes:
                detail = f"{announced[:20]} bytes announced, expected at most {max_bytes}"
                raise FetchError(Unfetched.TOO_LARGE, detail)
            data = bytearray()
            async for piece in response.aiter_stream():
                has_begun = len(data) >= HEAD_BYTES
                data += piece
                if len(data) > max_bytes:
                    detail = f"expected at most {max_bytes} bytes"
                    raise BadImageError(BadImage.TOO_MANY_BYTES, detail)
                if len(data) >= HEAD_BYTES and not has_begun:
                    check_format(data)
            check_format(data)
            return bytes(data)


@asynccontextmanager
async def open_image_client(
    policy: FetchPolicy, resolve: Resolver = resolve
) -> AsyncIterator[ImageClient]:
    network = CheckedNetwork(policy.allow_addresses, resolve)
    async with httpcore2.AsyncConnectionPool(
        # Created once: it reads all certificates of the system.
        ssl_context=httpcore2.default_ssl_context(),
        max_connections=policy.concurrency,
        keepalive_expiry=KEEP_ALIVE_S,
        network_backend=network,
    ) as connections:
        yield ImageClient(policy, connections)


def check_url(url: str, policy: FetchPolicy) -> str:
    address = web_url(url)
    if address is None:
        raise FetchError(Unfetched.NOT_ALLOWED, "expected an address with http or https")
    # Credentials in the address must not appear in a message.
    if "@" in urlsplit(url.strip()).netloc:
        raise FetchError(Unfetched.NOT_ALLOWED, "a login in the address")
    parts = urlsplit(address)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    if port not in policy.ports:
        expected = ", ".join(map(str, sorted(policy.ports)))
        raise FetchError(Unfetched.NOT_ALLOWED, f"port {port}, expected {expected}")
    return address


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result for one address: the digest of an image, or why there is none."""

    url: str
    sha256: str | None
    reason: Unfetched | None = None
    detail: str = ""
    attempts: int = 0
    is_known: bool = False


class FetchLedger(Database):
    name = "ledger of fetched images"
    remedy = "fetch the images again"
    damage = (sqlite3.DatabaseError, ValueError)  # the second for an unknown reason
    schema = """create table if not exists fetches (
    url text primary key, sha256 text, reason text, detail text not null,
    attempts integer not null, asked_at text not null
) without rowid"""

    def read_known(self, urls: Sequence[str]) -> dict[str, FetchResult]:
        sql = "select url, sha256, reason, detail from fetches where url in ({0})"
        with self.connect() as connection:
            return {
                url: FetchResult(url, sha256, reason and Unfetched(reason), detail, is_known=True)
                for url, sha256, reason, detail in select_by_keys(connection, sql, urls)
            }

    def record(self, result: FetchResult) -> None:
        """Store a result; it outlives a killed process."""
        moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = (result.url, result.sha256, result.reason, result.detail, result.attempts, moment)
        self.execute("insert or replace into fetches values (?, ?, ?, ?, ?, ?)", *row)

    def take(self, path: Path, urls: Sequence[str]) -> list[str]:
        """Take over what another run's ledger knows of addresses; return the named digests."""
        sql = "select * from fetches where url in ({0})"
        # A failure never replaces an image; of two equal kinds the later row stays.
        upsert = """insert into fetches values (?, ?, ?, ?, ?, ?) on conflict (url) do update
            set sha256 = excluded.sha256, reason = excluded.reason, detail = excluded.detail,
            attempts = excluded.attempts, asked_at = excluded.asked_at
            where (excluded.sha256 is not null, excluded.asked_at)
            > (fetches.sha256 is not null, fetches.asked_at)"""
        with FetchLedger(path, frozen=True) as other, other.connect() as other_connection:
            results = list(select_by_keys(other_connection, sql, urls))
        with self.write() as connection:
            connection.executemany(upsert, results)
        return [sha256 for _, sha256, *_ in results if sha256 is not None]

    def forget(self, urls: Iterable[str]) -> None:
        with self.erase() as connection:
            connection.executemany("delete from fetches where url = ?", [(url,) for url in urls])


def read_ledger(path: Path, urls: Sequence[str]) -> dict[str, FetchResult]:
    if not path.exists():
        return {}
    with FetchLedger(path) as ledger:
        return ledger.read_known(urls)


def ledger_digest(path: Path) -> str | None:
    """Return the sha256 of all results, which does not depend on times and attempts."""
    if not path.exists():
        return None
    with FetchLedger(path) as ledger:
        rows = ledger.execute("select url, sha256, reason, detail from fetches order by url")
    sha256 = hashlib.sha256(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return sha256.hexdigest() if rows else None


@dataclass
class FetchStats:
    """The progress of a fetch; addresses that differ only in spelling count once."""

    total: int
    known_before: int = 0
    fetched: int = 0
    reasons: Counter[Unfetched] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.fetched / self.seconds if self.seconds else 0.0
        failures = (f"{count:,} {reason}" for reason, count in sorted(self.reasons.items()))
        fetched = f"{self.fetched:,} images ({rate:.0f}/s)"
        return ", ".join([fetched, f"{self.known_before:,} known before", *failures])

    @property
    def done(self) -> int:
        return self.known_before + self.fetched + self.reasons.total()

    def count(self, result: FetchResult) -> None:
        if result.is_known:
            self.known_before += 1
        elif result.reason is None:
            self.fetched += 1
        else:
            self.reasons[result.reason] += 1


class _Fetcher:
    def __init__(
        self, client: ImageClient, store: ImageStore, ledger: FetchLedger, policy: FetchPolicy
    ) -> None:
        self._client, self._store, self._ledger, self._policy = client, store, ledger, policy
        self._retries = RetryPolicy(policy.max_attempts, policy.backoff_s, policy.longest_wait_s)
        self._decoders = CapacityLimiter(DECODER_COUNT)
        self._places = defaultdict[str, CapacityLimiter](lambda: CapacityLimiter(policy.per_host))
        self._limiters = defaultdict[str, RateLimiter](RateLimiter)

    async def fetch(self, url: str) -> FetchResult:
        attempts, host = 0, urlsplit(url).netloc

        async def attempt() -> str:
            nonlocal attempts
            async with self._places[host]:
                await self._wait_turn(self._limiters[host])
                attempts += 1
                try:
                    data = await self._client.fetch(url)
                    with as_fetch_error():
                        put, max_pixels = self._store.put, self._policy.most_pixels
                        return await run_sync(put, data, max_pixels, limiter=self._decoders)
                except FetchError as error:
                    if error.wait_s is not None:
                        self._limiters[host].hold(error.wait_s)
                    raise

        try:
            digest = await self._retries.call_async(attempt)
            result = FetchResult(url, digest, attempts=attempts)
        except FetchError as error:
            result = FetchResult(url, None, error.reason, error.detail, attempts)
        self._ledger.record(result)
        return result

    async def _wait_turn(self, limiter: RateLimiter) -> None:
        turn, max_wait_s = limiter.reserve(), self._policy.longest_wait_s
        while (left_s := limiter.wait_seconds(turn)) > 0:
            if left_s > max_wait_s:
                detail = f"the host asks to wait {left_s:.0f} s, expected {max_wait_s:.0f} s"
                raise FetchError(Unfetched.RATE_LIMITED, detail)
            await anyio.sleep(left_s)


def dedupe_urls(
    urls: Iterable[str], policy: FetchPolicy
) -> tuple[dict[str, str], dict[str, FetchResult]]:
    """Return how the ledger spells each address, and why other addresses are not fetched."""
    normalized: dict[str, str] = {}
    refused: dict[str, FetchResult] = {}
    for url in dict.fromkeys(urls):
        try:
            normalized[url] = check_url(url, policy)
        except FetchError as error:
            refused[url] = FetchResult(url, None, error.reason, error.detail)
    return normalized, refused


def fetch_images(
    urls: Iterable[str],
    store: ImageStore,
    *,
    policy: FetchPolicy | None = None,
    ledger: Path | None = None,
    progress: Callable[[FetchStats], None] | None = None,
    resolve: Resolver = resolve,
) -> Iterator[FetchResult]:
    policy = policy or FetchPolicy()
    started = time.monotonic()
    normalized, refused = dedupe_urls(urls, policy)
    spellings: dict[str, list[str]] = {}
    for url, name in normalized.items():
        spellings.setdefault(name, []).append(url)
    stats = FetchStats(len(spellings) + len(refused))
    with FetchLedger(ledger or store.root.with_name(FETCH_LEDGER_FILE)) as fetch_ledger:

        @asynccontextmanager
        async def open_worker() -> AsyncIterator[Work[str, FetchResult]]:
            async with open_image_client(policy, resolve) as client:
                yield _Fetcher(client, store, fetch_ledger, policy).fetch

        settled = {}
        for url, result in fetch_ledger.read_known(list(spellings)).items():
            is_stored = result.sha256 is not None and store.path(result.sha256).exists()
            if is_stored or result.reason is Unfetched.GONE:
                settled[url] = result
        pending = [url for url in spellings if url not in settled]
        settled_results = [settled[url] for url in spellings if url in settled]
        fetching = run_concurrently(pending, open_worker, policy.concurrency, THREAD_NAME)
        with closing(fetching) as fresh:
            for result in chain(refused.values(), settled_results, fresh if pending else ()):
                stats.count(result)
                stats.seconds = time.monotonic() - started
                if progress is not None:
                    progress(stats)
                for url in spellings.get(result.url, (result.url,)):
                    yield replace(result, url=url)
