"""Who may wait at the door: connections that nobody knows yet, and whom of them to turn away.

A stranger is a connection that has not yet sent the head of a request that gives it a role. Strangers share
little room: 64 places an address, 512 in all. Each is listened to before it can be turned away, so whoever sends
its head at once gets in, however many stand there. Beyond that one of the largest crowd goes, drawn by lot from
its older half. Not the oldest: a crowd that is quick enough would shut out everybody who is slow at its address.
Not any: nearly all who are honest are quick. Who has a role is never turned away. Under `connections.py`, which
reads. Never reads a byte.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
from bisect import bisect_left
from collections.abc import Sequence

from skitter.service.http.access import Access

LARGEST_HEAD = 65_536
MOST_FIELDS = 100
SECONDS_FOR_A_HEAD = 10.0
SECONDS_IDLE = 60
MOST_STRANGERS = 512
MOST_STRANGERS_AN_ADDRESS = 64
# Who came in the last two turns of the loop: what they have sent is not read yet. Beyond so many nobody enters.
_MOST_UNHEARD = 1_024
_SWEEPS_A_LIMIT = 10
_NETWORK = 64  # bits that one owner of IPv6 addresses has, at least


class Door:
    """`_strangers` are each with the network that it came from. `_awaited` are those whose first head has yet to
    come, in the order in which they came, and when that was. `_unheard` are those of this turn of the loop and of
    the last."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._strangers: dict[asyncio.Transport, str] = {}
        self._awaited: dict[asyncio.Transport, float] = {}
        self._by_network: dict[str, list[asyncio.Transport]] = {}
        self._unheard: tuple[set[asyncio.Transport], set[asyncio.Transport]] = (set(), set())
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False
        self.turned_away = 0

    def enter(self, connection: asyncio.Transport, address: str) -> None:
        now, last = self._unheard
        if self._is_closed or len(now) + len(last) >= _MOST_UNHEARD:
            self._turn_away(connection)
            return
        loop, network = asyncio.get_running_loop(), _network(address)
        self._strangers[connection] = network
        self._awaited[connection] = loop.time()
        self._by_network.setdefault(network, []).append(connection)
        if not now and not last:
            loop.call_soon(self._end_turn)
        now.add(connection)
        if self._sweep is None:
            self._sweep_soon()

    def leave(self, connection: asyncio.Transport) -> None:
        """It has gone, or is no stranger any more."""
        self._awaited.pop(connection, None)
        network = self._strangers.pop(connection, None)
        if network is None:
            return
        here = self._by_network[network]
        here.remove(connection)
        if not here:
            del self._by_network[network]

    def note_head(self, connection: asyncio.Transport) -> None:
        """Its first head came in time, whatever is in it."""
        self._awaited.pop(connection, None)

    def knows(self, authorization: str) -> bool:
        return self._access.role_of(authorization) is not None

    def close(self) -> None:
        """Nobody is let in any more, and who has not asked for anything yet is sent away."""
        self._is_closed = True
        for connection in [*self._awaited]:
            self._turn_away(connection)
        if self._sweep is not None:
            self._sweep.cancel()

    # -- room

    def _end_turn(self) -> None:
        """Those of the last turn but one have been read from: from now on the lot may fall on them."""
        now, last = self._unheard
        self._unheard = set(), now
        if now:
            asyncio.get_running_loop().call_soon(self._end_turn)
        for network in {self._strangers[one] for one in last if one in self._strangers}:
            while len(here := self._by_network.get(network, ())) > MOST_STRANGERS_AN_ADDRESS:
                if not self._draw_one(here):
                    break
        while len(self._strangers) > MOST_STRANGERS and self._draw_one(self._largest_crowd()):
            pass

    def _largest_crowd(self) -> list[asyncio.Transport]:
        return max(self._by_network.values(), key=len)

    def _draw_one(self, crowd: Sequence[asyncio.Transport]) -> bool:
        """False when nobody of it was heard yet. They stand in the order in which they came, so the unheard ones
        are the last; looking at all of them took more than all else here."""
        now, last = self._unheard
        heard = bisect_left(crowd, True, key=lambda one: one in now or one in last)
        if heard:
            self._turn_away(crowd[int(random.random() * (heard // 2 + 1))])
        return bool(heard)

    def _turn_away(self, connection: asyncio.Transport) -> None:
        self.turned_away += 1
        self.leave(connection)
        connection.abort()

    # -- time

    def _sweep_soon(self) -> None:
        wait = SECONDS_FOR_A_HEAD / _SWEEPS_A_LIMIT
        self._sweep = asyncio.get_running_loop().call_later(wait, self._sweep_late)

    def _sweep_late(self) -> None:
        """One timer for all: they stand in the order in which they came."""
        loop = asyncio.get_running_loop()
        since = loop.time() - SECONDS_FOR_A_HEAD
        for connection, came in [*self._awaited.items()]:
            if came > since:
                break
            self._turn_away(connection)
        self._sweep = None
        if self._awaited:
            self._sweep_soon()


def _network(address: str) -> str:
    """Whoever has one IPv6 address has 2**64 of them."""
    if ":" not in address:
        return address
    whole = ipaddress.ip_address(address.partition("%")[0])
    mapped = whole.ipv4_mapped if isinstance(whole, ipaddress.IPv6Address) else None
    return str(mapped or ipaddress.ip_network((whole, _NETWORK), strict=False))
