"""Millions of known keys in a table of bounded size, 6 bytes each.

Most links of a page repeat links of other pages: this table recognises them before anything is read or
unpacked. A key that was dropped here is still on disk, so a missing key may be known. It never claims to have a
key that was not added: two URLs of one host are never mistaken for each other, and of two hosts once in 2**64.
"""

from __future__ import annotations

from functools import partial
from mmap import mmap
from pathlib import Path

from skitter.frontier.keyset_plain import BUCKET, FEWEST_BUCKETS, WAYS, Part
from skitter.frontier.tables import stamped

try:
    from skitter.native._kernels import (
        add_new_keys,
        bloom_add,
        bloom_has,
        certain_add,
        certain_add_all,
        certain_add_own,
        certain_find_missing,
        certain_find_news,
        certain_has,
        certain_move,
    )
except ImportError:
    from skitter.frontier.keyset_plain import (
        add_new_keys,
        bloom_add,
        bloom_has,
        certain_add,
        certain_add_all,
        certain_add_own,
        certain_find_missing,
        certain_find_news,
        certain_has,
        certain_move,
    )

__all__ = ["KnownKeys", "Part", "add_new_keys", "bloom_add", "bloom_has"]

_GROWTH = 4
# How keys lie in the table: a file of another version is not used.
_VERSION = b"\1"


class KnownKeys:
    """Buckets of ten places. Both halves of a key choose its bucket, where it replaces the least recently used
    key. A table that is half full keeps 99.5 % of its keys; buckets of four kept 96.3 %. The URL's half alone
    would put the front pages of all hosts into one bucket.

    The table begins small and grows with the number of known keys: ten thousand keys scattered over 54 MB would
    take a page of memory each."""

    def __init__(self, limit_bytes: int) -> None:
        self._most = max(FEWEST_BUCKETS, limit_bytes // BUCKET)
        self.clear()

    def clear(self) -> None:
        self._open(FEWEST_BUCKETS)

    def make_room(self, known: int) -> None:
        """Grow for so many keys, in 0.15 s for two million. Replaces `add`, `has` and the others: nobody may keep
        them over this call."""
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
        """Load the table that was saved with exactly this stamp, if there is one and it has room."""
        table = stamped.restore(path, stamp + _VERSION, self._room)
        if table is not None:
            self._use(table)

    def _room(self, size: int) -> mmap | None:
        buckets = size // BUCKET
        return mmap(-1, size) if size % BUCKET == 0 and FEWEST_BUCKETS <= buckets <= self._most else None

    def _open(self, buckets: int) -> None:
        # pages of memory are taken when they are first written
        self._use(mmap(-1, buckets * BUCKET))

    def _use(self, table: mmap) -> None:
        self._buckets = buckets = len(table) // BUCKET
        # half full: hardly any bucket overflows
        self._roomy = buckets * WAYS // 2
        self._table = table
        # bound once: a method call would double the cost
        self.add = partial(certain_add, table)
        self.add_all = partial(certain_add_all, table)
        self.add_own = partial(certain_add_own, table)
        self.has = partial(certain_has, table)
        self.find_missing = partial(certain_find_missing, table)
        self.find_news = partial(certain_find_news, table)
        # together with the seen filter
        self.add_new = partial(add_new_keys, table)
