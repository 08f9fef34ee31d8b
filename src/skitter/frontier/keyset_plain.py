"""Keys in tables of fixed size, in Python: defines what the kernel `skitter.native._kernels` does, and does it
where none was built. Tables are the caller's, to keep and to save. Reads and writes nothing else.

Keys known for certain lie in buckets of ten places, 6 bytes each, what was put or asked for last first, and 4
bytes to spare. Which bucket it is says the rest of a key: with more than 65,536 of them nothing of its 64 bits is
lost. The Bloom filter walks through its bits from a place and by a step that both halves of a key decide.
"""

from __future__ import annotations

from array import array
from mmap import mmap
from struct import Struct
from typing import TypeAlias

_KEY, _HOST, _MARK = 16, 8, 2
_ENTRY, WAYS, BUCKET = 6, 10, 64
_FILLED = WAYS * _ENTRY
_MOST = (1 << 8 * _ENTRY) - 1
# What a caller gives that wants to be certain.
FEWEST_BUCKETS = 65_537
_MOST_HASHES = 32
# Marks of two bytes each: enough to tell five doublings of linking hosts apart.
MOST_LINKERS = 32
_WORD = (1 << 64) - 1
_MOST_LAYERS = 16
_halves = Struct(">QQ").unpack

Part: TypeAlias = "tuple[()] | tuple[array[int], *tuple[mmap, ...]]"
"""Of a filter that lies in parts by the first byte of a key: how many keys the youngest layer has and may have,
and the bits of all layers, the youngest first. One that is not believed is empty."""


def linker_mark(parent: bytes) -> bytes:
    """What stands for a page's host among those that link a URL."""
    return parent[:_MARK]


def certain_has(table: mmap, key: bytes) -> bool:
    return _has(table, *_place(table, *_halved(key)))


def certain_add(table: mmap, key: bytes) -> None:
    _add(table, *_place(table, *_halved(key)))


def certain_add_all(table: mmap, keys: list[bytes]) -> None:
    for key in keys:
        certain_add(table, key)


def certain_add_own(table: mmap, keys: bytes, host: bytes) -> None:
    """Those of the keys, which are joined, that are of this host."""
    certain_add_all(table, [key for key in _keys(keys, host) if key.startswith(host)])


def certain_move(table: mmap, larger: mmap) -> None:
    """What a table knows is known to a larger one from now on: of each bucket the oldest first."""
    buckets = len(table) // BUCKET
    for bucket in range(buckets):
        for entry in reversed(_places(table, bucket * BUCKET)):
            if above := int.from_bytes(entry, "little"):
                _add(larger, *_place(larger, 0, (above - 1) * buckets + bucket))


def certain_find_missing(table: mmap, keys: bytes, host: bytes) -> list[int]:
    """Numbers of the keys that are of another host, or not known for certain."""
    return [
        number
        for number, key in enumerate(_keys(keys, host))
        if not (key.startswith(host) and certain_has(table, key))
    ]


def _keys(keys: bytes, host: bytes) -> list[bytes]:
    if len(keys) % _KEY or len(host) != _HOST:
        raise ValueError("keys are 16 bytes each, and a host is 8")
    return [keys[at : at + _KEY] for at in range(0, len(keys), _KEY)]


def certain_find_news(
    table: mmap, keys: bytes, host: bytes, young: dict[bytes, bytes], old: dict[bytes, bytes], parent: bytes
) -> list[int]:
    """As `certain_find_missing`, without the links between hosts that say nothing new: to a key that is known for
    certain, or that somebody was heard to link. Marks of whom each was heard from are among the young, or else
    among the old; that of the parent's host is noted among the young, unless it doubles them."""
    if len(parent) != _KEY:
        raise ValueError("a parent is a key of 16 bytes")
    return [
        number
        for number, key in enumerate(_keys(keys, host))
        if not (key.startswith(host) and certain_has(table, key)) and _is_news(table, young, old, key, parent)
    ]


def _is_news(
    table: mmap, young: dict[bytes, bytes], old: dict[bytes, bytes], key: bytes, parent: bytes
) -> bool:
    marks = young.get(key)
    if marks is None and (marks := old.get(key)) is None:
        if not certain_has(table, key):
            return True
        # who links it was forgotten, or is on disk alone: heard anew, from nobody on
        marks = b""
    if parent[:_HOST] == key[:_HOST] or is_no_news(marks, parent[:_MARK]):
        return False
    marks += parent[:_MARK]
    if is_doubled(marks):
        return True
    young[key] = marks
    return False


def is_no_news(marks: bytes, linker: bytes) -> bool:
    """Whether that linker was heard, or as many as count."""
    return len(marks) >= MOST_LINKERS * _MARK or has_linker(marks, linker)


def is_doubled(marks: bytes) -> bool:
    """Only then is the priority of what is linked another one."""
    count = len(marks) // _MARK
    return count > 1 and count & (count - 1) == 0


def has_linker(marks: bytes, linker: bytes) -> bool:
    at = marks.find(linker)
    while at & 1 and at > 0:  # across two marks
        at = marks.find(linker, at + 1)
    return at >= 0


def _has(table: mmap, entry: bytes, at: int) -> bool:
    places = _places(table, at)
    if entry not in places:
        return False
    places.remove(entry)
    table[at : at + _FILLED] = b"".join((entry, *places))
    return True


def _add(table: mmap, entry: bytes, at: int) -> None:
    if not _has(table, entry, at):
        table[at : at + _FILLED] = b"".join((entry, *_places(table, at)[:-1]))


def _place(table: mmap, host: int, rest: int) -> tuple[bytes, int]:
    """What stands for a key of these halves, and where its bucket begins."""
    above, bucket = divmod(host ^ rest, len(table) // BUCKET)
    return (above + 1 & _MOST).to_bytes(_ENTRY, "little"), bucket * BUCKET  # 0 is an empty place


def _places(table: mmap, at: int) -> list[bytes]:
    return [table[start : start + _ENTRY] for start in range(at, at + _FILLED, _ENTRY)]


def bloom_has(filter: mmap, hashes: int, key: bytes) -> bool:
    return all(filter[place >> 3] >> (place & 7) & 1 for place in _walk(len(filter), hashes, key))


def bloom_add(filter: mmap, hashes: int, key: bytes) -> None:
    for place in _walk(len(filter), hashes, key):
        filter[place >> 3] |= 1 << (place & 7)


def add_new_keys(table: mmap, parts: list[Part], hashes: int, keys: list[bytes]) -> bytes:
    """Of each key 1 when nobody knew it, which the table and the filter do from now on, and 0 when it is known
    for certain or the filter cannot tell."""
    if not 1 <= len(parts) <= 256:
        raise ValueError("one to 256 parts are a list")
    where = [_part_of(parts, key) for key in keys]
    return bytes([_is_met(table, part, hashes, key) for part, key in zip(where, keys, strict=True)])


def _part_of(parts: list[Part], key: bytes) -> Part:
    part = parts[(_halved(key)[0] >> 56) * len(parts) >> 8]
    if len(part) == 1 or len(part) > 1 + _MOST_LAYERS:
        raise ValueError("a part is a tally and one to sixteen layers, or nothing")
    return part


def _is_met(table: mmap, part: Part, hashes: int, key: bytes) -> bool:
    if certain_has(table, key) or not part:
        return False
    tally, *layers = part
    if tally[0] >= tally[1] or any(bloom_has(layer, hashes, key) for layer in layers):
        return False
    tally[0] += 1
    bloom_add(layers[0], hashes, key)
    certain_add(table, key)
    return True


def _walk(size: int, hashes: int, key: bytes) -> list[int]:
    if not 1 <= hashes <= _MOST_HASHES:
        raise ValueError("a filter has 1 to 32 hashes")
    host, rest = _halved(key)
    at = _mixed(host * 0x9E37_79B9_7F4A_7C15 + rest & _WORD)
    step = _mixed(at ^ rest) | 1
    return [(at + number * step & _WORD) * size * 8 >> 64 for number in range(hashes)]


def _halved(key: bytes) -> tuple[int, int]:
    if len(key) != _KEY:
        raise ValueError("a key is 16 bytes")
    host, rest = _halves(key)
    return host, rest


def _mixed(word: int) -> int:
    word ^= word >> 30
    word = word * 0xBF58_476D_1CE4_E5B9 & _WORD
    word ^= word >> 27
    word = word * 0x94D0_49BB_1331_11EB & _WORD
    return word ^ word >> 31
