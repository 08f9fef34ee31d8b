"""A Bloom filter over halves of fingerprints, in numpy: defines what the kernel `skitter.native._kernels` does,
and does it where none was built. Words and masks are the caller's; `near_filter.py` says what they mean.
"""

from __future__ import annotations

import struct
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from skitter.schedule.near import FORMS, distance

Words = NDArray[np.uint64]

_WIDTH = 8
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)
# The forms of a half: itself, and with each of its bits flipped.
_FLIPS = np.array([0, *(1 << bit for bit in range(FORMS - 1))], np.uint64)
# This bit tells lower halves from upper ones; the next bit is the parity.
_LOWER = np.uint64(1 << 32)
_PARITY = np.uint64(33)
# The same of the lower half, at an odd distance; last, itself at an even one.
_LOWER_FLIPS = np.append(_FLIPS | np.uint64(1 << 33), np.uint64(0))
_ASKED = 2 * FORMS + 1
_FIRST, _SECOND = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xBF58_476D_1CE4_E5B9)
# Each half sets bits in two words: 0.11 % false positives at 16 bits for each half.
_WORDS = 2


def near_add(words: mmap, masks: bytes, fingerprints: list[int]) -> None:
    asked = np.array(fingerprints, np.uint64)
    mixed = _mixed(np.concatenate((asked >> _HALF, _lower(asked))))
    known = np.frombuffer(words, np.uint64)
    for word in range(_WORDS):
        np.bitwise_or.at(known, *_places(known, masks, mixed, word))


def near_find_candidates(words: mmap, masks: bytes, fingerprints: list[int]) -> list[list[int]]:
    """Numbers of the forms that may be stored, for each fingerprint."""
    asked = np.array(fingerprints, np.uint64)[:, None]
    halves = np.concatenate(((asked >> _HALF) ^ _FLIPS, _lower(asked) ^ _LOWER_FLIPS), axis=1)
    mixed = _mixed(halves).ravel()
    maybe = np.arange(len(mixed))
    known = np.frombuffer(words, np.uint64)
    for word in range(_WORDS):
        # few are left after the first
        places, wanted = _places(known, masks, mixed[maybe] if word else mixed, word)
        maybe = maybe[known[places] & wanted == wanted]
    found: list[list[int]] = [[] for _ in fingerprints]
    for place in maybe.tolist():
        number, form = divmod(place, _ASKED)
        if form == _ASKED - 1:
            form = FORMS
        if form not in found[number]:
            found[number].append(form)
    return found


def near_select_close(fingerprint: int, others: list[int], most: int) -> list[int]:
    return [other for other in others if distance(fingerprint, other) <= most]


def near_unpack_close(fingerprint: int, stored: bytes, most: int) -> list[int]:
    """The near ones among joined fingerprints of 8 bytes; fewer bytes at the end are ignored."""
    others = struct.unpack_from(f">{len(stored) // _WIDTH}Q", stored)
    return near_select_close(fingerprint, list(others), most)


def _places(words: Words, masks: bytes, mixed: Words, word: int) -> tuple[Words, Words]:
    if word:
        mixed = mixed * _FIRST
        mixed ^= mixed >> _HALF
    places = ((mixed >> _HALF) * np.uint64(len(words))) >> _HALF
    each = np.frombuffer(masks, np.uint64)
    return places, each[mixed & np.uint64(len(each) - 1)]


def _lower(fingerprints: Words) -> Words:
    """The lower halves, each with the parity of its fingerprint."""
    ones: Words = np.left_shift(np.bitwise_count(fingerprints) & np.uint8(1), _PARITY, dtype=np.uint64)
    return ones | (fingerprints & _LOW | _LOWER)


def _mixed(halves: Words) -> Words:
    mixed = halves * _FIRST
    mixed ^= mixed >> _HALF
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(29)
    return mixed
