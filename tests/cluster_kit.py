"""A driver of three partitions behind a router, in one process: to the tests of the contract it is one frontier.

After each call that may write, the post is carried until all outboxes are empty, and every partition is audited.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from skitter.frontier.base import Frontier
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.cluster.relay import Relay
from skitter.frontier.cluster.router import Router
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.opening import open_on
from skitter.frontier.stores.base import Store
from skitter.settings import Settings
from skitter.testing.clock import FakeClock
from skitter.urls.partitions import Partition
from tests.frontier_audit import audit
from tests.frontier_kit import Driver
from tests.frontier_stores import CountingStore, Disk, FailingStore, LogDisk, Watch

PARTS = 3


class Disks:
    """Where the tables of all partitions lie."""

    def __init__(self, folder: Path, make: Callable[[Path], Disk]) -> None:
        folder.mkdir()
        self.folder = folder
        self.disks = [make(folder / f"part-{number}") for number in range(PARTS)]


class ClusterDriver(Driver):
    def __init__(
        self,
        disks: Disks,
        settings: Settings,
        *,
        audited: bool = True,
        tell: Callable[[str], None] | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        self._disks = disks
        self._engines: list[EngineFrontier] = []
        super().__init__(disks.disks[0], settings, audited=audited, tell=tell, clock=clock)

    def open(self, settings: Settings | None = None, *, boot: str | None = None) -> None:
        settings = settings or self.settings
        self._engines, self._open_stores = [], []
        self._failing_stores: list[FailingStore] = []
        self._counting_stores: list[CountingStore] = []
        try:
            with self._booted(boot):
                for number, disk in enumerate(self._disks.disks):
                    self._engines.append(self._opened(number, disk, settings))
        except BaseException:
            self.die()
            raise
        self.settings = settings
        parts = dict(enumerate(self._engines))
        self._relays = [Relay(number, part, self._tell_part) for number, part in parts.items()]
        self.frontier: Frontier = Router(parts, self.carry)
        self._counting = self._counting_stores[0]

    def _opened(self, number: int, disk: Disk, settings: Settings) -> EngineFrontier:
        store = disk.open(settings.frontier)
        self._open_stores.append(store)
        failing = FailingStore(store)
        counting = CountingStore(failing)
        self._failing_stores.append(failing)
        self._counting_stores.append(counting)
        lists = Blocklists(settings.crawl.blocklists, self._tell if number == 0 else None)
        return open_on(
            counting,
            disk.folder,
            settings,
            self.clock,
            blocklists=lists,
            partition=Partition(number, PARTS),
        )

    async def _tell_part(self, source: int, target: int, posts: object) -> None:
        await self._engines[target].take_posts(source, posts)  # type: ignore[arg-type]

    async def carry(self) -> None:
        """Until every outbox is empty."""
        while sum([await relay.run_once() for relay in self._relays]):
            pass

    def audit(self) -> None:
        for engine in self._engines:
            audit(engine, *(other for other in self._engines if other is not engine))

    @contextlib.contextmanager
    def failing_commits(self, *, after: int = 0) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for store in self._failing_stores:
                stack.enter_context(store.failing(after))
            yield

    def watched(self) -> AbstractContextManager[Watch]:
        pytest.skip("three partitions commit what one commits at once")

    @contextlib.contextmanager
    def reader(self) -> Iterator[Frontier]:
        stores: list[Store] = [
            disk.open(self.settings.frontier, read_only=True) for disk in self._disks.disks
        ]
        readers = {
            number: open_on(store, disk.folder, self.settings, self.clock, partition=Partition(number, PARTS))
            for number, (store, disk) in enumerate(zip(stores, self._disks.disks, strict=True))
        }
        router = Router(readers)
        try:
            yield router
        finally:
            self._runner.run(router.close())

    def die(self) -> None:
        stores, self._open_stores = self._open_stores, []
        for disk, store in zip(self._disks.disks, stores, strict=False):
            disk.outlive(store)

    def check_replay(self) -> None:
        for disk in self._disks.disks:
            if isinstance(disk, LogDisk):
                disk.check_replay(self.settings.frontier)

    def _close(self) -> None:
        if self._open_stores:
            self._open_stores.clear()
            self._runner.run(self.frontier.close())
