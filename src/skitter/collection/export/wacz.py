"""WACZ 1.1.1: a crawl in one ZIP file that ReplayWeb.page opens in a browser, from a disk or over the web.

WARC and index members are stored, not deflated, so that a player can seek in them; players read gzip, so what
was archived with zstd is compressed anew (`recoding.py`). With a condition, a new WARC of the matching records is
made: their requests come with them, and the originals of revisits, without which a revisit has no body.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from skitter import __version__
from skitter.archive.warc import records
from skitter.archive.warc.cdxj import index_line
from skitter.archive.warc.coding import GZIP, Coder, coding_of, decode_record
from skitter.archive.warc.surt import surt
from skitter.collection.captures import segment_file
from skitter.collection.collection import Collection, Page
from skitter.collection.export.contents import READABLE
from skitter.collection.export.recoding import Recoding
from skitter.collection.export.tables import index_lines
from skitter.collection.layout import SegmentAt
from skitter.collection.members import Member, read_members
from skitter.collection.record import Record
from skitter.errors import ArchiveFailed
from skitter.extras import need
from skitter.model import RecordAt
from skitter.parse.media import HTML, XHTML

Advance = Callable[[int], None]
_BLOCK = 1 << 20
# What the player downloads at once to look a URL up in.
_LINES_A_BLOCK = 1024
FILTERED = "data.warc.gz"
_LEVEL = 1
_FIRST_FIELDS = 200


class Signing(NamedTuple):
    """Whether to sign, and with which key; without a file, with a new one that is then forgotten."""

    wanted: bool = False
    key_file: Path | None = None


UNSIGNED = Signing()


class _Package:
    """The ZIP with its list of resources: name, SHA-256 and size of each."""

    def __init__(self, target: Path, now: float) -> None:
        self._zip = zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._time = time.gmtime(now)[:6]
        self._resources: list[dict[str, object]] = []

    def add(self, path: str, blocks: Iterator[bytes], *, deflated: bool = False, listed: bool = True) -> str:
        entry = zipfile.ZipInfo(path, self._time)
        entry.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
        entry.external_attr = 0o644 << 16
        digest, size = hashlib.sha256(), 0
        with self._zip.open(entry, "w", force_zip64=True) as member:
            for block in blocks:
                member.write(block)
                digest.update(block)
                size += len(block)
        said = f"sha256:{digest.hexdigest()}"
        if listed:
            name = path.rpartition("/")[2]
            self._resources.append({"name": name.lower(), "path": path, "hash": said, "bytes": size})
        return said

    def close(self, about: dict[str, object], main_page: Page | None, now: float, signing: Signing) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        package: dict[str, object] = {
            "profile": "data-package",
            "wacz_version": "1.1.1",
            **about,
            "software": f"skitter {__version__}",
            "created": stamp,
            "modified": stamp,
            "resources": self._resources,
        }
        if main_page is not None:
            package["mainPageUrl"] = main_page.url
            package["mainPageDate"] = main_page.fetched_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        text = json.dumps(package, indent=2).encode()
        said = self.add("datapackage.json", iter((text,)), deflated=True, listed=False)
        digest: dict[str, object] = {"path": "datapackage.json", "hash": said}
        if signing.wanted:
            need("cryptography")
            from skitter.collection.export.signing import sign

            digest["signedData"] = sign(said, stamp, signing.key_file)
        self.add("datapackage-digest.json", iter((json.dumps(digest).encode(),)), deflated=True, listed=False)
        self._zip.close()

    def abandon(self) -> None:
        self._zip.close()


def write_wacz(
    collection: Collection,
    target: Path,
    where: str,
    advance: Advance,
    now: float,
    signing: Signing = UNSIGNED,
) -> int:
    package = _Package(target, now)
    try:
        if where.strip():
            lines = _add_filtered(collection, package, where, advance, now)
        else:
            lines = _add_segments(collection, package)
        _add_index(package, lines)
        condition = f"({where}) and {READABLE}" if where.strip() else READABLE
        written, first = _add_pages(collection, package, condition, advance)
        package.close(_about(collection), first, now, signing)
    except BaseException:
        package.abandon()
        raise
    return written


def _about(collection: Collection) -> dict[str, object]:
    """By the names of the data package standard."""
    told = collection.about
    found: dict[str, object] = {"title": told.title or Path(collection.name).name or "crawl"}
    if told.description:
        found["description"] = told.description
    if told.publisher:
        found["contributors"] = [{"title": told.publisher, "role": "publisher"}]
    if told.is_part_of:
        found["isPartOf"] = told.is_part_of
    return found


def _add_segments(collection: Collection, package: _Package) -> Iterator[bytes]:
    recoding = Recoding(collection.source, GZIP.coder(_LEVEL))
    for segment in collection.layout.segments:
        if coding_of(segment.name) is GZIP:
            package.add(f"archive/{segment.name}", _blocks(collection, segment))
        else:
            package.add(f"archive/{recoding.name_of(segment)}", recoding.members(segment))
    return recoding.lines(index_lines(collection, "", lambda amount: None))


def _blocks(collection: Collection, segment: SegmentAt) -> Iterator[bytes]:
    """A segment's whole members: of a growing one up to its last whole record."""
    end = segment.size
    if segment.is_growing:
        members = read_members(collection.source, segment.file, segment.size)
        end = max((m.offset + m.length for m in members if isinstance(m, Member)), default=0)
    position = 0
    while position < end:
        block = collection.source.read(segment.file, position, min(_BLOCK, end - position))
        if not block:
            return
        position += len(block)
        yield block


def _add_index(package: _Package, lines: Iterator[bytes]) -> None:
    """Blocks of lines, a gzip member each, and the list of where each begins."""
    entries: list[str] = []
    package.add("indexes/index.cdx.gz", _index_blocks(lines, entries))
    head = '!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n'
    package.add("indexes/index.idx", iter((head.encode(), "".join(entries).encode())))


def _index_blocks(lines: Iterator[bytes], entries: list[str]) -> Iterator[bytes]:
    offset = 0
    while True:
        block = [line for line, _ in zip(lines, range(_LINES_A_BLOCK), strict=False)]
        if not block:
            return
        packed = gzip.compress(b"".join(block), mtime=0)
        key, stamp, _ = block[0].decode().split(" ", 2)
        place = {"offset": offset, "length": len(packed), "filename": "index.cdx.gz"}
        place["digest"] = f"sha256:{hashlib.sha256(packed).hexdigest()}"
        entries.append(f"{key} {stamp} {json.dumps(place)}\n")
        offset += len(packed)
        yield packed


def _add_pages(
    collection: Collection, package: _Package, where: str, advance: Advance
) -> tuple[int, Page | None]:
    found: list[Page] = []
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        yield b'{"format": "json-pages-1.0", "id": "pages", "title": "All pages", "hasText": true}\n'
        for page in collection.pages(where):
            advance(1)
            count += 1
            if not found or (page.depth == 0 and found[0].depth != 0):
                found[:] = [page]
            yield _page_line(page, count, _text(collection, page))

    package.add("pages/pages.jsonl", lines(), deflated=True)
    return count, found[0] if found else None


def _text(collection: Collection, page: Page) -> str:
    """What a player's search finds a page by."""
    if page.mime not in (HTML, XHTML):
        return ""
    try:
        text = collection.read(collection.record(page.record)).text
    except ArchiveFailed:
        return ""  # what is broken is left out, and named by `skitter verify`
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _page_line(page: Page, number: int, text: str) -> bytes:
    shown = {
        "id": f"{number:08x}",
        "url": page.url,
        "ts": page.fetched_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "title": page.title or page.url,
        "text": text,
    }
    return json.dumps(shown).encode() + b"\n"


# -- with a condition: a WARC of the matching records alone


def _add_filtered(
    collection: Collection, package: _Package, where: str, advance: Advance, now: float
) -> Iterator[bytes]:
    lines: list[bytes] = []
    package.add(f"archive/{FILTERED}", filtered_warc(collection, where, FILTERED, lines, advance, now))
    return iter(sorted(lines))


def filtered_warc(
    collection: Collection, where: str, name: str, lines: list[bytes], advance: Advance, now: float
) -> Iterator[bytes]:
    """The members of the matching records, byte for byte where they are of gzip; `lines` receives their index
    lines."""
    about = {"description": f"records of {Path(collection.name).name} where {where}"}
    coder = GZIP.coder(_LEVEL)
    info = coder.page(records.warcinfo(next(records.record_ids()), records.warc_date(now), name, about))
    yield info
    position = len(info)
    companions = Companions(collection)
    # In the order of the archive: an original may lie in another segment, and each is to be read once.
    for at in sorted(_wanted(collection, where, advance), key=lambda place: (place.segment, place.offset)):
        before, after = companions.of(at)
        for place in (*before, at, *after):
            member = _member(collection, place, coder)
            if place == at:
                lines.append(_line(collection.record(at), len(member), position, name))
            yield member
            position += len(member)


def _wanted(collection: Collection, where: str, advance: Advance) -> set[RecordAt]:
    """The places of matching answers, and of the originals of revisits among them."""
    places: set[RecordAt] = set()
    for page in collection.pages(where):
        advance(1)
        places.update((page.record, *_original_of(collection, page.record)))
    return places


def _original_of(collection: Collection, at: RecordAt) -> list[RecordAt]:
    record = collection.record(at)
    if record.kind != "revisit":
        return []
    original = collection.whole(record)
    captures = collection.captures(original.url)
    return [found.at for found in captures if collection.record(found.at).id == original.id]


class Companions:
    """The request before an answer and the metadata after it. Read from the segment, one segment at a time."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._segment = ""
        self._before: dict[int, RecordAt] = {}
        self._after: dict[int, RecordAt] = {}

    def of(self, at: RecordAt) -> tuple[list[RecordAt], list[RecordAt]]:
        if at.segment != self._segment:
            self._read(at.segment)
        before, after = self._before.get(at.offset), self._after.get(at.offset + at.length)
        return [before] if before else [], [after] if after else []

    def _read(self, name: str) -> None:
        self._segment, self._before, self._after = name, {}, {}
        found = self._collection.layout.by_name.get(name)
        for member in read_members(self._collection.source, found.file, found.size) if found else ():
            if isinstance(member, Member):
                place = RecordAt(name, member.offset, member.length)
                start = member.content[:_FIRST_FIELDS]
                if b"\r\nWARC-Type: request\r\n" in start:
                    self._before[member.offset + member.length] = place
                elif b"\r\nWARC-Type: metadata\r\n" in start:
                    self._after[member.offset] = place


def _member(collection: Collection, at: RecordAt, coder: Coder) -> bytes:
    coding = coding_of(at.segment)
    member = collection.source.read(segment_file(collection.layout, at.segment), at.offset, at.length)
    return member if coding is coder.coding else coder.page(decode_record(member, coding))


def _line(record: Record, length: int, offset: int, name: str) -> bytes:
    revisit = record.kind == "revisit"
    mime = "warc/revisit" if revisit else records.media_type_of(record.header("content-type")) or "unk"
    detected = "" if revisit else records.media_type_of(record.fields.get("warc-identified-payload-type", ""))
    return index_line(
        key=surt(record.url),
        uri=record.url,
        stamp=re.sub(r"[-:T]", "", record.date[:19]),
        mime=mime,
        detected=detected,
        status=record.status,
        digest=record.fields.get("warc-payload-digest", ""),
        offset=offset,
        length=length,
        segment=name,
    )


def write_warc(collection: Collection, target: Path, where: str, advance: Advance, now: float) -> int:
    """A WARC file of the matching records, and its index beside it in the same folder."""
    lines: list[bytes] = []
    with (target / FILTERED).open("wb") as file:
        file.writelines(filtered_warc(collection, where, FILTERED, lines, advance, now))
    (target / FILTERED.replace(".warc.gz", ".cdxj")).write_bytes(b"".join(sorted(lines)))
    return len(lines)
