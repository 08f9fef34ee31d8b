"""From a parcel and a place to the bytes that a segment's three files take: records, index line, rows.

On the writer's side, between `store.py`, which decides where and when, and the segment. Cheap, because one
process does it for all workers. Writes nothing itself.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from skitter.archive.packing import Parcel
from skitter.archive.tables.journal import entry
from skitter.archive.warc import records
from skitter.archive.warc.cdxj import line_end, line_middle
from skitter.archive.warc.coding import CODINGS, Coder, decode_record
from skitter.model import Copy, RecordAt


class Archived(msgspec.Struct, frozen=True):
    """Where an exchange went: its response or revisit record, and that record's id for a later `Copy`."""

    record: RecordAt
    record_id: str
    is_revisit: bool = False


class Placed(NamedTuple):
    """Records, index line and rows in pieces, which the write joins; and what to tell of them."""

    records: tuple[bytes, ...]
    line: tuple[bytes, ...]
    rows: tuple[bytes, ...]
    archived: Archived


def place_parcel(parcel: Parcel, original: Copy | None, segment: str, end: int, coder: Coder) -> Placed:
    """To be appended next to the segment, of which `end` is the length."""
    if not parcel.answer.startswith(coder.coding.magic):
        parcel = _recode(parcel, coder)
    if original is None:
        record, middle, revisit_of = parcel.answer, parcel.line_middle, ""
    else:
        record = _revisit_record(parcel, original, coder)
        middle = line_middle("warc/revisit", "", parcel.status, parcel.reference.digest)
        revisit_of = original.url
    at = RecordAt(segment, end + len(parcel.request), len(record))
    line: tuple[bytes, ...] = (parcel.line_start, middle, line_end(at.offset, at.length, segment))
    rows = entry(parcel.rows, at, revisit_of) if parcel.rows else ()
    archived = Archived(at, parcel.record_id, original is not None)
    members: tuple[bytes, ...] = (parcel.request, record, parcel.metadata)
    if parcel.beside:
        members, line = _placed_beside(parcel, members, line, segment, end)
    return Placed(members, line, rows, archived)


def _placed_beside(
    parcel: Parcel, members: tuple[bytes, ...], line: tuple[bytes, ...], segment: str, end: int
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Further records come after the first ones, each with its own line."""
    for each in parcel.beside:
        offset = end + sum(map(len, members))
        line = (*line, each.line_start, each.line_middle, line_end(offset, len(each.record), segment))
        members = (*members, each.record)
    return members, line


def _revisit_record(parcel: Parcel, original: Copy, coder: Coder) -> bytes:
    fields = parcel.reference.fields + records.revisit_fields(original, parcel.status)
    return coder.page(records.revisit_record(parcel.reference.head, parcel.record_id, fields))


def _recode(parcel: Parcel, coder: Coder) -> Parcel:
    """A worker elsewhere goes on with the settings that it began with, whatever those of the crawl are by now."""
    given = next((coding for coding in CODINGS.values() if parcel.answer.startswith(coding.magic)), None)
    if given is None:
        return parcel
    request, metadata = (
        coder.short(decode_record(member, given)) if member else b""
        for member in (parcel.request, parcel.metadata)
    )
    answer = coder.page(decode_record(parcel.answer, given))
    beside = tuple(replace(one, record=coder.page(decode_record(one.record, given))) for one in parcel.beside)
    return replace(parcel, request=request, answer=answer, metadata=metadata, beside=beside)
