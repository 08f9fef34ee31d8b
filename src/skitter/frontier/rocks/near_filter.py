"""A Bloom filter over halves of fingerprints: which of the 66 that a near page can have are there at all?

In front of the index of fingerprints, as the seen filter is in front of the URLs. Its size is fixed, however many
pages there are: beyond some thirteen bits a fingerprint's half it says "maybe" more often, and that costs reads,
never a page; who has a larger one is told when it is `is_crowded`. It never says no of what was added.

With a lower half goes the parity of the whole: whether its ones are odd in number. What is near and not found by
its upper half differs there in two bits or three, so below in one or none: at a distance of three, or with its
lower half as it is. Of a lower half with one bit flipped only what is at an odd distance matters.
"""

from __future__ import annotations

import random
import sys
from functools import cache, partial
from mmap import mmap
from pathlib import Path

from skitter.frontier import stamped

try:
    from skitter.native.nearwords import add, close_in, close_to, suspects
except ImportError:
    # numpy comes with it, in 0.1 s: only who settles pages needs it
    from skitter.frontier.rocks.nearwords_plain import add, close_in, close_to, suspects

_WORD = 8
_MASKS = 4_096
_ONES = 4
# Ones among its bits, at 19 bits a half.
_CROWDED = 0.35
_LOOKED_AT = 1 << 14
# Of what is said with which bits: a file of another version is not believed.
_VERSION = b"\2"


@cache
def _masks() -> bytes:
    """Four bits of a word: one look at memory answers for most halves."""
    rng = random.Random(1)
    masks = [sum(1 << bit for bit in rng.sample(range(64), _ONES)) for _ in range(_MASKS)]
    return b"".join([mask.to_bytes(_WORD, sys.byteorder) for mask in masks])


class NearFilter:
    """`suspects` has for each fingerprint the numbers of its probes that may be there: below `PROBES` of the
    upper half, from it on of the lower."""

    close_to = staticmethod(close_to)
    close_in = staticmethod(close_in)

    def __init__(self, size: int) -> None:
        # memory that was never written to takes none
        self._words = mmap(-1, max(1, size // _WORD) * _WORD)
        self.add = partial(add, self._words, _masks())
        self.suspects = partial(suspects, self._words, _masks())

    def is_crowded(self) -> bool:
        """By a part of it: bits lie evenly. 35 us."""
        some = self._words[:_LOOKED_AT]
        return int.from_bytes(some, "big").bit_count() > _CROWDED * 8 * len(some)

    def save(self, path: Path, stamp: bytes) -> None:
        stamped.save(path, stamp + _VERSION, self._words)

    def restore(self, path: Path, stamp: bytes) -> bool:
        """Take the place of one saved with this very stamp, by this version and of the same size; False when
        there is none."""
        return stamped.restored(path, stamp + _VERSION, self._room) is not None

    def _room(self, size: int) -> mmap | None:
        return self._words if size == len(self._words) else None
