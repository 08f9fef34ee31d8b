"""Which addresses may be dialled: asked with the resolved address, on every hop, just before connecting.

A name says nothing about where it leads, so only addresses are judged, and the address that was judged is the one
that is dialled. Anything that is not plainly a public unicast address is refused: of IPv6 all but 2000::/3. An
IPv4 address inside of an IPv6 address is judged too. Some ports are never dialled: other services listen there.
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
    # All of link-local: clouds have put credentials at 169.254.169.254, .170.2, .170.23 and more.
    ("169.254.0.0/16", METADATA),
    ("100.100.100.200/32", METADATA),  # Alibaba
    ("168.63.129.16/32", METADATA),  # Azure; the one of these in public space
    ("192.0.0.192/32", METADATA),  # Oracle
    ("0.0.0.0/32", "unspecified"),
    ("0.0.0.0/8", "this-network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared"),
    ("127.0.0.0/8", "loopback"),
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
    """(mask, bits under the mask, reason): comparing ints is faster than `in` a network."""
    networks = [(ip_network(text), kind) for text, kind in _SPECIAL]
    return tuple(
        (int(network.netmask), int(network.network_address), kind)
        for network, kind in networks
        if network.version == version
    )


_V4 = _networks(4)
_V6 = _networks(6)
_LOCAL_NAT64 = int(IPv6Address("64:ff9b:1::")) >> 80
_TEREDO = int(IPv6Address("2001::")) >> 96
_GLOBAL_UNICAST = 0b001  # the first three bits: 2000::/3, the only space that is given out
# Networks whose addresses hold an IPv4 address: how many bits from the right it ends.
_EMBEDDING = tuple(
    (int(network.netmask), int(network.network_address), end)
    for network, end in (
        (IPv6Network("::/96"), 0),
        (IPv6Network("::ffff:0:0:0/96"), 0),
        (IPv6Network("64:ff9b::/96"), 0),
        (IPv6Network("2002::/16"), 80),
    )
)
# WHATWG Fetch, 2.9: services of another kind, which would take a request for a command of theirs.
BLOCKED_PORTS = frozenset(
    int(port)
    for port in """1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113
    115 117 119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587
    601 636 989 990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679
    6697 10080""".split()
)


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
    return _kind_of_v6(int(address))


def _kind_of_v6(number: int) -> str | None:
    special = _first(_V6, number)
    inner = next(
        (number >> end & 0xFFFFFFFF for mask, bits, end in _EMBEDDING if number & mask == bits), None
    )
    if number >> 96 == _TEREDO:
        inner = ~number & 0xFFFFFFFF  # RFC 4380, 4: all bits of the client's address are inverted
    if inner is not None and _first(_V4, inner) == METADATA:
        return METADATA
    return special or (None if number >> 125 == _GLOBAL_UNICAST else "unassigned")


def _first(networks: tuple[tuple[int, int, str], ...], number: int) -> str | None:
    return next((kind for mask, bits, kind in networks if number & mask == bits), None)


def _kind_in_local_nat64(number: int) -> str | None:
    # RFC 6052, 2.2: under a /48 the IPv4 address is bits 48 to 63 and 72 to 87, and all else is zero.
    tail = number & ((1 << 80) - 1)
    inner = (tail >> 64) << 16 | (tail >> 40) & 0xFFFF
    if tail != (inner >> 16) << 64 | (inner & 0xFFFF) << 40:
        return "NAT64"
    return _kind_of(IPv4Address(inner))


# The size bounds it at about 10 MB.
@lru_cache(maxsize=65_536)
def _judge(address: str) -> str | None:
    try:
        return _kind_of(ip_address(address))
    except ValueError:
        return "malformed"


class AddressGuard:
    """Decides which addresses a crawl may dial.

    `allow_private` lets special addresses pass, but never a cloud's metadata service, which gives credentials to
    anyone who asks: the operator has to name that address with a DNS override.
    """

    def __init__(self, *, allow_private: bool, allow_public: bool = True) -> None:
        self._allow_private = allow_private
        self._allow_public = allow_public

    def refusal(self, address: str, port: int = 80) -> str | None:
        """Why the address may not be dialled; None when it may."""
        if port in BLOCKED_PORTS:
            return f"port {port} is never dialled: another service than a web server listens there"
        kind = _judge(address)
        if kind is None:
            return None if self._allow_public else f"public address {address} and no contact given"
        if self._allow_private and kind not in (METADATA, "malformed"):
            return None
        return f"{kind} address {address[:100]}"

    def is_public(self, address: str) -> bool:
        return _judge(address) is None
