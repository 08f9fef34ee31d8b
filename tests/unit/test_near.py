"""Whatever lies within three bits shares a key; what is asked for and kept stays small."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from skitter.schedule.near import NEAR, distance, near_keys, nearest

fingerprints = st.integers(0, 2**64 - 1)


def flipped(fingerprint: int, bits: tuple[int, ...]) -> int:
    for bit in bits:
        fingerprint ^= 1 << bit
    return fingerprint


def test_no_three_bits_can_change_all_keys() -> None:
    keys = set(near_keys(0))
    for bits in itertools.combinations(range(64), NEAR):
        assert keys & set(near_keys(flipped(0, bits))), bits


@given(fingerprints, st.sets(st.integers(0, 63), max_size=NEAR))
def test_what_is_near_shares_a_key(fingerprint: int, bits: set[int]) -> None:
    other = flipped(fingerprint, tuple(bits))
    assert set(near_keys(fingerprint)) & set(near_keys(other))
    assert nearest(fingerprint, [other]) == other


def test_a_key_holds_21_or_22_bits_so_that_rows_stay_short() -> None:
    ones = near_keys(2**64 - 1)
    assert sorted(int.from_bytes(key[1:], "big").bit_count() for key in ones) == [21, 21, 21, 21, 22, 22]
    assert [key[0] for key in ones] == [1, 2, 3, 4, 5, 6]


@given(fingerprints, st.lists(fingerprints, max_size=20))
def test_the_nearest_is_named_whatever_the_order(fingerprint: int, others: list[int]) -> None:
    close = [flipped(fingerprint, (1, 2)), flipped(fingerprint, (3,)), flipped(fingerprint, (4,))]
    candidates = [*others, *close]
    shuffled = candidates.copy()
    random.Random(1).shuffle(shuffled)
    assert nearest(fingerprint, candidates) == nearest(fingerprint, shuffled)
    assert distance(fingerprint, nearest(fingerprint, candidates) or 0) <= 1


def test_nothing_near_is_nothing() -> None:
    assert nearest(0, []) is None
    assert nearest(0, [0b1111]) is None
    assert nearest(0, [0b0111]) == 0b0111
