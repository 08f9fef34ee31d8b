"""Hosts that share an address share its rate: how many of them may be leased at once, and how fast.

Asked when a host is about to be leased. In any window (a second, or longer when the rate is below one a second)
an address gets at most `limit` requests: a leased host books as many of them as its delay lets it start in one
window, and keeps the booking until a window after its last start. So whoever started a request within a window
still holds a booking at its end, and the bookings never add up to more than the limit.

The table is rebuilt from nothing after a restart: no known address is then asked before a window has passed. Only
addresses that an earlier answer told of are known: a host's first request is not counted.
"""

from __future__ import annotations

import math
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from skitter.frontier.rows import HostRow
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction

# Beyond this, addresses that nobody has booked are forgotten: 16 MB.
_MOST_IDLE = 65_536


class Booking(NamedTuple):
    """`each` request a window; what was booked `before` counts until the requests made then are a window old."""

    each: int
    before: int
    until: float

    def at(self, now: float) -> int:
        return max(self.each, self.before) if now < self.until else self.each


class Address:
    """Who has booked how much, and the last appointment given to a host that found no room."""

    __slots__ = ("booked", "line")

    def __init__(self) -> None:
        self.booked: dict[bytes, Booking] = {}
        self.line = 0.0


class Addresses:
    def __init__(self, rate: float) -> None:
        self.window = max(1.0, 1.0 / rate) if rate else 0.0
        self._limit = max(1, int(rate * self.window))
        self._known: dict[str, Address] = {}
        self._forget_at = _MOST_IDLE
        self.sent_away = 0

    def concerns(self, host: HostRow) -> bool:
        """A host whose delay the operator set himself is his own affair, and so are addresses of his own network:
        they are reached only with `fetch.allow_private` or a pin."""
        if not self.window or not host.pace.address or not is_public(host.pace.address):
            return False
        return host.policy is None or host.policy.delay is None

    def reserve(self, tx: Transaction, ident: bytes, host: HostRow, delay: float) -> float | None:
        """The delay at which the host may be leased now, its own or longer. None: there is no room, and it has
        been given an appointment. 4 us of a lease's 95."""
        if tx.cache.earliest_start(host) > tx.now:
            return None  # met again in another tier, after it was sent away
        address = self._known.get(host.pace.address)
        if address is None:
            address = self._learn(tx, host.pace.address)
        room = self._limit - self._taken(tx, address, ident)
        if room < 1:
            self._send_away(tx, host, address)
            return None
        delay = max(delay, self.window / room)
        # not a hair more than what fits: 1 / 0.1 is 10, not 10.000000000000002
        each = min(room, math.ceil(self.window / delay - 1e-9))
        own = address.booked.get(ident)
        before = own.at(tx.now) if own is not None else 0
        address.booked[ident] = Booking(each, before, host.pace.last_start + self.window)
        return delay

    def heard(self, tx: Transaction, ident: bytes, host: HostRow) -> None:
        """A request was made under a lease that is over, and for which nobody had booked any more."""
        if not self.concerns(host):
            return
        address = self._known.get(host.pace.address) or self._learn(tx, host.pace.address)
        address.booked.setdefault(ident, Booking(1, 0, 0.0))

    def _taken(self, tx: Transaction, address: Address, own: bytes) -> int:
        taken = 0
        for ident, booked in tuple(address.booked.items()):
            if not self._is_live(tx.cache, ident, tx.now):
                del address.booked[ident]
            elif ident != own:
                taken += booked.at(tx.now)
        return taken

    def _is_live(self, cache: RowCache, ident: bytes, now: float) -> bool:
        row = cache.host(ident)
        return row is not None and (row.lease is not None or row.pace.last_start + self.window > now)

    def _send_away(self, tx: Transaction, host: HostRow, address: Address) -> None:
        """Appointments are as far apart as requests may be, so a thousand hosts on one address are looked at once
        in a while and not on every lease."""
        address.line = max(tx.now, address.line) + self.window / self._limit
        host.pace.not_before = host.pace.crowded_until = max(host.pace.not_before, address.line)
        self.sent_away += 1

    def _learn(self, tx: Transaction, name: str) -> Address:
        if len(self._known) >= self._forget_at:
            self._forget_idle(tx)
        address = self._known[name] = Address()
        return address

    def _forget_idle(self, tx: Transaction) -> None:
        """Never one with a live booking: of those there are at most as many as leases."""
        for name, address in tuple(self._known.items()):
            if not self._taken(tx, address, b""):
                del self._known[name]
        self._forget_at = max(_MOST_IDLE, 2 * len(self._known))


def cancel_appointment(host: HostRow) -> None:
    """What the operator says counts at once: the host is looked at again, and its address with it."""
    if host.pace.crowded_until and host.pace.not_before == host.pace.crowded_until:
        host.pace.not_before = host.pace.crowded_until = 0.0


# 0.1 us for an address seen before, 5 when it is new
@lru_cache(maxsize=65_536)
def is_public(address: str) -> bool:
    try:
        return ip_address(address).is_global
    except ValueError:
        return False
