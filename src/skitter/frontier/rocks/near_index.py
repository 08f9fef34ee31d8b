"""The index of fingerprints: two orders of them on disk, and the filter that knows which reads are in vain.

    near     0, fingerprint (8)                       -> UrlKey of the original, pages that resemble it (4)
    near     7, fingerprint with halves swapped (8)   -> nothing

A page that resembles nothing, as most do, costs no read at all. The filter is kept beside the store by a clean
close; after a death it is learnt from the store again when it is first asked (1 us a fingerprint). It may hold
what was removed since, or never committed: that costs a read.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skitter.frontier.rocks.store import Batch, Store
from skitter.schedule.near import PROBES, beginning, swapped

if TYPE_CHECKING:
    from skitter.frontier.rocks.near_filter import NearFilter

TABLE = "near"
PLAIN, SWAPPED = b"\0", b"\7"
# Rows of an earlier version: fingerprints by six shorter keys.
_BEFORE = (b"\1", b"\7")
_WIDTH = 8
_SLICE = 50_000


class NearIndex:
    def __init__(self, store: Store, size: int, file: Path) -> None:
        self._store = store
        self._size = size
        self._file = file
        self._stamp = b""
        self._filter: NearFilter | None = None

    def believe(self, stamp: bytes) -> None:
        """The file was saved with this stamp, and nothing was written since."""
        self._stamp = stamp

    def save(self, stamp: bytes) -> None:
        """One that was never asked stays as it lies there, if it is believed."""
        if self._filter is None and self._stamp:
            self._sieve()
        if self._filter is not None:
            self._filter.save(self._file, stamp)

    def add(self, fingerprints: Sequence[int]) -> None:
        from skitter.frontier.rocks.near_filter import fingerprints_of

        self._sieve().add(fingerprints_of([one.to_bytes(_WIDTH, "big") for one in fingerprints]))

    def suspects(self, fingerprints: Sequence[int]) -> list[tuple[bytes, ...]]:
        """For each the beginnings of rows that may hold something near; for most there are none."""
        if not fingerprints:
            return []
        found = self._sieve().suspects(fingerprints)
        return [
            tuple(_row(one, probe) for probe in probes)
            for one, probes in zip(fingerprints, found, strict=True)
        ]

    def behind(self, start: bytes, most: int) -> list[int]:
        """The fingerprints whose rows begin so."""
        rows = itertools.islice(self._store.scan(TABLE, start, start + b"\xff" * _WIDTH), most)
        found = [int.from_bytes(key[1:], "big") for key, _ in rows]
        return found if start.startswith(PLAIN) else [swapped(one) for one in found]

    def _sieve(self) -> NearFilter:
        if self._filter is None:
            from skitter.frontier.rocks.near_filter import NearFilter

            self._filter = NearFilter(self._size)
            if not self._stamp or not self._filter.restore(self._file, self._stamp):
                self._learn(self._filter)
        return self._filter

    def _learn(self, sieve: NearFilter) -> None:
        from skitter.frontier.rocks.near_filter import fingerprints_of

        old = next(iter(self._store.scan(TABLE, *_BEFORE)), None) is not None
        rows = self._store.scan(TABLE, PLAIN, b"\1")
        while some := [key[1:] for key, _ in itertools.islice(rows, _SLICE)]:
            sieve.add(fingerprints_of(some))
            if old:
                self._put_in_second_order(some)
        if old:
            # last, so that a death before it has all of this done again
            batch = Batch(self._store)
            batch.delete_range(TABLE, *_BEFORE)
            self._store.write(batch)

    def _put_in_second_order(self, fingerprints: Sequence[bytes]) -> None:
        batch = Batch(self._store)
        for one in fingerprints:
            batch.put(TABLE, SWAPPED + one[4:] + one[:4], b"")
        self._store.write(batch)


def _row(fingerprint: int, probe: int) -> bytes:
    if probe < PROBES:
        return PLAIN + beginning(fingerprint, probe)
    return SWAPPED + beginning(swapped(fingerprint), probe - PROBES)
