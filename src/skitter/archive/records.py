"""From one exchange to the bytes that a segment's three files take: records, index line, row.

Between `store.py`, which decides where and when, and the formats (`warc`, `cdxj`, `rows`). Writes nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from skitter.archive import warc
from skitter.archive.cdxj import index_line
from skitter.archive.rows import Said, described, framed_row
from skitter.archive.segments import Segment
from skitter.archive.surt import surt
from skitter.model import Copy, Exchange, RecordAt
from skitter.settings import ArchiveSettings


class Archived(msgspec.Struct, frozen=True):
    """Where an exchange went: its response or revisit record, and that record's id for a later `Copy`."""

    record: RecordAt
    record_id: str
    is_revisit: bool = False


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange with all that its records say of it. With `original` it is a revisit of that copy."""

    exchange: Exchange
    said: Said
    sent_at: float
    digest: bytes
    media_type: str
    original: Copy | None

    @property
    def payload_digest(self) -> str:
        # The digest of a 304's absent body would say that the page is empty.
        absent = self.exchange.status == 304 and self.original is not None
        return "" if absent else warc.digest_field(self.digest)


class Written(NamedTuple):
    members: bytes
    line: bytes
    row: bytes
    archived: Archived


class Records:
    def __init__(self, settings: ArchiveSettings, ids: Iterator[str]) -> None:
        self._ids = ids
        self._level = settings.compression
        self._with_metadata = settings.metadata
        self._with_rows = bool(settings.tables)
        self._with_links = "links" in settings.tables
        self._with_text = "text" in settings.tables

    def of(self, stored: Stored, segment: Segment) -> Written:
        """To be appended to the segment next: the index and the row name its end as where the record begins."""
        exchange = stored.exchange
        date, uri = warc.warc_date(stored.sent_at), warc.target_uri(exchange.url)
        key, payload = surt(uri), stored.payload_digest
        common = warc.common_fields(exchange, uri, segment.info_id)
        request_id, record_id = next(self._ids) if exchange.request else "", next(self._ids)
        request = warc.request_record(exchange, request_id, date, common) if request_id else b""
        detected = warc.media_type_of(stored.said.media_type or stored.media_type)
        fields = warc.response_fields(exchange, common, payload, detected, request_id)
        mime, record = self._answer(stored, record_id, date, fields)
        at = RecordAt(segment.name, segment.length + len(request), len(record))
        line = index_line(
            key=key,
            uri=uri,
            date=date,
            mime=mime,
            detected=detected if stored.original is None else "",
            status=exchange.status,
            digest=payload,
            offset=at.offset,
            length=at.length,
            segment=segment.name,
        )
        metadata = self._metadata(stored, record_id, date, common)
        row = self._row(stored, uri, key, payload, at)
        archived = Archived(at, record_id, stored.original is not None)
        return Written(request + record + metadata, line, row, archived)

    def _answer(self, stored: Stored, record_id: str, date: str, fields: str) -> tuple[str, bytes]:
        exchange, original = stored.exchange, stored.original
        if original is None:
            mime = warc.media_type_of(exchange.header("content-type")) or "unk"
            return mime, warc.response_record(exchange, record_id, date, fields, self._level)
        fields += warc.revisit_fields(original, exchange.status)
        return "warc/revisit", warc.revisit_record(exchange, record_id, date, fields, self._level)

    def _metadata(self, stored: Stored, about: str, date: str, common: str) -> bytes:
        if not self._with_metadata:
            return b""
        # Once is enough: 34 outlinks cost 10 to 17 us here.
        block = described(stored.exchange, stored.said, with_outlinks=not self._with_links)
        return warc.metadata_record(next(self._ids), about, date, common, block)

    def _row(self, stored: Stored, uri: str, key: str, payload: str, at: RecordAt) -> bytes:
        if not self._with_rows:
            return b""
        return framed_row(
            stored.exchange,
            stored.said,
            uri=uri,
            surt=key,
            sent_at=stored.sent_at,
            digest=payload,
            at=at,
            original=stored.original,
            with_links=self._with_links,
            with_text=self._with_text,
        )
