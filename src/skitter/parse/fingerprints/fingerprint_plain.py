"""SimHash: 64 bits of a text that differ in few places when two texts differ in few words. Pure.

After the reading of a page and before its settling, where the frontier looks for similar pages. The same text has
the same fingerprint on every machine and every Python, for ever: fingerprints lie on disk. Its cost is linear
and bounded, whatever the text. numpy is imported here and takes 0.1 s: import this module only to crawl.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Texts of fewer words say too little. Of 367 pages with 15 to 20 words 3.5 % were taken for another page, of
# longer ones 1.4 % (the half of bench.near's pages that choices are made on; with digits, counted up to 8).
FEWEST_WORDS = 20
# The beginning speaks for what is longer, and as well as all of it: recall 0.85 and precision 0.986, with 128 KB
# 0.844 and 0.985 (bench.near). `_COUNTERS` relies on it: no text of this length has 32,768 words.
MOST_BYTES = 16_384
# A word counts as often as it occurs, up to this. Without a limit 4.1 % of different pages pass for another
# instead of 1.5 % (all say "the" and "method"), and when each counts once recall falls from 0.82 to 0.55.
_MOST_REPEATS = 16
_GOLDEN = 0x9E37_79B9_7F4A_7C15
# Constants are arrays of no dimension: of a number each operation would make one again.
_FIRST, _SECOND = (np.array(odd, np.uint64) for odd in (0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB))
_MOST = np.array(_MOST_REPEATS)
_BY_30, _BY_27, _BY_31 = (np.array(bits, np.uint64) for bits in (30, 27, 31))
# First bytes in UTF-8 of U+3000 to U+DFFF: scripts that put no space between words, three bytes a character.
_DENSE = (0xE3, 0xED)
_PAIR = 6
# Four counters of 16 bits in a word; sixteen shifts bring each bit of a hash to the lowest place of one.
_COUNTERS = 0x0001_0001_0001_0001
_LOWEST = np.array(_COUNTERS, np.uint64)
_ONES = np.ones(MOST_BYTES, np.uint64)
_SHIFTS = np.arange(16, dtype=np.uint64)[:, None]
_TOP = 15

Words = NDArray[np.uint64]
Places = NDArray[np.intp]


def _powers(base: int, ones: int) -> Words:
    """One for each byte, and for the zeros that are put before and behind a text."""
    powers = np.full(MOST_BYTES + 2, base, np.uint64)
    powers[:ones] = 1
    return np.cumprod(powers)


_POWERS, _INVERSES = _powers(_GOLDEN, 2), _powers(pow(_GOLDEN, -1, 1 << 64), 1)
# Digits are no letters: dates, counters and prices are what changes on a page that stays the same.
_FOLD = bytes(code if code >= 0x80 or chr(code).isalpha() else 0 for code in range(256)).lower()


def simhash(text: str) -> int | None:
    """None when the text is too short to say anything."""
    words = _words(text)
    if len(words) < FEWEST_WORDS:
        return None
    distinct, counts = _counted(words)
    return _majority(_mixed(distinct), counts)


def _words(text: str) -> Words:
    """A hash of each word. A word is a polynomial in its bytes, modulo 2**64: the difference of two running sums,
    divided by the power that its place stands for; no word is ever made a Python object."""
    raw = b"\0%b\0" % text[:MOST_BYTES].encode("utf-8", "replace")[:MOST_BYTES]
    codes = np.frombuffer(raw.translate(_FOLD), np.uint8)
    starts, ends = _bounds(codes) if raw.isascii() else _dense_bounds(codes)
    sums = codes * _POWERS[: len(codes)]
    np.add.accumulate(sums, 0, np.uint64, sums)
    words = sums[ends]
    words -= sums[starts]
    words *= _INVERSES[starts]
    return words


def _bounds(codes: NDArray[np.uint8]) -> tuple[Places, Places]:
    """Of each word the place before it and its last one."""
    inside = codes.astype(np.bool_)
    edges = (inside[1:] != inside[:-1]).nonzero()[0]
    return edges[::2], edges[1::2]


def _dense_bounds(codes: NDArray[np.uint8]) -> tuple[Places, Places]:
    starts, ends = _bounds(codes)
    if np.maximum.reduce(codes) < _DENSE[0]:
        return starts, ends
    dense = np.flatnonzero((codes >= _DENSE[0]) & (codes <= _DENSE[1]))
    # In a dense script every character begins a word, which is that character and the next.
    pairs = np.minimum(dense + (_PAIR - 1), len(codes) - 1)
    return np.concatenate((starts, dense - 1)), np.concatenate((ends, pairs))


def _counted(words: Words, most: Places = _MOST) -> tuple[Words, Words]:
    """Each word once, and how often it counts. Documentation of 1,000 words has 190 different ones: what follows
    costs a fifth. Sorts in place."""
    words.sort()
    new = np.empty(len(words) + 1, np.bool_)
    new[0] = new[-1] = True
    np.not_equal(words[1:], words[:-1], new[1:-1])
    places = new.nonzero()[0]
    counts = np.minimum(places[1:] - places[:-1], most)
    return words[places[:-1]], counts.view(np.uint64)


def _mixed(words: Words) -> Words:
    mixed = words >> _BY_30
    mixed ^= words
    mixed *= _FIRST
    mixed ^= mixed >> _BY_27
    mixed *= _SECOND
    mixed ^= mixed >> _BY_31
    return mixed


def _majority(hashes: Words, counts: Words) -> int:
    """Each bit as most of the words have it."""
    planes = hashes >> _SHIFTS
    planes &= _LOWEST
    # so much that the top bit of a counter says whether it is more than half
    more = ((1 << _TOP) - 1 - int(np.dot(counts, _ONES[: len(counts)])) // 2) * _COUNTERS
    found = 0
    for shift, ones in enumerate(np.dot(planes, counts).tolist()):
        found |= ((ones + more) >> _TOP & _COUNTERS) << shift
    return found
