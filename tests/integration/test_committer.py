"""The committer: what is archived is what counts, once, whoever delivers it and how often."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skitter.archive.digests import digests_of
from skitter.archive.packing import Packer
from skitter.archive.store import Archive
from skitter.committer.committer import Committer
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.report import Report
from skitter.committer.work_source import Delivery, Standing
from skitter.committer.worker_messages import LeaseRequest, SettleRequest
from skitter.committer.worker_registry import WorkerRegistry
from skitter.committer.worker_rpc import WorkerRpc
from skitter.errors import DiskFull
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settled
from skitter.frontier.link_batches import pack
from skitter.frontier.priority_lock import _ROUNDS
from skitter.model import (
    Copy,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    Outcome,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Via,
)
from skitter.runtime.listening import listen_for_workers
from skitter.service.http.access import Access
from skitter.service.tickets import Seal, service_key
from skitter.settings import ArchiveSettings, PolitenessSettings, Settings
from skitter.testing.clock import FakeClock
from skitter.wiring import CrawlServices, open_services
from tests.exchanges import Read, exchange, finished_records, sha256
from tests.frontier_kit import discovered, seed
from tests.service_kit import asked

SETTINGS = Settings(politeness=PolitenessSettings(delay=0.0, slow_factor=0.0))
PACKER = Packer(SETTINGS.archive)
BODY = b"<p>a page that is long enough to be worth a revisit</p>" * 20


def delivery(lease: HostLease, task: Task, body: bytes = BODY, result: Result | None = None) -> Delivery:
    given = exchange(task.url, body)
    digest = sha256(body)
    if result is None and task.kind is TaskKind.ROBOTS:
        result = RobotsRead(status=404, digest=digest)
    outcome = Outcome(
        host=lease.host,
        token=lease.token,
        kind=task.kind,
        key=task.key,
        sent_at=given.sent_at,
        ended_at=given.sent_at,
        result=result or Fetched(status=200, digest=digest, size=len(body)),
    )
    return Delivery(outcome, PACKER.pack(given, digests_of(given), media_type="text/html"))


def dated(made: Delivery, at: float) -> Delivery:
    """Deliveries that come over the wire are of requests that were just made."""
    outcome = msgspec.structs.replace(made.outcome, sent_at=at, ended_at=at)
    return msgspec.structs.replace(made, outcome=outcome)


@asynccontextmanager
async def services_with(
    folder: Path, *urls: str, settings: Settings = SETTINGS
) -> AsyncIterator[CrawlServices]:
    """The robots.txt of every host is read already."""
    async with open_services(CrawlFolder(folder), settings) as services:
        await services.frontier.admit([seed(url) for url in urls])
        for lease in await services.committer.lease("w", 100, 60.0):
            await services.committer.settle([delivery(lease, task, b"no rules") for task in lease.tasks])
        yield services


def kept(folder: Path, use: Callable[[CrawlServices], Awaitable[None]], *urls: str) -> list[Read]:
    """The pages' records after the services was used and closed."""

    async def main() -> None:
        folder.mkdir()
        async with services_with(folder, *urls) as services:
            await use(services)

    asyncio.run(main())
    found = finished_records(folder / "archive")
    return [r for r in found if r.kind in ("response", "revisit") and "/robots.txt" not in str(r.fields)]


async def leased(services: CrawlServices) -> HostLease:
    (lease,) = await services.committer.lease("w", 100, 60.0)
    return lease


def test_a_delivery_that_comes_after_another_worker_delivered_leaves_no_record(tmp_path: Path) -> None:
    async def use(services: CrawlServices) -> None:
        first = await leased(services)
        await services.committer.release([(first.host, first.token)])
        second = await leased(services)
        (good,) = await services.committer.commit_batch([delivery(second, second.tasks[0])])
        (late,) = await services.committer.commit_batch([delivery(first, first.tasks[0], BODY + b"other")])
        assert (good.settled, late.settled) == (Settled.ACCEPTED, Settled.STALE)

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


def test_a_late_page_that_nobody_else_fetched_is_archived(tmp_path: Path) -> None:
    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        await services.committer.release([(lease.host, lease.token)])
        (late,) = await services.committer.commit_batch([delivery(lease, lease.tasks[0])])
        assert late.settled is Settled.LATE

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


def test_a_host_that_an_api_worker_takes_while_a_page_is_archived_leaves_no_stale_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the judgement of a page and its commit the crawl awaits, and an API worker gives the host back
    and leases it: its calls wait until the page is committed."""

    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        first_copies, others = services.frontier.first_copies, list[asyncio.Task[None]]()

        async def take_over() -> None:
            await services.frontier.release([(lease.host, lease.token)])
            await services.frontier.lease("remote:api", 100, 60.0)

        async def slow_copies(digests: Sequence[bytes]) -> list[Copy | None]:
            others.append(asyncio.create_task(take_over()))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not others[0].done()
            return await first_copies(digests)

        monkeypatch.setattr(services.frontier, "first_copies", slow_copies)
        (settled,) = await services.committer.commit_batch([delivery(lease, lease.tasks[0])])
        await others[0]
        assert settled.settled is Settled.ACCEPTED

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


def test_a_host_that_is_taken_over_http_while_a_page_is_archived_leaves_no_stale_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same over the real API: a foreign worker gives the host back and leases it during a commit."""
    folder = tmp_path / "crawl"

    async def use(services: CrawlServices) -> None:
        first_copies, others = services.frontier.first_copies, list[asyncio.Task[None]]()
        async with listen_for_workers(
            services, CrawlFolder(folder), SETTINGS, "127.0.0.1:0", Access(), print
        ) as where:

            async def call(path: str, body: object) -> Any:
                answer = await asyncio.to_thread(asked, where, "POST", path, body)
                assert answer.status == 200, answer
                return answer.json

            lease = await leased(services)
            task_id = Seal(service_key(folder)).write(lease, lease.tasks[0], services.clock.now(), "")

            async def take_over() -> None:
                await call("/v1/tasks/release", {"task_ids": [task_id]})
                await call("/v1/tasks/lease", {"worker_id": "w", "lease_duration_sec": 60})

            async def slow_copies(digests: Sequence[bytes]) -> list[Copy | None]:
                others.append(asyncio.create_task(take_over()))
                await asyncio.sleep(0.5)
                assert not others[0].done()
                return await first_copies(digests)

            monkeypatch.setattr(services.frontier, "first_copies", slow_copies)
            (settled,) = await services.committer.commit_batch([delivery(lease, lease.tasks[0])])
            await others[0]
            assert settled.settled is Settled.ACCEPTED

    (record,) = kept(folder, use, "http://a.test/")
    assert record.payload == BODY


def test_a_committer_that_is_not_open_gives_no_leases_to_anybody(tmp_path: Path) -> None:
    async def use(services: CrawlServices) -> None:
        services.committer.pause()
        assert await services.committer.lease("remote:api", 9, 60.0, most_tasks=1) == []
        services.committer.resume()
        assert await services.committer.lease("remote:api", 9, 60.0, most_tasks=1)
        services.committer.drain()
        assert await services.committer.lease("remote:api", 9, 60.0) == []

    kept(tmp_path / "crawl", use, "http://a.test/")


def test_of_two_deliveries_of_one_task_in_a_batch_one_is_archived(tmp_path: Path) -> None:
    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        twice = [delivery(lease, lease.tasks[0]), delivery(lease, lease.tasks[0], BODY + b"other")]
        settled = [settlement.settled for settlement in await services.committer.commit_batch(twice)]
        assert settled == [Settled.ACCEPTED, Settled.STALE]

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


@pytest.mark.parametrize("at_once", [True, False], ids=["in one batch", "one after the other"])
def test_a_body_that_two_workers_bring_is_archived_once_and_referred_to(
    tmp_path: Path, at_once: bool
) -> None:
    async def use(services: CrawlServices) -> None:
        leases = await services.committer.lease("w", 100, 60.0)
        both = [delivery(lease, lease.tasks[0]) for lease in leases]
        for batch in [both] if at_once else [[one] for one in both]:
            await services.committer.settle(batch)

    first, second = kept(tmp_path / "crawl", use, "http://a.test/", "http://b.test/")
    assert (first.kind, second.kind) == ("response", "revisit")
    assert second.fields["WARC-Refers-To"] == first.fields["WARC-Record-ID"]


def test_a_parcel_crosses_the_wire_unchanged(tmp_path: Path) -> None:
    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        sent = [delivery(lease, lease.tasks[0])]
        crossed = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=list[Delivery])
        assert crossed == sent
        await services.committer.settle(crossed)

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


def test_after_a_fault_nothing_more_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        with monkeypatch.context() as patched:
            patched.setattr("skitter.archive.segments._write", full)
            with pytest.raises(DiskFull):
                await services.committer.settle([delivery(lease, lease.tasks[0])])
        for call in (services.committer.settle([]), services.committer.beat()):
            with pytest.raises(DiskFull):
                await call

    assert kept(tmp_path / "crawl", use, "http://a.test/") == []


def test_a_failure_without_an_answer_is_settled_without_a_record(tmp_path: Path) -> None:
    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        failed = delivery(lease, lease.tasks[0], result=Failed(kind=FailureKind.CONNECT_TIMEOUT))
        (settled,) = await services.committer.commit_batch([msgspec.structs.replace(failed, parcel=None)])
        assert settled.settled is Settled.ACCEPTED

    assert kept(tmp_path / "crawl", use, "http://a.test/") == []


def test_a_desk_that_is_short_of_room_leases_nothing_and_says_why(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, archive=ArchiveSettings(min_free=1 << 60))

    async def main() -> None:
        async with services_with(tmp_path, "http://a.test/", settings=settings) as services:
            committer: Committer = services.committer
            standings = [committer.standing]
            await committer.beat()
            assert [*standings, committer.standing] == [Standing.OPEN, Standing.CLOSING]
            assert await committer.lease("w", 100, 60.0) == []
            with pytest.raises(DiskFull, match="make room"):
                committer.complain_of_room()
            committer.drain()
            committer.complain_of_room()  # the operator knows

    asyncio.run(main())


def test_the_archive_takes_parcels_whatever_worker_packed_them(tmp_path: Path) -> None:
    """One without tables or metadata records has less in it."""
    bare = Packer(ArchiveSettings(tables=(), metadata=False))
    archive = Archive.open(tmp_path, ArchiveSettings(), _Clock(), (), {}, in_child=False)
    given = exchange()
    for packer in (PACKER, bare):
        archive.place(packer.pack(given, digests_of(given), media_type="text/html"))
    archive.marks()
    archive.committed()
    archive.close()
    kinds = [read.kind for read in finished_records(tmp_path)]
    assert kinds == ["warcinfo", "request", "response", "metadata", "request", "response"]


class _Clock:
    def now(self) -> float:
        return 1_767_323_045.25


@pytest.mark.parametrize("step", [0.4, 1.0], ids=["awake again", "late all the time"])
def test_after_a_stall_leases_end_when_those_were_heard_who_asked_meanwhile(
    tmp_path: Path, step: float
) -> None:
    async def use(services: CrawlServices) -> None:
        clock = FakeClock(services.clock.now())
        report = Report(services.telemetry, services.log)
        committer = Committer(services.frontier, services.archive, clock, SETTINGS, report)
        await committer.beat()
        await committer.lease("w", 1, 1.0)

        async def held_after(seconds: float) -> int:
            clock.advance(seconds)
            await committer.beat()
            return len(await services.frontier.leases(limit=10))

        assert await held_after(10.0) == 1
        assert await held_after(step) == 1
        held = [await held_after(step) for _ in range(int(3 / step))]
        assert held[-1] == 0

    kept(tmp_path / "crawl", use, "http://a.test/")


def test_a_host_goes_on_with_the_worker_whose_pages_free_it_however_many_commits_they_take(
    tmp_path: Path,
) -> None:
    async def use(services: CrawlServices) -> None:
        rpc = WorkerRpc(
            WorkerRegistry(services.committer, services.clock, DeliveryCheck(SETTINGS), are_children=True),
            SETTINGS,
            services.clock,
        )
        lease = await leased(services)
        made = [dated(delivery(lease, task), services.clock.now()) for task in lease.tasks]
        twice = made + made[:1] * 40  # of which one commit takes all that count, and another the rest
        settle = SettleRequest(worker="a", incarnation="1", sequence=1, deliveries=twice, capacity=9)
        other = LeaseRequest(worker="b", incarnation="1", sequence=1, capacity=9)
        for _ in range(_ROUNDS + 1):
            await asyncio.sleep(0)  # what was settled before passes its turn on
        taken, given = await asyncio.gather(rpc.settle(settle), rpc.lease(other))
        assert [again.host for again in taken.leases] == [lease.host]
        assert given.leases == []

    kept(tmp_path / "crawl", use, *(f"http://a.test/{number}" for number in range(50)))


def test_pages_with_thousands_of_links_are_committed_one_by_one_whoever_reads_them(tmp_path: Path) -> None:
    """Also by the worker in the crawl's own process: an index of 4,900 new links took 28 ms, and while one commit
    lasts no other is given a host."""

    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        made = [delivery(lease, task) for task in lease.tasks]
        links = pack([discovered(f"http://a.test/a/{number}") for number in range(7_000)])
        result = msgspec.structs.replace(made[0].outcome.result, link_batches=links)
        long = [
            msgspec.structs.replace(one, outcome=msgspec.structs.replace(one.outcome, result=result))
            for one in made
        ]
        committed: list[int] = []
        others = asyncio.create_task(services.committer.lease("other", 1, 60.0))
        await services.committer.settle(long, lambda: committed.append(services.committer.uncommitted))
        assert committed == [*range(len(long) - 1, -1, -1)]
        assert len(committed) > 1
        assert others.done()

    kept(tmp_path / "crawl", use, *(f"http://a.test/{number}" for number in range(5)))


def test_links_of_a_sitemap_go_ahead_in_pieces_and_others_have_their_turn_in_between(tmp_path: Path) -> None:
    async def use(services: CrawlServices) -> None:
        lease = await leased(services)
        task = lease.tasks[0]
        pages = [discovered(f"http://a.test/{n}", via=Via.SITEMAP, parent=task.key) for n in range(90)]
        batches = tuple(batch for at in range(0, 90, 30) for batch in pack(pages[at : at + 30]))
        known: list[int] = []

        async def look_on() -> None:
            """Another call that writes, again and again."""
            while sum((await services.frontier.stats()).urls.values()) < 91:
                await services.frontier.lease("other", 1, 60.0)
                known.append(sum((await services.frontier.stats()).urls.values()))
                await asyncio.sleep(0)

        looking = asyncio.create_task(look_on())
        result = Fetched(status=200, size=1, digest=sha256(BODY), link_batches=batches)
        (settled,) = await services.committer.commit_batch([delivery(lease, task, result=result)])
        await looking
        assert (settled.settled, settled.added) == (Settled.ACCEPTED, 90)
        assert {31, 61} & set(known)
        (again,) = await services.frontier.admit_listed(batches[:1])
        assert (again.added, again.known) == (0, 30)

    assert len(kept(tmp_path / "crawl", use, "http://a.test/")) == 1
