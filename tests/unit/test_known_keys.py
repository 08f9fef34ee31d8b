"""What is called certainly known was added; what is forgotten is only forgotten, and memory is bounded."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from skitter.frontier.keyset import KnownKeys
from skitter.frontier.keyset_plain import BUCKET, FEWEST_BUCKETS, MOST_LINKERS, WAYS, has_linker
from skitter.frontier.tables.caches import ClockCache, RecentKeys, TrimmedCache, TwoGenerationCache

KEYS = st.binary(min_size=16, max_size=16)


@given(st.lists(KEYS), st.lists(KEYS))
def test_a_key_that_was_never_added_is_never_known(added: list[bytes], others: list[bytes]) -> None:
    certain = KnownKeys(0)
    for key in added:
        certain.add(key)
    assert not [key for key in others if certain.has(key) and key not in added]


def test_keys_of_one_host_that_share_a_place_are_told_apart() -> None:
    certain = KnownKeys(0)
    keys = [bytes(8) + (number * FEWEST_BUCKETS).to_bytes(8, "big") for number in range(1, 50)]
    for key in keys:
        certain.add(key)
        assert certain.has(key)
    assert [certain.has(key) for key in keys] == [False] * (49 - WAYS) + [True] * WAYS


def test_a_key_that_is_asked_for_outlives_those_that_are_not() -> None:
    certain = KnownKeys(0)
    keys = [bytes(8) + (number * FEWEST_BUCKETS).to_bytes(8, "big") for number in range(1, 50)]
    for key in keys:
        certain.add(key)
        assert certain.has(keys[0])


def test_hosts_with_the_same_paths_are_told_apart() -> None:
    certain = KnownKeys(0)
    certain.add(b"host-one" + b"the-path")
    assert not certain.has(b"host-two" + b"the-path")


def test_nearly_all_of_a_million_keys_are_remembered_in_seventeen_megabytes() -> None:
    """Hosts have the same paths: their front pages, `/about`, `/contact`."""
    certain = KnownKeys(17_000_000)
    certain.make_room(1_000_000)
    chance = random.Random(1)
    paths = [chance.randbytes(8) for _ in range(10)]
    keys = [host + path for host in (chance.randbytes(8) for _ in range(100_000)) for path in paths]
    for key in keys:
        certain.add(key)
    assert sum(certain.has(key) for key in keys) > 998_000


def test_a_table_that_grows_loses_no_key_and_learns_none() -> None:
    certain = KnownKeys(30 * FEWEST_BUCKETS * BUCKET)
    chance = random.Random(2)
    keys = [chance.randbytes(16) for _ in range(3_000)]
    others = [chance.randbytes(16) for _ in range(3_000)]
    sizes = []
    for known in (10, 500_000, 2_000_000, 20_000_000):
        for key in keys:
            certain.add(key)
        certain.make_room(known)
        sizes.append(len(certain._table) // (FEWEST_BUCKETS * BUCKET))
        assert all(map(certain.has, keys))
        assert not any(map(certain.has, others))
    assert sizes == [1, 4, 16, 30]


def test_what_was_asked_for_last_stays_the_youngest_when_the_table_grows() -> None:
    certain = KnownKeys(4 * FEWEST_BUCKETS * BUCKET)
    # one bucket before and after
    keys = [bytes(8) + (number * FEWEST_BUCKETS * 4).to_bytes(8, "big") for number in range(WAYS + 2)]
    for key in keys[:WAYS]:
        certain.add(key)
    certain.make_room(500_000)
    for key in keys[WAYS:]:
        certain.add(key)
    assert [certain.has(key) for key in keys] == [False] * 2 + [True] * WAYS


def test_after_clearing_nothing_is_known() -> None:
    certain = KnownKeys(0)
    certain.add(bytes(range(16)))
    certain.clear()
    assert not certain.has(bytes(range(16)))


def test_what_is_read_again_outlives_what_is_not() -> None:
    kept: TwoGenerationCache[int, str] = TwoGenerationCache(8)
    kept[0] = kept[1] = "first"
    for number in range(2, 50):
        kept[number] = "later"
        assert kept.get(0) == "first"
        assert len(kept.items()) <= 8
    assert kept.get(1) is None


def test_the_last_word_on_a_key_counts() -> None:
    kept: TwoGenerationCache[int, str] = TwoGenerationCache(4)
    for word in ("first", "second", "third"):
        kept[0] = word
        kept[1] = word
        assert kept.get(0) == dict(kept.items())[0] == word


def test_what_fits_is_never_forgotten_however_often_it_is_put_and_asked_for() -> None:
    kept: ClockCache[int, int] = ClockCache(8)
    for number in range(100):
        kept[number % 8] = number
        kept.get(number * 5 % 8)
    assert dict(kept.items()) == {number % 8: number for number in range(92, 100)}


def test_room_that_was_once_filled_stays_filled_and_the_newest_is_in_it() -> None:
    kept: ClockCache[int, int] = ClockCache(8)
    for number in range(50):
        kept[number] = number
        assert kept.get(number) == number
        assert len(kept) == len(kept.items()) == min(8, number + 1)


def test_what_is_asked_for_again_and_again_is_not_put_out_by_what_is_not() -> None:
    kept: ClockCache[int, str] = ClockCache(8)
    kept[0] = kept[1] = "first"
    for number in range(2, 50):
        kept[number] = "later"
        assert kept.get(0) == "first"
    assert kept.get(1) is None


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(("put", "get", "clear"))), max_size=60))
def test_what_is_brimful_never_has_more_than_its_limit_and_never_another_value(
    steps: list[tuple[int, str]],
) -> None:
    kept: ClockCache[int, int] = ClockCache(6)
    truth: dict[int, int] = {}
    for number, (key, step) in enumerate(steps):
        if step == "put":
            kept[key] = truth[key] = number
            assert kept.get(key) == number
        elif step == "clear":
            kept.clear()
        assert kept.get(key) in (None, truth.get(key))
        assert dict(kept.items()).items() <= truth.items()
        assert len(kept) == len(kept.items()) <= 6


def test_what_lasts_forgets_nothing_before_it_is_trimmed_and_keeps_what_came_last_then() -> None:
    kept: TrimmedCache[int, str] = TrimmedCache(8)
    for number in range(100):
        kept[number] = "one turn"
    assert all(number in kept for number in range(100))
    kept.trim()
    assert [number for number in range(100) if number in kept] == [96, 97, 98, 99]


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(("put", "get", "drop", "trim"))), max_size=60))
def test_what_lasts_never_has_more_than_its_limit_when_trimmed_and_never_another_value(
    steps: list[tuple[int, str]],
) -> None:
    kept: TrimmedCache[int, int] = TrimmedCache(6)
    truth: dict[int, int] = {}
    for number, (key, step) in enumerate(steps):
        if step == "put":
            kept[key] = truth[key] = number
        elif step == "drop":
            kept.drop(key)
            truth.pop(key, None)
        elif step == "trim":
            kept.trim()
            assert len(kept) <= 6
        assert kept.get(key) in (None, truth.get(key))
        assert dict(kept.items()).items() <= truth.items()


@given(st.lists(st.binary(min_size=2, max_size=2)), st.binary(min_size=2, max_size=2))
def test_a_linker_is_found_among_marks_and_never_across_two(marks: list[bytes], linker: bytes) -> None:
    assert has_linker(b"".join(marks), linker) == (linker in marks)
    assert not has_linker(b"xaby", b"ab")
    assert has_linker(b"xabyab", b"ab")


def unheard(recent: RecentKeys, keys: list[bytes], linker: bytes, *certain: bytes) -> list[int]:
    known = KnownKeys(0)
    for key in certain:
        known.add(key)
    return known.find_news(b"".join(keys), bytes(8), recent.young, recent.old, linker.ljust(16, b"-"))


def test_a_link_is_heard_once_of_a_host_and_not_at_all_when_enough_hosts_link_it() -> None:
    recent, key = RecentKeys(100), b"one-host-one-key"
    assert unheard(recent, [key], b"ab") == [0]
    recent.put(key, b"abcdef")
    assert unheard(recent, [key], b"cd") == []
    assert unheard(recent, [key], b"gh") == [0]
    recent.put(key, bytes(2 * MOST_LINKERS))
    assert unheard(recent, [key], b"gh") == []


def test_who_links_what_is_known_is_noted_until_they_are_twice_as_many() -> None:
    recent, key = RecentKeys(100), b"one-host-one-key"
    assert unheard(recent, [key], b"ab", key) == []
    assert recent.get(key) == b"ab"
    assert unheard(recent, [key], b"cd") == [0]
    assert recent.get(key) == b"ab"
    recent.put(key, b"abcd")
    assert unheard(recent, [key, key], b"ef") == []
    assert recent.get(key) == b"abcdef"


def test_a_host_is_not_noted_as_one_that_links_itself() -> None:
    recent, key = RecentKeys(100), b"one-host-one-key"
    assert unheard(recent, [key], b"one-host", key) == []
    assert recent.get(key) is None


def test_what_was_heard_is_forgotten_in_halves() -> None:
    recent = RecentKeys(4)
    keys = [b"one-host" + bytes(7) + bytes([number]) for number in range(4)]
    for key in keys[:3]:
        recent.put(key, b"ab")
    assert unheard(recent, keys, b"ab") == [3]
    recent.put(keys[3], b"ab")
    assert unheard(recent, keys, b"ab") == [0, 1]


def test_what_was_noted_is_forgotten_in_halves_too() -> None:
    recent = RecentKeys(4)
    keys = [b"one-host" + bytes(7) + bytes([number]) for number in range(3)]
    assert unheard(recent, keys, b"ab", *keys) == []
    recent.age()
    assert unheard(recent, keys, b"ab") == []
    recent.put(keys[0], b"ab")
    recent.put(keys[0], b"ab")
    recent.put(keys[1], b"ab")
    assert unheard(recent, keys, b"ab") == [2]
