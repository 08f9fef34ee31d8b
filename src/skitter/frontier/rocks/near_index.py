"""The index of fingerprints by their halves, and the filter that knows which reads are in vain.

    near     0, fingerprint (8)                       -> UrlKey of the original, pages that resemble it (4)
    near     7, upper half (4)                        -> fingerprints of originals with this half, 8 bytes each
    near     8, lower half (4)                        -> the same

A page that resembles nothing, as most do, costs no read at all. The filter is kept beside the store by a clean
close; after a death it is learnt from the store again when it is first asked (1 us a fingerprint). It may hold
what was removed since, or never committed: that costs a read. It begins small and grows in two steps,
learnt from the store again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skitter.frontier.rocks.store import Batch, Store
from skitter.schedule.near import NEAR, PROBES, half_of, swapped

if TYPE_CHECKING:
    from skitter.frontier.rocks.near_filter import NearFilter

TABLE = "near"
WHOSE, UPPER, LOWER = b"\0", b"\7", b"\x08"
# A row that is full takes no more: a look-up must stay cheap.
MOST_ALIKE = 64
# Rows of an earlier version: fingerprints by six shorter keys.
_BEFORE = (b"\1", b"\7")
_WIDTH = 8
_SLICE = 50_000
# Room for 55,000 fingerprints and for 880,000. The 67 looks at it that a page takes miss the processor's caches
# in one of 40 MB, and its tables of pages: 5.0 us, 2.7 in one of 4 MB, 2.4 in the first; and all of it is saved.
_SMALLER = (1 << 18, 1 << 22)
# So many more, and it is looked at whether they still have room.
_LOOKED_AFTER = 2_048


class NearIndex:
    def __init__(self, store: Store, size: int, file: Path) -> None:
        self._store = store
        # those that the filter may still have; the first is the one that it has
        self._sizes = sorted({*(min(one, size) for one in _SMALLER), size})
        self._file = file
        self._stamp = b""
        self._filter: NearFilter | None = None
        self._added = 0

    def believe(self, stamp: bytes) -> None:
        """The file was saved with this stamp, and nothing was written since."""
        self._stamp = stamp

    def save(self, stamp: bytes) -> None:
        """One that was never asked stays as it lies there, if it is believed."""
        if self._filter is None and self._stamp:
            self._sieve()
        if self._filter is not None:
            self._filter.save(self._file, stamp)

    def wake(self) -> None:
        """Before a row is read that was not suspected: those of an earlier version are put right by then."""
        self._sieve()

    def add(self, fingerprints: list[int]) -> None:
        sieve = self._sieve()
        self._added += len(fingerprints)
        if self._added >= _LOOKED_AFTER:
            self._added = 0
            if self._is_outgrown(sieve):
                del self._sizes[0]
                sieve = self._learnt()
        sieve.add(fingerprints)

    def suspects(self, fingerprints: list[int]) -> list[tuple[bytes, ...]]:
        """For each the rows that may hold something near; for most there are none."""
        if not fingerprints:
            return []
        found = self._sieve().suspects(fingerprints)
        return [
            tuple([_row(one, probe) for probe in probes]) if probes else ()
            for one, probes in zip(fingerprints, found, strict=True)
        ]

    def close_to(self, fingerprint: int, others: list[int]) -> list[int]:
        """Those of the others that are near."""
        return self._sieve().close_to(fingerprint, others, NEAR) if others else []

    def close_in(self, fingerprint: int, rows: bytes) -> list[int]:
        """Those near it in rows by halves, one behind the other. Pages of one template find ten rows with 27
        fingerprints, which took 0.5 us each in Python."""
        return self._sieve().close_in(fingerprint, rows, NEAR)

    def _sieve(self) -> NearFilter:
        if self._filter is None:
            self._filter = self._restored()
        return self._filter or self._learnt()

    def _restored(self) -> NearFilter | None:
        if not self._stamp:
            return None
        from skitter.frontier.rocks.near_filter import NearFilter

        for number, size in enumerate(self._sizes):
            sieve = NearFilter(size)
            if sieve.restore(self._file, self._stamp):
                del self._sizes[:number]
                return sieve
        return None

    def _is_outgrown(self, sieve: NearFilter) -> bool:
        return len(self._sizes) > 1 and sieve.is_crowded()

    def _learnt(self) -> NearFilter:
        """From the store, and of the least size that it takes."""
        from skitter.frontier.rocks.near_filter import NearFilter

        while True:
            sieve = NearFilter(self._sizes[0])
            self._learn(sieve)
            if not self._is_outgrown(sieve):
                self._filter = sieve
                return sieve
            del self._sizes[0]

    def _learn(self, sieve: NearFilter) -> None:
        """All that is stored, or as much as it takes to see that there is no room for it."""
        old = next(iter(self._store.scan(TABLE, *_BEFORE)), None) is not None
        rows = self._store.scan(TABLE, WHOSE, b"\1")
        while some := [key[1:] for key, _ in itertools.islice(rows, _SLICE)]:
            sieve.add([int.from_bytes(one, "big") for one in some])
            if old:
                self._put_by_halves(some)
            elif self._is_outgrown(sieve):
                return
        if old:
            # last, so that a death before it has all of this done again
            batch = Batch(self._store)
            batch.delete_range(TABLE, *_BEFORE)
            self._store.write(batch)

    def _put_by_halves(self, fingerprints: Sequence[bytes]) -> None:
        rows: dict[bytes, bytes] = {}
        for one in fingerprints:
            for name in rows_of(int.from_bytes(one, "big")):
                known = rows.get(name) or self._store.get(TABLE, name) or b""
                if one not in (known[at : at + _WIDTH] for at in range(0, len(known), _WIDTH)):
                    known = (known + one)[: MOST_ALIKE * _WIDTH]
                rows[name] = known
        batch = Batch(self._store)
        for name, raw in rows.items():
            batch.put(TABLE, name, raw)
        self._store.write(batch)


def rows_of(fingerprint: int) -> tuple[bytes, bytes]:
    """Where an original is kept by its halves."""
    raw = fingerprint.to_bytes(_WIDTH, "big")
    return UPPER + raw[:4], LOWER + raw[4:]


def _row(fingerprint: int, probe: int) -> bytes:
    if probe < PROBES:
        return UPPER + half_of(fingerprint, probe)
    return LOWER + half_of(swapped(fingerprint), probe - PROBES)
