"""What `native/columns.c` does, in Python: it defines what both say, works where no kernel was built, and reads
rows of earlier versions. Pure."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from msgspec import Raw

from skitter.archive.rows import Row, rows_in, text_digest, utf8_of

Column = tuple[int, bytes, bytes | None, bytes | None]
"""How many values; their bytes; of strings, where each ends, with a zero before the first (int32); a bit for each
that is there, where some may not be. As Arrow keeps them."""

Buffers = tuple[int, tuple[Column, ...], bytes, bytes, bytes]


class Columns(NamedTuple):
    """By `NAMES`. `text` and the four columns of links have values of those rows only that have any: `text_rows`
    and `link_rows` say which, `link_ends` where the links of each end (all int32)."""

    rows: int
    columns: tuple[Column, ...]
    link_rows: bytes
    link_ends: bytes
    text_rows: bytes

    @property
    def told_links(self) -> int:
        return len(self.link_rows) // 4


NAMES = (*Row.__struct_fields__, "protocol", "host", "port", "path", "query")
_URL = re.compile(
    rb"([^:/?#]+)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::([0-9]{1,5}))?([^?#]*)(?:\?([^#]*))?"
)
_ALWAYS_THERE = ("surt", "url", "kind")
_INTEGERS = ("micros", "status", "offset", "length", "size", "depth")
_LINKS = ("targets", "texts", "rels", "tags")


def columns_of(journal: bytes) -> Columns:
    """Raises when the journal is damaged; its strings are UTF-8."""
    rows = [*rows_in(journal)]
    texts = [_checked(row.text) for row in rows]
    links = [_links_of(row) for row in rows]
    told = [len(of[0]) for of in links if of]
    columns = {
        **{name: _of_field(name, rows) for name in Row.__struct_fields__},
        "text": strings([text for text in texts if text]),
        **{
            name: strings([value for of in links if of for value in of[at]]) for at, name in enumerate(_LINKS)
        },
        "text_digest": _said([_digest(row, text) for row, text in zip(rows, texts, strict=True)]),
        **_url_parts([row.url.encode() for row in rows]),
    }
    return Columns(
        len(rows),
        tuple(columns[name] for name in NAMES),
        numbers("i", [number for number, of in enumerate(links) if of]),
        numbers("i", accumulate(told, initial=0)),
        numbers("i", [number for number, text in enumerate(texts) if text]),
    )


def _of_field(name: str, rows: Sequence[Row]) -> Column:
    values = [getattr(row, name) for row in rows]
    if name in _ALWAYS_THERE:
        return strings([value.encode() for value in values])
    if name in _INTEGERS:
        return len(rows), numbers("q", values), None, None
    if name == "fetch_ms":
        return len(rows), numbers("f", values), None, None
    if name == "simhash":
        return perhaps("Q", values)
    return _said([value.encode() for value in values if isinstance(value, str)])


def _links_of(row: Row) -> list[list[bytes]]:
    """Targets, texts, rels, tags; nothing when there are none."""
    if not utf8_of(row.targets):
        return []
    joined = _checked(row.targets), _checked(row.texts), row.rels.encode(), row.tags.encode()
    split = [column.split(b"\n") for column in joined]
    if len({*map(len, split)}) != 1:
        raise ValueError(f"the links of {row.url} do not agree on their number: the journal is damaged")
    return split


def _checked(said: Raw) -> bytes:
    """The other strings were when they were decoded."""
    text = bytes(utf8_of(said))
    text.decode()
    return text


def _digest(row: Row, text: bytes) -> bytes:
    return (row.text_digest or text_digest(text)).encode()


def _url_parts(urls: Sequence[bytes]) -> dict[str, Column]:
    found = [_URL.match(url) for url in urls]
    protocol, host, port, path, query = (
        [match[group] if match else None for match in found] for group in range(1, 6)
    )
    return {
        "protocol": optional(protocol),
        "host": optional(host),
        "port": perhaps("i", [None if value is None else int(value) for value in port]),
        "path": optional(path),
        "query": optional(query),
    }


def strings(values: Sequence[bytes]) -> Column:
    return len(values), b"".join(values), numbers("i", accumulate(map(len, values), initial=0)), None


def _said(values: Sequence[bytes]) -> Column:
    """With nothing where nothing was said."""
    return (*strings(values)[:3], _bits(map(bool, values)))


def optional(values: Sequence[bytes | None]) -> Column:
    return (*strings([value or b"" for value in values])[:3], _bits(value is not None for value in values))


def perhaps(kind: str, values: Sequence[int | None] | Sequence[float | None]) -> Column:
    known = numbers(kind, [value or 0 for value in values])
    return len(values), known, None, _bits(value is not None for value in values)


def numbers(kind: str, values: Iterable[int] | Iterable[float]) -> bytes:
    return array(kind, values).tobytes()


def _bits(values: Iterable[bool]) -> bytes:
    digits = "".join("1" if value else "0" for value in values)
    return int(digits[::-1] or "0", 2).to_bytes((len(digits) + 7) // 8, "little")
