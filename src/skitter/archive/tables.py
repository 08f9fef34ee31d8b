"""From rows to Parquet: the tables `pages`, `links` and `text`, by the names that Common Crawl's index uses.

Runs in the archive's background thread, or in a child process, on stretches of a journal that are committed; and
when a power loss took commits back from a finished segment. Works by whole columns: splitting, taking URLs apart
and compressing happen in Arrow, without the interpreter's lock. Never knows what a commit is; imported only when
a part is due, as pyarrow takes 0.3 s.
"""

from __future__ import annotations

import errno
import os
import re
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate, compress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.structs import astuple

from skitter.archive.parts import TABLES, part_path, parts_of, write_part
from skitter.archive.rows import Row, rows_in, text_digest, utf8_of, whole_frames
from skitter.archive.stretches import Stretch
from skitter.faultpoints import Point, reach
from skitter.urls.scope import registrable_domain

_ADDRESS = re.compile(r"\[.*\]|[\d.]+")
_STRING = pa.string()
_TIME = pa.timestamp("us", tz="UTC")
# Level 3 saves another 4 % of the bytes for a third more time.
_ZSTD = 1
_URL = (
    r"^(?P<protocol>[^:/?#]+)://(?:[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/?#:]*)(?::(?P<port>\d{1,5}))?"
    r"(?P<path>[^?#]*)(?P<query>\?[^#]*)?"
)
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
    columns = _columns(list(rows_in(journal)))
    for number, table in enumerate(tables):
        if number:
            reach(Point.BETWEEN_PARTS)
        built = _BUILDERS[table](columns, segment)
        write_part(part_path(folder, table, stem, start, end), _parquet(table, built))
    # Arrow keeps what it was given: after a part that is 100 MB of nothing.
    pa.default_memory_pool().release_unused()
    return len(columns["url"])


def write_stretch(asked: Stretch) -> int:
    """As one part of each table; returns where it ends."""
    journal = _rows_of(asked)
    end = asked.start + len(journal)
    write_parts(Path(asked.folder), asked.tables, asked.segment, asked.stem, journal, asked.start, end)
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


def _columns(rows: list[Row]) -> dict[str, Any]:
    names = Row.__struct_fields__
    if not rows:
        return dict.fromkeys(names, ())
    columns: dict[str, Any] = dict(zip(names, zip(*map(astuple, rows), strict=True), strict=True))
    for name in _LONG:
        columns[name] = [*map(utf8_of, columns[name])]
    return columns


_LONG = ("text", "targets", "texts")


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


def _text(column: Sequence[str]) -> pa.Array:
    """With nothing where nothing was said."""
    array = pa.array(column, _STRING)
    return pc.if_else(pc.equal(array, ""), pa.scalar(None, _STRING), array)


def _long(column: Sequence[memoryview]) -> pa.Array:
    """Joined in one go and checked to be UTF-8: half the time that Arrow takes value by value."""
    ends = array("i", accumulate(map(len, column), initial=0))
    joined = pa.StringArray.from_buffers(len(column), pa.py_buffer(ends), pa.py_buffer(b"".join(column)))
    joined.validate(full=True)
    return joined


def _time(column: Sequence[int]) -> pa.Array:
    return pa.array(column, pa.int64()).cast(_TIME)


def _pages(columns: dict[str, Any], segment: str) -> pa.Table:
    said = {name: _text(columns[name]) for name in _SAID}
    return pa.table(
        {
            "url_surtkey": pa.array(columns["surt"], _STRING),
            "url": pa.array(columns["url"], _STRING),
            **_url_parts(pa.array(columns["url"], _STRING)),
            "fetch_time": _time(columns["micros"]),
            "fetch_status": pa.array(columns["status"], pa.int16()),
            "fetch_redirect": said["redirect"],
            "content_digest": said["digest"],
            "content_mime_type": said["mime"],
            "content_mime_detected": said["detected"],
            "content_charset": said["charset"],
            "content_languages": said["language"],
            "content_truncated": said["truncated"],
            "warc_filename": pa.array([segment] * len(columns["url"]), _STRING),
            "warc_record_offset": pa.array(columns["offset"], pa.int64()),
            "warc_record_length": pa.array(columns["length"], pa.int64()),
            "kind": pa.array(columns["kind"], _STRING),
            "size": pa.array(columns["size"], pa.int64()),
            "title": said["title"],
            "depth": pa.array(columns["depth"], pa.int16()),
            "directives": said["directives"],
            "etag": said["etag"],
            "last_modified": said["last_modified"],
            "address": said["address"],
            "http_version": said["http_version"],
            "fetch_ms": pa.array(columns["fetch_ms"], pa.float32()),
            "revisit_of": said["revisit_of"],
            "text_digest": _text([*map(_text_digest, columns["text_digest"], columns["text"])]),
            "simhash": pa.array(columns["simhash"], pa.uint64()),
            "near_duplicate_of": said["near_duplicate_of"],
            "failure": said["failure"],
        }
    )


_SAID = (
    "redirect digest mime detected charset language truncated title directives etag last_modified address "
    "http_version revisit_of near_duplicate_of failure"
).split()


def _url_parts(urls: pa.Array) -> dict[str, pa.Array]:
    found = pc.extract_regex(urls, _URL)
    protocol, host, port, path, query = (pc.struct_field(found, name) for name in _URL_GROUPS)
    hosts = pc.dictionary_encode(host)
    names = hosts.dictionary.to_pylist()
    tlds = pa.array([_tld(name) for name in names], _STRING)
    domains = pa.array([_domain(name) for name in names], _STRING)
    return {
        "url_host_name": host,
        "url_host_tld": tlds.take(hosts.indices),
        "url_host_registered_domain": domains.take(hosts.indices),
        "url_protocol": protocol,
        "url_port": pc.if_else(pc.equal(port, ""), pa.scalar(None, _STRING), port).cast(pa.int32()),
        "url_path": path,
        "url_query": pc.if_else(
            pc.equal(query, ""), pa.scalar(None, _STRING), pc.utf8_slice_codeunits(query, 1)
        ),
    }


_URL_GROUPS = ("protocol", "host", "port", "path", "query")


def _tld(host: str | None) -> str | None:
    """The last label; an address has none."""
    return host.rstrip(".").rpartition(".")[2] if host and not _ADDRESS.fullmatch(host) else None


def _domain(host: str | None) -> str | None:
    return registrable_domain(host) if host and not _ADDRESS.fullmatch(host) else None


def _text_digest(said: str, text: memoryview) -> str:
    return said or text_digest(text)


def _links(columns: dict[str, Any], segment: str) -> pa.Table:
    """Pages with links only; of each page its links in the page's order."""
    told = _of_rows_with("targets", columns)
    joined = {
        "target": _long(told("targets")),
        "text": _long(told("texts")),
        "rel": pa.array(told("rels"), _STRING),
        "tag": pa.array(told("tags"), _STRING),
    }
    split = {name: pc.split_pattern(column, "\n") for name, column in joined.items()}
    links = pa.StructArray.from_arrays([lists.flatten() for lists in split.values()], list(split))
    return pa.table(
        {
            "url": pa.array(told("url"), _STRING),
            "fetch_time": _time(told("micros")),
            "links": pa.ListArray.from_arrays(split["target"].offsets, links),
        }
    )


def _texts(columns: dict[str, Any], segment: str) -> pa.Table:
    told = _of_rows_with("text", columns)
    return pa.table(
        {
            "url": pa.array(told("url"), _STRING),
            "fetch_time": _time(told("micros")),
            "title": _text(told("title")),
            "language": _text(told("language")),
            "text": _long(told("text")),
            "content_digest": _text(told("digest")),
        }
    )


def _of_rows_with(column: str, columns: dict[str, Any]) -> Callable[[str], list[Any]]:
    """Asks for a column without the rows that say nothing in `column`: in Arrow that would copy every text."""
    return lambda name: [*compress(columns[name], columns[column])]


_BUILDERS = {"pages": _pages, "links": _links, "text": _texts}
