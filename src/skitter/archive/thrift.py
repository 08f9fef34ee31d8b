"""Thrift's compact protocol, as far as Parquet's headers and footers need it. Pure, and only for writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skitter.archive.values_plain import varint

_TRUE, _FALSE, _BYTE, _INT32, _INT64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 5, 6, 8, 9, 12
# A list of fewer has its length in the byte that says of what it is.
_LONG_LIST = 15


class Value(NamedTuple):
    """What kind of value it is, and its bytes."""

    kind: int
    content: bytes


def truth(value: bool) -> Value:
    return Value(_TRUE if value else _FALSE, b"")


def byte(value: int) -> Value:
    return Value(_BYTE, bytes([value]))


def int32(value: int) -> Value:
    return Value(_INT32, _zigzag(value))


def int64(value: int) -> Value:
    return Value(_INT64, _zigzag(value))


def binary(value: bytes) -> Value:
    return Value(_BINARY, varint(len(value)) + value)


def struct(fields: dict[int, Value]) -> Value:
    """By the numbers of its fields, which must ascend, by less than 16 at a time."""
    content, last = bytearray(), 0
    for number, (kind, value) in fields.items():
        content.append(number - last << 4 | kind)
        content += value
        last = number
    content.append(0)
    return Value(_STRUCT, bytes(content))


def many(values: Sequence[Value]) -> Value:
    """A list of values of one kind; structs when there are none."""
    kind, count = values[0].kind if values else _STRUCT, len(values)
    head = bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([0xF0 | kind]) + varint(count)
    return Value(_LIST, head + b"".join(value.content for value in values))


def _zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)
