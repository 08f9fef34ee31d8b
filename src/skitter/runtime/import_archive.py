"""An archive of somebody else's, or of an earlier crawl, taken into a crawl's folder: its pages become pages of
the crawl, as if a worker had delivered them late.

Above the wiring, beside `skitter crawl`. Every page goes the whole path of a fetched one: read, archived, settled
with its validators, its links admitted. So a crawl goes on from there, and asks for what is not there. Asks no
host for anything: robots.txt is asked for by the crawl itself, before it sends a host another request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from skitter.clock import Clock
from skitter.collection.collection import Collection
from skitter.collection.export.wacz import Companions
from skitter.collection.foreign.tables import exchange_of
from skitter.collection.record import Record
from skitter.collection.tables import select_only
from skitter.committer.work_source import Delivery
from skitter.errors import ArchiveFailed
from skitter.fetch.base import Judge, Sending, always, want_all
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settled
from skitter.model import Discovered, Exchange, Failed, HostLease, RecordAt, Task, TaskKind, Token, Via
from skitter.runtime.lifecycle import admit_seeds
from skitter.schedule.priority import SEED_PRIORITY
from skitter.settings import Settings
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys
from skitter.wiring import CrawlServices, open_services
from skitter.worker.reading.pdf import PdfReader
from skitter.worker.step import Step

_AT_ONCE = 64
# Whose requests are in memory: answers come by their time, and others may have written several files at once.
_SEGMENTS = 16
# No lease has it: what comes with it is late, and is kept where nobody has fetched the URL or is fetching it.
_NO_LEASE = Token(0)
_NEWEST = "qualify row_number() over (partition by url order by fetch_time desc, warc_record_offset desc) = 1"
# The newest first: of the spacing that others kept from their requests nothing is entered as ours.
_SELECT = """select url, warc_filename, warc_record_offset, warc_record_length, kind from pages
where (kind = 'page' or (kind = 'requisite' and {requisites})) and fetch_status between 200 and 399
and fetch_status <> 304 {where} {newest} order by kind, fetch_time desc"""


class Imported(msgspec.Struct, kw_only=True):
    """`known` were fetched by this crawl before; `out_of_scope` were refused by its rules."""

    pages: int = 0
    known: int = 0
    out_of_scope: int = 0
    unreadable: int = 0
    links: int = 0


class _Found(msgspec.Struct, frozen=True):
    discovered: Discovered
    at: RecordAt


async def import_archive(
    collection: Collection,
    folder: CrawlFolder,
    settings: Settings,
    seeds: Sequence[Discovered],
    where: str,
    advance: Callable[[int], None] = lambda _: None,
) -> Imported:
    """The newest answer of each URL that is a page or a redirect. With `seeds`, what their scope lets in;
    without, all that the archive holds. The folder's lock must be held."""
    async with open_services(folder, settings) as services:
        await admit_seeds(services, seeds, lambda _: None)
        taking = _Taking(collection, services, settings, are_seeds=not seeds)
        try:
            for batch in taking.batches(where):
                await taking.take(batch)
                advance(len(batch))
        finally:
            await taking.close()
        return taking.done


class _Taking:
    def __init__(
        self, collection: Collection, services: CrawlServices, settings: Settings, *, are_seeds: bool
    ) -> None:
        self._collection = collection
        self._services = services
        self._are_seeds = are_seeds
        self._keys = Keys(settings.keys)
        self._requisites = settings.crawl.requisites
        self._companions: dict[str, Companions] = {}
        self._fetcher = _FromRecords()
        self._pdfs = PdfReader(settings.fetch)
        self._step = Step(self._fetcher, services.clock, settings, self._pdfs, self._keys)
        self.done = Imported()

    async def close(self) -> None:
        await self._pdfs.close()

    def batches(self, where: str) -> Iterator[list[_Found]]:
        chosen = f"and (\n{where}\n)" if where.strip() else ""
        asked = _SELECT.format(requisites=self._requisites, where=chosen, newest=_NEWEST)
        with self._collection.duckdb(locked=True) as database:
            rows = select_only(database, asked)
            while batch := rows.fetchmany(_AT_ONCE):
                yield [found for row in batch if (found := self._found(*row)) is not None]

    def _found(self, url: str, segment: str, offset: int, length: int, kind: str) -> _Found | None:
        wanted = normalise(url)
        if wanted is None:
            self.done.unreadable += 1
            return None
        is_page = kind == "page"
        discovered = Discovered(
            url=wanted,
            key=self._keys.key_of(wanted),
            host=host_of(wanted),
            depth=0,
            via=(Via.SEED if self._are_seeds else Via.LINK) if is_page else Via.REQUISITE,
            priority=SEED_PRIORITY if self._are_seeds and is_page else None,
            kind=TaskKind.PAGE if is_page else TaskKind.REQUISITE,
            nesting=0 if is_page else 1,
        )
        return _Found(discovered, RecordAt(segment, offset, length))

    async def take(self, batch: Sequence[_Found]) -> None:
        verdicts = await self._services.frontier.admit([found.discovered for found in batch])
        admitted = [found for found, verdict in zip(batch, verdicts, strict=True) if verdict.reason is None]
        self.done.out_of_scope += len(batch) - len(admitted)
        deliveries = [delivery for found in admitted if (delivery := await self._delivery(found))]
        if not deliveries:
            return
        for settlement in await self._services.committer.commit_batch(deliveries):
            if settlement.settled is Settled.STALE:
                self.done.known += 1
            else:
                self.done.pages += 1
                self.done.links += settlement.added
        await self._services.committer.beat()

    async def _delivery(self, found: _Found) -> Delivery | None:
        """What a worker would deliver that got this answer."""
        try:
            own = self._collection.record(found.at)
            whole = self._collection.whole(own)
        except ArchiveFailed:
            self.done.unreadable += 1
            return None
        exchange = exchange_of(whole)
        at = min(exchange_of(own).sent_at, self._services.clock.now())
        self._fetcher.exchange = msgspec.structs.replace(
            exchange,
            url=found.discovered.url,
            sent_at=at,
            ended_at=at,
            request=self._request(own, found.at),
        )
        return await self._step.run(*_asked(found.discovered, self._services.clock))

    def _request(self, own: Record, at: RecordAt) -> bytes:
        """What the answer came to, where its record lies beside it: invented it must not be."""
        if at.segment not in self._companions:
            while len(self._companions) >= _SEGMENTS:
                del self._companions[next(iter(self._companions))]
            self._companions[at.segment] = Companions(self._collection)
        before, after = self._companions[at.segment].of(at)
        for place in (*before, *after):
            beside = self._collection.record(place)
            if beside.kind == "request" and beside.url == own.url:
                return beside.head
        return b""


def _asked(discovered: Discovered, clock: Clock) -> tuple[HostLease, Task]:
    task = Task(kind=discovered.kind, key=discovered.key, url=discovered.url, nesting=discovered.nesting)
    lease = HostLease(
        host=discovered.host,
        token=_NO_LEASE,
        delay=0.0,
        parallel=1,
        not_before=0.0,
        deadline=clock.now(),
        tasks=(task,),
    )
    return lease, task


class _FromRecords:
    """A fetcher that answers with the exchange it was given."""

    in_flight = 0
    idle = 0

    def __init__(self) -> None:
        self.exchange: Exchange | None = None

    async def fetch(
        self,
        url: str,
        *,
        etag: str = "",
        last_modified: str = "",
        verify_tls: bool | None = None,
        unwanted: Judge = want_all,
        may_start: Callable[[], bool] = always,
        max_body: int = 0,
        sending: Sending | None = None,
    ) -> Exchange | Failed:
        assert self.exchange is not None
        return self.exchange

    def release(self, exchange: Exchange) -> None: ...

    def prepare(self, url: str) -> None: ...

    async def close(self) -> None: ...
