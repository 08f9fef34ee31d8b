"""The worker in the crawl's own process, beside others in other processes: it gets a share of the hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.local_work_source import LocalWorkSource
from skitter.committer.work_source import Standing
from skitter.committer.worker_messages import LeaseRequest
from skitter.committer.worker_registry import WorkerRegistry
from skitter.committer.worker_rpc import WorkerRpc
from skitter.fetch_stack import open_fetch_stack
from skitter.settings import Settings
from skitter.telemetry import Ended
from skitter.wiring import CrawlServices, loop_beside_others
from tests.integration.test_committer import SETTINGS, delivery, kept

HOSTS = [f"http://h{number}.test/" for number in range(8)]


def used(folder: Path, use: Callable[[CrawlServices, WorkerRegistry, WorkerRpc], Awaitable[None]]) -> int:
    """How many pages were archived."""

    async def with_registry(services: CrawlServices) -> None:
        registry = WorkerRegistry(
            services.committer, services.clock, DeliveryCheck(Settings()), are_children=True
        )
        await use(services, registry, WorkerRpc(registry, SETTINGS, services.clock))

    return len(kept(folder / "crawl", with_registry, *HOSTS))


def other(sequence: int, held: int = 0) -> LeaseRequest:
    return LeaseRequest(worker="other", incarnation="1", sequence=sequence, capacity=100, held=held)


def test_it_is_given_all_hosts_while_nobody_goes_short_and_its_share_when_one_does(tmp_path: Path) -> None:
    async def use(services: CrawlServices, registry: WorkerRegistry, rpc: WorkerRpc) -> None:
        foreman = LocalWorkSource(services.committer, rpc, services.clock)
        taken = await foreman.lease("own", 100, 60.0)
        assert len(taken) == len(HOSTS)
        assert (await rpc.lease(other(1))).leases == []
        assert registry.workers == 2
        await foreman.release([(lease.host, lease.token) for lease in taken])
        assert len(await foreman.lease("own", 100, 60.0)) == len(HOSTS) // 2
        assert len((await rpc.lease(other(2))).leases) == len(HOSTS) // 2

    used(tmp_path, use)


def test_what_it_settles_is_committed_when_it_is_said(tmp_path: Path) -> None:
    async def use(services: CrawlServices, registry: WorkerRegistry, rpc: WorkerRpc) -> None:
        foreman = LocalWorkSource(services.committer, rpc, services.clock)
        leases = await foreman.lease("own", 3, 60.0)
        await foreman.settle(
            [delivery(lease, task, lease.host.encode()) for lease in leases for task in lease.tasks]
        )
        assert foreman.uncommitted == 0
        assert (await services.frontier.stats()).pages == 3

    assert used(tmp_path, use) == 3


def test_it_takes_no_more_hosts_when_the_desk_closes(tmp_path: Path) -> None:
    async def use(services: CrawlServices, registry: WorkerRegistry, rpc: WorkerRpc) -> None:
        foreman = LocalWorkSource(services.committer, rpc, services.clock)
        services.committer.drain()
        assert foreman.standing is Standing.CLOSING
        assert await foreman.lease("own", 3, 60.0) == []

    used(tmp_path, use)


def test_its_loop_ends_when_it_is_drained_and_gives_back_what_it_holds(tmp_path: Path) -> None:
    async def use(services: CrawlServices, registry: WorkerRegistry, rpc: WorkerRpc) -> None:
        async with open_fetch_stack(SETTINGS, services.clock) as stack:
            loop = loop_beside_others(services, rpc, stack, SETTINGS)
            loop.drain()
            assert await loop.run() is Ended.INTERRUPTED
        assert await services.frontier.leases(limit=10) == []

    assert used(tmp_path, use) == 0
