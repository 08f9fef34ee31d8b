"""One field of many rows, in Python: defines what the kernel `skitter.native.fields` does, and does it where none
was built. Knows nothing of what the fields mean.
"""

from __future__ import annotations

import msgspec

_decode = msgspec.msgpack.Decoder().decode


def bytes_at(rows: list[tuple[bytes, bytes]], field: int) -> list[bytes]:
    """Of each row, which is an array in msgpack behind its key, the bytes in that field. Raises ValueError when
    one has none there; of what lies behind it the kernel knows nothing."""
    return [_bytes_in(row, field) for _, row in rows]


def _bytes_in(row: bytes, field: int) -> bytes:
    try:
        fields = _decode(row)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(fields, list) or not 0 <= field < len(fields) or not isinstance(fields[field], bytes):
        raise ValueError("no row with bytes in that place")
    found: bytes = fields[field]
    return found
