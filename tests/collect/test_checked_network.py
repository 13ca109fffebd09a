"""Connections go to the addresses that were checked, and to no others."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import anyio
import httpcore2
import pytest

from echo_hf.collect.network import Address, CheckedNetwork, PrivateAddressError, resolve

LOOPBACK = (ip_network("127.0.0.0/8"),)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket that waits for connections; taking one never blocks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def _answers(*answers: Sequence[str]) -> tuple[Callable[..., Awaitable[list[Address]]], list[str]]:
    """A name server that gives one answer after the other, and the names it was asked for."""
    left, asked = list(answers), []

    async def look_up(host: str, port: int) -> list[Address]:
        asked.append(host)
        return [ip_address(text) for text in left.pop(0)]

    return look_up, asked


async def _connect(network: CheckedNetwork, port: int, host: str = "pictures.example") -> object:
    stream = await network.connect_tcp(host, port, timeout=5)
    try:
        return stream.get_extra_info("server_addr")
    finally:
        await stream.aclose()


def _nobody_came(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return True
    return False


def test_a_private_address_is_refused_before_a_connection(listener: socket.socket) -> None:
    """The listener sees nothing at all, and the message names host and address."""
    port = listener.getsockname()[1]
    look_up, _ = _answers(["127.0.0.1"])
    with pytest.raises(PrivateAddressError, match=r"pictures\.example is 127\.0\.0\.1"):
        anyio.run(_connect, CheckedNetwork(resolve=look_up), port)
    assert _nobody_came(listener)


def test_an_allowed_network_is_connected_to(listener: socket.socket) -> None:
    """The peer is the address that was looked up."""
    port = listener.getsockname()[1]
    look_up, asked = _answers(["127.0.0.1"])
    assert anyio.run(_connect, CheckedNetwork(LOOPBACK, look_up), port) == ("127.0.0.1", port)
    assert asked == ["pictures.example"]
    assert not _nobody_came(listener)


def test_a_name_that_changes_its_answer_gains_nothing(listener: socket.socket) -> None:
    """A connection asks once; a second answer counts for the second connection alone."""
    port = listener.getsockname()[1]
    look_up, asked = _answers(["127.0.0.1"], ["169.254.169.254"])
    network = CheckedNetwork(LOOPBACK, look_up)
    assert anyio.run(_connect, network, port) == ("127.0.0.1", port)
    assert len(asked) == 1
    with pytest.raises(PrivateAddressError, match=r"169\.254\.169\.254"):
        anyio.run(_connect, network, port)


@pytest.mark.parametrize("answer", [["127.0.0.1", "10.0.0.1"], ["::ffff:127.0.0.1"], ["::1"]])
def test_one_address_that_is_not_allowed_is_enough(
    listener: socket.socket, answer: list[str]
) -> None:
    """Bait beside it does not help, nor does another spelling of an allowed one."""
    look_up, _ = _answers(answer)
    with pytest.raises(PrivateAddressError):
        anyio.run(_connect, CheckedNetwork(LOOPBACK, look_up), listener.getsockname()[1])
    assert _nobody_came(listener)


def test_the_next_address_is_tried_when_one_does_not_answer(listener: socket.socket) -> None:
    """A host is reached as long as one of its addresses is."""
    look_up, _ = _answers(["127.0.0.9", "127.0.0.1"])
    port = listener.getsockname()[1]
    assert anyio.run(_connect, CheckedNetwork(LOOPBACK, look_up), port) == ("127.0.0.1", port)


def test_a_host_that_cannot_be_reached_is_a_connection_error() -> None:
    """Without an address, with one where nobody listens, and without such a name."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for answer in ([], ["127.0.0.1"]):
            look_up, _ = _answers(answer)
            with pytest.raises(httpcore2.ConnectError):
                anyio.run(_connect, CheckedNetwork(LOOPBACK, look_up), port)
    with pytest.raises(httpcore2.ConnectError, match=r"nobody\.invalid"):
        anyio.run(_connect, CheckedNetwork(LOOPBACK), port, "nobody.invalid")


def test_looking_a_name_up_counts_towards_the_timeout() -> None:
    """A name server that never answers holds nobody up."""

    async def never(host: str, port: int) -> list[Address]:
        await anyio.sleep_forever()
        return []

    async def connect() -> None:
        with pytest.raises(httpcore2.ConnectTimeout, match=r"pictures\.example"):
            await CheckedNetwork(LOOPBACK, never).connect_tcp("pictures.example", 80, timeout=0.05)

    anyio.run(connect)


def test_a_socket_in_the_file_system_is_refused() -> None:
    """Nothing but the network is connected to."""
    with pytest.raises(PrivateAddressError, match="docker"):
        anyio.run(CheckedNetwork(LOOPBACK).connect_unix_socket, "/var/run/docker.sock")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.1", IPv4Address("127.0.0.1")),
        ("2130706433", IPv4Address("127.0.0.1")),
        ("0x7f000001", IPv4Address("127.0.0.1")),
        ("::1", IPv6Address("::1")),
    ],
)
def test_the_system_says_what_an_odd_spelling_means(host: str, expected: Address) -> None:
    """Numbers in other bases are resolved before they are judged."""
    assert anyio.run(resolve, host, 80) == [expected]
