"""Connect only to addresses that were checked: names are resolved here, once a connection.

A name whose answer changes between the check and the connection gains nothing: what is connected
to is the very address that was looked at. The name stays what a certificate must be made out to.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address

import anyio
import httpcore2
from anyio.to_thread import run_sync

from echo_hf.collect.addresses import Address, Network, is_public, is_within

MOST_ADDRESSES = 4

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]


class PrivateAddressError(Exception):
    """A host's name leads to an address that is not one of the public internet."""


async def resolve(host: str, port: int) -> Sequence[Address]:
    """Looks a name up, in a thread that is left behind when the caller gives up.

    Args:
        host: A name, or an address in any spelling that the system understands.
        port: A port.

    Returns:
        Its addresses, in the order in which the system would try them.

    Raises:
        socket.gaierror: There is no such name, or nobody who knows it can be asked.
    """

    def look_up() -> list[tuple[object, ...]]:
        return [found[4] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]

    found = await run_sync(look_up, abandon_on_cancel=True)
    return list(dict.fromkeys(ip_address(str(place[0])) for place in found))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """The network, without the part of it that is not public.

    Args:
        allowed: Networks that may be connected to though they are not public.
        resolve: Looks names up.
    """

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
        """Connects to a host.

        Args:
            host: Its name or address.
            port: Its port.
            timeout: Seconds for resolution and connection together.
            local_address: As httpcore2 says.
            socket_options: As httpcore2 says.

        Returns:
            The connection.

        Raises:
            PrivateAddressError: One of the host's addresses may not be connected to.
            httpcore2.ConnectError: None of them answers, or there is none.
            httpcore2.ConnectTimeout: It took too long.
        """
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
        """Waits."""
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
