"""The whole archive verified: segments, indexes, tables, ids across segments, and the frontier's own account of
it.

Reads everything once, segment by segment; memory is bounded by one segment's index. Never repairs: recovery
does, when a crawl goes on, and only what was never committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import structs

from skitter.archive.segments import INDEX
from skitter.archive.warc.coding import OPEN, stem_of
from skitter.collection.collection import Collection
from skitter.collection.foreign.source import ForeignSource
from skitter.collection.layout import Layout, SegmentAt
from skitter.collection.verify.findings import Ledger, Report
from skitter.collection.verify.identities import Identities
from skitter.collection.verify.indexes import Sums, check_index, check_merged, check_parts, check_rows
from skitter.collection.verify.package import check_package
from skitter.collection.verify.segment import check_segment
from skitter.extras import need
from skitter.model import SegmentMark

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def total_bytes(layout: Layout, collection: Collection) -> int:
    parts = (name for names in layout.parts.values() for name in names)
    return sum(segment.size for segment in layout.segments) + sum(map(collection.source.size, parts))


def verify(
    collection: Collection, ledger: Ledger | None, advance: Callable[[int], None] = lambda size: None
) -> Report:
    foreign = collection.is_foreign
    report, identities, sums = Report(advance), Identities(foreign=foreign), Sums()
    layout, source = collection.layout, collection.source
    marks = {mark.segment: mark for mark in ledger.marks} if ledger else {}
    database = None if foreign else _tables(collection, report)
    for segment in layout.segments:
        end = _checked_end(segment, marks.get(segment.name), ledger, report)
        answers = check_segment(source, segment, end, identities, report, foreign=foreign)
        if foreign:
            continue  # its index and its tables are of our own making, and were made just now
        if segment.index:
            indexed, index_end = _index_of(collection, segment, marks.get(segment.name), report)
            own = check_index(source, indexed, index_end, end, answers, report)
            if not segment.is_growing:
                sums[segment.name] = own
        elif end:
            report.defect(segment.file, None, "has no index: its pages cannot be found")
        if database is not None:
            check_rows(database, segment, end, answers, report)
    identities.compare(report)
    if layout.merged:
        check_merged(source, layout.merged, sums, report)
    if database is not None:
        database.close()
    for name in layout.set_aside:
        what = f"{source.size(name):,} bytes were set aside when the crawl went on: they cannot be read"
        report.defect(name, None, what)
    if isinstance(source, ForeignSource):
        for package in source.packages:
            check_package(package, report)
        return report
    _check_ledger(layout, ledger, report)
    _note_debris(layout, ledger, report)
    return report


def _tables(collection: Collection, report: Report) -> DuckDBPyConnection | None:
    """The tables, if they can be opened at all; each part is looked at by itself first."""
    need("duckdb")
    import duckdb

    layout = collection.layout
    if not any(layout.parts.values()):
        return None
    before = report.defects
    with duckdb.connect(":memory:") as plain:
        check_parts(plain, collection.source, layout.parts, report)
    if report.defects > before or not layout.parts["pages"]:
        return None
    return collection.duckdb()


def _checked_end(segment: SegmentAt, mark: SegmentMark | None, ledger: Ledger | None, report: Report) -> int:
    """How much of a segment must be sound: what is committed, or all there is where nobody says."""
    if ledger is None:
        return segment.size
    if mark is None:
        if segment.is_growing:
            if not ledger.running:
                report.note(segment.file, "was never committed: the next crawl takes it away")
            return 0 if ledger.running else segment.size
        if ledger.marks and not ledger.running:
            report.defect(segment.file, None, "the frontier knows of no such segment")
        return segment.size
    if segment.size < mark.length:
        lacking = mark.length - segment.size
        report.defect(
            segment.file, segment.size, f"{lacking:,} of {mark.length:,} committed bytes are missing"
        )
        return segment.size
    if segment.size > mark.length and not ledger.running:
        more = f"{segment.size - mark.length:,} bytes follow the committed ones"
        if not segment.is_growing:
            report.defect(segment.file, mark.length, more)
            return segment.size
        report.note(segment.file, f"{more}: the next crawl cuts them off")
    return mark.length if segment.is_growing else segment.size


def _index_of(
    collection: Collection, segment: SegmentAt, mark: SegmentMark | None, report: Report
) -> tuple[SegmentAt, int]:
    """The segment with the index it has now, and how much of that is committed."""
    source = collection.source
    if segment.is_growing and not source.has(segment.index):  # finished while we read
        segment = structs.replace(segment, index=segment.index.removesuffix(OPEN))
        return segment, source.size(segment.index)
    size = source.size(segment.index)
    if mark is None or not segment.is_growing:
        return segment, size
    if size < mark.index_length:
        report.defect(segment.index, size, f"{mark.index_length - size:,} committed bytes are missing")
    return segment, min(size, mark.index_length)


def _check_ledger(layout: Layout, ledger: Ledger | None, report: Report) -> None:
    if ledger is None:
        report.note("", "there is no frontier beside the archive: its own account was not compared")
        return
    moved = False
    for mark in ledger.marks:
        if mark.segment in layout.by_name:
            continue
        index = stem_of(mark.segment) + INDEX
        moved = True
        if index in layout.indexes:
            report.note(mark.segment, "is not here (moved elsewhere?); its index is")
        else:
            report.defect(mark.segment, None, f"is gone with {mark.length:,} committed bytes")
    if moved or (ledger.running and report.answers >= ledger.least):
        return
    if not ledger.least <= report.answers <= ledger.most:
        wanted = (
            f"{ledger.least:,}" if ledger.least == ledger.most else f"{ledger.least:,} to {ledger.most:,}"
        )
        report.defect("", None, f"{report.answers:,} answers are archived, the frontier counts {wanted}")


def _note_debris(layout: Layout, ledger: Ledger | None, report: Report) -> None:
    if ledger is None or not ledger.running:
        for name in layout.unfinished:
            report.note(name, "left by an interrupted run: the next crawl takes it away")
    for name in layout.strange:
        report.note(name, "is no part of the archive")
