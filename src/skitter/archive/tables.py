"""From rows to Parquet: the tables `pages`, `links` and `text`, by the names that Common Crawl's index uses.

Runs in the archive's background thread, or in a child process, on stretches of a journal that are committed.
Works by whole columns (`columns.py`, `parquet.py`): taking rows apart, encoding and compressing happen without
the interpreter's lock. Never knows what a commit is.
"""

from __future__ import annotations

import errno
import os
import re
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from skitter.archive.columns import NAMES, Columns, columns_of
from skitter.archive.columns_plain import Column, optional, strings
from skitter.archive.parquet import (
    FLOAT32,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    UINT64,
    Field,
    Kind,
    Lists,
    parquet_of,
)
from skitter.archive.parts import part_path, write_part
from skitter.archive.rows import whole_frames
from skitter.archive.stretches import Stretch
from skitter.faultpoints import Point, reach
from skitter.urls.scope import registrable_domain

_ADDRESS = re.compile(rb"\[.*\]|[\d.]+")
# Where strings repeat from page to page. Of the others a dictionary would only be built to be thrown away.
_REPEATING = frozenset(
    (
        "url_host_name url_host_tld url_host_registered_domain url_protocol content_mime_type "
        "content_mime_detected content_charset content_languages warc_filename kind directives address "
        "http_version failure revisit_of content_truncated near_duplicate_of"
    ).split()
)
# The last large part's, for the next one, which soon comes: 16 MB fresh from the system take 3 us a page.
_KEPT: list[bytearray] = []
Said = dict[str, Column]
"""By the names of `columns.py`."""


def write_parts(
    folder: Path,
    tables: Sequence[str],
    segment: str,
    stem: str,
    journal: bytes | memoryview,
    start: int,
    end: int,
) -> int:
    """The rows of `journal`, which lies from `start` to `end` in the segment's, as one part of each table;
    returns their number. Of a table with nothing to say an empty part is written: its name says it was asked."""
    columns = columns_of(journal)
    said = dict(zip(NAMES, columns.columns, strict=True))
    for number, table in enumerate(tables):
        if number:
            reach(Point.BETWEEN_PARTS)
        built = _BUILDERS[table](said, columns, segment)
        write_part(part_path(folder, table, stem, start, end), memoryview(built))
    return columns.rows


def write_stretch(asked: Stretch) -> int:
    """As one part of each table; returns where it ends."""
    buffer = _KEPT.pop() if _KEPT else bytearray()
    buffer, length = _read(asked, buffer)
    end = asked.start + length
    with memoryview(buffer) as view, view[:length].toreadonly() as journal:
        write_parts(Path(asked.folder), asked.tables, asked.segment, asked.stem, journal, asked.start, end)
    if length >= asked.most // 2:
        _KEPT[:] = [buffer]
    return end


def _read(asked: Stretch, buffer: bytearray) -> tuple[bytearray, int]:
    """Rows of the journal, in that buffer or a larger one, and how many bytes they are."""
    most = asked.most
    fd = os.open(asked.journal, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while True:
            wanted = min(asked.end - asked.start, most)
            buffer = buffer if len(buffer) >= wanted else bytearray(wanted)
            with memoryview(buffer) as view, view[:wanted] as room:
                length = os.preadv(fd, [room], asked.start)
            if asked.start + length == asked.end:
                return buffer, length
            if whole := whole_frames(buffer, length):
                return buffer, whole
            if length < most:
                raise OSError(errno.EIO, f"{asked.journal} is shorter than what was committed of it")
            most *= 2
    finally:
        os.close(fd)


def _pages(said: Said, columns: Columns, segment: str) -> bytes:
    return parquet_of(
        [
            _compared("url_surtkey", said["surt"]),
            _compared("url", said["url"]),
            *_url_parts(said),
            _compared("fetch_time", said["micros"], TIME),
            _compared("fetch_status", _short(said["status"]), INT16),
            _compared("fetch_redirect", said["redirect"]),
            _compared("content_digest", said["digest"]),
            _compared("content_mime_type", said["mime"]),
            _compared("content_mime_detected", said["detected"]),
            _compared("content_charset", said["charset"]),
            _compared("content_languages", said["language"]),
            _compared("content_truncated", said["truncated"]),
            _compared("warc_filename", strings([segment.encode()] * columns.rows)),
            _compared("warc_record_offset", said["offset"], INT64),
            _compared("warc_record_length", said["length"], INT64),
            _compared("kind", said["kind"]),
            _compared("size", said["size"], INT64),
            _compared("title", said["title"]),
            _compared("depth", _short(said["depth"]), INT16),
            _compared("directives", said["directives"]),
            _compared("etag", said["etag"]),
            _compared("last_modified", said["last_modified"]),
            _compared("address", said["address"]),
            _compared("http_version", said["http_version"]),
            _compared("fetch_ms", said["fetch_ms"], FLOAT32),
            _compared("revisit_of", said["revisit_of"]),
            _compared("text_digest", said["text_digest"]),
            _compared("simhash", said["simhash"], UINT64),
            _compared("near_duplicate_of", said["near_duplicate_of"]),
            _compared("failure", said["failure"]),
        ],
        columns.rows,
    )


def _compared(name: str, column: Column, kind: Kind = STRING) -> Field:
    return Field(name, kind, column, name in _REPEATING, compared=True)


def _short(column: Column) -> Column:
    """Numbers that are to fit into 16 bits, as the format has them in 32."""
    count, numbers, _, _ = column
    return count, array("i", array("h", array("q", numbers))).tobytes(), None, None


def _url_parts(said: Said) -> tuple[Field, ...]:
    hosts = _values(said["host"])
    tlds, domains = ({host: of(host) for host in set(hosts)} for of in (_tld, _domain))
    return (
        _compared("url_host_name", said["host"]),
        _compared("url_host_tld", optional([tlds[host] for host in hosts])),
        _compared("url_host_registered_domain", optional([domains[host] for host in hosts])),
        _compared("url_protocol", said["protocol"]),
        _compared("url_port", said["port"], INT32),
        _compared("url_path", said["path"]),
        _compared("url_query", said["query"]),
    )


def _values(column: Column) -> list[bytes]:
    """Strings as they are, empty where there is none."""
    _, content, ends, _ = column
    return [content[start:end] for start, end in pairwise(array("i", ends or b""))]


def _tld(host: bytes) -> bytes | None:
    """The last label; an address has none."""
    return host.rstrip(b".").rpartition(b".")[2] if host and not _ADDRESS.fullmatch(host) else None


def _domain(host: bytes) -> bytes | None:
    return _encoded(registrable_domain(host.decode())) if host and not _ADDRESS.fullmatch(host) else None


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _links(said: Said, columns: Columns, segment: str) -> bytes:
    """Pages with links only; of each page its links in the page's order."""
    told = _of_rows(columns.link_rows, columns.rows)
    names = {"target": "targets", "text": "texts", "rel": "rels", "tag": "tags"}
    links = tuple(Field(name, STRING, said[column], repeats=True) for name, column in names.items())
    return parquet_of(
        [
            _compared("url", told(said["url"])),
            _compared("fetch_time", told(said["micros"]), TIME),
            Lists("links", links, columns.link_ends),
        ],
        columns.told_links,
    )


def _texts(said: Said, columns: Columns, segment: str) -> bytes:
    told = _of_rows(columns.text_rows, columns.rows)
    return parquet_of(
        [
            _compared("url", told(said["url"])),
            _compared("fetch_time", told(said["micros"]), TIME),
            Field("title", STRING, told(said["title"])),
            Field("language", STRING, told(said["language"]), repeats=True),
            Field("text", STRING, said["text"]),
            Field("content_digest", STRING, told(said["digest"])),
        ],
        said["text"][0],
    )


def _of_rows(numbers: bytes, rows: int) -> Callable[[Column], Column]:
    """Takes from a column what it says of some rows; mostly of all of them."""
    wanted = array("i", numbers)
    if len(wanted) == rows:
        return lambda column: column
    return lambda column: _taken(column, wanted)


def _taken(column: Column, wanted: array[int]) -> Column:
    _, content, ends, valid = column
    if ends is None:
        numbers = array("q", content)
        return len(wanted), array("q", [numbers[row] for row in wanted]).tobytes(), None, None
    values = _values(column)
    return optional(
        [values[row] if valid is None or valid[row // 8] >> row % 8 & 1 else None for row in wanted]
    )


_BUILDERS = {"pages": _pages, "links": _links, "text": _texts}
