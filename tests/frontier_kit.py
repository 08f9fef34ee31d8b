"""Building blocks for tests of a frontier: URLs, results, and a synchronous driver.

The driver does what tests need and the contract does not offer: the process dies, commits fail, a second process
looks on, what is asked of the store is counted. So tests reach into no implementation. After each call that may
write it has `frontier_audit` compare the tables.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import msgspec
import pytest

from skitter.frontier.base import (
    Explanation,
    Frontier,
    HostExplanation,
    HostView,
    LeaseView,
    Settlement,
    Stats,
)
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.engine import reboot_barrier
from skitter.frontier.opening import open_on
from skitter.frontier.stores.base import Store
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    Host,
    HostLease,
    HostPolicy,
    Outcome,
    Redirected,
    Result,
    RobotsRead,
    SegmentMark,
    Task,
    TaskKind,
    Token,
    UrlKey,
    Verdict,
    Via,
)
from skitter.settings import Settings
from skitter.testing.clock import FakeClock
from skitter.urls.canonical import host_of
from tests.frontier_audit import audit
from tests.frontier_stores import CountingStore, Disk, FailingStore, LogDisk, Watch
from tests.keys import key_of

T = TypeVar("T")


# -- values


def discovered(
    url: str,
    *,
    via: Via = Via.LINK,
    depth: int = 1,
    priority: int | None = 50,
    hops: int = 0,
    parent: UrlKey | None = None,
) -> Discovered:
    return Discovered(
        url=url,
        key=key_of(url),
        host=host_of(url),
        depth=depth,
        via=via,
        parent=parent,
        hops=hops,
        priority=priority,
    )


def seed(url: str, *, priority: int = 80) -> Discovered:
    return discovered(url, via=Via.SEED, depth=0, priority=priority)


def redirected(to: str, *, depth: int = 1, hops: int = 1, status: int = 301) -> Redirected:
    target = discovered(to, via=Via.REDIRECT, depth=depth, hops=hops)
    return Redirected(status=status, location=to, target=target)


def failed(kind: FailureKind = FailureKind.CONNECT_REFUSED, *, retry_after: float | None = None) -> Failed:
    return Failed(kind=kind, detail="as the test says", retry_after=retry_after)


OK = Fetched(status=200, content_type="text/html", size=10)
NO_RULES = RobotsRead(status=404)


def robots(*lines: str, status: int = 200) -> RobotsRead:
    return RobotsRead(status=status, body="\n".join(("User-agent: *", *lines)).encode())


# -- the driver


class Driver:
    """A frontier and its clock, called synchronously. `audited` is off only where a test has many URLs; `tell` is
    told what the frontier has to say of its blocklists."""

    def __init__(
        self,
        disk: Disk,
        settings: Settings,
        *,
        audited: bool = True,
        tell: Callable[[str], None] | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.settings = settings
        self.audited = audited
        self.addresses: dict[str, str] = {}
        self._disk = disk
        self._tell = tell
        self._open_stores: list[Store] = []
        self._runner = asyncio.Runner()
        self.open()

    def ask(self, call: Coroutine[Any, Any, T]) -> T:
        """A question does not write, so there is nothing to audit."""
        return self._runner.run(call)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        answer = self._runner.run(call)
        if self.audited:
            self.audit()
        return answer

    def audit(self) -> None:
        audit(self._engine)

    # the calls of the contract

    def admit(self, *found: Discovered) -> list[Verdict]:
        return self.run(self.frontier.admit(found))

    def lease(self, capacity: int = 100, duration: float = 60.0, worker: str = "w1") -> list[HostLease]:
        return self.run(self.frontier.lease(worker, capacity, duration))

    def settle(self, *outcomes: Outcome, marks: Sequence[SegmentMark] = ()) -> list[Settlement]:
        """Every settle of every test is judged first, and the judgement must be what settling then does."""
        return self.run(self._settle(outcomes, marks))

    async def _settle(self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark]) -> list[Settlement]:
        async with self.frontier.settling(outcomes) as settling:
            settlements = await settling.commit(outcomes, marks)
        assert [settlement.settled for settlement in settlements] == settling.verdicts
        return settlements

    def release(self, *leases: HostLease) -> None:
        self.run(self.frontier.release([(lease.host, lease.token) for lease in leases]))

    def renew(self, lease: HostLease, duration: float = 60.0) -> float | None:
        return self.run(self.frontier.renew([(lease.host, lease.token)], duration))[0]

    def reap(self) -> int:
        return self.run(self.frontier.reap(self.clock.now()))

    def promote(self) -> int:
        return self.run(self.frontier.promote(self.clock.now()))

    def set_policy(self, host: str, policy: HostPolicy) -> None:
        self.run(self.frontier.set_policy(Host(host), policy))

    def requeue(self, *, host: str | None = None, url: str | None = None) -> int:
        return self.run(self.frontier.requeue(host=Host(host) if host else None, url=url))

    def retry(self, host: str) -> int | None:
        return self.run(self.frontier.retry(Host(host)))

    def refresh(self, *, host: str | None = None, url: str | None = None) -> int:
        return self.run(self.frontier.refresh(host=Host(host) if host else None, url=url))

    def stored(self, segment: str) -> None:
        self.run(self.frontier.stored(segment))

    def lost(self, segment: str) -> int:
        return self.run(self.frontier.lost(segment))

    def stats(self) -> Stats:
        """Without the seen filter's figures, which are of this process and not of the crawl."""
        return msgspec.structs.replace(self.ask(self.frontier.stats()), seen_filter=None)

    def explain(self, url: str) -> Explanation:
        return self.ask(self.frontier.explain(url))

    def host(self, host: str) -> HostView:
        return next(view for view in self.ask(self.frontier.hosts(limit=10_000)) if view.host == host)

    def explain_host(self, host: str, *, fetches: int) -> HostExplanation | None:
        return self.ask(self.frontier.explain_host(Host(host), fetches=fetches))

    def leases(self) -> list[LeaseView]:
        return self.ask(self.frontier.leases(limit=100))

    # moves that tests share

    def lease_one(self, **asked: Any) -> HostLease:
        leases = self.lease(**asked)
        assert len(leases) == 1, leases
        return leases[0]

    def outcome(
        self, lease: HostLease, result: Result, task: Task | None = None, *, took: float = 0.0
    ) -> Outcome:
        """An answer that arrives now to a request sent `took` seconds ago."""
        task = task or lease.tasks[0]
        now = self.clock.now()
        return Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=now - took,
            ended_at=now,
            result=result,
            address=self.addresses.get(lease.host, ""),
        )

    def answer(self, lease: HostLease, *results: Result) -> list[Settlement]:
        """Settle the lease's tasks in order, the last result repeated for those that have none."""
        padded = [*results, *[results[-1]] * (len(lease.tasks) - len(results))]
        pairs = zip(lease.tasks, padded, strict=False)
        return self.settle(*(self.outcome(lease, result, task) for task, result in pairs))

    def open_host(self, *urls: str, body: RobotsRead = NO_RULES) -> None:
        """Seed URLs and get their hosts' robots.txt out of the way; ends when the hosts may be asked."""
        self.admit(*(seed(url) for url in urls))
        for lease in self.lease():
            assert lease.tasks[0].kind is TaskKind.ROBOTS, lease
            self.answer(lease, body)
        self.clock.advance(max((view.delay for view in self.ask(self.frontier.hosts(limit=9999))), default=0))

    def fetch(self, result: Result = OK, **asked: Any) -> Settlement:
        """Lease the one host that is ready, settle its tasks with this result; what became of the first."""
        return self.answer(self.lease_one(**asked), result)[0]

    def serve(self, rounds: int, page: Fetched = OK, **asked: Any) -> None:
        """A worker that answers all it gets, at the pace of a host a second."""
        for _ in range(rounds):
            for lease in self.lease(**asked):
                kind = lease.tasks[0].kind
                self.answer(lease, page if kind is not TaskKind.ROBOTS else NO_RULES)
            self.clock.advance(1)

    # accidents, and those who look on

    def failing_commits(self, *, after: int = 0) -> AbstractContextManager[None]:
        """Inside, all commits but the first so many fail as on a full disk."""
        return self._failing.failing(after)

    def watched(self) -> AbstractContextManager[Watch]:
        """Inside, commits and reads of rows are noted."""
        return self._counting.watched()

    @contextlib.contextmanager
    def reader(self) -> Iterator[Frontier]:
        """What another process sees of this crawl, as of now."""
        store = self._disk.open(self.settings.frontier, read_only=True)
        reader = open_on(store, self._disk.folder, self.settings, self.clock)
        try:
            yield reader
        finally:
            self._runner.run(reader.close())

    def needs_a_store_that_a_power_loss_can_harm(self) -> None:
        """For what is promised only there; tests/integration/test_taking_over.py has what is promised instead."""
        if self._counting.keeps_every_commit:
            pytest.skip("its commits survive a power loss")

    # ends and beginnings

    def die(self) -> None:
        """The process dies here: no call of the frontier sees it coming."""
        while self._open_stores:
            self._disk.outlive(self._open_stores.pop())

    def reopen(self, settings: Settings | None = None, *, boot: str | None = None) -> None:
        """The process dies, and the next one goes on; with `boot`, after that start of the machine."""
        self.die()
        self.open(settings, boot=boot)
        self.audit()

    def restart(self) -> None:
        """A clean end, and the next process goes on."""
        self._close()
        self.open()
        self.audit()

    def open_second(self) -> None:
        """Another process opens the same tables, to crawl."""
        self._disk.open(self.settings.frontier).close()

    def close(self) -> None:
        try:
            if self._open_stores:
                self.audit()
        finally:
            self._close()
            self._runner.close()

    def check_replay(self) -> None:
        """Where there is a log, it gives the same tables elsewhere. The frontier is closed."""
        if isinstance(self._disk, LogDisk):
            self._disk.check_replay(self.settings.frontier)

    def _close(self) -> None:
        if self._open_stores:
            self._open_stores.clear()
            self._runner.run(self._engine.close())

    def open(self, settings: Settings | None = None, *, boot: str | None = None) -> None:
        """The next process begins, where none has the frontier open."""
        settings = settings or self.settings
        store = self._disk.open(settings.frontier)
        self._open_stores.append(store)
        self._failing = FailingStore(store)
        self._counting = CountingStore(self._failing)
        lists = Blocklists(settings.crawl.blocklists, self._tell)
        try:
            with self._booted(boot):
                engine = open_on(self._counting, self._disk.folder, settings, self.clock, blocklists=lists)
        except BaseException:
            self.die()  # as a command that cannot open its crawl does
            raise
        self.settings = settings
        self._engine = engine
        self.frontier: Frontier = engine

    @contextlib.contextmanager
    def _booted(self, boot: str | None) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            if boot is not None:
                file = self._disk.folder / "boot_id"
                file.write_text(boot)
                patch.setattr(reboot_barrier, "BOOT_ID", file)
            yield


def token_of(lease: HostLease, change: int) -> Token:
    return Token(lease.token + change)
