"""Changes of tables as the bytes of a log's entry, and back.

Between a store and its log. An entry names its own version, the format of the rows and the tables, so that it is
read by what it says and not by what this version happens to have. Never guesses: what it cannot read it refuses.
"""

from __future__ import annotations

from typing import Any

import msgspec
import zstandard

from skitter.errors import LogFailed
from skitter.frontier.stores.base import Changes
from skitter.frontier.tables.layout import FORMAT, TABLES

Change = tuple[Any, ...]
"""Table and key, and a value (a put); table and key alone (a delete); table, start, end and True (a range)."""

VERSION = 1
NUMBERS = {table: number for number, table in enumerate(TABLES)}
# Level 1 made 421 bytes of a page's 1.8 KB; level 3 took twice the time for a tenth less.
_LEVEL = 1
_LARGEST = 1 << 30


class _Entry(msgspec.Struct, array_like=True):
    version: int
    format: bytes
    tables: list[str]
    changes: list[Any]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Entry).decode


def pack(changes: list[Change]) -> bytes:
    """Tables in `changes` are by their number in `NUMBERS`."""
    entry = _encode((VERSION, FORMAT, TABLES, changes))
    return zstandard.ZstdCompressor(level=_LEVEL).compress(entry)


def replay(body: bytes, onto: Changes) -> None:
    """Make the changes of an entry in `onto`, in their order."""
    entry = _read(body)
    tables = entry.tables
    for change in entry.changes:
        table, key = tables[change[0]], change[1]
        match len(change):
            case 3:
                onto.put(table, key, change[2])
            case 2:
                onto.delete(table, key)
            case _:
                onto.delete_range(table, key, change[2])


def _read(body: bytes) -> _Entry:
    try:
        entry = _decode(zstandard.ZstdDecompressor().decompress(body, max_output_size=_LARGEST))
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise LogFailed(
            f"an entry of the frontier's log cannot be read ({error}): is it of skitter?"
        ) from error
    if entry.version != VERSION or entry.format != FORMAT:
        raise LogFailed(
            f"the frontier's log was written by another version of skitter (log {entry.version}, rows "
            f"{entry.format.decode(errors='replace')}; this one reads {VERSION}, {FORMAT.decode()}): go on "
            f"with the version that wrote it"
        )
    if unknown := set(entry.tables) - set(TABLES):
        raise LogFailed(f"the frontier's log has tables that this version does not know: {sorted(unknown)}")
    return entry
