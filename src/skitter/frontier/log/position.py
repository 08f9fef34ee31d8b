"""How much of a log a folder's tables have: one row of theirs, written with every commit.

Between `stores/logged.py`, which writes it, and `catching_up.py`, which reads it.
"""

from __future__ import annotations

import msgspec

from skitter.frontier.stores.base import Changes, Store

_TABLE, _KEY = "meta", b"log"


class Position(msgspec.Struct, frozen=True, array_like=True):
    crawl: str
    sequence: int
    epoch: int
    """Of the owner that appended this commit: one of another epoch is another commit."""


_decode = msgspec.msgpack.Decoder(Position).decode


def put_position(changes: Changes, position: Position) -> None:
    changes.put(_TABLE, _KEY, msgspec.msgpack.encode(position))


def position_of(store: Store) -> Position | None:
    raw = store.get(_TABLE, _KEY)
    return None if raw is None else _decode(raw)
