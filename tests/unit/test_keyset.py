"""The kernels of keys and of fingerprints say what their twins in Python say, and leave the same bits."""

from __future__ import annotations

import struct
from array import array
from mmap import mmap
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.frontier import keyset_plain
from skitter.frontier.rows import Found, UrlRow
from skitter.frontier.tables import nearwords_plain
from skitter.frontier.tables.layout import (
    decode_url,
    encode,
    encode_new_rows,
    encode_shared_fields,
    slots_of,
)
from skitter.frontier.tables.near_filter import _masks
from skitter.frontier.tables.slots import slot_of
from skitter.model import UrlState, Via
from tests.frontier_kit import discovered

keyset = nearwords = pytest.importorskip("skitter.native._kernels", reason="the kernels were not built")

HOSTS = st.sampled_from([bytes(8), b"\xff" * 8, b"one-host", b"two-host"])
KEYS = st.builds(bytes.__add__, HOSTS, st.binary(min_size=8, max_size=8))
# few places, so that keys meet in them; sizes that are no multiple of what lies in a table
SIZES = st.integers(64, 700)
FINGERPRINTS = st.lists(st.integers(0, (1 << 64) - 1), max_size=30)


@given(SIZES, st.lists(KEYS), st.lists(KEYS), HOSTS)
def test_keys_of_one_host_are_added_alike(
    size: int, before: list[bytes], added: list[bytes], host: bytes
) -> None:
    kernel, plain = mmap(-1, size), mmap(-1, size)
    for key in before:
        keyset.certain_add(kernel, key)
        keyset_plain.certain_add(plain, key)
    keyset.certain_add_own(kernel, b"".join(added), host)
    for key in added:
        if key.startswith(host):
            keyset_plain.certain_add(plain, key)
    assert kernel[:] == plain[:]
    again = mmap(-1, size)
    keyset_plain.certain_add_own(again, b"".join(added), host)
    assert (again[:] == bytes(size)) is not any(key.startswith(host) for key in added)
    with pytest.raises(ValueError, match="16 bytes"):
        keyset.certain_add_own(kernel, b"short", host)


@given(SIZES, st.lists(KEYS), st.lists(KEYS), HOSTS)
def test_what_is_certain_is_the_same_with_and_without_the_kernel(
    size: int, added: list[bytes], asked: list[bytes], host: bytes
) -> None:
    kernel, plain = mmap(-1, size), mmap(-1, size)
    for key in added:
        keyset.certain_add(kernel, key)
        keyset_plain.certain_add(plain, key)
    assert kernel[:] == plain[:]
    every = [*asked, *added]
    assert [keyset.certain_has(kernel, key) for key in every] == [
        keyset_plain.certain_has(plain, key) for key in every
    ]
    joined = b"".join(every)
    assert keyset.certain_find_missing(kernel, joined, host) == keyset_plain.certain_find_missing(
        plain, joined, host
    )


@given(SIZES, st.lists(KEYS), st.lists(KEYS))
def test_many_keys_are_added_as_one_by_one(size: int, before: list[bytes], added: list[bytes]) -> None:
    kernel, plain = mmap(-1, size), mmap(-1, size)
    for key in before:
        keyset.certain_add(kernel, key)
        keyset_plain.certain_add(plain, key)
    keyset.certain_add_all(kernel, added)
    keyset_plain.certain_add_all(plain, added)
    assert kernel[:] == plain[:]
    for wrong, kind in (
        (tuple(added), TypeError),
        ([b"x" * 16, b"short"], ValueError),
        (["x" * 16], ValueError),
    ):
        with pytest.raises(kind):
            keyset.certain_add_all(kernel, wrong)
    assert kernel[:] == plain[:]


MARKS = st.sampled_from([b"ab", b"ba", b"bb"])
HEARD = st.dictionaries(KEYS, st.lists(MARKS, max_size=4).map(b"".join) | st.just(b"xy" * 32), max_size=8)

PARENTS = KEYS | MARKS.map(lambda mark: mark.ljust(16, b"-"))


@given(SIZES, st.lists(KEYS), st.lists(KEYS), HOSTS, HEARD, HEARD, PARENTS)
def test_what_was_heard_is_the_same_with_and_without_the_kernel(
    size: int,
    added: list[bytes],
    asked: list[bytes],
    host: bytes,
    young: dict[bytes, bytes],
    old: dict[bytes, bytes],
    parent: bytes,
) -> None:
    kernel, plain = mmap(-1, size), mmap(-1, size)
    for key in added:
        keyset.certain_add(kernel, key)
        keyset_plain.certain_add(plain, key)
    joined = b"".join([*asked, *added, *young, *old])
    noted, plainly = young.copy(), young.copy()
    assert keyset.certain_find_news(
        kernel, joined, host, noted, old, parent
    ) == keyset_plain.certain_find_news(plain, joined, host, plainly, old, parent)
    assert kernel[:] == plain[:]
    assert noted == plainly


@given(SIZES, SIZES, st.lists(KEYS), st.lists(KEYS))
def test_a_table_moves_to_another_in_the_same_way_with_and_without_the_kernel(
    size: int, other: int, added: list[bytes], before: list[bytes]
) -> None:
    kernel, plain = mmap(-1, size), mmap(-1, size)
    kernel_to, plain_to = mmap(-1, other), mmap(-1, other)
    for way, table, to in ((keyset, kernel, kernel_to), (keyset_plain, plain, plain_to)):
        for key in added:
            way.certain_add(table, key)
        for key in before:
            way.certain_add(to, key)
        way.certain_move(table, to)
    assert kernel[:] == plain[:]
    assert kernel_to[:] == plain_to[:]


@given(SIZES, st.integers(1, 32), st.lists(KEYS), st.lists(KEYS))
def test_the_seen_filter_has_the_same_bits_with_and_without_the_kernel(
    size: int, hashes: int, added: list[bytes], asked: list[bytes]
) -> None:
    kernel, plain = mmap(-1, size), mmap(-1, size)
    for key in added:
        keyset.bloom_add(kernel, hashes, key)
        keyset_plain.bloom_add(plain, hashes, key)
    assert kernel[:] == plain[:]
    assert all(keyset.bloom_has(kernel, hashes, key) for key in added)
    assert [keyset.bloom_has(kernel, hashes, key) for key in asked] == [
        keyset_plain.bloom_has(plain, hashes, key) for key in asked
    ]


@given(st.lists(st.lists(SIZES, max_size=3), min_size=1, max_size=5), SIZES, st.integers(1, 32), st.data())
def test_new_keys_are_met_in_the_same_way_with_and_without_the_kernel(
    sizes: list[list[int]], size: int, hashes: int, data: st.DataObject
) -> None:
    added, met = data.draw(st.lists(KEYS)), data.draw(st.lists(KEYS))
    tables = mmap(-1, size), mmap(-1, size)
    both = _parts(sizes), _parts(sizes)
    for number, key in enumerate(added):
        for table, parts in zip(tables, both, strict=True):
            part = parts[number % len(parts)]
            if number % 3 == 0:
                keyset.certain_add(table, key)
            for layer in part[1:]:
                keyset.bloom_add(layer, hashes, key)
    first = keyset.add_new_keys(tables[0], both[0], hashes, met)
    assert first == keyset_plain.add_new_keys(tables[1], both[1], hashes, met)
    assert tables[0][:] == tables[1][:]
    assert _written(both[0]) == _written(both[1])
    assert sum(first) == sum(part[0][0] for part in both[0] if part)


def _parts(sizes: list[list[int]]) -> list[keyset_plain.Part]:
    """With room for three keys each, some without any layer."""
    return [(array("q", (0, 3)), *[mmap(-1, size) for size in layers]) if layers else () for layers in sizes]


def _written(parts: list[keyset_plain.Part]) -> list[list[bytes]]:
    return [[part[0].tobytes(), *[layer[:] for layer in part[1:]]] if part else [] for part in parts]


@pytest.mark.parametrize("way", [keyset, keyset_plain], ids=["kernel", "plain"])
def test_a_key_is_met_once_and_only_where_there_is_room_and_trust(way: ModuleType) -> None:
    table, tally = mmap(-1, 6_400), array("q", (0, 2))
    parts = [(tally, mmap(-1, 800)), ()]
    one, two, three, elsewhere = (bytes([first]) + bytes(15) for first in (1, 2, 3, 200))
    assert way.add_new_keys(table, parts, 9, [one, elsewhere, one, two, three]) == b"\1\0\0\1\0"
    assert tally[0] == 2
    assert way.certain_has(table, one)
    assert not way.certain_has(table, three)
    assert not way.certain_has(table, elsewhere)


@pytest.mark.parametrize("way", [keyset, keyset_plain], ids=["kernel", "plain"])
def test_parts_that_are_none_are_refused(way: ModuleType) -> None:
    table, key = mmap(-1, 64), bytes(16)
    for parts in ([], [()] * 257, [(array("q", (0, 1)),)], [(array("q", (0, 1)), *[mmap(-1, 8)] * 17)]):
        with pytest.raises(ValueError, match="part"):
            way.add_new_keys(table, parts, 9, [key])
    with pytest.raises(ValueError, match="16 bytes"):
        way.add_new_keys(table, [()], 9, [key, bytes(15)])


@pytest.mark.parametrize("way", [keyset, keyset_plain], ids=["kernel", "plain"])
def test_what_is_no_key_is_refused(way: ModuleType) -> None:
    table = mmap(-1, 64)
    for key in (b"", bytes(15), bytes(17)):
        for ask in (way.certain_has, way.certain_add):
            with pytest.raises(ValueError, match="16 bytes"):
                ask(table, key)
        with pytest.raises(ValueError, match="16 bytes"):
            way.bloom_has(table, 9, key)
    for keys, host in ((bytes(17), bytes(8)), (bytes(16), bytes(7))):
        with pytest.raises(ValueError, match="16 bytes"):
            way.certain_find_missing(table, keys, host)
    for parent in (b"", bytes(8), bytes(17)):
        with pytest.raises(ValueError, match="16 bytes"):
            way.certain_find_news(table, bytes(16), bytes(8), {}, {}, parent)
    for hashes in (0, 33):
        with pytest.raises(ValueError, match="hashes"):
            way.bloom_add(table, hashes, bytes(16))


@given(st.integers(1, 40), FINGERPRINTS, FINGERPRINTS, st.sets(st.integers(0, 63), max_size=3))
def test_near_fingerprints_are_the_same_with_and_without_the_kernel(
    words: int, added: list[int], asked: list[int], bits: set[int]
) -> None:
    kernel, plain = mmap(-1, 8 * words), mmap(-1, 8 * words)
    nearwords.near_add(kernel, _masks(), added)
    nearwords_plain.near_add(plain, _masks(), added)
    assert kernel[:] == plain[:]
    every = asked + [one ^ sum(1 << bit for bit in bits) for one in added]
    assert nearwords.near_find_candidates(kernel, _masks(), every) == nearwords_plain.near_find_candidates(
        plain, _masks(), every
    )
    for one in asked[:3]:
        assert nearwords.near_select_close(one, every, 30) == nearwords_plain.near_select_close(
            one, every, 30
        )
        stored = struct.pack(f">{len(every)}Q", *every)
        for raw in (stored, stored[:-3]):
            assert nearwords.near_unpack_close(one, raw, 30) == nearwords_plain.near_unpack_close(
                one, raw, 30
            )
        assert nearwords.near_unpack_close(one, stored, 30) == nearwords.near_select_close(one, every, 30)


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_what_is_no_fingerprint_is_refused(number: int) -> None:
    table = mmap(-1, 64)
    for way in (nearwords, nearwords_plain):
        with pytest.raises(OverflowError):
            way.near_add(table, _masks(), [number])
        with pytest.raises(OverflowError):
            way.near_find_candidates(table, _masks(), [number])


@given(
    st.text(max_size=40),
    st.integers(0, 100),
    st.integers(0, 300),
    st.none() | KEYS,
    st.sampled_from([b"", b"ab", b"abcd"]),
    st.integers(1, 1 << 63),
)
def test_the_row_of_a_new_url_says_what_its_values_do_in_fewer_bytes(
    path: str, priority: int, depth: int, parent: bytes | None, linkers: bytes, seq: int
) -> None:
    found = discovered("http://a.test/", depth=depth, parent=parent, hops=2)  # type: ignore[arg-type]
    found = msgspec.structs.replace(found, url="http://a.test/" + path)
    slot = slot_of(b"one-host", 2, priority, seq)
    row = UrlRow(
        url=found.url,
        state=UrlState.QUEUED,
        priority=priority,
        found=Found(depth, Via.LINK, parent, 2),
        slot=slot,
        linkers=linkers,
    )
    alike = encode_shared_fields(found, priority, 2, linkers)
    slots, rows = encode_new_rows([found], alike, b"one-host", seq)
    assert slots == [slot]
    assert decode_url(rows[found.key]) == row
    assert slots_of([*rows.items()]) == [slot]
    assert len(rows[found.key]) < len(encode(row))
