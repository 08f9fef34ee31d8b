"""The ready index as leasing walks it: per tier, hosts by when they may be asked, without a walk over tombstones.

    ready    tier (1), microseconds (8), host id      -> nothing

A scan of a tier begins at its low-water mark. Entries below the mark that are alive are listed in memory: hosts
that were just found, which are ready since the epoch, and hosts that long waited in another tier. Without the
list each of them would take the mark back, and a lease would walk over all entries that were ever consumed: 1.8
ms a scan with 50,000 hosts. Losing the list is no loss: then the mark is at the beginning of the tier, which is
always right.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections.abc import Iterator

from skitter.frontier.stores.base import Store
from skitter.schedule.priority import LANES

TABLE = "ready"
# 90 bytes each. When there are more, the mark goes back to the first of them.
_MOST_EARLY = 8_192


class ReadyIndex:
    def __init__(self) -> None:
        self._lows = [bytes((tier,)) for tier in range(LANES)]
        self._early: list[list[bytes]] = [[] for _ in range(LANES)]

    def add(self, tier: int, key: bytes) -> None:
        """This entry is written by the transaction that is being committed."""
        if key >= self._lows[tier]:
            return
        early = self._early[tier]
        insort(early, key)
        if len(early) > _MOST_EARLY:
            self._lows[tier] = early[0]
            early.clear()

    def remove(self, tier: int, key: bytes) -> None:
        early = self._early[tier]
        if early and (at := bisect_left(early, key)) < len(early) and early[at] == key:
            del early[at]

    def walk(self, store: Store, tier: int, end: bytes) -> Iterator[bytes]:
        """Entries before `end`, in key order, as committed: none may be added or removed during the walk."""
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

    def next_up(self, store: Store, tier: int, most: int) -> list[bytes]:
        """The first entries of a tier, whenever their time comes."""
        later = (key for key, _ in store.scan(TABLE, self._lows[tier], bytes((tier + 1,))))
        return list(itertools.islice(itertools.chain(self._early[tier], later), most))

    def first(self, store: Store, tier: int) -> bytes | None:
        if early := self._early[tier]:
            return early[0]
        return next((key for key, _ in store.scan(TABLE, self._lows[tier], bytes((tier + 1,)))), None)
