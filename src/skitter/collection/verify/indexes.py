"""Index lines and table rows against the records they name: right place, right page, none missing, none twice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skitter.archive.warc.surt import may_be_key_of
from skitter.collection.captures import Capture, parse_line, whole_lines
from skitter.collection.layout import SegmentAt
from skitter.collection.source import Source
from skitter.collection.verify.findings import Report
from skitter.collection.verify.segment import Answer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Sums = dict[str, tuple[int, int]]
"""By segment: how many index lines, and the sum of their hashes, whatever their order."""
_MASK = (1 << 64) - 1
_HOST = re.compile(r"https?://((?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?)(?::\d+)?/", re.IGNORECASE)
_WWW = re.compile(r"www\d*")
# Rows of a rendered page are of the page's own URL; pictures of it have none.
_RENDERED = "urn:rendered:"
_PICTURES = ("urn:view:", "urn:thumbnail:")


def check_index(
    source: Source, segment: SegmentAt, end: int, limit: int, answers: dict[int, Answer], report: Report
) -> tuple[int, int]:
    """Up to `end` of the index; lines of a growing segment's records from `limit` on are not judged yet."""
    named: set[int] = set()
    total, position, before = 0, 0, b""
    for line in whole_lines(source, segment.index, end):
        report.index_lines += 1
        total = (total + hash(line)) & _MASK
        if not segment.is_growing and line < before:
            report.defect(segment.index, position, "the lines are not in order")
        capture = parse_line(line)
        offset = capture.at.offset if capture else -1
        if segment.is_growing and offset >= limit:
            position += len(line) + 1
            continue
        _check_line(capture, segment, position, answers, report)
        if offset in named:
            report.defect(segment.index, position, f"a second line for the record at {offset}")
        named.add(offset)
        position, before = position + len(line) + 1, line
    if position < end:
        report.defect(segment.index, position, "the last line breaks off")
    for offset in sorted(set(answers) - named):
        report.defect(segment.file, offset, f"the record has no line in {segment.index}")
    return len(named), total


def _check_line(
    capture: Capture | None, segment: SegmentAt, position: int, answers: dict[int, Answer], report: Report
) -> None:
    if capture is None:
        report.defect(segment.index, position, "not an index line")
        return
    if capture.at.segment != segment.name:
        report.defect(segment.index, position, f"the line is of another file: {capture.at.segment[:100]}")
    if not is_key_of(capture.key, capture.url):
        report.defect(segment.index, position, f"the key is not that of {capture.url[:100]}")
    answer = answers.get(capture.at.offset)
    if answer is None:
        what = f"no response or revisit record begins at {capture.at.offset} of {segment.file}"
        report.defect(segment.index, position, what)
    else:
        said = Answer(capture.at.length, capture.url, capture.stamp, capture.status, capture.digest)
        for what in _differences(said, answer):
            report.defect(segment.index, position, f"{what} (record at {capture.at.offset})")


def is_key_of(key: str, url: str) -> bool:
    """By the rule that writes keys, and by the host alone: a fault of that rule must not pass because it is asked
    again. A page under the key of another host would be served as that host's."""
    return may_be_key_of(key, url) and names_host(key, url)


def names_host(key: str, url: str) -> bool:
    """Whether a key has all labels of the URL's host, but for a leading `www`. Hosts that are no names pass."""
    host = _HOST.match(url)
    if host is None:
        return True
    said = key.partition(")")[0].partition(":")[0].split(",")[::-1]
    labels = host[1].lower().strip(".").split(".")
    return said == labels or (said == labels[1:] and _WWW.fullmatch(labels[0]) is not None)


def _differences(said: Answer, answer: Answer) -> list[str]:
    pairs = (
        ("length", said.length, answer.length),
        ("URL", said.url, answer.url),
        ("time", said.stamp, answer.stamp),
        ("status", said.status, answer.status),
        ("digest", said.digest, answer.digest),
    )
    return [f"{name} is not the record's: {str(x)[:100]}" for name, x, y in pairs if x != y]


def check_merged(source: Source, name: str, sums: Sums, report: Report) -> None:
    found: Sums = {}
    position, before = 0, b""
    for line in whole_lines(source, name):
        if line < before:
            report.defect(name, position, "the lines are not in order")
        capture = parse_line(line)
        if capture is None:
            report.defect(name, position, "not an index line")
        else:
            count, total = found.get(capture.at.segment, (0, 0))
            found[capture.at.segment] = (count + 1, (total + hash(line)) & _MASK)
        position, before = position + len(line) + 1, line
    for segment, own in sums.items():
        if segment not in found:
            report.note(name, f"does not have {segment} yet: the end of a crawl writes it anew")
        elif found[segment] != own:
            report.defect(name, None, f"its lines of {segment} are not those of that segment's own index")


def check_parts(
    database: DuckDBPyConnection, source: Source, parts: dict[str, tuple[str, ...]], report: Report
) -> None:
    """Every column of every row of every part is decoded."""
    import duckdb

    for name in (part for names in parts.values() for part in names):
        where = source.location(name).replace("'", "''")
        try:
            found = database.execute(f"select count(*), sum(hash(part)) from read_parquet('{where}') part")
            row = found.fetchone()
            report.rows += row[0] if row else 0
        except duckdb.Error as error:
            report.defect(name, None, f"unreadable: {' '.join(str(error).split())[:200]}")
        report.advance(source.size(name))


def check_rows(
    database: DuckDBPyConnection, segment: SegmentAt, limit: int, answers: dict[int, Answer], report: Report
) -> None:
    """A finished segment has a row for each answer or, written without tables, none at all."""
    rows = database.execute(
        "select warc_record_offset, warc_record_length, url, fetch_status, coalesce(content_digest, ''), "
        "url_surtkey from pages_in_parts where warc_filename = ? and (warc_record_offset < ? or not ?)",
        [segment.name, limit, segment.is_growing],
    )
    named: set[int] = set()
    while batch := rows.fetchmany(4096):
        for row in batch:
            _check_row(row, segment, answers, named, report)
    missing = {offset for offset, answer in answers.items() if not answer.url.startswith(_PICTURES)} - named
    if named and not segment.is_growing:
        for offset in sorted(missing):
            report.defect(segment.file, offset, "the record has no row in the pages table")


def _check_row(
    row: tuple[Any, ...], segment: SegmentAt, answers: dict[int, Answer], named: set[int], report: Report
) -> None:
    offset, length, url, status, digest, key = row
    answer = answers.get(offset)
    place = f"the row of {url[:200]}"
    if offset in named:
        report.defect("pages", None, f"a second row for {segment.file} at {offset}")
    named.add(offset)
    if answer is None:
        report.defect("pages", None, f"{place}: no record begins at {offset} of {segment.file}")
        return
    if not is_key_of(key, url):
        report.defect("pages", None, f"{place}: url_surtkey is not that of the URL")
    # The digest of a 304's body is left out of its record.
    of_record = _RENDERED + url if answer.url.startswith(_RENDERED) else url
    said = Answer(length, of_record, answer.stamp, status or 0, digest if answer.digest else "")
    for what in _differences(said, answer):
        report.defect("pages", None, f"{what} (record at {offset} of {segment.file})")
