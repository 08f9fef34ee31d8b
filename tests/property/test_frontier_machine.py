"""Any sequence of calls, against a model of plain dicts.

The model knows what an attentive reader of the contract knows: which state each URL is in, who holds which host
until when, and when a host may be asked next. After every step each URL's state is compared, and `audit` has
compared the tables with each other. At the end the crawl is run dry: no URL may be left behind.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from hypothesis import HealthCheck
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skitter.errors import StoreFailed
from skitter.model import (
    FailureKind,
    HostLease,
    HostPolicy,
    Outcome,
    SegmentMark,
    Task,
    TaskKind,
    VerdictKind,
    Via,
)
from skitter.settings import RevisitSettings
from tests.frontier_kit import Driver, failed
from tests.frontier_model import (
    ADDRESSES,
    GOOD,
    HOSTS,
    SETTINGS,
    URLS,
    Model,
    Rules,
    found,
    host_of,
    page_results,
    robots_results,
    rules,
    waits,
)
from tests.frontier_stores import Disk, LogDisk, MemoryDisk, RocksDisk


class FrontierMachine(RuleBasedStateMachine):
    disk: Callable[[Path], Disk]
    # opening RocksDB takes more than all other steps of an example: three crashes have to do
    most_crashes: int
    settings = SETTINGS

    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="skitter-machine-")
        self.driver = Driver(type(self).disk(Path(self.folder.name) / "frontier"), self.settings)
        self.driver.addresses = ADDRESSES
        self.clock = self.driver.clock
        self.model = Model(self.clock)
        self.settled: list[Outcome] = []
        self.mark = self.crashes = 0
        # what waits to be visited again, and counts as a page meanwhile
        self.again: set[str] = set()

    @initialize(
        urls=st.sets(st.sampled_from(URLS), min_size=6), read=st.sampled_from([True, True, True, False])
    )
    def begin(self, urls: set[str], read: bool) -> None:
        """Most of what can go wrong goes wrong on the second lease of a host: start near it."""
        self.open()
        self.admit(sorted(urls), Via.LINK)
        if read:
            self._answer(self._lease("first", 10, 60.0))
            self.clock.advance(1)

    # -- admission

    @rule(
        urls=st.lists(st.sampled_from(URLS), min_size=1, max_size=6),
        via=st.sampled_from([Via.SEED, Via.LINK]),
    )
    def admit(self, urls: list[str], via: Via) -> None:
        expected = [self.model.admitted(url, via) for url in urls]
        verdicts = self.driver.admit(*(found(url, via) for url in urls))
        assert [verdict.kind is VerdictKind.ADDED for verdict in verdicts] == expected

    # -- leases

    @rule(
        worker=st.sampled_from(["w1", "w2", "w3"]),
        capacity=st.sampled_from([10, 10, 2, 1]),
        duration=st.sampled_from([2.0, 60.0]),
        wait=st.sampled_from([True, True, False]),
    )
    def lease(self, worker: str, capacity: int, duration: float, wait: bool) -> None:
        if wait:
            self.wait_for_work()
        self._lease(worker, capacity, duration)

    @rule(choices=st.data())
    def work(self, choices: st.DataObject) -> None:
        """What workers mostly do."""
        self.wait_for_work()
        leases = self._lease("w1", 10, 60.0)
        self._settle([self._draw_outcome(choices, le, task) for le in leases for task in le.tasks])

    @rule(
        kind=st.sampled_from([FailureKind.CONNECT_REFUSED, FailureKind.DNS_NOT_FOUND]), emptied=st.booleans()
    )
    def lose_the_network(self, kind: FailureKind, emptied: bool) -> None:
        """Nobody can be reached for as long as it takes to give hosts up."""
        for _ in range(4):
            self.wait_for_work()
            leases = self._lease("w1", 10, 60.0)
            self._settle([self.driver.outcome(le, failed(kind), task) for le in leases for task in le.tasks])
        if emptied:
            self.promote()

    @rule(choices=st.data(), how=st.sampled_from(["release", "expire", "crash"]), again=st.booleans())
    def come_back_late(self, choices: st.DataObject, how: str, again: bool) -> None:
        """A lease ends, its host may be leased again, and then the first worker settles after all."""
        self.wait_for_work()
        self._lease("w1", 10, 60.0)
        if not self.model.live():
            return
        lease = choices.draw(st.sampled_from(self.model.live()), label="lease")
        if how == "release":
            self.release(len(self.model.old) - 1 - self.model.old.index(lease))
        elif how == "expire":
            self.lose_a_worker(self.model.live().index(lease), 2.0)
        elif self.crashes < self.most_crashes:
            self.crash()
        if again:
            self.wait_for_work()
        self._lease("w2", 10, 60.0)
        self._settle([self._draw_outcome(choices, lease, task) for task in lease.tasks])

    def _lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]:
        certain, possible = self.model.leasable()
        leases = self.driver.lease(capacity, duration, worker)
        hosts = [lease.host for lease in leases]
        assert len(set(hosts)) == len(hosts) <= capacity
        assert set(hosts) <= possible
        if capacity >= len(HOSTS):
            assert certain <= set(hosts), "a host that is ready and has work was passed over"
        for lease in leases:
            self.model.granted(lease, duration)
        self._see_denials()
        return leases

    def _see_denials(self) -> None:
        """Which denied or forbidden URLs a lease looks at is its own affair; that it ends only those is not."""
        for url, known in self.model.urls.items():
            if known.state == "queued" and (reason := self.model.forbids(url)):
                known.state = self.driver.explain(url).state
                assert known.state in ("queued", "refused")
                known.reason = reason if known.state == "refused" else ""
            if known.state == "queued" and self.model.sites[host_of(url)].denies(url):
                known.state = self.driver.explain(url).state
                assert known.state in ("queued", "denied")

    @precondition(lambda self: self.model.old)
    @rule(choice=st.integers(0, 100))
    def release(self, choice: int) -> None:
        lease = self.model.old[-1 - choice % len(self.model.old)]
        self.driver.release(lease)
        site = self.model.sites[lease.host]
        if site.lease is lease:
            self.model.ended(site, self.clock.now())

    @precondition(lambda self: self.model.old)
    @rule(choice=st.integers(0, 100), duration=st.sampled_from([2.0, 60.0]))
    def renew(self, choice: int, duration: float) -> None:
        lease = self.model.old[-1 - choice % len(self.model.old)]
        site = self.model.sites[lease.host]
        deadline = self.driver.renew(lease, duration)
        if site.lease is lease:
            site.deadline = self.clock.now() + duration
            assert deadline == site.deadline
        else:
            assert deadline is None

    @rule()
    def reap(self) -> None:
        now = self.clock.now()
        expired = [
            site for site in self.model.sites.values() if site.lease is not None and site.deadline <= now
        ]
        assert self.driver.reap() == len(expired)
        for site in expired:
            self.model.ended(site, site.deadline)

    # -- outcomes

    @precondition(lambda self: self.model.live())
    @rule(choices=st.data(), some=st.booleans())
    def settle(self, choices: st.DataObject, some: bool) -> None:
        """Some or all of what is out, of one or all leases, in one call."""
        outcomes = []
        for lease in self.model.live():
            open_tasks = [t for t in lease.tasks if t.key in self.model.sites[lease.host].open_keys]
            for task in open_tasks:
                if some and choices.draw(st.booleans(), label="leave it out"):
                    continue
                outcomes.append(self._draw_outcome(choices, lease, task))
        self._settle(outcomes)

    @precondition(lambda self: self.model.old)
    @rule(choices=st.data())
    def settle_for_an_old_lease(self, choices: st.DataObject) -> None:
        lease = choices.draw(st.sampled_from(self.model.old[-6:]), label="lease")
        task = choices.draw(st.sampled_from(lease.tasks), label="task")
        self._settle([self._draw_outcome(choices, lease, task)] * 2)

    @precondition(lambda self: self.settled)
    @rule(choice=st.integers(0, 1000))
    def settle_again(self, choice: int) -> None:
        self._settle([self.settled[-1 - choice % len(self.settled)]])

    def _draw_outcome(self, choices: st.DataObject, lease: HostLease, task: Task) -> Outcome:
        results = page_results if task.kind is TaskKind.PAGE else robots_results
        return self.driver.outcome(lease, choices.draw(results, label=task.url), task)

    def _settle(self, outcomes: list[Outcome]) -> None:
        self.mark += 1
        expected = [self.model.expected(outcome) for outcome in outcomes]
        settlements = self.driver.settle(*outcomes, marks=[SegmentMark("s", self.mark, self.mark)])
        assert [settlement.settled for settlement in settlements] == expected
        assert self.driver.ask(self.driver.frontier.marks()) == [SegmentMark("s", self.mark, self.mark)]
        self.settled += outcomes

    # -- time and the operator

    @rule(wait=waits)
    def wait(self, wait: float) -> None:
        self.clock.advance(wait)

    def wait_for_work(self) -> None:
        next_at = self.driver.ask(self.driver.frontier.horizon()).next_at
        if next_at is not None:
            self.clock.advance(max(0.0, next_at - self.clock.now()))

    @precondition(lambda self: self.model.live())
    @rule(choice=st.integers(0, 2), late=st.sampled_from([0.0, 2.0]))
    def lose_a_worker(self, choice: int, late: float) -> None:
        """Its lease runs out, and by the time somebody looks its host may be ready again."""
        live = self.model.live()
        deadline = self.model.sites[live[choice % len(live)].host].deadline
        self.clock.advance(max(0.0, deadline + late - self.clock.now()))
        self.reap()

    @rule()
    def promote(self) -> None:
        now = self.clock.now()
        dates = self._dates()
        self.driver.promote()
        self._see_revisits(dates)
        buried = self.model.abandoned()
        for url in buried:
            self.model.urls[url].state = "dead_letter"
        for url, known in self.model.urls.items():
            if known.state == "queued" and self.model.sites[host_of(url)].given_up is not None:
                # given up only just now, in the course of the same call
                known.state = self.driver.explain(url).state
                assert known.state in ("queued", "dead_letter")
            if known.state == "failed" and known.due <= now:
                known.state = "queued"
            elif known.state == "denied" and not self.model.sites[host_of(url)].denies(url):
                known.state = self.driver.explain(url).state
                assert known.state in ("queued", "denied")
        self.model.judged_again()

    def _dates(self) -> dict[str, float | None]:
        """When each URL that has its final answer is to be visited again."""
        final = [url for url, known in self.model.urls.items() if known.state in ("completed", "gone")]
        return {url: self.driver.explain(url).next_at for url in final}

    def _see_revisits(self, dates: dict[str, float | None]) -> None:
        """Which page goes first is the rule's own affair; that none goes before its date is not."""
        for url, date in dates.items():
            if self.driver.explain(url).state != "queued":
                continue
            assert date is not None
            assert date <= self.clock.now()
            known = self.model.urls[url]
            known.state, known.attempts = "queued", 0
            self.again.add(url)

    @rule()
    def requeue(self) -> None:
        dead = [url for url, known in self.model.urls.items() if known.state == "dead_letter"]
        for host in filter(self.model.has_work_in_vain, HOSTS):
            self._pardon(host)
        assert self.driver.requeue() == len(dead)
        for url in dead:
            known = self.model.urls[url]
            known.state, known.attempts = "queued", 0
            self._pardon(host_of(url))

    def _pardon(self, host: str) -> None:
        site = self.model.sites[host]
        site.forgiven()
        site.not_before = 0.0

    @rule()
    def refresh(self) -> None:
        final = [known for known in self.model.urls.values() if known.has_final_answer()]
        assert self.driver.refresh() == len(final)
        for known in final:
            known.attempts = 0
            known.requeued()

    @rule(
        host=st.sampled_from(HOSTS),
        delay=st.sampled_from([None, 0.25, 20.0]),
        blocked=st.sampled_from([False, False, False, True]),
    )
    def set_policy(self, host: str, delay: float | None, blocked: bool) -> None:
        policy = HostPolicy(delay=delay, blocked=blocked)
        self.driver.set_policy(host, policy)
        if self.model.sites[host].policy.blocked and not blocked:
            self.model.unblocked(host)
        self.model.sites[host].policy = policy

    # -- accidents

    @precondition(lambda self: self.crashes < self.most_crashes)
    @rule()
    def crash(self) -> None:
        self._reopen(self.model.rules)

    @precondition(lambda self: self.crashes < self.most_crashes)
    @rule(rules=rules)
    def change_settings_and_reopen(self, rules: Rules) -> None:
        self._reopen(rules)

    def _reopen(self, rules: Rules) -> None:
        self.crashes += 1
        self.driver.reopen(rules.settings())
        self.model.changed(rules)
        self.model.opened_at = self.clock.now()
        for site in self.model.sites.values():
            site.booked = False
            if site.lease is not None:
                self.model.ended(site, self.clock.now())

    @rule(
        call=st.sampled_from(["admit", "lease", "settle", "release", "promote", "reap", "requeue", "refresh"])
    )
    def lose_a_write(self, call: str) -> None:
        """A write fails as a full disk makes it fail: the call raises, and nothing has changed."""
        driver, live = self.driver, self.model.live()
        outcomes = [driver.outcome(le, GOOD[task.kind], task) for le in live for task in le.tasks]
        calls: dict[str, Callable[[], object]] = {
            "admit": lambda: driver.admit(*(found(url, Via.SEED) for url in URLS[::2])),
            "lease": driver.lease,
            "settle": lambda: driver.settle(*outcomes, marks=[SegmentMark("s", 0, 0)]),
            "release": lambda: driver.release(*live),
            "promote": driver.promote,
            "reap": driver.reap,
            "requeue": driver.requeue,
            "refresh": driver.refresh,
        }
        # not raised when there was nothing to write
        with driver.failing_commits(), contextlib.suppress(StoreFailed):
            calls[call]()
        driver.audit()

    # -- what always holds

    @invariant()
    def every_url_is_where_the_model_has_it(self) -> None:
        for url, known in self.model.urls.items():
            told = self.driver.explain(url)
            assert told.state == known.state, url
            if known.state == "refused":
                assert told.reason.partition(":")[0] == known.reason, url

    @invariant()
    def the_totals_are_those_of_the_model(self) -> None:
        stats = self.driver.stats()
        states = [known.state for known in self.model.urls.values()]
        assert {name: n for name, n in stats.urls.items() if n} == {s: states.count(s) for s in set(states)}
        assert stats.hosts["active"] == len(self.model.live())
        waiting = ("queued", "in_progress")
        self.again = {url for url in self.again if self.model.urls[url].state in waiting}
        pages = [
            url
            for url, known in self.model.urls.items()
            if 200 <= known.status < 300 and (known.state == "completed" or url in self.again)
        ]
        assert stats.pages == len(pages)

    # -- the end

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self._run_dry()
        finally:
            self.driver.close()
            self.folder.cleanup()

    def _run_dry(self) -> None:
        """The web is kind from now on: in bounded time every URL known comes to its end."""
        for host in HOSTS:
            self.set_policy(host, None, False)
        for _ in range(60):
            self.clock.advance(22_000)
            self.reap()
            self.requeue()
            self.promote()
            self._answer(self._lease("last", 10, 60.0))
            if self.driver.ask(self.driver.frontier.horizon()).next_at is None and not self.model.live():
                break
        assert {known.state for known in self.model.urls.values()} <= {
            "completed",
            "gone",
            "denied",
            "refused",
        }

    def _answer(self, leases: list[HostLease]) -> None:
        self._settle([self.driver.outcome(le, GOOD[task.kind], task) for le in leases for task in le.tasks])
        self.every_url_is_where_the_model_has_it()


class RocksMachine(FrontierMachine):
    disk = RocksDisk
    most_crashes = 3


class MemoryMachine(FrontierMachine):
    disk = MemoryDisk
    most_crashes = 10


class LogMachine(FrontierMachine):
    """Every commit is in a log in PostgreSQL first, and replayed at the end."""

    disk = LogDisk
    most_crashes = 10

    def teardown(self) -> None:
        super().teardown()
        self.driver.check_replay()


class FreshMachine(MemoryMachine):
    """The same crawl, kept fresh: a page may be queued again once its date has come."""

    settings = msgspec.structs.replace(
        SETTINGS,
        revisit=RevisitSettings(
            keep_fresh=True, rule="fixed", interval=3_000.0, min_age=60.0, per_second=1.0, audit=0.2
        ),
    )

    def _run_dry(self) -> None:
        """Nothing would end: the operator starts it once more, not to be kept fresh."""
        self.driver.settings = SETTINGS
        self.crash()
        super()._run_dry()


# Hypothesis's own profile for continuous integration makes this repeatable there.
_BUDGET = profile(
    max_examples=30,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
RocksMachine.TestCase.settings = _BUDGET
# The rules are the same code on both: half as many examples, each with more crashes.
MemoryMachine.TestCase.settings = profile(_BUDGET, max_examples=15)
TestFrontierOnRocks = RocksMachine.TestCase
TestFrontierInMemory = MemoryMachine.TestCase
LogMachine.TestCase.settings = profile(
    _BUDGET, max_examples=50 if os.environ.get("SKITTER_ALL_STORES") else 4
)
TestFrontierWithLog = LogMachine.TestCase
FreshMachine.TestCase.settings = profile(_BUDGET, max_examples=15)
TestFrontierKeptFresh = FreshMachine.TestCase
