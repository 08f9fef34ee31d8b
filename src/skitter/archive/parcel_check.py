"""Is a parcel what a packer makes? Asked of those that come from another process, before anything is decided.

Between the wire and the committer. A worker's token may be stolen, and one that reads hostile pages may be taken
over: what it packed goes into the archive byte by byte, and what is no record, index line or row there would stop
every later reader. Inflates within limits. Decides nothing about the page itself.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import isfinite
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from skitter.archive.packing import Parcel
from skitter.archive.schema import URL, Column, Kind, Table
from skitter.archive.tables.rows import stored_columns
from skitter.archive.warc.cdxj import line_end
from skitter.archive.warc.coding import CODINGS, Coding
from skitter.archive.warc.records import target_uri
from skitter.archive.warc.surt import surt
from skitter.urls.canonical import normalise

_RECORD_ID = re.compile(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LENGTH = re.compile(rb"\r\nContent-Length: (\d{1,12})\r\n\r\n")
_FIELDS = re.compile(r"(?:[A-Za-z-]+: [^\r\n\0]*\r\n)*")
_MOST_BESIDE_THE_BODY = 1_000_000
_LONGEST_FIELDS = 20_000
_LAST_SECOND = 4_102_444_800.0  # the year 2100
_INTEGERS = {
    Kind.TIME: (0, int(_LAST_SECOND * 1e6)),
    Kind.INT16: (-(1 << 15), (1 << 15) - 1),
    Kind.INT32: (-(1 << 31), (1 << 31) - 1),
    Kind.INT64: (-(1 << 63), (1 << 63) - 1),
    Kind.UINT64: (0, (1 << 64) - 1),
}
_OTHER_TYPES: dict[Kind, Any] = {
    Kind.TEXT: str | None,
    Kind.EXACT: str,
    Kind.LONG: Any,
    Kind.BOOL: bool | None,
    Kind.FLOAT32: float | None,
    Kind.FLOAT64: float | None,
    Kind.STRUCTS: tuple[str, ...],
}


class _Fault(Exception):
    pass


class ParcelCheck:
    """For the tables that the archive has, and bodies of at most so many bytes. Records are looked into where
    it `inflates` them."""

    def __init__(self, tables: Sequence[Table], most_body: int, *, inflates: bool = True) -> None:
        self._inflates = inflates
        columns = {table.name: stored_columns(table) for table in tables}
        self._decode_rows = msgspec.msgpack.Decoder(_rows_type(columns)).decode
        self._looked_at = {
            name: [(n, one) for n, one in enumerate(of_table) if one.kind in (Kind.LONG, Kind.STRUCTS)]
            for name, of_table in columns.items()
        }
        self._url_at = {
            name: next(n for n, one in enumerate(of_table) if one.name == URL.name)
            for name, of_table in columns.items()
        }
        self._most = most_body + _MOST_BESIDE_THE_BODY

    def fault(self, parcel: Parcel) -> str:
        """What is wrong with it; empty when nothing is."""
        try:
            self._check(parcel)
        except _Fault as fault:
            return str(fault)
        return ""

    def _check(self, parcel: Parcel) -> None:
        _want(normalise(parcel.url) == parcel.url, "its URL is not normalised")
        _want(isfinite(parcel.sent_at) and 0 < parcel.sent_at < _LAST_SECOND, "its time is none")
        _want(100 <= parcel.status <= 999, "its status is none")
        _want(0 <= parcel.size <= self._most, "its size is beyond fetch.max_body")
        _want(len(parcel.digest) in (0, 32), "its digest is none")
        _want(_RECORD_ID.fullmatch(parcel.record_id) is not None, "its record id is none")
        self._check_records(parcel)
        self._check_line(parcel)
        self._check_rows(parcel.rows, target_uri(parcel.url))

    # -- records

    def _check_records(self, parcel: Parcel) -> None:
        coding = next((one for one in CODINGS.values() if parcel.answer.startswith(one.magic)), None)
        if coding is None:
            raise _Fault("its record is not compressed as any archive is")
        if self._inflates:
            self._look_into(parcel, coding)
        reference = parcel.reference
        _want(len(reference.fields) <= _LONGEST_FIELDS, "its fields are too long")
        _want(_FIELDS.fullmatch(reference.fields) is not None, "its fields are none")
        _want(len(reference.head) <= self._most, "its head is too long")
        _want(reference.digest.isascii() and reference.digest.isprintable(), "its digest is none")

    def _look_into(self, parcel: Parcel, coding: Coding) -> None:
        uri = target_uri(parcel.url)
        answer = self._inflated(parcel.answer, coding)
        _check_answer(parcel, answer, _check_head(b"response", answer, uri, parcel.record_id))
        for kind, member in ((b"request", parcel.request), (b"metadata", parcel.metadata)):
            if member:
                _check_head(kind, self._inflated(member, coding), uri, "")

    def _inflated(self, member: bytes, coding: Coding) -> bytes:
        """Within the limit, and to the last byte of what was given."""
        _want(member.startswith(coding.magic), "one of its records is compressed in another way")
        try:
            record = coding.inflate(member, self._most)
        except coding.fault as error:
            raise _Fault(f"its record cannot be inflated: {error}") from error
        if record is None:
            raise _Fault("its record inflates beyond fetch.max_body, is not whole, or is more than one")
        return record

    # -- the index line

    def _check_line(self, parcel: Parcel) -> None:
        line = parcel.line_start + parcel.line_middle + line_end(0, 0, "")
        start = f"{surt(target_uri(parcel.url))} ".encode()
        _want(line.startswith(start) and line.count(b"\n") == 1, "its index line is not of its URL")
        stamp, _, body = line[len(start) :].partition(b" ")
        _want(len(stamp) == 14 and stamp.isdigit(), "its index line has no time")
        try:
            told = msgspec.json.decode(body, type=dict[str, str])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _Fault(f"its index line is no JSON: {error}") from error
        _want(told.get("url") == target_uri(parcel.url), "its index line is of another URL")
        _want(told.get("status") == str(parcel.status), "its index line has another status")
        _want(told.get("digest", "") == parcel.reference.digest, "its index line has another digest")

    # -- rows

    def _check_rows(self, rows: bytes, uri: str) -> None:
        if not rows:
            return
        try:
            told = self._decode_rows(rows)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _Fault(f"its rows are not of the tables that are kept: {error}") from error
        for name, columns in self._looked_at.items():
            for row in getattr(told, name):
                _want(row[self._url_at[name]] == uri, f"a row of {name} is of another URL")
                for place, column in columns:
                    _want(_is_whole(column, row[place]), f"{name}.{column.name} is not of its type")


def _rows_type(columns: Mapping[str, Sequence[Column]]) -> type[msgspec.Struct]:
    """The rows of an answer, by table, as `pack_rows` writes them."""
    fields: list[tuple[str, Any, Any]] = [
        (name, list[tuple[tuple(map(_type_of, of_table))]], msgspec.field(default_factory=list))  # type: ignore[misc]
        for name, of_table in columns.items()
    ]
    return msgspec.defstruct("Rows", fields, forbid_unknown_fields=True)


def _type_of(column: Column) -> Any:
    if column.kind in _INTEGERS:
        least, most = _INTEGERS[column.kind]
        # msgspec has no bounds beyond 63 bits, and msgpack no numbers beyond 64.
        within = Meta(ge=least, le=min(most, (1 << 63) - 1)) if column.kind is not Kind.UINT64 else Meta(ge=0)
        value: Any = Annotated[int, within]
        return value if column.kind is Kind.TIME else value | None
    return _OTHER_TYPES[column.kind]


def _is_whole(column: Column, value: Any) -> bool:
    """What a type does not say: of UTF-8, of as many texts as fields, of equally many lines."""
    if column.kind is Kind.LONG:
        return value is None or isinstance(value, str) or (isinstance(value, bytes) and _is_utf_8(value))
    return len(value) == len(column.fields) and len({text.count("\n") for text in value}) == 1


def _is_utf_8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_head(kind: bytes, record: bytes, uri: str, record_id: str) -> bytes:
    """That it is one whole record of the kind, of the URL, and as long as it says. Returns its head."""
    _want(record.startswith(b"WARC/1.1\r\nWARC-Type: %b\r\n" % kind), f"its {kind.decode()} record is none")
    length = _LENGTH.search(record)
    if length is None:
        raise _Fault(f"its {kind.decode()} record has no length")
    head = record[: length.end()]
    _want(head.endswith(b"\r\n\r\n") and head.index(b"\r\n\r\n") == len(head) - 4, "a head breaks off")
    _want(len(record) == len(head) + int(length[1]) + 4, f"its {kind.decode()} record lies about its length")
    _want(record.endswith(b"\r\n\r\n"), f"its {kind.decode()} record does not end")
    fields = _fields(head)
    _want(fields.get(b"warc-target-uri") == uri.encode(), f"its {kind.decode()} record is of another URL")
    if record_id:
        _want(fields.get(b"warc-record-id") == f"<{record_id}>".encode(), "its record has another id")
    return head


def _check_answer(parcel: Parcel, record: bytes, head: bytes) -> None:
    """That its body is of the size and the digest that are told. Later pages with that digest refer to this
    record: one that lies would take their bodies' place."""
    stored = parcel.reference.head
    _want(record.startswith(stored, len(head)), "its record has another head than it says")
    body = memoryview(record)[len(head) + len(stored) : -4]
    _want(len(body) == parcel.size, "its body is of another size than it says")
    _want(not body or sha256(body).digest() == parcel.digest, "its body has another digest than it says")
    told = parcel.reference.digest
    spelled = "sha256:" + b32encode(sha256(body).digest()).decode()
    _want(told == spelled or (not told and not body), "its digest is spelled otherwise")
    payload = _fields(head).get(b"warc-payload-digest", b"")
    _want(payload == told.encode(), "its record spells another digest")


def _fields(head: bytes) -> Mapping[bytes, bytes]:
    lines = (line.partition(b": ") for line in head.split(b"\r\n")[1:-2])
    return {name.lower(): value for name, _, value in lines}


def _want(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Fault(otherwise)
