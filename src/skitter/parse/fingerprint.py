"""SimHash: 64 bits of a text that differ in few places when two texts differ in few words. Pure.

After the reading of a page and before its settling, where the frontier looks for pages alike. The same text has
the same fingerprint on every machine and every Python, for ever: fingerprints lie on disk. Its cost is linear
and bounded, whatever the text. numpy is imported here and takes 0.1 s: import this module only to crawl.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Texts of fewer words say too little. Of 367 pages with 15 to 20 words 3.5 % were taken for another page, of
# longer ones 1.4 % (the half of bench.near's pages that choices are made on; with digits, counted up to 8).
FEWEST_WORDS = 20
# The beginning speaks for what is longer.
MOST_BYTES = 131_072
# A word counts as often as it occurs, up to this. Without a limit 4.1 % of different pages pass for another
# instead of 1.5 % (all say "the" and "method"), and when each counts once recall falls from 0.82 to 0.55.
_MOST_REPEATS = 16
_BITS = 64
_GOLDEN = 0x9E37_79B9_7F4A_7C15
_FIRST, _SECOND = 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB
# First bytes in UTF-8 of U+3000 to U+DFFF: scripts that put no space between words, three bytes a character.
_DENSE = (0xE3, 0xED)
_PAIR = 6
_SHIFTS = np.arange(8, dtype=np.uint64)[:, None]
_LOWEST = np.uint64(0x0101_0101_0101_0101)
_RUN = 255

Words = NDArray[np.uint64]
Places = NDArray[np.intp]


class _Tables(NamedTuple):
    powers: Words
    inverses: Words
    fold: bytes


def simhash(text: str) -> int | None:
    """None when the text is too short to say anything. 115 us for 7 KB, on a busy machine."""
    words = _words(text)
    if len(words) < FEWEST_WORDS:
        return None
    return _majority(_mixed(_without_excess(words)))


@cache
def _tables() -> _Tables:
    """2 MB, made in 2 ms."""
    # Digits are no letters: dates, counters and prices are what changes on a page that stays the same.
    fold = bytes(code if code >= 0x80 or chr(code).isalpha() else 0 for code in range(256)).lower()
    return _Tables(_powers(_GOLDEN), _powers(pow(_GOLDEN, -1, 1 << _BITS)), fold)


def _powers(base: int) -> Words:
    powers = np.full(MOST_BYTES, base, np.uint64)
    powers[0] = 1
    return np.cumprod(powers)


def _words(text: str) -> Words:
    """A hash of each word, in order. A word is a polynomial in its bytes, modulo 2**64: the difference of two
    running sums, divided by the power that its place stands for; no word is ever made a Python object."""
    tables = _tables()
    raw = text[:MOST_BYTES].encode("utf-8", "replace")[:MOST_BYTES].translate(tables.fold)
    codes = np.frombuffer(raw, np.uint8)
    starts, ends = _bounds(codes) if raw.isascii() else _dense_bounds(codes)
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(codes * tables.powers[: len(codes)], out=sums[1:])
    return (sums[ends] - sums[starts]) * tables.inverses[starts]


def _bounds(codes: NDArray[np.uint8]) -> tuple[Places, Places]:
    inside = np.zeros(len(codes) + 2, np.bool_)
    np.not_equal(codes, 0, out=inside[1:-1])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return edges[::2], edges[1::2]


def _dense_bounds(codes: NDArray[np.uint8]) -> tuple[Places, Places]:
    starts, ends = _bounds(codes)
    dense = np.flatnonzero((codes >= _DENSE[0]) & (codes <= _DENSE[1]))
    if not len(dense):
        return starts, ends
    # In a dense script every character begins a word, which is that character and the next.
    pairs = np.minimum(dense + _PAIR, len(codes))
    return np.concatenate((starts, dense)), np.concatenate((ends, pairs))


def _without_excess(words: Words) -> Words:
    """In sorted order a word is one too many when it equals the one that many places before."""
    ordered = np.sort(words)
    early, later = ordered[:_MOST_REPEATS], ordered[_MOST_REPEATS:]
    return np.concatenate((early, later[later != ordered[:-_MOST_REPEATS]]))


def _mixed(words: Words) -> Words:
    mixed = words >> np.uint64(30)
    mixed ^= words
    mixed *= np.uint64(_FIRST)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_SECOND)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _majority(hashes: Words) -> int:
    """Each bit as most of the hashes have it. The ones are counted in the eight bytes of a word at once, in runs
    that a byte can count: 20 us for 800 words, 45 with a byte for each bit."""
    planes = (hashes >> _SHIFTS) & _LOWEST
    runs = np.add.reduceat(planes, np.arange(0, len(hashes), _RUN), axis=1)
    ones = runs.astype("<u8", copy=False).view(np.uint8).reshape(8, -1, 8).sum(axis=1, dtype=np.int64)
    most = np.packbits(2 * ones > len(hashes), axis=0, bitorder="little")
    return int.from_bytes(most.tobytes(), "little")
