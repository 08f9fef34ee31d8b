"""A Bloom filter over halves of fingerprints, in numpy: defines what the kernel `skitter.native.nearwords` does,
and does it where none was built. Words and masks are the caller's; `near_filter.py` says what they mean.
"""

from __future__ import annotations

import struct
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from skitter.schedule.near import PROBES, distance

Words = NDArray[np.uint64]

_WIDTH = 8
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)
# Of a half: itself, and with each of its bits the other way.
_FLIPS = np.array([0, *(1 << bit for bit in range(PROBES - 1))], np.uint64)
# Tells the lower half's values from the upper's, and behind it the parity.
_LOWER = np.uint64(1 << 32)
_PARITY = np.uint64(33)
# The same of the lower half, at an odd distance; last, itself at an even one.
_LOWER_FLIPS = np.append(_FLIPS | np.uint64(1 << 33), np.uint64(0))
_ASKED = 2 * PROBES + 1
_FIRST, _SECOND = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xBF58_476D_1CE4_E5B9)
# Each half has its bits in two words: 0.11 % of those that are not there seem so at 16 bits each.
_WORDS = 2


def add(words: mmap, masks: bytes, fingerprints: list[int]) -> None:
    asked = np.array(fingerprints, np.uint64)
    mixed = _mixed(np.concatenate((asked >> _HALF, _lower(asked))))
    known = np.frombuffer(words, np.uint64)
    for turn in range(_WORDS):
        np.bitwise_or.at(known, *_places(known, masks, mixed, turn))


def suspects(words: mmap, masks: bytes, fingerprints: list[int]) -> list[list[int]]:
    """2 us each for twenty at once, 15 for one."""
    asked = np.array(fingerprints, np.uint64)[:, None]
    halves = np.concatenate(((asked >> _HALF) ^ _FLIPS, _lower(asked) ^ _LOWER_FLIPS), axis=1)
    mixed = _mixed(halves).ravel()
    maybe = np.arange(len(mixed))
    known = np.frombuffer(words, np.uint64)
    for turn in range(_WORDS):
        # few are left after the first
        places, wanted = _places(known, masks, mixed[maybe] if turn else mixed, turn)
        maybe = maybe[known[places] & wanted == wanted]
    found: list[list[int]] = [[] for _ in fingerprints]
    for place in maybe.tolist():
        number, probe = divmod(place, _ASKED)
        if probe == _ASKED - 1:
            probe = PROBES
        if probe not in found[number]:
            found[number].append(probe)
    return found


def close_to(fingerprint: int, others: list[int], most: int) -> list[int]:
    return [other for other in others if distance(fingerprint, other) <= most]


def close_in(fingerprint: int, stored: bytes, most: int) -> list[int]:
    """Of fingerprints of 8 bytes each, one behind the other; what is left over at the end is none."""
    others = struct.unpack_from(f">{len(stored) // _WIDTH}Q", stored)
    return close_to(fingerprint, list(others), most)


def _places(words: Words, masks: bytes, mixed: Words, turn: int) -> tuple[Words, Words]:
    if turn:
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
