"""A worker whose server takes long over what it is told keeps its hosts, and asks for nothing twice."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from skitter.committer.work_source import Delivery
from skitter.fetch_stack import open_fetch_stack
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settlement, Stats
from skitter.runtime.listening import listen_for_workers
from skitter.seeds import read_seeds
from skitter.service.http.access import Access
from skitter.settings import FetchSettings, FrontierSettings, PolitenessSettings, Settings, TrapSettings
from skitter.wiring import CrawlServices, open_services
from skitter.worker.loop import Loop
from skitter.worker.remote.http_link import HttpLink
from skitter.worker.remote.remote_work_source import RemoteWorkSource
from tests.keys import KEYS
from tests.raw_server import page, serving

LEASE = 1.0
PAGES = 60
SETTINGS = Settings(
    fetch=FetchSettings(allow_private=True),
    politeness=PolitenessSettings(delay=0.02, slow_factor=0.0),
    frontier=FrontierSettings(lease_duration=LEASE),
    traps=TrapSettings(probe=False),
)


class SlowHost:
    """Has one page that it does not answer with before it is told to."""

    def __init__(self) -> None:
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def answer(self, connection: socket.socket, raw: bytes) -> bool:
        if b"/robots.txt" not in raw:
            self.is_asked.set()
            self.may_answer.wait(30)
        connection.sendall(page(b"a page"))
        return True


class BusyDesk:
    """While a page is in flight another one is delivered, and two leases could run out before that is settled."""

    def __init__(self, services: CrawlServices, host: SlowHost, monkeypatch: pytest.MonkeyPatch) -> None:
        self._services = services
        self._host = host
        self._settled = services.committer.commit_batch
        self.was_busy = False
        monkeypatch.setattr(services.committer, "commit_batch", self.settled)

    async def settled(self, deliveries: Sequence[Delivery]) -> list[Settlement]:
        if self._host.is_asked.is_set() and not self.was_busy:
            self.was_busy = True
            clock, committer = self._services.clock, self._services.committer
            until = clock.now() + 2 * LEASE
            while clock.now() < until:
                await committer.beat()  # which ends the leases that have run out
                await asyncio.sleep(0.02)
            self._host.may_answer.set()
        return await self._settled(deliveries)


async def work(services: CrawlServices, where: str) -> Stats:
    link = HttpLink(where)
    source = RemoteWorkSource(link, services.clock, "worker")
    settings = await source.join()
    async with open_fetch_stack(settings, services.clock) as stack:
        loop = Loop(source, stack.step, services.clock, settings, name="worker")
        running = asyncio.create_task(loop.run())
        async with asyncio.timeout(60):
            while (stats := await services.frontier.stats()).urls["completed"] < PAGES + 1:
                await asyncio.sleep(0.02)
                assert not running.done()
        loop.drain()
        await running
    await link.close()
    return stats


def test_a_settle_that_takes_longer_than_a_lease_costs_no_lease_and_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowHost()

    async def crawl(seeds: list[str]) -> tuple[Stats, bool]:
        folder = CrawlFolder(tmp_path)
        async with (
            open_services(folder, SETTINGS) as services,
            listen_for_workers(services, folder, SETTINGS, "127.0.0.1:0", Access(), print) as where,
        ):
            await services.frontier.admit(read_seeds(seeds, [], KEYS))
            committer = BusyDesk(services, slow, monkeypatch)
            return await work(services, where), committer.was_busy

    def quick(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(page(b"a page"))
        return True

    with serving(quick) as one, serving(slow.answer) as other:
        seeds = [f"{one.url}/{number}" for number in range(PAGES)]
        stats, was_busy = asyncio.run(crawl([*seeds, f"{other.url}/slow"]))
        asked = [received.raw.split()[1] for server in (one, other) for received in server.requests]
    assert was_busy
    assert (stats.leases_expired, stats.stale_outcomes) == (0, 0)
    assert len(asked) == PAGES + 3
    assert len(set(asked)) == PAGES + 2  # both have a robots.txt
