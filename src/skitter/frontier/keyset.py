"""Keys known to be known, by the million, in a table of bounded size: 6 bytes each.

Most links of a page repeat what other pages linked; here they end, before anything is read or even unpacked. What
is forgotten here is still on disk: absence means nothing. Never says of a key that was not added that it was: two
URLs of one host are never mistaken for each other, and of two hosts once in 2**64.
"""

from __future__ import annotations

from functools import partial
from mmap import mmap
from pathlib import Path

from skitter.frontier import stamped
from skitter.frontier.keyset_plain import BUCKET, FEWEST_BUCKETS, WAYS, Part

try:
    from skitter.native.keyset import (
        bloom_add,
        bloom_has,
        certain_add,
        certain_add_all,
        certain_add_own,
        certain_has,
        certain_lacks,
        certain_move,
        certain_unheard,
        keys_met,
    )
except ImportError:
    from skitter.frontier.keyset_plain import (
        bloom_add,
        bloom_has,
        certain_add,
        certain_add_all,
        certain_add_own,
        certain_has,
        certain_lacks,
        certain_move,
        certain_unheard,
        keys_met,
    )

__all__ = ["CertainKeys", "Part", "bloom_add", "bloom_has"]

_GROWTH = 4
# Of how keys lie in the table: a file of another version is not believed.
_VERSION = b"\1"


class CertainKeys:
    """A key has a bucket of ten places by both of its halves, and takes that of the one that was longest not
    asked for: a table that is half full keeps 99.5 of a hundred keys, one of which three fifths are taken 98.7.
    Buckets of four kept 96.3 and 93.7. By the URL's half alone the front pages of all hosts shared theirs. A look
    is 0.1 us, a read 5 to 30.

    The table begins small and grows with what is known: ten thousand keys scattered over 54 MB are a page of
    memory each, and 30 looks took 10 us instead of 5."""

    def __init__(self, limit_bytes: int) -> None:
        self._most = max(FEWEST_BUCKETS, limit_bytes // BUCKET)
        self.clear()

    def clear(self) -> None:
        self._open(FEWEST_BUCKETS)

    def make_room(self, known: int) -> None:
        """For so many keys. Nobody may hold on to `add`, `has` and the others meanwhile. 0.15 s for two
        million."""
        if known <= self._roomy or self._buckets == self._most:
            return
        former, buckets = self._table, self._buckets
        while known > buckets * WAYS // 2:
            buckets *= _GROWTH
        self._open(min(buckets, self._most))
        certain_move(former, self._table)

    def save(self, path: Path, stamp: bytes) -> None:
        stamped.save(path, stamp + _VERSION, self._table)

    def restore(self, path: Path, stamp: bytes) -> None:
        """Know what was known when this very stamp was given, if that was saved and there is room for it."""
        table = stamped.restored(path, stamp + _VERSION, self._room)
        if table is not None:
            self._use(table)

    def _room(self, size: int) -> mmap | None:
        buckets = size // BUCKET
        return mmap(-1, size) if size % BUCKET == 0 and FEWEST_BUCKETS <= buckets <= self._most else None

    def _open(self, buckets: int) -> None:
        # memory that was never written to takes none
        self._use(mmap(-1, buckets * BUCKET))

    def _use(self, table: mmap) -> None:
        self._buckets = buckets = len(table) // BUCKET
        # half full: of the keys of a bucket hardly ever one has to go
        self._roomy = buckets * WAYS // 2
        self._table = table
        # bound once: a method between costs as much as the look
        self.add = partial(certain_add, table)
        self.add_all = partial(certain_add_all, table)
        self.add_own = partial(certain_add_own, table)
        self.has = partial(certain_has, table)
        self.lacks = partial(certain_lacks, table)
        self.unheard = partial(certain_unheard, table)
        # together with the seen filter
        self.met = partial(keys_met, table)
