"""Connect only to addresses of the public internet, checked at each connection."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import anyio
import httpcore2
from anyio.to_thread import run_sync

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

GLOBAL_UNICAST = IPv6Network("2000::/3")
# Behind this prefix a network without IPv4 reaches the public IPv4 address in the last 32 bits.
TRANSLATED = IPv6Network("64:ff9b::/96")
SPECIAL: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared behind a provider's translation
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and where clouds keep their metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # name servers' own
        "192.52.193.0/24",  # multicast tunnels
        "192.88.99.0/24",  # relays to IPv6
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # name servers' own
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments, and tunnels that hide an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # tunnels that hide an IPv4 address
        "2620:4f:8000::/48",  # name servers' own
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address in TRANSLATED:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address not in GLOBAL_UNICAST:
            return False
    return not is_within(address, SPECIAL)


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


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
    """The network, without the part of it that is not public."""

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
                addresses = await self._checked(host, port)
                return await self._first(addresses, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"no connection to {host} in {timeout} s") from error
        except socket.gaierror as error:
            raise httpcore2.ConnectError(f"{host}: {error.strerror}") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuses: a socket in the file system is not the public internet."""
        del timeout, socket_options
        raise PrivateAddressError(path)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def _checked(self, host: str, port: int) -> Sequence[Address]:
        addresses = await self._resolve(host, port)
        for address in addresses:
            # One that is not public is enough: the others may be bait.
            if not is_public(address) and not is_within(address, self._allowed):
                raise PrivateAddressError(f"{host} is {address}")
        if not addresses:
            raise httpcore2.ConnectError(f"{host} has no address")
        return addresses[:MOST_ADDRESSES]

    async def _first(
        self,
        addresses: Sequence[Address],
        port: int,
        local_address: str | None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> httpcore2.AsyncNetworkStream:
        failed: Exception | None = None
        for number, address in enumerate(addresses):
            left = anyio.current_effective_deadline() - anyio.current_time()
            # An address that never answers leaves time for the next.
            share = left / (len(addresses) - number)
            try:
                return await self._network.connect_tcp(
                    str(address), port, share, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore2.ConnectError("no address")
