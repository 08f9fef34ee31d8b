"""Is a parcel what a packer makes? Asked of those that come from another process, before anything is decided.

Between the wire and the committer. A worker's token may be stolen, and one that reads hostile pages may be taken
over: what it packed goes into the archive byte by byte, and what is no record, index line or row there would stop
every later reader. Records, index line and rows must say the same of one answer. Decides nothing about the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from skitter.archive.packing import Parcel
from skitter.archive.record_check import Fault, Told, check_records, check_reference, coding_of_parcel, want
from skitter.archive.resource_check import check_resources
from skitter.archive.schema import PAGES, Column, Kind, Table
from skitter.archive.tables.rows import stored_columns
from skitter.archive.warc.cdxj import line_start
from skitter.archive.warc.surt import may_be_key_of, surt
from skitter.urls.canonical import normalise

_RECORD_ID = re.compile(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MIDDLE = re.compile(
    rb'"mime": "(?:[\w.+-]+/[\w.+-]+|unk)", (?:"mime-detected": "[\w.+-]+/[\w.+-]+", )?'
    rb'"status": "(?P<status>\d{3})", '
    rb'(?:"digest": "(?P<digest>sha256:[A-Z2-7]{52}====)", )?'
)
_AS_THE_RECORD_SAYS = frozenset(("url", "url_surtkey", "fetch_time", "fetch_status", "content_digest"))
_MOST_BESIDE_THE_BODY = 1_000_000
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
    # A whole number beyond these may be written for a fraction, and Arrow takes none that a fraction cannot hold.
    Kind.FLOAT32: Annotated[float, Meta(ge=-(1 << 24), le=1 << 24)] | None,
    Kind.FLOAT64: Annotated[float, Meta(ge=-(1 << 53), le=1 << 53)] | None,
    Kind.STRUCTS: tuple[str, ...],
}


class ParcelCheck:
    """For the tables that the archive has, and bodies of at most so many bytes. Records are looked into where
    it `inflates` them."""

    def __init__(self, tables: Sequence[Table], most_body: int, *, inflates: bool = True) -> None:
        self._inflates = inflates
        columns = {table.name: stored_columns(table) for table in tables}
        self._decode_rows = msgspec.msgpack.Decoder(_rows_type(columns)).decode
        self._looked_at = {name: _looked_at(of_table) for name, of_table in columns.items()}
        self._most = most_body + _MOST_BESIDE_THE_BODY

    def fault(self, parcel: Parcel) -> str:
        """What is wrong with it; empty when nothing is."""
        try:
            self._check(parcel)
        except Fault as fault:
            return str(fault)
        return ""

    def fault_of_rendered(self, parcel: Parcel) -> str:
        """The same for a page as its scripts left it."""
        try:
            self._check_common(parcel)
            told = check_resources(parcel, self._most, inflates=self._inflates)
            self._check_rows(parcel, told, surt(told.uri))
        except Fault as fault:
            return str(fault)
        return ""

    def _check(self, parcel: Parcel) -> None:
        self._check_common(parcel)
        want(not parcel.beside, "it has records beside its answer")
        told = check_reference(parcel, self._most)
        coding = coding_of_parcel(parcel)
        if self._inflates:
            check_records(parcel, coding, self._most)
        key = parcel.line_start.partition(b" ")[0].decode("utf-8", "replace")
        want(may_be_key_of(key, told.uri), "its index line is of another URL")
        _check_line(parcel, told, key)
        self._check_rows(parcel, told, key)

    def _check_common(self, parcel: Parcel) -> None:
        want(normalise(parcel.url) == parcel.url, "its URL is not normalised")
        want(isfinite(parcel.sent_at) and 0 < parcel.sent_at < _LAST_SECOND, "its time is none")
        want(100 <= parcel.status <= 999, "its status is none")
        want(0 <= parcel.size <= self._most, "its size is beyond fetch.max_body")
        want(len(parcel.digest) in (0, 32), "its digest is none")
        want(_RECORD_ID.fullmatch(parcel.record_id) is not None, "its record id is none")

    # -- rows

    def _check_rows(self, parcel: Parcel, told: Told, key: str) -> None:
        if not parcel.rows:
            want(PAGES.name not in self._looked_at, "it has no rows, and the crawl has tables")
            return
        try:
            rows = self._decode_rows(parcel.rows)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Fault(f"its rows are not of the tables that are kept: {error}") from error
        values = {
            "url": told.uri,
            "url_surtkey": key,
            "fetch_time": told.micros,
            "fetch_status": parcel.status,
            "content_digest": told.digest,
        }
        for name, columns in self._looked_at.items():
            found = getattr(rows, name)
            want(name != PAGES.name or len(found) == 1, "it has not one row of pages")
            for row in found:
                for place, column in columns:
                    _check_value(name, column, row[place], values)


def _looked_at(columns: Sequence[Column]) -> list[tuple[int, Column]]:
    """With their places: those whose type does not say all, and those that say what the records say."""
    return [
        (place, column)
        for place, column in enumerate(columns)
        if column.kind in (Kind.LONG, Kind.STRUCTS) or column.name in _AS_THE_RECORD_SAYS
    ]


def _check_value(table: str, column: Column, value: Any, told: Mapping[str, object]) -> None:
    if column.name in _AS_THE_RECORD_SAYS:
        is_right = (value or told[column.name].__class__()) == told[column.name]
        want(is_right, f"{table}.{column.name} is not what its record says")
    else:
        want(_is_whole(column, value), f"{table}.{column.name} is not of its type")


def _check_line(parcel: Parcel, told: Told, key: str) -> None:
    want(parcel.line_start == line_start(key, told.stamp, told.uri), "its index line is not of its record")
    middle = _MIDDLE.fullmatch(parcel.line_middle)
    if middle is None:
        raise Fault("its index line is none")
    want(int(middle["status"]) == parcel.status, "its index line has another status")
    want((middle["digest"] or b"").decode() == told.digest, "its index line has another digest")


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
