"""Exchanges to archive, and records read back by two readers that others wrote."""

from __future__ import annotations

import gzip
import hashlib
import io
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import zstandard
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from skitter.archive.digests import digests_of
from skitter.archive.facts import NO_FACTS, Facts
from skitter.archive.packing import Packer
from skitter.archive.store import Archive, Archived
from skitter.model import Copy, Exchange

with warnings.catch_warnings():
    # fastwarc 1.1 warns of its own old names when it is imported.
    warnings.simplefilter("ignore")
    from fastwarc.warc import ArchiveIterator as FastwarcIterator

SENT_AT = 1_767_323_045.25
BODY = b"<html><title>A page</title>" + b"<p>Some text that is long enough to be compressed.</p>" * 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: test\r\n\r\n"


def exchange(
    url: str = "http://www.example.org/a", body: bytes = BODY, head: bytes = HEAD, **rest: Any
) -> Exchange:
    given = {
        "request": b"GET /a HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: skitter\r\n\r\n",
        "status": 200,
        "headers": (("content-type", "text/html; charset=utf-8"),)
        if b"Content-Type: text/html" in head
        else (),
        "address": "192.0.2.7",
        "sent_at": SENT_AT,
    }
    return Exchange(url=url, body=body, head=head, **{**given, **rest})


def stored_in(
    archive: Archive,
    given: Exchange,
    *,
    media_type: str = "text/html",
    original: Copy | None = None,
    facts: Facts = NO_FACTS,
) -> Archived:
    """Packed as a worker does it, placed as the committer does."""
    packer = Packer(archive._settings)
    parcel = packer.pack(given, digests_of(given), media_type=media_type, facts=facts)
    return archive.place(parcel, original)


def sha256(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


class Read(NamedTuple):
    """A record as a reader understood it."""

    kind: str
    fields: dict[str, str]
    status: str
    headers: tuple[tuple[str, str], ...]
    payload: bytes


def read_with_warcio(warc: bytes) -> list[Read]:
    found = []
    for record in WarcioIterator(io.BytesIO(warc), check_digests="raise"):
        http = record.http_headers
        found.append(
            Read(
                record.rec_type,
                dict(record.rec_headers.headers),
                http.get_statuscode() if http and record.rec_type != "request" else "",
                tuple(http.headers) if http else (),
                record.raw_stream.read(),
            )
        )
    return found


def read_with_fastwarc(warc: bytes) -> list[Read]:
    found = []
    for record in FastwarcIterator(io.BytesIO(warc), parse_http=False):
        assert record.verify_block_digest() or record.headers["WARC-Type"] == "request"
        if record.is_http:
            record.parse_http()
        http = record.http_headers if record.is_http else None
        found.append(
            Read(
                record.headers["WARC-Type"],
                dict(record.headers.items()),
                str(http.status_code) if http is not None else "",
                tuple(http.items()) if http is not None else (),
                record.reader.read(),
            )
        )
    return found


def block_of(record: bytes) -> bytes:
    """The block of a record, by the format's own rule: what follows the first empty line, less the end."""
    _, _, rest = record.partition(b"\r\n\r\n")
    assert rest.endswith(b"\r\n\r\n")
    return rest[:-4]


def segments_of(folder: Path) -> list[Path]:
    """Finished ones, of either compression."""
    return sorted((*folder.glob("*.warc.gz"), *folder.glob("*.warc.zst")))


def unpacked(members: bytes) -> bytes:
    """What one or several compressed records hold, by other code than the archive's own readers use."""
    if members.startswith(b"\x1f\x8b"):
        return gzip.decompress(members)
    return zstandard.ZstdDecompressor().stream_reader(members, read_across_frames=True).read()


def finished_records(folder: Path) -> list[Read]:
    """warcio does not know zstd, and takes what is not compressed."""
    return [read for path in segments_of(folder) for read in read_with_warcio(unpacked(path.read_bytes()))]
