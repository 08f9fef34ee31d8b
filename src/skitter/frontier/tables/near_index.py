"""The index of fingerprints by their halves, and the filter that saves reads which would find nothing.

    near     0, fingerprint (8)                       -> UrlKey of the original, pages that resemble it (4)
    near     7, upper half (4)                        -> fingerprints of originals with this half, 8 bytes each
    near     8, lower half (4)                        -> the same

A page that resembles nothing, as most do, costs no read at all. A clean close saves the filter beside the store.
After a crash it is rebuilt from the store when it is first needed. It may hold fingerprints that were removed
since or never committed: that costs a read. It begins small and grows in two steps, each rebuilt from the
store.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skitter.frontier.stores.base import Store
from skitter.schedule.near import FORMS, NEAR, half_of, swapped

if TYPE_CHECKING:
    from skitter.frontier.tables.near_filter import NearFilter

TABLE = "near"
WHOSE, UPPER, LOWER = b"\0", b"\7", b"\x08"
# A row that is full takes no more: a look-up must stay cheap.
MOST_ALIKE = 64
# Rows of an earlier version: fingerprints by six shorter keys.
_BEFORE = (b"\1", b"\7")
_WIDTH = 8
_SLICE = 50_000
# Room for 55,000 fingerprints and for 880,000. A small filter stays in the processor's caches: a look-up takes
# half as long as in one of 40 MB.
_SMALLER = (1 << 18, 1 << 22)
# After so many more fingerprints the filter is checked for room.
_LOOKED_AFTER = 2_048


class NearIndex:
    def __init__(self, store: Store, size: int, file: Path) -> None:
        self._store = store
        # sizes that the filter may still get; the first is its present one
        self._sizes = sorted({*(min(one, size) for one in _SMALLER), size})
        self._file = file
        self._stamp = b""
        self._filter: NearFilter | None = None
        self._added = 0

    def trust_file(self, stamp: bytes) -> None:
        """Use the saved file later: it has this stamp, and nothing was written since."""
        self._stamp = stamp

    def save(self, stamp: bytes) -> None:
        """A filter that was never loaded in this run is loaded now, if its file is trusted, and saved again."""
        if self._filter is None and self._stamp:
            self._loaded_filter()
        if self._filter is not None:
            self._filter.save(self._file, stamp)

    def load_filter(self) -> None:
        """To be called before a row is read without the filter: loading converts rows of an earlier version."""
        self._loaded_filter()

    def add(self, fingerprints: list[int]) -> None:
        near = self._loaded_filter()
        self._added += len(fingerprints)
        if self._added >= _LOOKED_AFTER:
            self._added = 0
            if self._is_outgrown(near):
                del self._sizes[0]
                near = self._rebuild()
        near.add(fingerprints)

    def suspects(self, fingerprints: list[int]) -> list[tuple[bytes, ...]]:
        """For each fingerprint the rows that may hold a near one; for most there are none."""
        if not fingerprints:
            return []
        found = self._loaded_filter().suspects(fingerprints)
        return [
            tuple([_row(one, form) for form in forms]) if forms else ()
            for one, forms in zip(fingerprints, found, strict=True)
        ]

    def close_to(self, fingerprint: int, others: list[int]) -> list[int]:
        """Those of the others that are near."""
        return self._loaded_filter().close_to(fingerprint, others, NEAR) if others else []

    def close_in(self, fingerprint: int, rows: bytes) -> list[int]:
        """The near ones among fingerprints of joined rows."""
        return self._loaded_filter().close_in(fingerprint, rows, NEAR)

    def _loaded_filter(self) -> NearFilter:
        if self._filter is None:
            self._filter = self._restore()
        return self._filter or self._rebuild()

    def _restore(self) -> NearFilter | None:
        if not self._stamp:
            return None
        from skitter.frontier.tables.near_filter import NearFilter

        for number, size in enumerate(self._sizes):
            near = NearFilter(size)
            if near.restore(self._file, self._stamp):
                del self._sizes[:number]
                return near
        return None

    def _is_outgrown(self, near: NearFilter) -> bool:
        return len(self._sizes) > 1 and near.is_crowded()

    def _rebuild(self) -> NearFilter:
        """A new filter from the store, of the smallest size that has room."""
        from skitter.frontier.tables.near_filter import NearFilter

        while True:
            near = NearFilter(self._sizes[0])
            self._fill(near)
            if not self._is_outgrown(near):
                self._filter = near
                return near
            del self._sizes[0]

    def _fill(self, near: NearFilter) -> None:
        """Add all stored fingerprints; stops early when they have no room."""
        old = next(iter(self._store.scan(TABLE, *_BEFORE)), None) is not None
        rows = self._store.scan(TABLE, WHOSE, b"\1")
        while some := [key[1:] for key, _ in itertools.islice(rows, _SLICE)]:
            near.add([int.from_bytes(one, "big") for one in some])
            if old:
                self._put_by_halves(some)
            elif self._is_outgrown(near):
                return
        if old:
            # last, so that after a crash before it all of this is done again
            changes = self._store.changes()
            changes.delete_range(TABLE, *_BEFORE)
            self._store.commit(changes)

    def _put_by_halves(self, fingerprints: Sequence[bytes]) -> None:
        rows: dict[bytes, bytes] = {}
        for one in fingerprints:
            for name in rows_of(int.from_bytes(one, "big")):
                known = rows.get(name) or self._store.get(TABLE, name) or b""
                if one not in (known[at : at + _WIDTH] for at in range(0, len(known), _WIDTH)):
                    known = (known + one)[: MOST_ALIKE * _WIDTH]
                rows[name] = known
        changes = self._store.changes()
        for name, raw in rows.items():
            changes.put(TABLE, name, raw)
        self._store.commit(changes)


def rows_of(fingerprint: int) -> tuple[bytes, bytes]:
    """Where an original is kept by its halves."""
    raw = fingerprint.to_bytes(_WIDTH, "big")
    return UPPER + raw[:4], LOWER + raw[4:]


def _row(fingerprint: int, form: int) -> bytes:
    if form < FORMS:
        return UPPER + half_of(fingerprint, form)
    return LOWER + half_of(swapped(fingerprint), form - FORMS)
