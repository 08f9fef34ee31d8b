"""A crawl's archive as its readers see it: `skitter.open(DIR)`.

Pages by URL or by condition, bodies, texts, links and raw records, also while the crawl runs: a growing
segment is read up to its last whole index line. Never writes to the crawl's folder, and holds no lock.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, overload

import msgspec

from skitter.archive.warc.coding import coding_of
from skitter.collection.captures import Capture, captures_of, parse_line, segment_file, whole_lines
from skitter.collection.foreign.files import is_foreign
from skitter.collection.foreign.source import ForeignSource
from skitter.collection.layout import Layout, read_layout
from skitter.collection.members import Member, inflate, read_members
from skitter.collection.record import Record, parse_record
from skitter.collection.source import FolderSource, Source
from skitter.collection.tables import open_tables, select_only, sql_fault
from skitter.errors import ArchiveFailed, NotACrawl, SkitterError, UsageError
from skitter.extras import need
from skitter.model import RecordAt
from skitter.parse.content import PageContent
from skitter.parse.page import read_page
from skitter.settings import Settings
from skitter.settings.load import load
from skitter.urls.canonical import normalise

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from skitter.collection.remote import ObjectSource
    from skitter.extend.page import Page as UsersPage

_BATCH = 2048
_MOST_HOPS = 5


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `pages`: one answer in the archive. What nobody recorded is None or empty."""

    url: str
    fetched_at: datetime
    status: int
    kind: str
    host: str
    domain: str
    mime: str
    charset: str
    language: str
    title: str
    size: int | None
    depth: int | None
    digest: str
    redirect: str | None
    truncated: str | None
    revisit_of: str | None
    simhash: int | None
    failure: str | None
    record: RecordAt


class PageLink(msgspec.Struct, frozen=True):
    """A link of an archived page, its target absolute."""

    target: str
    text: str = ""
    rel: str = ""
    tag: str = "a"


# The columns of a page are those of its row, by their short names; a text that cannot be None is empty for null.
_COLUMNS = tuple(
    f"coalesce({field.name}, '')" if field.type is str and field.name != "url" else field.name
    for field in msgspec.structs.fields(Page)
    if field.name != "record"
)
_SELECT = ", ".join((*_COLUMNS, "warc_filename", "warc_record_offset", "warc_record_length"))
# A crawl finishes a segment in minutes: to miss one twice in a row takes bad luck.
_TRIES = 3
_ORDER = "order by warc_filename, warc_record_offset"
_NEWEST = "qualify row_number() over (partition by url order by fetch_time desc, warc_record_offset desc) = 1"


class Collection:
    """Cheap to open: files are listed now, tables are opened when first asked for."""

    def __init__(self, source: Source, name: str) -> None:
        self.source = source
        self.name = name
        settings = _settings(Path(name)) or Settings()
        self.about = settings.about
        self._elsewhere = settings.archive.dedup_against
        self.layout: Layout = read_layout(source)
        self._tables: DuckDBPyConnection | None = None

    @classmethod
    def at(cls, folder: Path | str) -> Collection:
        """`folder` is a crawl's, or one that holds nothing but its `archive`, or the URL of an object store; or a
        WARC or WACZ file that somebody else made, or a folder of them."""
        if "://" in str(folder):
            return cls(_objects(str(folder)), str(folder))
        if is_foreign(Path(folder)):
            return cls(ForeignSource(Path(folder)), str(folder))
        archive, url = Path(folder) / "archive", _archive_url(Path(folder))
        if url:
            return cls(_spooled(archive, url), str(folder))
        if not archive.is_dir():
            raise NotACrawl(
                f"{folder} has no archive: name the folder given to skitter crawl --into, a WARC or WACZ file, "
                "or a folder of them"
            )
        return cls(FolderSource(archive), str(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._tables is not None:
            self._tables.close()
            self._tables = None

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else made it."""
        return isinstance(self.source, ForeignSource)

    # -- tables

    def duckdb(self, *, locked: bool = False) -> DuckDBPyConnection:
        """A connection of its own with a view of every table; the caller closes it."""
        for _ in range(_TRIES):
            try:
                return open_tables(self.source, self.layout, locked=locked)
            except ArchiveFailed:
                if not self._has_moved_on():
                    raise
        return open_tables(self.source, self.layout, locked=locked)

    def count(self, where: str = "") -> int:
        found = select_only(self._locked(), f"select count(*) from pages {_condition(where)}").fetchone()
        return int(found[0]) if found else 0

    @overload
    def pages(
        self, where: str = "", *, newest: bool = False, with_body: Literal[False] = False
    ) -> Iterator[Page]: ...

    @overload
    def pages(
        self, where: str = "", *, newest: bool = False, with_body: Literal[True]
    ) -> Iterator[UsersPage]: ...

    def pages(
        self, where: str = "", *, newest: bool = False, with_body: bool = False
    ) -> Iterator[Page] | Iterator[UsersPage]:
        """Rows in the order of their records; `where` is SQL, such as `status = 200 and host = 'a.org'`.

        With `newest`, of each URL the last that the condition lets through. With `with_body`, pages as users'
        code sees them: `page.html`, `page.select("h1")`, `page.text` (docs/plugins.md). The archive is then read
        from front to back, one page in memory; a page that cannot be read is left out."""
        rows = self._pages(where, newest)
        return self._with_bodies(rows) if with_body else rows

    def _with_bodies(self, rows: Iterator[Page]) -> Iterator[UsersPage]:
        for row in rows:
            try:
                found = self.page_of(self.record(row.record), row.depth or 0)
            except ArchiveFailed:
                continue
            yield found

    def _pages(self, where: str, newest: bool) -> Iterator[Page]:
        import duckdb

        chosen = f"{_condition(where)} {_NEWEST if newest else ''}"
        found = select_only(self._locked().cursor(), f"select {_SELECT} from pages {chosen} {_ORDER}")
        try:
            while rows := found.fetchmany(_BATCH):
                yield from (_page(row) for row in rows)
        except duckdb.Error as error:
            raise sql_fault(error) from error

    def _locked(self) -> DuckDBPyConnection:
        if self._tables is None:
            self._tables = self.duckdb(locked=True)
        return self._tables

    # -- one page

    def captures(self, url: str) -> list[Capture]:
        asked = normalise(url)
        if asked is None:
            raise UsageError(f"{url!r} is not an http or https URL")
        self._has_moved_on()
        return captures_of(self.source, self.layout, asked)

    def _has_moved_on(self) -> bool:
        """Whether a segment was finished since the files were listed; then they are listed anew."""
        growing = [part for part in self.layout.segments if part.is_growing and part.index]
        if all(self.source.has(part.index) for part in growing):
            return False
        self.layout = read_layout(self.source)
        return True

    def capture(self, url: str, at: str | datetime | None = None) -> Capture:
        """The newest capture, or the newest that is not after `at`, or the first of all."""
        found = self.captures(url)
        if not found:
            raise UsageError(
                f"{url} is not in the archive: skitter explain {url} --in {self.name} says what became of it"
            )
        if at is None:
            return found[-1]
        limit = stamp_of(at)
        return next((capture for capture in reversed(found) if capture.stamp <= limit), found[0])

    def record(self, at: RecordAt) -> Record:
        """One record, by its place, as it lies there."""
        file = segment_file(self.layout, at.segment)
        content = inflate(self.source.read(file, at.offset, at.length), coding_of(file))
        found = parse_record(content) if isinstance(content, bytes) else content
        if isinstance(found, str):
            raise ArchiveFailed(f"{file} at {at.offset}: {found}; skitter verify {self.name} says more")
        return found

    def whole(self, record: Record) -> Record:
        """The record that holds the body: the original of a revisit, or the record itself."""
        for _ in range(_MOST_HOPS):
            if record.kind != "revisit":
                break
            record = self._original(record)
        return record

    def _original(self, revisit: Record) -> Record:
        fields = revisit.fields
        url, wanted = (
            fields.get("warc-refers-to-target-uri", ""),
            fields.get("warc-refers-to", "").strip("<>"),
        )
        url = url.strip("<>")
        for capture in reversed(self.captures(url) if url else []):
            if capture.stamp == stamp_of(fields.get("warc-refers-to-date", "")):
                found = self.record(capture.at)
                # Without an id: what was fetched in the same second and has no body of its own is not meant.
                if found.id == wanted or (not wanted and found.kind != "revisit"):
                    return found
        for place in self._elsewhere:
            with suppress(SkitterError), Collection.at(place) as other:
                return other.whole(other.record(other.capture(url, fields.get("warc-refers-to-date")).at))
        if self.is_foreign and (found_at := self._with_digest(fields.get("warc-payload-digest", ""))):
            return self.record(found_at)
        raise ArchiveFailed(
            f"{revisit.url} has no body of its own, and the copy it refers to ({url}) is not in this archive: "
            f"put back the segment that was moved away"
        )

    def _with_digest(self, digest: str) -> RecordAt | None:
        """The first answer with this body. Some say no more of what a revisit refers to."""
        for name in self.layout.indexes if digest else ():
            for line in whole_lines(self.source, name):
                found = parse_line(line)
                if found is not None and found.digest == digest and found.mime != "warc/revisit":
                    return found.at
        return None

    def page(self, url: str, at: str | datetime | None = None) -> UsersPage:
        """The page as users' code sees it: `page.css(...)`, `page.json()`, `page.data` (docs/plugins.md)."""
        return self.page_of(self.record(self.capture(url, at).at))

    def page_of(self, record: Record, depth: int = 0) -> UsersPage:
        from skitter.extend.page import Page as UsersPage

        return UsersPage(
            record.url,
            self.whole(record).decoded(),
            status=record.status,
            headers=record.headers(),
            fetched_at=_time_of(record.date),
            depth=depth,
        )

    def body(self, url: str, at: str | datetime | None = None) -> bytes:
        """The body without content coding."""
        return self.whole(self.record(self.capture(url, at).at)).decoded()

    def read(self, record: Record) -> PageContent:
        """What the page of a record says, parsed anew."""
        whole = self.whole(record)
        return read_page(
            whole.decoded(), url=record.url, content_type=whole.header("content-type"), with_text=True
        )

    def text(self, url: str, at: str | datetime | None = None) -> str:
        return self.read(self.record(self.capture(url, at).at)).text

    def links(self, url: str, at: str | datetime | None = None) -> list[PageLink]:
        content = self.read(self.record(self.capture(url, at).at))
        resolved = ((normalise(link.href, content.base), link) for link in content.links)
        return [PageLink(target, link.text, link.rel, link.tag) for target, link in resolved if target]

    # -- everything

    def records(self) -> Iterator[tuple[RecordAt, Record]]:
        """Every record of every kind, segment by segment; what is damaged is left out (see `skitter verify`)."""
        for segment in self.layout.segments:
            for member in read_members(self.source, segment.file, segment.size):
                found = parse_record(member.content) if isinstance(member, Member) else ""
                if isinstance(found, Record):
                    yield RecordAt(segment.name, member.offset, member.length), found


def is_stored_elsewhere(folder: Path | str) -> bool:
    """Whether an archive is in an object store, of which parts are copied here to be read, or somebody else's."""
    return "://" in str(folder) or is_foreign(Path(folder)) or bool(_archive_url(Path(folder)))


def _archive_url(folder: Path) -> str:
    """Where a crawl's archive goes, if not into its folder."""
    found = _settings(folder)
    return found.archive.url if found else ""


def _settings(folder: Path) -> Settings | None:
    file = folder / "crawl.toml"
    if not os.path.isfile(file):
        return None
    return load(crawl_file=file, config_file=None, environ={}, flags={}).settings


def _objects(url: str) -> ObjectSource:
    need("obstore")
    # Here and below, because a crawl in a folder of its own does without.
    from skitter.archive.objects import Objects
    from skitter.collection.remote import ObjectSource

    return ObjectSource(Objects(url))


def _spooled(folder: Path, url: str) -> Source:
    objects = _objects(url)
    from skitter.collection.remote import SpooledSource

    return SpooledSource(FolderSource(folder), objects)


def _time_of(date: str) -> datetime:
    try:
        return datetime.fromisoformat(date).astimezone(UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def stamp_of(at: str | datetime) -> str:
    """14 digits from a time in ISO 8601, digits alone, or the beginning of either; an open end is its latest."""
    if isinstance(at, datetime):
        return at.astimezone(UTC).strftime("%Y%m%d%H%M%S")
    digits = re.sub(r"[-:TZ ]", "", at.partition(".")[0])
    if not re.fullmatch(r"[0-9]{4,14}", digits):
        raise UsageError(f"{at!r} is not a time: write 2026-01-31, 2026-01-31T12:00:00Z or 20260131120000")
    return digits + "99999999999999"[len(digits) :]


def _condition(where: str) -> str:
    # On lines of its own, so that a comment at the end of it ends there.
    return f"where (\n{where}\n)" if where.strip() else ""


def _page(row: tuple[object, ...]) -> Page:
    *values, segment, offset, length = row
    given = dict(zip(Page.__struct_fields__, values, strict=False))
    fetched_at = given["fetched_at"]
    assert isinstance(fetched_at, datetime)
    given |= {"fetched_at": fetched_at.replace(tzinfo=UTC), "status": given["status"] or 0}
    return Page(**given, record=RecordAt(str(segment), int(str(offset)), int(str(length))))  # type: ignore[arg-type]
