"""From rows to Parquet: the tables `pages`, `links` and `text`, by the names that Common Crawl's index uses.

Runs in the archive's background thread, or in a child process, on stretches of a journal that are committed; and
when a power loss took commits back from a finished segment. Works by whole columns (`columns.py`): taking rows
apart and compressing happen without the interpreter's lock. Never knows what a commit is; imported only when a
part is due, as pyarrow takes 0.3 s.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skitter.archive.columns import NAMES, Columns, columns_of
from skitter.archive.parts import TABLES, part_path, parts_of, write_part
from skitter.archive.rows import whole_frames
from skitter.archive.segments import ROWS_A_PART
from skitter.archive.stretches import Stretch
from skitter.faultpoints import Point, reach
from skitter.urls.scope import registrable_domain

_ADDRESS = re.compile(r"\[.*\]|[\d.]+")
_STRING = pa.string()
_TIME = pa.timestamp("us", tz="UTC")
# Level 3 saves another 4 % of the bytes for a third more time.
_ZSTD = 1
# Where values repeat from page to page. Of the others a dictionary would only be built to be thrown away.
_DICTIONARIES = {
    "pages": (
        "url_host_name url_host_tld url_host_registered_domain url_protocol fetch_status content_mime_type "
        "content_mime_detected content_charset content_languages warc_filename kind depth directives address "
        "http_version failure revisit_of content_truncated near_duplicate_of"
    ).split(),
    "links": [f"links.list.element.{name}" for name in ("target", "text", "rel", "tag")],
    "text": ["language"],
}


def write_parts(
    folder: Path, tables: Sequence[str], segment: str, stem: str, journal: bytes, start: int, end: int
) -> int:
    """The rows of `journal`, which lies from `start` to `end` in the segment's, as one part of each table;
    returns their number. Of a table with nothing to say an empty part is written: its name says it was asked."""
    columns = columns_of(journal)
    said = _arrays(columns)
    for number, table in enumerate(tables):
        if number:
            reach(Point.BETWEEN_PARTS)
        built = _BUILDERS[table](said, columns, segment)
        write_part(part_path(folder, table, stem, start, end), _parquet(table, built))
    return columns.rows


def write_stretch(asked: Stretch) -> int:
    """As one part of each table; returns where it ends."""
    journal = _rows_of(asked)
    end = asked.start + len(journal)
    rows = write_parts(Path(asked.folder), asked.tables, asked.segment, asked.stem, journal, asked.start, end)
    # Arrow keeps 65 MB for the next part. After a large one that is soon needed, and to give it back and have it
    # zeroed again takes 4 us a page; after a small one it would be nothing but held.
    if rows < ROWS_A_PART and len(journal) < asked.most // 2:
        pa.default_memory_pool().release_unused()
    return end


def _rows_of(asked: Stretch) -> bytes:
    most = asked.most
    fd = os.open(asked.journal, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while True:
            journal = os.pread(fd, min(asked.end - asked.start, most), asked.start)
            if asked.start + len(journal) == asked.end:
                return journal
            if whole := whole_frames(journal):
                return journal[:whole]
            if len(journal) < most:
                raise OSError(errno.EIO, f"{asked.journal} is shorter than what was committed of it")
            most *= 2
    finally:
        os.close(fd)


def take_back(folder: Path, stem: str, rows_length: int, length: int) -> None:
    """Parts of a finished segment lose the rows of records from the WARC file's `length` on.

    `pages` last: as long as it is whole, an interrupted attempt can be made again."""
    kept = _kept_before(folder, stem, rows_length, length)
    for table in reversed(TABLES):
        for part in parts_of(folder, table, stem):
            if part.end <= rows_length:
                continue
            if part.start < rows_length:
                cut = part_path(folder, table, stem, part.start, rows_length)
                write_part(cut, _parquet(table, _joined(pq.read_table(part.path, partitioning=None), kept)))
            os.unlink(part.path)


def _kept_before(folder: Path, stem: str, rows_length: int, length: int) -> pa.Table:
    """Which rows of the part that the mark lies in were committed; a record is told by its URL and time."""
    crossing = [p for p in parts_of(folder, "pages", stem) if p.start < rows_length < p.end]
    names = ["url", "fetch_time", "warc_record_offset"]
    if not crossing:
        return pa.table({"url": pa.array([], _STRING), "fetch_time": pa.array([], _TIME)})
    rows = pq.read_table(crossing[0].path, columns=names, partitioning=None)
    return rows.filter(pc.less(rows["warc_record_offset"], length)).select(names[:2])


def _joined(rows: pa.Table, kept: pa.Table) -> pa.Table:
    known = set(zip(kept["url"].to_pylist(), kept["fetch_time"].cast(pa.int64()).to_pylist(), strict=True))
    keys = zip(rows["url"].to_pylist(), rows["fetch_time"].cast(pa.int64()).to_pylist(), strict=True)
    return rows.filter(pa.array([key in known for key in keys], pa.bool_()))


def _parquet(table: str, built: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    pq.write_table(
        built,
        sink,
        compression="zstd",
        compression_level=_ZSTD,
        use_dictionary=_DICTIONARIES[table],
        # Of a text or a list they would be long and of no use to any query.
        write_statistics=True if table == "pages" else ["url", "fetch_time"],
    )
    return memoryview(sink.getvalue())


def _arrays(columns: Columns) -> dict[str, pa.Array]:
    arrays = {}
    for name, (values, data, ends, valid) in zip(NAMES, columns.columns, strict=True):
        bits = None if valid is None else pa.py_buffer(valid)
        if ends is None:
            arrays[name] = pa.Array.from_buffers(_NUMBERS[name], values, [bits, pa.py_buffer(data)])
        else:
            arrays[name] = pa.StringArray.from_buffers(values, pa.py_buffer(ends), pa.py_buffer(data), bits)
    return arrays


_NUMBERS = {
    "micros": _TIME,
    "fetch_ms": pa.float32(),
    "simhash": pa.uint64(),
    "port": pa.int32(),
    **dict.fromkeys(("status", "offset", "length", "size", "depth"), pa.int64()),
}


def _pages(said: dict[str, pa.Array], columns: Columns, segment: str) -> pa.Table:
    return pa.table(
        {
            "url_surtkey": said["surt"],
            "url": said["url"],
            **_url_parts(said),
            "fetch_time": said["micros"],
            "fetch_status": said["status"].cast(pa.int16()),
            "fetch_redirect": said["redirect"],
            "content_digest": said["digest"],
            "content_mime_type": said["mime"],
            "content_mime_detected": said["detected"],
            "content_charset": said["charset"],
            "content_languages": said["language"],
            "content_truncated": said["truncated"],
            "warc_filename": pa.repeat(pa.scalar(segment, _STRING), columns.rows),
            "warc_record_offset": said["offset"],
            "warc_record_length": said["length"],
            "kind": said["kind"],
            "size": said["size"],
            "title": said["title"],
            "depth": said["depth"].cast(pa.int16()),
            "directives": said["directives"],
            "etag": said["etag"],
            "last_modified": said["last_modified"],
            "address": said["address"],
            "http_version": said["http_version"],
            "fetch_ms": said["fetch_ms"],
            "revisit_of": said["revisit_of"],
            "text_digest": said["text_digest"],
            "simhash": said["simhash"],
            "near_duplicate_of": said["near_duplicate_of"],
            "failure": said["failure"],
        }
    )


def _url_parts(said: dict[str, pa.Array]) -> dict[str, pa.Array]:
    hosts = pc.dictionary_encode(said["host"])
    names = hosts.dictionary.to_pylist()
    tlds = pa.array([_tld(name) for name in names], _STRING)
    domains = pa.array([_domain(name) for name in names], _STRING)
    return {
        "url_host_name": said["host"],
        "url_host_tld": tlds.take(hosts.indices),
        "url_host_registered_domain": domains.take(hosts.indices),
        "url_protocol": said["protocol"],
        "url_port": said["port"],
        "url_path": said["path"],
        "url_query": said["query"],
    }


def _tld(host: str | None) -> str | None:
    """The last label; an address has none."""
    return host.rstrip(".").rpartition(".")[2] if host and not _ADDRESS.fullmatch(host) else None


def _domain(host: str | None) -> str | None:
    return registrable_domain(host) if host and not _ADDRESS.fullmatch(host) else None


def _links(said: dict[str, pa.Array], columns: Columns, segment: str) -> pa.Table:
    """Pages with links only; of each page its links in the page's order."""
    ends = pa.Array.from_buffers(pa.int32(), columns.told_links + 1, [None, pa.py_buffer(columns.link_ends)])
    links = pa.StructArray.from_arrays(
        [said[name] for name in ("targets", "texts", "rels", "tags")], ["target", "text", "rel", "tag"]
    )
    told = _of_rows(columns.link_rows, columns.rows)
    return pa.table(
        {
            "url": told(said["url"]),
            "fetch_time": told(said["micros"]),
            "links": pa.ListArray.from_arrays(ends, links),
        }
    )


def _texts(said: dict[str, pa.Array], columns: Columns, segment: str) -> pa.Table:
    told = _of_rows(columns.text_rows, columns.rows)
    return pa.table(
        {
            "url": told(said["url"]),
            "fetch_time": told(said["micros"]),
            "title": told(said["title"]),
            "language": told(said["language"]),
            "text": said["text"],
            "content_digest": told(said["digest"]),
        }
    )


def _of_rows(numbers: bytes, rows: int) -> Callable[[pa.Array], pa.Array]:
    """Takes from a column what it says of some rows; mostly of all of them."""
    count = len(numbers) // pa.int32().byte_width
    if count == rows:
        return lambda column: column
    indices = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(numbers)])
    return lambda column: column.take(indices)


_BUILDERS = {"pages": _pages, "links": _links, "text": _texts}
