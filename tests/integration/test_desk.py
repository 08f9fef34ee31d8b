"""The desk: what is archived is what counts, once, whoever delivers it and how often."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from skitter.archive.digests import digests_of
from skitter.archive.packing import Packer
from skitter.archive.store import Archive
from skitter.desk.brain import Delivery, Standing
from skitter.desk.crew import Crew
from skitter.desk.desk import Desk
from skitter.desk.precedence import _ROUNDS
from skitter.desk.reception import Reception
from skitter.desk.report import Report
from skitter.desk.wire import LeaseAsk, SettleAsk
from skitter.errors import DiskFull
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settled
from skitter.frontier.bundles import bundled
from skitter.model import Failed, FailureKind, Fetched, HostLease, Outcome, Result, RobotsRead, Task, TaskKind
from skitter.settings import ArchiveSettings, PolitenessSettings, Settings
from skitter.testing.clock import FakeClock
from skitter.wiring import Office, open_office
from tests.exchanges import Read, exchange, finished_records, sha256
from tests.frontier_kit import discovered, seed

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


@asynccontextmanager
async def office_with(folder: Path, *urls: str, settings: Settings = SETTINGS) -> AsyncIterator[Office]:
    """The robots.txt of every host is read already."""
    async with open_office(CrawlFolder(folder), settings) as office:
        await office.frontier.admit([seed(url) for url in urls])
        for lease in await office.desk.lease("w", 100, 60.0):
            await office.desk.settle([delivery(lease, task, b"no rules") for task in lease.tasks])
        yield office


def kept(folder: Path, use: Callable[[Office], Awaitable[None]], *urls: str) -> list[Read]:
    """The pages' records after the office was used and closed."""

    async def main() -> None:
        folder.mkdir()
        async with office_with(folder, *urls) as office:
            await use(office)

    asyncio.run(main())
    found = finished_records(folder / "archive")
    return [r for r in found if r.kind in ("response", "revisit") and "/robots.txt" not in str(r.fields)]


async def leased(office: Office) -> HostLease:
    (lease,) = await office.desk.lease("w", 100, 60.0)
    return lease


def test_a_delivery_that_comes_after_another_worker_delivered_leaves_no_record(tmp_path: Path) -> None:
    async def use(office: Office) -> None:
        first = await leased(office)
        await office.desk.release([(first.host, first.token)])
        second = await leased(office)
        (good,) = await office.desk.settled([delivery(second, second.tasks[0])])
        (late,) = await office.desk.settled([delivery(first, first.tasks[0], BODY + b"other")])
        assert (good.settled, late.settled) == (Settled.ACCEPTED, Settled.STALE)

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


def test_a_late_page_that_nobody_else_fetched_is_archived(tmp_path: Path) -> None:
    async def use(office: Office) -> None:
        lease = await leased(office)
        await office.desk.release([(lease.host, lease.token)])
        (late,) = await office.desk.settled([delivery(lease, lease.tasks[0])])
        assert late.settled is Settled.LATE

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


def test_of_two_deliveries_of_one_task_in_a_batch_one_is_archived(tmp_path: Path) -> None:
    async def use(office: Office) -> None:
        lease = await leased(office)
        twice = [delivery(lease, lease.tasks[0]), delivery(lease, lease.tasks[0], BODY + b"other")]
        settled = [settlement.settled for settlement in await office.desk.settled(twice)]
        assert settled == [Settled.ACCEPTED, Settled.STALE]

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


@pytest.mark.parametrize("at_once", [True, False], ids=["in one batch", "one after the other"])
def test_a_body_that_two_workers_bring_is_archived_once_and_referred_to(
    tmp_path: Path, at_once: bool
) -> None:
    async def use(office: Office) -> None:
        leases = await office.desk.lease("w", 100, 60.0)
        both = [delivery(lease, lease.tasks[0]) for lease in leases]
        for batch in [both] if at_once else [[one] for one in both]:
            await office.desk.settle(batch)

    first, second = kept(tmp_path / "crawl", use, "http://a.test/", "http://b.test/")
    assert (first.kind, second.kind) == ("response", "revisit")
    assert second.fields["WARC-Refers-To"] == first.fields["WARC-Record-ID"]


def test_a_parcel_crosses_the_wire_unchanged(tmp_path: Path) -> None:
    async def use(office: Office) -> None:
        lease = await leased(office)
        sent = [delivery(lease, lease.tasks[0])]
        crossed = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=list[Delivery])
        assert crossed == sent
        await office.desk.settle(crossed)

    (record,) = kept(tmp_path / "crawl", use, "http://a.test/")
    assert record.payload == BODY


def test_after_a_fault_nothing_more_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def use(office: Office) -> None:
        lease = await leased(office)
        with monkeypatch.context() as patched:
            patched.setattr("skitter.archive.segments._write", full)
            with pytest.raises(DiskFull):
                await office.desk.settle([delivery(lease, lease.tasks[0])])
        for call in (office.desk.settle([]), office.desk.beat()):
            with pytest.raises(DiskFull):
                await call

    assert kept(tmp_path / "crawl", use, "http://a.test/") == []


def test_a_failure_without_an_answer_is_settled_without_a_record(tmp_path: Path) -> None:
    async def use(office: Office) -> None:
        lease = await leased(office)
        failed = delivery(lease, lease.tasks[0], result=Failed(kind=FailureKind.CONNECT_TIMEOUT))
        (settled,) = await office.desk.settled([msgspec.structs.replace(failed, parcel=None)])
        assert settled.settled is Settled.ACCEPTED

    assert kept(tmp_path / "crawl", use, "http://a.test/") == []


def test_a_desk_that_is_short_of_room_leases_nothing_and_says_why(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, archive=ArchiveSettings(min_free=1 << 60))

    async def main() -> None:
        async with office_with(tmp_path, "http://a.test/", settings=settings) as office:
            desk: Desk = office.desk
            standings = [desk.standing]
            await desk.beat()
            assert [*standings, desk.standing] == [Standing.OPEN, Standing.CLOSING]
            assert await desk.lease("w", 100, 60.0) == []
            with pytest.raises(DiskFull, match="make room"):
                desk.complain_of_room()
            desk.drain()
            desk.complain_of_room()  # the operator knows

    asyncio.run(main())


def test_the_archive_takes_parcels_whatever_worker_packed_them(tmp_path: Path) -> None:
    """One without tables or metadata records has less in it."""
    bare = Packer(ArchiveSettings(tables=(), metadata=False))
    archive = Archive.open(tmp_path, ArchiveSettings(), _Clock(), (), {})
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
    async def use(office: Office) -> None:
        clock = FakeClock(office.clock.now())
        report = Report(office.telemetry, office.log)
        desk = Desk(office.frontier, office.archive, clock, SETTINGS, report)
        await desk.beat()
        await desk.lease("w", 1, 1.0)

        async def held_after(seconds: float) -> int:
            clock.advance(seconds)
            await desk.beat()
            return len(await office.frontier.leases(limit=10))

        assert await held_after(10.0) == 1
        assert await held_after(step) == 1
        held = [await held_after(step) for _ in range(int(3 / step))]
        assert held[-1] == 0

    kept(tmp_path / "crawl", use, "http://a.test/")


def test_a_host_goes_on_with_the_worker_whose_pages_free_it_however_many_commits_they_take(
    tmp_path: Path,
) -> None:
    async def use(office: Office) -> None:
        reception = Reception(Crew(office.desk, office.clock, leashed=True), SETTINGS, office.clock)
        lease = await leased(office)
        made = [delivery(lease, task) for task in lease.tasks]
        twice = made + made[:1] * 40  # of which one commit takes all that count, and another the rest
        settle = SettleAsk(worker="a", incarnation="1", sequence=1, deliveries=twice, capacity=9)
        other = LeaseAsk(worker="b", incarnation="1", sequence=1, capacity=9)
        for _ in range(_ROUNDS + 1):
            await asyncio.sleep(0)  # what was settled before passes its turn on
        taken, given = await asyncio.gather(reception.settle(settle), reception.lease(other))
        assert [again.host for again in taken.leases] == [lease.host]
        assert given.leases == []

    kept(tmp_path / "crawl", use, *(f"http://a.test/{number}" for number in range(50)))


def test_pages_with_thousands_of_links_are_committed_one_by_one_whoever_reads_them(tmp_path: Path) -> None:
    """The worker in the desk's own process as well: an index of 4,900 new links took 28 ms, and while one commit
    lasts no other is given a host."""

    async def use(office: Office) -> None:
        lease = await leased(office)
        made = [delivery(lease, task) for task in lease.tasks]
        links = bundled([discovered(f"http://a.test/a/{number}") for number in range(7_000)])
        result = msgspec.structs.replace(made[0].outcome.result, bundles=links)
        long = [
            msgspec.structs.replace(one, outcome=msgspec.structs.replace(one.outcome, result=result))
            for one in made
        ]
        committed: list[int] = []
        others = asyncio.create_task(office.desk.lease("other", 1, 60.0))
        await office.desk.settle(long, lambda: committed.append(office.desk.uncommitted))
        assert committed == [*range(len(long) - 1, -1, -1)]
        assert len(committed) > 1
        assert others.done()

    kept(tmp_path / "crawl", use, *(f"http://a.test/{number}" for number in range(5)))
