"""A segment's journal of table rows: what the tables will say of each record, in the order of records.

Written beside the WARC record and committed with it; `tables.py` turns committed stretches of it into Parquet. A
row is a frame (a mark, four bytes of length) around a msgpack array. A page's links are four columns joined by
line feeds, which no URL, text or rel can hold: Arrow splits them again without making a Python object of each.
What is long is read as a view of the journal's bytes. Never decides what is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from skitter.model import Exchange, Link, RecordAt

_MARK = b"\xc1"
_FRAME = 5
_TAG_ATTRIBUTES = {"iframe": "E iframe/@src", "frame": "E frame/@src", "refresh": "L meta/@content"}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What an exchange turned out to mean: for the tables and the metadata record. `links` are resolved targets,
    each once, with the link as the page states it."""

    kind: str = "page"
    depth: int = 0
    media_type: str = ""
    charset: str = ""
    language: str = ""
    title: str = ""
    directives: str = ""
    redirect: str = ""
    failure: str = ""
    text: str = ""
    links: tuple[tuple[str, Link], ...] = ()
    simhash: int | None = None
    near_duplicate_of: str = ""


NOTHING_SAID = Said()


class Row(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One line of `pages`, with what `links` and `text` take from it. New fields go at the end, with a
    default."""

    surt: str
    url: str
    micros: int
    status: int
    redirect: str
    digest: str
    mime: str
    detected: str
    charset: str
    language: str
    truncated: str
    offset: int
    length: int
    kind: str
    size: int
    title: str
    depth: int
    directives: str
    etag: str
    last_modified: str
    address: str
    http_version: str
    fetch_ms: float
    revisit_of: str
    simhash: int | None
    near_duplicate_of: str
    failure: str
    text: msgspec.Raw
    targets: msgspec.Raw
    texts: msgspec.Raw
    rels: str
    tags: str
    text_digest: str = ""
    """Of its UTF-8; rows of earlier versions leave it to the tables."""


# The msgpack head of an array of as many values as a row has.
_ARRAY = b"\xdc" + len(Row.__struct_fields__).to_bytes(2, "big")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode


# What comes before the bytes of a msgpack string or binary, by its first byte; one byte where that is another.
_BEFORE_BYTES = {0xC4: 2, 0xC5: 3, 0xC6: 5, 0xD9: 2, 0xDA: 3, 0xDB: 5}
_EMPTY = _encode("")


Pieces = tuple[bytes, bytes, bytes]
"""A row without the three of its fields that depend on where its record lies, cut at these."""


def text_digest(text: bytes | memoryview) -> str:
    """Of rows that came without."""
    return f"sha256:{sha256(text).hexdigest()}" if text else ""


def framed_row(pieces: Pieces, at: RecordAt, revisit_of: str) -> tuple[bytes, bytes]:
    """In two pieces, of which the second is long and as it was: 1 us."""
    before, between, after = pieces
    original = bare((revisit_of,)) if revisit_of else _EMPTY
    row = b"".join((_ARRAY, before, bare((at.offset, at.length)), between, original))
    return _MARK + (len(row) + len(after)).to_bytes(_FRAME - 1, "little") + row, after


def bare(values: tuple[object, ...]) -> bytes:
    """A msgpack array of fewer than 16 values without the byte that says so."""
    try:
        return _encode(values)[1:]
    except UnicodeEncodeError:
        return _encode([_clean(value) for value in values])[1:]


def _clean(value: object) -> object:
    """Without lone surrogates, of which some texts in strange formats consist."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def rows_in(journal: bytes) -> Iterator[Row]:
    """Zeros are a hole: what lay there is in Parquet, and the journal was made anew without it."""
    view, at = memoryview(journal), 0
    while (at := journal.find(_MARK, at)) >= 0:
        length = int.from_bytes(view[at + 1 : at + _FRAME], "little")
        at += _FRAME
        yield _decode(view[at : at + length])
        at += length


def utf8_of(said: msgspec.Raw) -> memoryview:
    """Of one of a row's long fields: 7 KB of text never become a `str`, and are not copied."""
    view = memoryview(said)
    return view[_BEFORE_BYTES.get(view[0], 1) :]


def tables_told(journal: bytes) -> set[str]:
    """Which tables the rows have something to say to."""
    told = set()
    for row in rows_in(journal):
        told |= {"pages"} | ({"links"} if utf8_of(row.targets) else set())
        told |= {"text"} if utf8_of(row.text) else set()
    return told


def whole_frames(journal: bytes | bytearray, length: int | None = None) -> int:
    """How many of the bytes, or of the first so many of them, are whole rows."""
    at, whole, end = 0, 0, len(journal) if length is None else length
    while (at := journal.find(_MARK, at, end)) >= 0:
        at += _FRAME + int.from_bytes(journal[at + 1 : at + _FRAME], "little")
        if at > end:
            break
        whole = at
    return whole


def described(exchange: Exchange, said: Said, outlinks: str = "") -> str:
    """The block of a metadata record, by the names that Heritrix gave its fields."""
    waited = round(max(0.0, exchange.ended_at - exchange.sent_at) * 1000)
    block = f"fetchTimeMs: {waited}\r\n{_timings(exchange)}"
    if exchange.tls_version:
        block += f"tls: {exchange.tls_version} {exchange.tls_cipher}\r\n"
    if said.kind == "page":
        block += f"hopsFromSeed: {'L' * min(said.depth, 100)}\r\n"
    if said.charset:
        block += f"charsetForLinkExtraction: {said.charset}\r\n"
    if said.redirect:
        block += f"outlink: {said.redirect} R Location:\r\n"
    return block + outlinks


def outlinks_of(said: Said) -> str:
    """10 to 17 us for 34 of them."""
    return "".join([f"outlink: {target} {_context(link)}\r\n" for target, link in said.links])


def _timings(exchange: Exchange) -> str:
    """What was waited for, in whole milliseconds; a connection that was open already took no time."""
    said = f"dnsTimeMs: {exchange.dns_ms:.0f}\r\n" if exchange.dns_ms >= 0.5 else ""
    if exchange.connect_ms >= 0.5:
        said += f"connectTimeMs: {exchange.connect_ms:.0f}\r\n"
    if exchange.tls_ms >= 0.5:
        said += f"tlsTimeMs: {exchange.tls_ms:.0f}\r\n"
    if exchange.first_byte_ms >= 0.5:
        said += f"firstByteTimeMs: {exchange.first_byte_ms:.0f}\r\n"
    return said


def _context(link: Link) -> str:
    where = _TAG_ATTRIBUTES.get(link.tag) or f"L {link.tag}/@href"
    return f"{where} {link.rel}" if link.rel else where
