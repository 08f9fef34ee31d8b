"""What of the tables is about a host that is forgotten, found by its name: rows of others that mention it.

Keys are hashes, so only values can name a host. A full scan of the tables that hold texts, by bytes first: of
most rows nothing is decoded. Never writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from skitter.frontier.stores.base import Store
from skitter.frontier.tables.layout import decode_copy, decode_fetch, decode_host, decode_url

_END = b"\xff" * 64
_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "urls": decode_url,
    "ledger": decode_fetch,
    "hosts": decode_host,
    "copies": decode_copy,
}


class Mention(NamedTuple):
    table: str
    key: bytes
    row: Any


def mentions(store: Store, names: Sequence[bytes]) -> Iterator[Mention]:
    for table, decode in _DECODERS.items():
        found = [
            (key, raw) for key, raw in store.scan(table, b"", _END) if any(name in raw for name in names)
        ]
        yield from (Mention(table, key, decode(raw)) for key, raw in found)
