"""The worker in the desk's own process, among others in other processes: one desk, and a share of its hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from skitter.desk.brain import Standing
from skitter.desk.crew import Crew
from skitter.desk.foreman import Foreman
from skitter.desk.reception import Reception
from skitter.desk.wire import LeaseAsk
from skitter.hands import open_hands
from skitter.telemetry import Ended
from skitter.wiring import Office, loop_among_others
from tests.integration.test_desk import SETTINGS, delivery, kept

HOSTS = [f"http://h{number}.test/" for number in range(8)]


def used(folder: Path, use: Callable[[Office, Crew, Reception], Awaitable[None]]) -> int:
    """How many pages were archived."""

    async def with_crew(office: Office) -> None:
        crew = Crew(office.desk, office.clock, leashed=True)
        await use(office, crew, Reception(crew, SETTINGS, office.clock))

    return len(kept(folder / "crawl", with_crew, *HOSTS))


def other(sequence: int, held: int = 0) -> LeaseAsk:
    return LeaseAsk(worker="other", incarnation="1", sequence=sequence, capacity=100, held=held)


def test_it_is_given_all_hosts_while_nobody_goes_short_and_its_share_when_one_does(tmp_path: Path) -> None:
    async def use(office: Office, crew: Crew, reception: Reception) -> None:
        foreman = Foreman(office.desk, reception, office.clock)
        taken = await foreman.lease("own", 100, 60.0)
        assert len(taken) == len(HOSTS)
        assert (await reception.lease(other(1))).leases == []
        assert crew.workers == 2
        await foreman.release([(lease.host, lease.token) for lease in taken])
        assert len(await foreman.lease("own", 100, 60.0)) == len(HOSTS) // 2
        assert len((await reception.lease(other(2))).leases) == len(HOSTS) // 2

    used(tmp_path, use)


def test_what_it_settles_is_committed_when_it_is_said(tmp_path: Path) -> None:
    async def use(office: Office, crew: Crew, reception: Reception) -> None:
        foreman = Foreman(office.desk, reception, office.clock)
        leases = await foreman.lease("own", 3, 60.0)
        await foreman.settle(
            [delivery(lease, task, lease.host.encode()) for lease in leases for task in lease.tasks]
        )
        assert foreman.uncommitted == 0
        assert (await office.frontier.stats()).pages == 3

    assert used(tmp_path, use) == 3


def test_it_takes_no_more_hosts_when_the_desk_closes(tmp_path: Path) -> None:
    async def use(office: Office, crew: Crew, reception: Reception) -> None:
        foreman = Foreman(office.desk, reception, office.clock)
        office.desk.drain()
        assert foreman.standing is Standing.CLOSING
        assert await foreman.lease("own", 3, 60.0) == []

    used(tmp_path, use)


def test_its_loop_ends_when_it_is_drained_and_gives_back_what_it_holds(tmp_path: Path) -> None:
    async def use(office: Office, crew: Crew, reception: Reception) -> None:
        async with open_hands(SETTINGS, office.clock) as hands:
            loop = loop_among_others(office, reception, hands, SETTINGS)
            loop.drain()
            assert await loop.run() is Ended.INTERRUPTED
        assert await office.frontier.leases(limit=10) == []

    assert used(tmp_path, use) == 0
