"""A Bloom filter over halves of fingerprints: which of the 66 that a near page can have are there at all?

In front of the index of fingerprints, as the seen filter is in front of the URLs. Its size is fixed, however many
pages there are: beyond some thirteen bits a fingerprint's half it says "maybe" more often, and that costs reads,
never a page. It never says no of what was added. numpy comes with it, in 0.1 s: only who settles pages needs it.

With a lower half goes the parity of the whole: whether its ones are odd in number. What is near and not found by
its upper half differs there in two bits or three, so below in one or none: at a distance of three, or with its
lower half as it is. Of a lower half with one bit flipped only what is at an odd distance matters.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skitter.schedule.near import PROBES

Words = NDArray[np.uint64]

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
_MASKS = 4_096
_ONES = 4
# Each half has its bits in two words: 0.11 % of those that are not there seem so at 16 bits each.
_WORDS = 2
# Of what is said with which bits: a file of another version is not believed.
_VERSION = b"\2"


def _masks() -> Words:
    """Four bits of a word: one look at memory answers for most halves."""
    rng = random.Random(1)
    return np.array([sum(1 << bit for bit in rng.sample(range(64), _ONES)) for _ in range(_MASKS)], np.uint64)


class NearFilter:
    def __init__(self, size: int) -> None:
        self._words = np.zeros(max(1, size // 8), np.uint64)
        self._masks = _masks()

    def add(self, fingerprints: Words) -> None:
        mixed = _mixed(np.concatenate((fingerprints >> _HALF, _lower(fingerprints))))
        for turn in range(_WORDS):
            np.bitwise_or.at(self._words, *self._places(mixed, turn))

    def suspects(self, fingerprints: Sequence[int]) -> list[list[int]]:
        """For each fingerprint the numbers of its probes that may be there: below `PROBES` of the upper half,
        from it on of the lower. 2 us each for twenty at once, 15 for one."""
        asked = np.array(fingerprints, np.uint64)[:, None]
        halves = np.concatenate(((asked >> _HALF) ^ _FLIPS, _lower(asked) ^ _LOWER_FLIPS), axis=1)
        mixed = _mixed(halves).ravel()
        maybe = np.arange(len(mixed))
        for turn in range(_WORDS):
            # few are left after the first
            places, masks = self._places(mixed[maybe] if turn else mixed, turn)
            maybe = maybe[self._words[places] & masks == masks]
        found: list[list[int]] = [[] for _ in fingerprints]
        for place in maybe.tolist():
            number, probe = divmod(place, _ASKED)
            if probe == _ASKED - 1:
                probe = PROBES
            if probe not in found[number]:
                found[number].append(probe)
        return found

    def _places(self, mixed: Words, turn: int) -> tuple[Words, Words]:
        if turn:
            mixed = mixed * _FIRST
            mixed ^= mixed >> _HALF
        places = ((mixed >> _HALF) * np.uint64(len(self._words))) >> _HALF
        return places, self._masks[mixed & np.uint64(_MASKS - 1)]

    def save(self, path: Path, stamp: bytes) -> None:
        temporary = path.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(stamp + _VERSION)
            file.write(self._words.data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def restore(self, path: Path, stamp: bytes) -> bool:
        """Take the place of one saved with this very stamp, by this version and of the same size; False when
        there is none."""
        head = stamp + _VERSION
        try:
            raw = path.read_bytes()
        except OSError:
            return False
        if not raw.startswith(head) or len(raw) != len(head) + self._words.nbytes:
            return False
        self._words = np.frombuffer(raw, np.uint64, offset=len(head)).copy()
        return True


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


def fingerprints_of(keys: Sequence[bytes]) -> Words:
    """From big-endian bytes."""
    return np.frombuffer(b"".join(keys), ">u8").astype(np.uint64)
