"""Which addresses belong to the public internet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.network import is_public, is_within


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.1", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1",
        "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1",
        "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255",
        "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
        "255.255.255.255", "::", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::127.0.0.1",
        "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
        "2002:7f00:1::", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00::1", "fe80::1",
        "fe80::1%eth0", "2606:4700::1111%eth0", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
def test_special_addresses_are_not_public(text: str) -> None:
    """Each range of the registries of special addresses is refused."""
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.1", "169.253.255.255", "172.15.255.255", "172.32.0.0",
        "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
        "2606:4700:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888",
        "64:ff9b::808:808",
    ],
)  # fmt: skip
def test_neighbours_of_special_ranges_are_public(text: str) -> None:
    """The ranges end where the registries say, and a translated public address is public."""
    assert is_public(ip_address(text))


@given(st.ip_addresses())
def test_nothing_that_python_calls_special_is_public(address: IPv4Address | IPv6Address) -> None:
    """Whatever the standard library calls private, local, multicast or reserved is refused."""
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    translated = address in ip_network("64:ff9b::/96")
    assert translated or not (special and is_public(address))


def test_an_address_is_within_networks_of_its_own_version() -> None:
    """127.0.0.1 is no part of an IPv6 network, even of all of it."""
    address = ip_address("127.0.0.1")
    assert is_within(address, [ip_network("::/0"), ip_network("127.0.0.0/8")])
    assert not is_within(address, [ip_network("::/0")])
    assert not is_within(address, [])
