"""Which addresses may be dialled: asked with the resolved address, on every hop, just before connecting.

A name says nothing about where it leads, so names are never judged here; and an address that was judged is
the one that is dialled. Anything that is not plainly a public unicast address is refused.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

METADATA = "cloud metadata"

# The first match names the reason, so narrow ranges stand before the wide ones that hold them. From the
# IANA special-purpose registries; `ipaddress.is_global` is not used, it lets 6to4 and NAT64 pass.
_SPECIAL: tuple[tuple[str, str], ...] = (
    ("169.254.169.254/32", METADATA),
    ("169.254.170.2/32", METADATA),  # ECS task credentials
    ("100.100.100.200/32", METADATA),  # Alibaba
    ("168.63.129.16/32", METADATA),  # Azure; the one of these in public space
    ("192.0.0.192/32", METADATA),  # Oracle
    ("0.0.0.0/32", "unspecified"),
    ("0.0.0.0/8", "this-network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmark"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
    ("fd00:ec2::/32", METADATA),  # EC2
    ("fd20:ce::254/128", METADATA),  # GCE
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::/96", "IPv4-compatible"),
    ("::ffff:0:0:0/96", "IPv4-translated"),
    ("64:ff9b::/96", "NAT64"),
    ("100::/63", "discard-only"),
    ("2001::/32", "Teredo"),
    ("2001:2::/48", "benchmark"),
    ("2001:db8::/32", "documentation"),
    ("2001::/23", "reserved"),  # protocol assignments, ORCHID
    ("2002::/16", "6to4"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "reserved"),  # segment routing
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)


def _networks(version: int) -> tuple[tuple[int, int, str], ...]:
    """(mask, bits under the mask, reason): comparing plain ints takes 0.07 us, `in` a network 0.24."""
    networks = [(ip_network(text), kind) for text, kind in _SPECIAL]
    return tuple(
        (int(network.netmask), int(network.network_address), kind)
        for network, kind in networks
        if network.version == version
    )


_V4 = _networks(4)
_V6 = _networks(6)
_LOCAL_NAT64 = int(IPv6Address("64:ff9b:1::")) >> 80


def _kind_of(address: _Address) -> str | None:
    """What is special about an address; None for a public one."""
    if isinstance(address, IPv4Address):
        return _first(_V4, int(address))
    if address.scope_id is not None:
        return "scoped"
    if address.ipv4_mapped is not None:
        return _kind_of(address.ipv4_mapped)
    if int(address) >> 80 == _LOCAL_NAT64:
        return _kind_in_local_nat64(int(address))
    return _first(_V6, int(address))


def _first(networks: tuple[tuple[int, int, str], ...], number: int) -> str | None:
    return next((kind for mask, bits, kind in networks if number & mask == bits), None)


def _kind_in_local_nat64(number: int) -> str | None:
    # RFC 6052, 2.2: under a /48 the IPv4 address is bits 48 to 63 and 72 to 87, and all else is zero.
    tail = number & ((1 << 80) - 1)
    inner = (tail >> 64) << 16 | (tail >> 40) & 0xFFFF
    if tail != (inner >> 16) << 64 | (inner & 0xFFFF) << 40:
        return "NAT64"
    return _kind_of(IPv4Address(inner))


# 0.12 us for an address seen before, 8 when it is new. The size bounds it at about 10 MB.
@lru_cache(maxsize=65_536)
def _judge(address: str) -> str | None:
    try:
        return _kind_of(ip_address(address))
    except ValueError:
        return "malformed"


class AddressGuard:
    """Says which addresses a crawl may dial.

    `allow_private` lets special addresses pass, but never a cloud's metadata service, which hands
    credentials to whoever asks: the operator has to name that address himself, with a DNS override.
    """

    def __init__(self, *, allow_private: bool, allow_public: bool = True) -> None:
        self._allow_private = allow_private
        self._allow_public = allow_public

    def refusal(self, address: str) -> str | None:
        """Why the address may not be dialled; None when it may."""
        kind = _judge(address)
        if kind is None:
            return None if self._allow_public else f"public address {address} and no contact given"
        if self._allow_private and kind not in (METADATA, "malformed"):
            return None
        return f"{kind} address {address[:100]}"

    def is_public(self, address: str) -> bool:
        return _judge(address) is None
