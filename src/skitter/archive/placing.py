"""From a parcel and a place to the bytes that a segment's three files take: records, index line, row.

On the writer's side, between `store.py`, which decides where and when, and the segment. Cheap, because one
process does it for all workers: 6 us a page of 29 KB, 37 when it is a revisit. Writes nothing itself.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from skitter.archive import warc
from skitter.archive.coding import CODINGS, Coder, decoded
from skitter.archive.packing import Parcel
from skitter.model import Copy, RecordAt

try:
    from skitter.native.placing import placed_texts
except ImportError:
    from skitter.archive.placing_plain import placed_texts


class Archived(msgspec.Struct, frozen=True):
    """Where an exchange went: its response or revisit record, and that record's id for a later `Copy`."""

    record: RecordAt
    record_id: str
    is_revisit: bool = False


Placed = tuple[tuple[bytes, ...], bytes, tuple[bytes, ...], Archived]
"""Records, index line, row, and what to tell of them. In pieces, which the write joins."""


def placed(parcel: Parcel, original: Copy | None, segment: str, end: int, coder: Coder) -> Placed:
    """To be appended to the segment, of which `end` is the length, next."""
    if not parcel.answer.startswith(coder.coding.magic):
        parcel = _recoded(parcel, coder)
    if original is None:
        record, line, revisit_of = parcel.answer, parcel.line, ""
    else:
        record = _revisit(parcel, original, coder)
        line, revisit_of = parcel.reference.line, original.url
    at = RecordAt(segment, end + len(parcel.request), len(record))
    line, row = placed_texts(line, parcel.row, at.offset, at.length, segment, revisit_of)
    archived = Archived(at, parcel.record_id, original is not None)
    return (parcel.request, record, parcel.metadata), line, row, archived


def _revisit(parcel: Parcel, original: Copy, coder: Coder) -> bytes:
    fields = parcel.reference.fields + warc.revisit_fields(original, parcel.status)
    date = warc.warc_date(parcel.sent_at)
    return coder.page(warc.revisit_record(parcel.reference.head, parcel.record_id, date, fields))


def _recoded(parcel: Parcel, coder: Coder) -> Parcel:
    """A worker elsewhere goes on with the settings that it began with, whatever those of the crawl are by now."""
    given = next((coding for coding in CODINGS.values() if parcel.answer.startswith(coding.magic)), None)
    if given is None:
        return parcel
    request, metadata = (
        coder.short(decoded(member, given)) if member else b"" for member in (parcel.request, parcel.metadata)
    )
    answer = coder.page(decoded(parcel.answer, given))
    return replace(parcel, request=request, answer=answer, metadata=metadata)
