"""Archives to read: a few pages written by the archive itself, tables of the promised columns beside them."""

from __future__ import annotations

import gzip
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import zstandard
from pyarrow import parquet

from skitter.archive.store import Archive
from skitter.archive.warc.surt import surt
from skitter.collection.collection import Collection
from skitter.collection.verify.findings import Ledger
from skitter.model import Copy, Exchange, SegmentMark
from skitter.settings import ArchiveSettings
from skitter.testing.clock import FakeClock
from tests.exchanges import SENT_AT, exchange, stored_in

HTML = b"<html lang=en><title>Page %d</title><body><nav>menu</nav><main><h1>Page %d</h1><p>Words of page %d, "
HTML += b"and <a href='/p/%d'>the next</a>.</p></main>"


def page_body(number: int) -> bytes:
    return HTML % (number, number, number, number + 1)


def page_exchange(number: int, **more: Any) -> Exchange:
    given = {"body": page_body(number), "sent_at": SENT_AT + number, **more}
    return exchange(url=f"http://h{number % 3}.example.org/p/{number}", **given)


class Made(NamedTuple):
    folder: Path
    archive: Path
    ledger: Ledger

    def collection(self) -> Collection:
        return Collection.at(self.folder)

    @property
    def segment(self) -> Path:
        (only,) = self.archive.glob("*.warc.*")
        return only


def make_crawl(
    folder: Path,
    pages: int = 8,
    *,
    grows: bool = False,
    segment_size: int = 1 << 30,
    compression: str = "gzip",
) -> Made:
    """Pages of three hosts; the last one has the body of the first and is a revisit of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "crawl.toml").write_text("")
    archive = folder / "archive"
    settings = ArchiveSettings(segment_size=segment_size, tables=(), metadata=False, compression=compression)
    store = Archive.open(archive, settings, FakeClock(SENT_AT), (), {}, in_child=False)
    marks: dict[str, SegmentMark] = {}
    original: Copy | None = None
    for number in range(pages):
        last = number == pages - 1
        sent = page_exchange(number, body=page_body(0)) if last else page_exchange(number)
        stored = stored_in(store, sent, original=original if last else None)
        original = original or Copy(sent.url, sent.sent_at, stored.record_id)
        marks |= {mark.segment: mark for mark in store.marks()}
        if not grows:
            store.committed()
    if grows:
        store.marks()
        store.committed()
    else:
        store.close()
    return Made(folder, archive, Ledger(marks=tuple(marks.values()), least=pages, most=pages))


# -- tables

_TEXTS = """url_surtkey url url_host_name url_host_tld url_host_registered_domain url_protocol url_path url_query
    fetch_redirect content_digest content_mime_type content_mime_detected content_charset content_languages
    content_truncated warc_filename kind title directives etag last_modified address http_version revisit_of
    text_digest failure""".split()
_NUMBERS = {
    "url_port": pyarrow.int32(),
    "fetch_time": pyarrow.timestamp("us", "UTC"),
    "fetch_status": pyarrow.int16(),
    "warc_record_offset": pyarrow.int64(),
    "warc_record_length": pyarrow.int64(),
    "size": pyarrow.int64(),
    "depth": pyarrow.int16(),
    "fetch_ms": pyarrow.float32(),
    "simhash": pyarrow.uint64(),
}
PAGES = pyarrow.schema([(name, pyarrow.string()) for name in _TEXTS] + list(_NUMBERS.items()))
_LINK = pyarrow.struct([(name, pyarrow.string()) for name in ("target", "text", "rel", "tag")])
LINKS = pyarrow.schema(
    [("url", pyarrow.string()), ("fetch_time", _NUMBERS["fetch_time"]), ("links", pyarrow.list_(_LINK))]
)
TEXT = pyarrow.schema(
    [
        ("fetch_time", _NUMBERS["fetch_time"]),
        *((name, pyarrow.string()) for name in ("url", "title", "language", "text", "content_digest")),
    ]
)


def add_tables(made: Made, most: int | None = None) -> None:
    """Parts of each table for the first `most` answers, as the writing side promises them."""
    collection = made.collection()
    pages: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    for at, record in collection.records():
        if record.kind not in ("response", "revisit") or (most is not None and len(pages) >= most):
            continue
        content = collection.read(record)
        when = datetime.fromisoformat(record.date).astimezone(UTC)
        common = {"url": record.url, "fetch_time": when, "title": content.title}
        digest = record.fields["warc-payload-digest"]
        pages.append(
            {
                **common,
                "url_surtkey": surt(record.url),
                "url_host_name": record.url.split("/")[2],
                "url_protocol": "http",
                "fetch_status": record.status,
                "content_digest": digest,
                "content_mime_detected": "text/html",
                "warc_filename": at.segment,
                "warc_record_offset": at.offset,
                "warc_record_length": at.length,
                "kind": "page",
                "size": len(record.body),
                "depth": 1,
            }
        )
        found = [{"target": link.href, "text": link.text, "rel": "", "tag": "a"} for link in content.links]
        links.append({"url": record.url, "fetch_time": when, "links": found})
        texts.append({**common, "language": "en", "text": content.text, "content_digest": digest})
    for name, rows, schema in (("pages", pages, PAGES), ("links", links, LINKS), ("text", texts, TEXT)):
        (made.archive / name).mkdir(exist_ok=True)
        table = pyarrow.Table.from_pylist(rows, schema=schema)
        parquet.write_table(table, made.archive / name / "part-0.parquet", compression="zstd")


# -- damage


def members_of(segment: Path) -> list[bytes]:
    """The compressed records of a sound file."""
    raw, found = segment.read_bytes(), []
    while raw:
        stream = zlib.decompressobj(31) if is_gzip(raw) else zstandard.ZstdDecompressor().decompressobj()
        stream.decompress(raw)
        rest = stream.unused_data
        found.append(raw[: len(raw) - len(rest)])
        raw = rest
    return found


def is_gzip(member: bytes) -> bool:
    return member.startswith(b"\x1f\x8b")


def packed(record: bytes, like: bytes) -> bytes:
    """Compressed as another member is."""
    if is_gzip(like):
        return gzip.compress(record, mtime=0)
    return zstandard.ZstdCompressor(write_checksum=True).compress(record)
