"""The index and the tables of one WARC file that somebody else wrote: what our own crawls write beside theirs.

Between a foreign file and the readers. Reads the file once from front to back; a record that is damaged, or that
is no answer of the web, is left out. Needs pyarrow for the tables; without it there is the index alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from skitter.archive.facts import Facts, describe_answer
from skitter.archive.schema import TABLES
from skitter.archive.segments import INDEX
from skitter.archive.tables.journal import entry, heading
from skitter.archive.tables.rows import pack_rows
from skitter.archive.tables.table_writer import Stretch
from skitter.archive.warc import records
from skitter.archive.warc.cdxj import index_line
from skitter.archive.warc.coding import stem_of
from skitter.archive.warc.surt import surt
from skitter.collection.members import Member, read_members
from skitter.collection.record import Record, parse_record
from skitter.collection.source import Source
from skitter.extras import has
from skitter.model import Exchange, Link, RecordAt
from skitter.parse.content import PageContent
from skitter.parse.fingerprints.fingerprint import simhash
from skitter.parse.media import HTML, TEXT, XHTML
from skitter.parse.page import read_page
from skitter.urls.canonical import normalise

_ANSWERS = frozenset(("response", "revisit", "resource"))
_READ = frozenset((HTML, XHTML))
_PAGES = frozenset((HTML, XHTML, TEXT, "application/pdf"))
_BYTES_A_PART = 64 << 20
_BLOCK = 1 << 20
_pack = pack_rows(TABLES)


class NotByRecord(Exception):
    """The file is compressed as a whole: no record can be read by itself."""


def answers_of(source: Source, name: str) -> Iterator[tuple[RecordAt, Record]]:
    """What hosts answered, with its place. Raises NotByRecord."""
    for member in read_members(source, name, source.size(name)):
        found = parse_record(member.content) if isinstance(member, Member) else ""
        if not isinstance(found, Record):
            continue
        if b"WARC/1." in found.excess[:64]:
            raise NotByRecord(name)
        if found.kind in _ANSWERS and found.url.lower().startswith(("http://", "https://")) and found.status:
            yield RecordAt(name, member.offset, member.length), found


def write_index(source: Source, name: str, folder: Path) -> None:
    lines = []
    journal = folder / "rows"
    with journal.open("wb") as rows:
        rows.write(heading(TABLES))
        for at, record in answers_of(source, name):
            lines.append(_line(record, at))
            if has("pyarrow"):
                rows.writelines(entry(_rows(record), at, _revisit_of(record)))
        end = rows.tell()
    (folder / f"{stem_of(name)}{INDEX}").write_bytes(b"".join(sorted(lines)))
    if has("pyarrow"):
        _write_tables(journal, end, folder, name)
    journal.unlink()


def _write_tables(journal: Path, end: int, folder: Path, name: str) -> None:
    from skitter.archive.tables.parquet_files import write_stretch

    start = 0
    while start < end:
        start = write_stretch(
            Stretch(str(journal), start, end, _BYTES_A_PART, str(folder), name, stem_of(name), TABLES)
        )


def write_plain(source: Source, name: str, target: Path) -> None:
    """The file without its compression."""
    stream, position, size = zlib.decompressobj(31), 0, source.size(name)
    with target.open("wb") as plain:
        while position < size:
            block = source.read(name, position, _BLOCK)
            if not block:
                return
            position += len(block)
            while block:
                plain.write(stream.decompress(block))
                block = stream.unused_data
                if stream.eof:
                    stream = zlib.decompressobj(31)


def digest_of(record: Record) -> str:
    """As the record has it; where it has none, as ours would."""
    said = record.fields.get("warc-payload-digest", "")
    return said or ("" if record.kind == "revisit" else records.digest_field(sha256(record.body).digest()))


def time_of(record: Record) -> float:
    try:
        return datetime.fromisoformat(record.date).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def exchange_of(record: Record) -> Exchange:
    """The record as if we had fetched it."""
    at = time_of(record)
    return Exchange(
        url=record.url,
        request=b"",
        head=b"HTTP/1.1 200 OK\r\n\r\n" if record.is_file else record.head,
        status=record.status,
        headers=tuple(record.headers()),
        body=record.payload(),
        truncated=bool(record.fields.get("warc-truncated")),
        address=record.fields.get("warc-ip-address", ""),
        sent_at=at,
        ended_at=at,
    )


def _line(record: Record, at: RecordAt) -> bytes:
    is_revisit = record.kind == "revisit"
    mime = "warc/revisit" if is_revisit else records.media_type_of(record.header("content-type")) or "unk"
    return index_line(
        key=surt(record.url),
        uri=records.target_uri(record.url),
        stamp=records.spell_time(time_of(record))[1],
        mime=mime,
        detected="",
        status=record.status,
        digest=_plain_word(digest_of(record)),
        offset=at.offset,
        length=at.length,
        segment=at.segment,
    )


def _plain_word(text: str) -> str:
    """A digest comes from strangers, and stands in JSON as it is."""
    return text if text.isascii() and text.isprintable() and not set(text) & set('"\\') else ""


def _revisit_of(record: Record) -> str:
    return record.fields.get("warc-refers-to-target-uri", "").strip("<>") if record.kind == "revisit" else ""


def _rows(record: Record) -> bytes:
    exchange = exchange_of(record)
    mime = records.media_type_of(record.header("content-type"))
    page = _read(record) if mime in _READ and record.kind != "revisit" else None
    headers = dict(reversed(exchange.headers))
    return _pack(
        describe_answer(
            exchange,
            _facts(record, mime, page),
            headers,
            url=records.target_uri(record.url),
            surt=surt(record.url),
            mime=mime,
            digest=digest_of(record),
            micros=records.spell_time(exchange.sent_at)[2],
            with_links=True,
            with_text=True,
        )
    )


def _read(record: Record) -> PageContent:
    return read_page(
        record.decoded(), url=record.url, content_type=record.header("content-type"), with_text=True
    )


def _facts(record: Record, mime: str, page: PageContent | None) -> Facts:
    kind = _kind(record, mime)
    redirect = record.header("location") if 300 <= record.status < 400 else ""
    if page is None:
        return Facts(kind=kind, redirect=redirect)
    return Facts(
        kind=kind,
        media_type=page.media_type,
        charset=page.charset.lower(),
        language=page.language,
        title=page.title,
        directives=page.directives.text,
        redirect=redirect,
        text=page.text,
        links=_links(page),
        simhash=simhash(page.text),
    )


def _kind(record: Record, mime: str) -> str:
    """What others fetched something for they do not say: what is no page to read is taken for a requisite."""
    path = record.url.split("://", 1)[-1].partition("/")[2]
    if path == "robots.txt":
        return "robots"
    return "page" if mime in _PAGES or not 200 <= record.status < 300 else "requisite"


def _links(page: PageContent) -> tuple[tuple[str, Link], ...]:
    found: dict[str, Link] = {}
    for link in page.links:
        target = normalise(link.href, page.base)
        if target:
            found.setdefault(target, link)
    return tuple(found.items())
