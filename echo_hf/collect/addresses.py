"""Which network addresses a picture may be fetched from: those of the public internet.

A post may name the address of anything that the machine can reach: a router, a service of the
cloud that hands out keys, a database of the house. The special ranges are listed here, from the
registries of IANA, because Python's own answer has changed between versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

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
    """Whether an address belongs to the public internet.

    Args:
        address: An address, as name resolution gave it.

    Returns:
        False for private, shared, loopback, link-local, multicast, reserved and documentation
        addresses, and for IPv6 addresses that hide an IPv4 one.

    Example:
        >>> from ipaddress import ip_address
        >>> is_public(ip_address("1.1.1.1")), is_public(ip_address("::ffff:1.1.1.1"))
        (True, False)
    """
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address in TRANSLATED:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address not in GLOBAL_UNICAST:
            return False
    return not is_within(address, SPECIAL)


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    """Whether an address lies in one of the networks.

    Args:
        address: An address.
        networks: Networks of either version.

    Returns:
        True when one of its own version holds it.
    """
    return any(address in network for network in networks)
