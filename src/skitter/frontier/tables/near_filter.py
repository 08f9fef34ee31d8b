"""A Bloom filter over halves of fingerprints: which of the 66 halves that a near page can have are stored at all?

In front of the index of fingerprints, as the seen filter is in front of the URLs. Its size is fixed. With less
than some thirteen bits for each half it says "maybe" more often: that costs reads, never a page. `is_crowded`
tells when a larger one is needed. It never says no to a half that was added.

A lower half is stored with the parity of the whole fingerprint. A near page that is not found by its upper half
differs there in two or three bits, so in its lower half in one bit or none. With one bit flipped below, the
distance is three: only fingerprints of the other parity matter.
"""

from __future__ import annotations

import random
import sys
from functools import cache, partial
from mmap import mmap
from pathlib import Path

from skitter.frontier.tables import stamped

try:
    from skitter.native._kernels import (
        near_add,
        near_find_candidates,
        near_select_close,
        near_unpack_close,
    )
except ImportError:
    # imports numpy, which takes 0.1 s: only a process that settles pages needs it
    from skitter.frontier.tables.nearwords_plain import (
        near_add,
        near_find_candidates,
        near_select_close,
        near_unpack_close,
    )

_WORD = 8
_MASKS = 4_096
_ONES = 4
# The share of bits that are set when there are 19 bits for each half.
_CROWDED = 0.35
_LOOKED_AT = 1 << 14
# Which bits stand for what: a file of another version is not used.
_VERSION = b"\2"


@cache
def _masks() -> bytes:
    """Each sets four bits of one word: one read of memory answers for most halves."""
    rng = random.Random(1)
    masks = [sum(1 << bit for bit in rng.sample(range(64), _ONES)) for _ in range(_MASKS)]
    return b"".join([mask.to_bytes(_WORD, sys.byteorder) for mask in masks])


class NearFilter:
    """`suspects` gives for each fingerprint the numbers of the forms of its halves that may be stored: below
    `FORMS` they are of the upper half, from there on of the lower."""

    close_to = staticmethod(near_select_close)
    close_in = staticmethod(near_unpack_close)

    def __init__(self, size: int) -> None:
        # memory that was never written to takes none
        self._words = mmap(-1, max(1, size // _WORD) * _WORD)
        self.add = partial(near_add, self._words, _masks())
        self.suspects = partial(near_find_candidates, self._words, _masks())

    def is_crowded(self) -> bool:
        """Judged by the first part of the filter: bits are spread evenly."""
        some = self._words[:_LOOKED_AT]
        return int.from_bytes(some, "big").bit_count() > _CROWDED * 8 * len(some)

    def save(self, path: Path, stamp: bytes) -> None:
        stamped.save(path, stamp + _VERSION, self._words)

    def restore(self, path: Path, stamp: bytes) -> bool:
        """Take the place of one saved with this very stamp, by this version and of the same size; False when
        there is none."""
        return stamped.restore(path, stamp + _VERSION, self._room) is not None

    def _room(self, size: int) -> mmap | None:
        return self._words if size == len(self._words) else None
