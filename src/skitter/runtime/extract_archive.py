"""Extractors over what a crawl has archived: nothing is fetched, and the rows are those that a crawl makes.

What `skitter extract` runs. Each finished segment gives one part of the table `items`, named after the
versions of the extractors: written whole and renamed, so what was done before is seen by its name, and an
interrupted run goes on where it was. Never touches a segment that still grows, nor a part of the crawl's own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from skitter.archive.schema import ITEMS
from skitter.archive.tables.journal import Entry
from skitter.archive.tables.parts import PARQUET, write_part
from skitter.archive.tables.rows import stored_columns
from skitter.archive.warc.coding import stem_of
from skitter.clock import Clock
from skitter.collection.collection import Collection, Page
from skitter.collection.layout import SegmentAt
from skitter.errors import UsageError
from skitter.extend.extractor import Described, PageResult, patterns_of
from skitter.extend.messages import PageMessage
from skitter.extend.process import ExtractorProcess
from skitter.fetch.coding import Undecodable, decode_body
from skitter.parse.media import parse_content_type, sniff
from skitter.settings import Settings
from skitter.settings.plugins import ExtractRule, PluginSettings
from skitter.worker.extractors import item_rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Asked of each process at once: it goes on while the next ones are read from the archive.
_PAGES_AT_ONCE = 64
_HASH = 12
_MICROS = 1_000_000


class Done(msgspec.Struct, kw_only=True):
    """What a run did. `before` are segments that were done already, `growing` those that are not finished."""

    segments: int = 0
    before: int = 0
    growing: int = 0
    pages: int = 0
    items: int = 0
    faults: int = 0


class ArchiveExtraction:
    """Opened with the processes that run users' code, `jobs` of them."""

    def __init__(
        self, collection: Collection, archive: Path, settings: Settings, clock: Clock, where: str, jobs: int
    ) -> None:
        self._collection = collection
        self._archive = archive
        self._settings = settings
        self._clock = clock
        self._where = where
        self._processes = [
            ExtractorProcess(settings.plugins, settings.extract, _PAGES_AT_ONCE) for _ in range(jobs)
        ]
        self._described: Sequence[Described] = ()
        self._database: DuckDBPyConnection | None = None
        self._older: set[tuple[str, int, str]] = set()
        self._stored = [column.name for column in stored_columns(ITEMS)]
        self.done = Done()

    async def run(self, advance: Callable[[int], None]) -> Done:
        try:
            self._described = (await asyncio.gather(*(each.start() for each in self._processes)))[0]
            self._patterns = patterns_of(self._described)
            name = self._version()
            for segment in self._collection.layout.segments:
                await self._extract(segment, name, advance)
            return self.done
        finally:
            for process in self._processes:
                await process.close()
            if self._database is not None:
                self._database.close()

    def _version(self) -> str:
        """Of all that the rows depend on beside the pages."""
        parts = sorted(f"{each.name}@{each.version}" for each in self._described)
        return hashlib.sha256("\n".join([*parts, self._where]).encode()).hexdigest()[:_HASH]

    async def _extract(self, segment: SegmentAt, version: str, advance: Callable[[int], None]) -> None:
        if segment.is_growing:
            self.done.growing += 1
            return
        path = self._archive / ITEMS.name / f"{stem_of(segment.name)}-extract-{version}{PARQUET}"
        if path.exists():
            self.done.before += 1
            return
        entries = await self._entries(segment, advance)
        _write(path, entries, segment.name)
        self.done.segments += 1

    async def _entries(self, segment: SegmentAt, advance: Callable[[int], None]) -> list[Entry]:
        entries: list[Entry] = []
        self._older = self._made_before(segment)
        asked: list[tuple[Page, asyncio.Task[PageResult]]] = []
        for chunk in _chunks(self._messages(segment), _PAGES_AT_ONCE * len(self._processes)):
            tasks = [
                (page, asyncio.create_task(self._processes[number % len(self._processes)].run(message)))
                for number, (page, message) in enumerate(chunk)
            ]
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # now they are on their way, and the next chunk is read meanwhile
            entries += [self._entry(page, await task) for page, task in asked]
            asked = tasks
            advance(len(chunk))
        return entries + [self._entry(page, await task) for page, task in asked]

    def _made_before(self, segment: SegmentAt) -> set[tuple[str, int, str]]:
        """Of which answers the extractors have rows by other versions."""
        if ITEMS.name not in self._collection.layout.parts:
            return set()
        current = [each.version for each in self._described]
        sql = (
            "select distinct url, epoch_us(fetch_time), extractor from items_all "
            "where warc_filename = $file and not list_contains($current, version)"
        )
        if self._database is None:
            self._database = self._collection.duckdb()
        return {*self._database.execute(sql, {"file": segment.name, "current": current}).fetchall()}

    def _messages(self, segment: SegmentAt) -> Iterator[tuple[Page, PageMessage]]:
        """Of the pages that some extractor is for. An answer with the body that its URL had before is none: the
        crawl does not extract that again either."""
        name = segment.name.replace("'", "''")
        condition = f"kind = 'page' and status = 200 and warc_filename = '{name}'"
        condition += " and revisit_of is distinct from url" + (
            f" and (\n{self._where}\n)" if self._where.strip() else ""
        )
        for page in self._collection.pages(condition):
            self.done.pages += 1
            if (message := self._message(page)) is not None:
                yield page, message

    def _message(self, page: Page) -> PageMessage | None:
        record = self._collection.record(page.record)
        whole, headers = self._collection.whole(record), tuple(record.headers())
        limits = self._settings.fetch
        decoded = decode_body(
            whole.body,
            whole.header("content-encoding"),
            limit=limits.max_decoded,
            max_ratio=limits.max_ratio,
        )
        if isinstance(decoded, Undecodable) or not decoded.body:
            return None
        declared = next((value for name, value in headers if name == "content-type"), "")
        media_type = sniff(parse_content_type(declared).essence, decoded.body[: limits.max_parsed])
        numbers = self._patterns.find(page.url, media_type)
        if not numbers:
            return None
        at = page.fetched_at.timestamp()
        return PageMessage(page.url, decoded.body, page.status, headers, at, page.depth or 0, numbers)

    def _entry(self, page: Page, result: PageResult) -> Entry:
        self.done.items += len(result.items)
        self.done.faults += len(result.faults)
        about: Mapping[str, object] = {
            "url": page.url,
            "fetch_time": round(page.fetched_at.timestamp() * _MICROS),
        }
        made_at = round(self._clock.now() * _MICROS)
        rows = [{**about, **row} for row in item_rows(result, self._described, made_at)]
        rows += self._markers(about, rows, made_at)
        listed = [[row.get(name) for name in self._stored] for row in rows]
        return Entry((page.record.offset, page.record.length, page.revisit_of or ""), {ITEMS.name: listed})

    def _markers(
        self, about: Mapping[str, object], rows: Sequence[Mapping[str, object]], made_at: int
    ) -> list[dict[str, object]]:
        """A row without an item for each extractor that makes nothing of this answer any more: else what an
        earlier version made of it would stay in the view."""
        made = {row["extractor"] for row in rows}
        return [
            {**about, "extractor": each.name, "version": each.version, "n": 0, "made_at": made_at}
            for each in self._described
            if each.name not in made and (about["url"], about["fetch_time"], each.name) in self._older
        ]


def _write(path: Path, entries: Sequence[Entry], segment: str) -> None:
    # here: 0.3 s of CPU that a run with nothing left to do need not take
    from skitter.archive.tables.parquet_files import build_table, encode_parquet

    write_part(path, encode_parquet(build_table(ITEMS, entries, segment), ITEMS.columns))


def _chunks(
    messages: Iterable[tuple[Page, PageMessage]], size: int
) -> Iterator[list[tuple[Page, PageMessage]]]:
    chunk: list[tuple[Page, PageMessage]] = []
    for each in messages:
        chunk.append(each)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def with_plugins(settings: Settings, names: Sequence[str], rules: Mapping[str, ExtractRule]) -> Settings:
    """The crawl's settings with these plugins; without any, with its own."""
    plugins, extract = settings.plugins, dict(rules) or settings.extract
    if names:
        plugins = msgspec.structs.replace(plugins, with_=tuple(names))
        extract = dict(rules)
    if not plugins.with_ and not extract:
        raise UsageError("there is nothing to extract with: name a plugin, such as --with shop.py")
    return msgspec.structs.replace(settings, plugins=_of_this_run(plugins), extract=extract)


def _of_this_run(plugins: PluginSettings) -> PluginSettings:
    """The versions of the crawl are of no interest: another one is often the reason to extract again."""
    return msgspec.structs.replace(plugins, versions=())
