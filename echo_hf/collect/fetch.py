"""Fetch the images that posts name by address, each once: public addresses alone, politely."""

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

from echo_hf._infra.http_errors import causes, may_pass
from echo_hf._infra.rate_limit import RateLimiter, Work, finished
from echo_hf._infra.retry import RequestError, RetryPolicy, retry_after
from echo_hf._infra.sqlite import Database, rows_of
from echo_hf.collect.urls import web_url
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.loader import FIRST_BYTES, BadImageError, format_of, kind_of_other
from echo_hf.images.store import ImageStore
from echo_hf.reasons import BadImage, Unfetched

LEDGER = "fetched.sqlite"
DECODERS = 2
THREAD = "echo-hf fetch"


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

GLOBAL_UNICAST = IPv6Network("2000::/3")
# Behind this prefix a network without IPv4 reaches the public IPv4 address in the last 32 bits.
TRANSLATED = IPv6Network("64:ff9b::/96")
SPECIAL: tuple[Network, ...] = tuple(
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


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address in TRANSLATED:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address not in GLOBAL_UNICAST:
            return False
    return not any(address in network for network in SPECIAL)


MOST_ADDRESSES = 4
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]


class PrivateAddressError(Exception):
    """A host's name leads to an address that is not one of the public internet."""


async def resolve(host: str, port: int) -> Sequence[Address]:
    """Looks a name up, in a thread that is left behind when the caller gives up."""

    def look_up() -> list[tuple[object, ...]]:
        return [found[4] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]

    found = await run_sync(look_up, abandon_on_cancel=True)
    return list(dict.fromkeys(ip_address(str(place[0])) for place in found))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """The network, without the part of it that is not public, and without sockets in files."""

    def __init__(self, allowed: Sequence[Network] = (), resolve: Resolve = resolve) -> None:
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
                    # One that is not public is enough: the others may be bait.
                    allowed = any(address in network for network in self._allowed)
                    if not allowed and not is_public(address):
                        raise PrivateAddressError(f"{host} is {address}")
                tried = addresses[:MOST_ADDRESSES]
                # An address that never answers leaves time for the next.
                share = None if timeout is None else timeout / max(1, len(tried))
                for address in tried:
                    with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                        return await self._network.connect_tcp(
                            str(address), port, share, local_address, socket_options
                        )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"no connection to {host} in {timeout} s") from error
        except socket.gaierror as error:
            raise httpcore2.ConnectError(f"{host}: {error.strerror}") from error
        raise httpcore2.ConnectError(f"{host} has no address that answers")


REDIRECTS = frozenset({301, 302, 303, 307, 308})
DEFAULT_PORTS = {"http": 80, "https": 443}
KEPT_ALIVE_S = 5.0
LONGEST_DETAIL = 200
AS_AN_IMAGE = {
    BadImage.TOO_MANY_BYTES: Unfetched.TOO_LARGE,
    BadImage.TOO_MANY_PIXELS: Unfetched.TOO_LARGE,
    BadImage.TRUNCATED: Unfetched.UNDECODABLE,
    BadImage.DAMAGED: Unfetched.UNDECODABLE,
}
OF_STATUS = {
    404: Unfetched.GONE,
    408: Unfetched.TIMEOUT,
    410: Unfetched.GONE,
    429: Unfetched.RATE_LIMITED,
}


class FetchError(RequestError):
    def __init__(
        self, reason: Unfetched, detail: str, *, again: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(f"{reason}: {detail}", again=again, wait_s=wait_s)
        self.reason = reason
        self.detail = " ".join(detail.split())[:LONGEST_DETAIL]


@contextmanager
def as_fetch_error() -> Iterator[None]:
    try:
        yield
    except PrivateAddressError as error:
        raise FetchError(Unfetched.PRIVATE_ADDRESS, str(error)) from error
    except (TimeoutError, httpcore2.TimeoutException) as error:
        said = str(error) or type(error).__name__
        raise FetchError(Unfetched.TIMEOUT, said, again=True) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        # There is no such name, or the certificate is not the name's.
        lasts = any(
            (isinstance(one, socket.gaierror) and one.errno == socket.EAI_NONAME)
            or isinstance(one, ssl.SSLCertVerificationError)
            for one in causes(error)
        )
        said = str(error) or type(error).__name__
        raise FetchError(Unfetched.UNREACHABLE, said, again=not lasts) from error
    except BadImageError as error:
        reason = AS_AN_IMAGE.get(error.reason, Unfetched.WRONG_TYPE)
        # A file that was cut may have been cut on its way.
        again = error.reason is BadImage.TRUNCATED
        detail = f"{error.reason}: {error.detail}"
        raise FetchError(reason, detail, again=again) from error


def check_kind(data: bytes | bytearray) -> None:
    first = bytes(data[:FIRST_BYTES])
    if format_of(first) is None:
        raise BadImageError(kind_of_other(first), f"it begins with {first[:16]!r}")


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
        limit = self.policy.read_timeout_s
        timeouts = {"connect": self.policy.connect_timeout_s, "read": limit, "write": limit}
        headers = [
            ("Accept", "image/*"),
            # Images are compressed already, and what unpacks may unpack without end.
            ("Accept-Encoding", "identity"),
            ("User-Agent", f"echo-hf/{version('echo-hf')}"),
        ]
        async with self.connections.stream(
            "GET", url, headers=headers, extensions={"timeout": timeouts}
        ) as response:
            given = {
                key.decode("latin-1").lower(): value.decode("utf-8", "replace")
                for key, value in response.headers
            }
            status, most = response.status, self.policy.most_bytes
            if status in REDIRECTS and given.get("location"):
                return given["location"]
            if status != 200:
                again = may_pass(status)
                other = Unfetched.FORBIDDEN if status >= 400 and not again else None
                reason = OF_STATUS.get(status) or other or Unfetched.SERVER_ERROR
                wait_s = retry_after(given) if again else None
                raise FetchError(reason, f"status {status}", again=again, wait_s=wait_s)
            announced = given.get("content-length", "")
            if announced.isdecimal() and int(announced) > most:
                said = f"{announced[:20]} bytes announced, expected at most {most}"
                raise FetchError(Unfetched.TOO_LARGE, said)
            data = bytearray()
            async for piece in response.aiter_stream():
                has_begun = len(data) >= FIRST_BYTES
                data += piece
                if len(data) > most:
                    said = f"expected at most {most} bytes"
                    raise BadImageError(BadImage.TOO_MANY_BYTES, said)
                if len(data) >= FIRST_BYTES and not has_begun:
                    check_kind(data)
            check_kind(data)
            return bytes(data)


@asynccontextmanager
async def image_client(
    policy: FetchPolicy, resolve: Resolve = resolve
) -> AsyncIterator[ImageClient]:
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


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What became of an address: an image, or why there is none."""

    url: str
    sha256: str | None
    reason: Unfetched | None = None
    detail: str = ""
    attempts: int = 0
    known: bool = False


class FetchLedger(Database):
    name = "ledger of fetched images"
    remedy = "fetch the images again"
    damage = (sqlite3.DatabaseError, ValueError)  # the second: a reason that there is not
    schema = """create table if not exists fetches (
    url text primary key, sha256 text, reason text, detail text not null,
    attempts integer not null, asked_at text not null
) without rowid"""

    def known(self, urls: Sequence[str]) -> dict[str, FetchResult]:
        rows = "select url, sha256, reason, detail from fetches where url in ({0})"
        with self.opened() as connection:
            return {
                url: FetchResult(url, sha256, reason and Unfetched(reason), detail, known=True)
                for url, sha256, reason, detail in rows_of(connection, rows, urls)
            }

    def record(self, one: FetchResult) -> None:
        """Writes down what became of an address; it outlives a killed process."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        upsert = "insert or replace into fetches values (?, ?, ?, ?, ?, ?)"
        self.execute(upsert, one.url, one.sha256, one.reason, one.detail, one.attempts, now)

    def take(self, path: Path, urls: Sequence[str]) -> list[str]:
        """Takes in what another run's ledger says of addresses; gives the digests it names."""
        rows = "select * from fetches where url in ({0})"
        # Before what was fetched goes no failure; of two alike the later one stands.
        upsert = """insert into fetches values (?, ?, ?, ?, ?, ?) on conflict (url) do update
            set sha256 = excluded.sha256, reason = excluded.reason, detail = excluded.detail,
            attempts = excluded.attempts, asked_at = excluded.asked_at
            where (excluded.sha256 is not null, excluded.asked_at)
            > (fetches.sha256 is not null, fetches.asked_at)"""
        with FetchLedger(path, frozen=True) as other, other.opened() as theirs:
            taken = list(rows_of(theirs, rows, urls))
        with self.transaction() as connection:
            connection.executemany(upsert, taken)
        return [sha256 for _, sha256, *_ in taken if sha256 is not None]

    def forget(self, urls: Iterable[str]) -> None:
        with self.erasing() as connection:
            connection.executemany("delete from fetches where url = ?", [(url,) for url in urls])


def read_ledger(path: Path, urls: Sequence[str]) -> dict[str, FetchResult]:
    if not path.exists():
        return {}
    with FetchLedger(path) as ledger:
        return ledger.known(urls)


def ledger_digest(path: Path) -> str | None:
    """Sha256 of what became of all addresses, without when and how often they were asked for."""
    if not path.exists():
        return None
    with FetchLedger(path) as ledger:
        rows = ledger.execute("select url, sha256, reason, detail from fetches order by url")
    sha256 = hashlib.sha256(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return sha256.hexdigest() if rows else None


@dataclass
class FetchStats:
    """How far a run is; addresses that differ only in spelling count once."""

    total: int
    known: int = 0
    fetched: int = 0
    reasons: Counter[Unfetched] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.fetched / self.seconds if self.seconds else 0.0
        lost = (f"{count:,} {reason}" for reason, count in sorted(self.reasons.items()))
        had = f"{self.fetched:,} images ({rate:.0f}/s)"
        return ", ".join([had, f"{self.known:,} known before", *lost])

    @property
    def done(self) -> int:
        return self.known + self.fetched + self.reasons.total()

    def count(self, result: FetchResult) -> None:
        if result.known:
            self.known += 1
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
        self._decoders = CapacityLimiter(DECODERS)
        self._places = defaultdict[str, CapacityLimiter](lambda: CapacityLimiter(policy.per_host))
        self._limiters = defaultdict[str, RateLimiter](RateLimiter)

    async def fetched(self, url: str) -> FetchResult:
        times, host = 0, urlsplit(url).netloc

        async def attempt() -> str:
            nonlocal times
            async with self._places[host]:
                await self._turn(self._limiters[host])
                times += 1
                try:
                    data = await self._client.fetch(url)
                    with as_fetch_error():
                        put, most = self._store.put, self._policy.most_pixels
                        return await run_sync(put, data, most, limiter=self._decoders)
                except FetchError as error:
                    if error.wait_s is not None:
                        self._limiters[host].hold(error.wait_s)
                    raise

        try:
            digest = await self._retries.call_async(attempt)
            result = FetchResult(url, digest, attempts=times)
        except FetchError as error:
            result = FetchResult(url, None, error.reason, error.detail, times)
        self._ledger.record(result)
        return result

    async def _turn(self, limiter: RateLimiter) -> None:
        place, longest = limiter.reserve(), self._policy.longest_wait_s
        while (left := limiter.left_s(place)) > 0:
            if left > longest:
                said = f"the host asks to wait {left:.0f} s, expected {longest:.0f} s"
                raise FetchError(Unfetched.RATE_LIMITED, said)
            await anyio.sleep(left)


def named_once(
    urls: Iterable[str], policy: FetchPolicy
) -> tuple[dict[str, str], dict[str, FetchResult]]:
    """What the ledger calls each address, and why others are not asked for."""
    named: dict[str, str] = {}
    refused: dict[str, FetchResult] = {}
    for url in dict.fromkeys(urls):
        try:
            named[url] = allowed_url(url, policy)
        except FetchError as error:
            refused[url] = FetchResult(url, None, error.reason, error.detail)
    return named, refused


def fetch_images(
    urls: Iterable[str],
    store: ImageStore,
    *,
    policy: FetchPolicy | None = None,
    ledger: Path | None = None,
    progress: Callable[[FetchStats], None] | None = None,
    resolve: Resolve = resolve,
) -> Iterator[FetchResult]:
    policy = policy or FetchPolicy()
    started = time.monotonic()
    named, refused = named_once(urls, policy)
    spellings: dict[str, list[str]] = {}
    for url, name in named.items():
        spellings.setdefault(name, []).append(url)
    stats = FetchStats(len(spellings) + len(refused))
    with FetchLedger(ledger or store.root.with_name(LEDGER)) as known:

        @asynccontextmanager
        async def opened() -> AsyncIterator[Work[str, FetchResult]]:
            async with image_client(policy, resolve) as client:
                yield _Fetcher(client, store, known, policy).fetched

        settled = {
            url: one
            for url, one in known.known(list(spellings)).items()
            if one.reason is Unfetched.GONE or (one.sha256 and store.path(one.sha256).exists())
        }
        asked = [url for url in spellings if url not in settled]
        before = [settled[url] for url in spellings if url in settled]
        with closing(finished(asked, opened, policy.concurrency, THREAD)) as fresh:
            for result in chain(refused.values(), before, fresh if asked else ()):
                stats.count(result)
                stats.seconds = time.monotonic() - started
                if progress is not None:
                    progress(stats)
                for url in spellings.get(result.url, (result.url,)):
                    yield replace(result, url=url)
