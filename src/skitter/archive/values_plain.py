"""What `native/values.c` does, in Python: it defines what both say, works where no kernel was built. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

# Of a dictionary. What needs a larger one hardly repeats.
MOST_BYTES = 1 << 20
_LENGTH = 4
# Values of which a group of the bit-packed kind consists, and a run at least.
_GROUP = 8


def plain(before: bytes, data: bytes, ends: bytes, valid: bytes | None, first: int, last: int, /) -> bytes:
    """What comes before, and the strings that are there from `first` to before `last`, each behind its length."""
    return before + b"".join(_counted(value) for value in _present(data, ends, valid, first, last))


def repeated(data: bytes, ends: bytes, valid: bytes | None, /) -> tuple[int, bytes, bytes] | None:
    """How many different strings are there; these, as `plain` has them, in the order in which they came up; and
    for all that are there which of them it is. None when the different ones take more than `MOST_BYTES`."""
    known: dict[bytes, int] = {}
    numbers = [known.setdefault(value, len(known)) for value in _present(data, ends, valid, 0, _count(ends))]
    dictionary = b"".join(map(_counted, known))
    if len(dictionary) > MOST_BYTES:
        return None
    width = max(1, (len(known) - 1).bit_length()) if known else 1
    return len(known), dictionary, bytes([width]) + _runs(numbers, width)


def extremes(data: bytes, ends: bytes, valid: bytes | None, /) -> tuple[bytes, bytes] | None:
    """The least and the greatest of what is there, byte by byte."""
    values = [*_present(data, ends, valid, 0, _count(ends))]
    return (min(values), max(values)) if values else None


def _count(ends: bytes) -> int:
    return len(ends) // _LENGTH - 1


def _present(data: bytes, ends: bytes, valid: bytes | None, first: int, last: int) -> Iterator[bytes]:
    places = array("i", ends)
    for at in range(first, last):
        if valid is None or valid[at // 8] >> at % 8 & 1:
            yield data[places[at] : places[at + 1]]


def _counted(value: bytes) -> bytes:
    return len(value).to_bytes(_LENGTH, "little") + value


def _runs(numbers: Sequence[int], width: int) -> bytes:
    """Parquet's hybrid of runs and bit-packed groups: eight or more of the same are a run."""
    found, at = bytearray(), 0
    while at < len(numbers):
        same = _same(numbers, at)
        if same >= _GROUP:
            found += varint(same << 1) + numbers[at].to_bytes((width + 7) // 8, "little")
            at += same
            continue
        start = at
        while at < len(numbers) and _same(numbers, at) < _GROUP:
            at += _GROUP
        found += _packed(numbers[start:at], width)
    return bytes(found)


def _same(numbers: Sequence[int], at: int) -> int:
    end = at + 1
    while end < len(numbers) and numbers[end] == numbers[at]:
        end += 1
    return end - at


def _packed(numbers: Sequence[int], width: int) -> bytes:
    groups = [numbers[at : at + _GROUP] for at in range(0, len(numbers), _GROUP)]
    packed = (sum(number << width * at for at, number in enumerate(group)) for group in groups)
    return varint(len(groups) << 1 | 1) + b"".join(bits.to_bytes(width, "little") for bits in packed)


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
