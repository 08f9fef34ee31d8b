"""The ready index as a lease walks it: per tier, hosts by when they may be asked, without the tombstones of those
that were taken before.

    ready    tier (1), microseconds (8), host id      -> nothing

Below a tier's low mark nothing on disk is alive but what is listed in memory: hosts that were just found, which
were ready since the epoch, and those that have long waited in another tier. Each of them used to take the mark
back with it, and a lease walked over all that was ever taken: 1.8 ms a scan with 50,000 hosts, and growing with
their number. A list that is lost is no loss: the mark at the tier's beginning is always right.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from skitter.frontier.rocks.store import Store
from skitter.schedule.priority import TIERS

TABLE = "ready"
# 90 bytes each. Beyond it the mark goes back after all, once for so many.
_MOST_EARLY = 8_192


class ReadyMarks:
    def __init__(self) -> None:
        self._lows = [bytes((tier,)) for tier in range(TIERS)]
        self._early: list[list[bytes]] = [[] for _ in range(TIERS)]

    def put(self, tier: int, key: bytes) -> None:
        """This entry is written by the turn that is being committed."""
        if key >= self._lows[tier]:
            return
        early = self._early[tier]
        insort(early, key)
        if len(early) > _MOST_EARLY:
            self._lows[tier] = early[0]
            early.clear()

    def gone(self, tier: int, key: bytes) -> None:
        early = self._early[tier]
        if early and (at := bisect_left(early, key)) < len(early) and early[at] == key:
            del early[at]

    def walk(self, store: Store, tier: int, end: bytes) -> Iterator[bytes]:
        """Entries before `end`, in their order, as they were before this turn: none comes or goes meanwhile."""
        for key in self._early[tier]:
            if key >= end:
                return
            yield key
        first = True
        for key, _ in store.scan(TABLE, self._lows[tier], end):
            if first:
                self._lows[tier] = key
                first = False
            yield key
        if first:
            self._lows[tier] = max(self._lows[tier], end)

    def first(self, store: Store, tier: int) -> bytes | None:
        if early := self._early[tier]:
            return early[0]
        return next((key for key, _ in store.scan(TABLE, self._lows[tier], bytes((tier + 1,)))), None)
