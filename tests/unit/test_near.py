"""Whatever lies within three bits is found under what is asked for, and little is asked for in vain."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skitter.frontier.tables.near_filter import NearFilter
from skitter.schedule.near import FORMS, NEAR, distance, half_of, nearest, swapped

fingerprints = st.integers(0, 2**64 - 1)


def flipped(fingerprint: int, bits: tuple[int, ...]) -> int:
    for bit in bits:
        fingerprint ^= 1 << bit
    return fingerprint


def beginnings(fingerprint: int) -> set[bytes]:
    """Of all that an index is asked for: the upper halves, and behind a mark the lower ones."""
    upper = {b"0" + half_of(fingerprint, form) for form in range(FORMS)}
    return upper | {b"7" + half_of(swapped(fingerprint), form) for form in range(FORMS)}


def own(fingerprint: int) -> set[bytes]:
    """What it lies under itself."""
    return {b"0" + half_of(fingerprint, 0), b"7" + half_of(swapped(fingerprint), 0)}


def test_no_three_bits_can_hide_a_fingerprint() -> None:
    asked = beginnings(0)
    assert len(asked) == 66
    for bits in itertools.combinations(range(64), NEAR):
        assert asked & own(flipped(0, bits)), bits


@given(fingerprints, st.sets(st.integers(0, 63), max_size=NEAR))
def test_what_is_near_lies_under_what_is_asked_for(fingerprint: int, bits: set[int]) -> None:
    other = flipped(fingerprint, tuple(bits))
    assert beginnings(fingerprint) & own(other)
    assert swapped(swapped(fingerprint)) == fingerprint
    assert nearest(fingerprint, [other]) == other


@given(st.lists(fingerprints, min_size=1, max_size=30), st.sets(st.integers(0, 63), max_size=NEAR))
def test_the_filter_never_hides_what_is_near(known: list[int], bits: set[int]) -> None:
    sieve = NearFilter(1_000)
    sieve.add(known)
    others = [flipped(one, tuple(bits)) for one in known]
    for one, other, forms in zip(known, others, sieve.suspects(others), strict=True):
        rows = {b"0" + half_of(other, p) for p in forms if p < FORMS}
        rows |= {b"7" + half_of(swapped(other), p - FORMS) for p in forms if p >= FORMS}
        assert rows & own(one)


def test_no_three_bits_can_hide_a_fingerprint_from_the_filter() -> None:
    known = 0x0123_4567_89AB_CDEF
    sieve = NearFilter(1_000)
    sieve.add([known])
    bits = [some for count in range(NEAR + 1) for some in itertools.combinations(range(64), count)]
    near = [flipped(known, some) for some in bits]
    for some, other, forms in zip(bits, near, sieve.suspects(near), strict=True):
        rows = {b"0" + half_of(other, p) for p in forms if p < FORMS}
        rows |= {b"7" + half_of(swapped(other), p - FORMS) for p in forms if p >= FORMS}
        assert rows & own(known), some


def test_a_lower_half_with_one_bit_flipped_is_a_suspect_at_an_odd_distance_only() -> None:
    sieve = NearFilter(100_000)
    sieve.add([0])
    above = [1 << 40, 0b11 << 40, 0b111 << 40, 0b1111 << 40]
    alone, below = sieve.suspects(above[1:]), sieve.suspects([one | 1 for one in above[1:]])
    assert alone == [[FORMS]] * 3
    assert below == [[FORMS + 1], [], [FORMS + 1]]
    # one bit above and one below: found by the upper half
    assert sieve.suspects([above[0] | 1]) == [[1 + 40 - 32]]


def test_a_filter_that_an_earlier_version_saved_is_not_believed(tmp_path: Path) -> None:
    stamp = bytes(range(16))
    sieve = NearFilter(800)
    sieve.add([7])
    file = tmp_path / "near.filter"
    sieve.save(file, stamp)
    assert NearFilter(800).restore(file, stamp)
    assert not NearFilter(800).restore(file, bytes(16))
    assert not NearFilter(808).restore(file, stamp)
    file.write_bytes(stamp + bytes(800))
    assert not NearFilter(800).restore(file, stamp)


def test_a_filter_is_crowded_at_nineteen_bits_a_half_and_not_at_thirty() -> None:
    rng = random.Random(1)
    for bits, crowded in ((30, False), (17, True)):
        sieve = NearFilter(2 * 2_000 * bits // 8)
        sieve.add([rng.getrandbits(64) for _ in range(2_000)])
        assert sieve.is_crowded() is crowded


def test_the_filter_spares_nearly_all_reads_at_thirteen_bits_a_half() -> None:
    rng = np.random.default_rng(1)
    sieve = NearFilter(2 * 100_000 * 13 // 8)
    sieve.add(rng.integers(0, 1 << 64, 100_000, np.uint64).tolist())
    asked = rng.integers(0, 1 << 64, 2_000, np.uint64).tolist()
    reads = sum(map(len, sieve.suspects(asked))) / len(asked)
    assert reads < 0.4


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
