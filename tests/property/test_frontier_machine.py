"""Any sequence of calls, against a model of plain dicts.

The model knows what an attentive reader of the contract knows: which state each URL is in, who holds which host
until when, and when a host may be asked next. After every step each URL's state is compared, and `audit` has
compared the tables with each other. At the end the crawl is run dry: no URL may be left behind.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skitter.clock import Clock
from skitter.errors import StoreFailed
from skitter.frontier.base import Settled
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.frontier.rocks.store import Batch
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    HostPolicy,
    Outcome,
    Redirected,
    Result,
    RobotsRead,
    SegmentMark,
    Task,
    TaskKind,
    VerdictKind,
    Via,
)
from skitter.settings import CrawlSettings, FrontierSettings, RetrySettings, Settings
from tests.frontier_kit import NO_RULES, OK, Driver, audit, discovered, failed, redirected, robots

HOSTS = ("http://a.test", "http://b.test", "http://c.test")
PATHS = {"/1": 90, "/2": 60, "/3": 30, "/4": 10, "/5": 10, "/private/6": 60}
URLS = [host + path for host in HOSTS for path in PATHS]
DENYING = robots("Disallow: /private/")
SLOW = robots("Crawl-delay: 7")
BACKOFF = (60.0, 3600.0, 21600.0)
ATTEMPTS = 3
# kind -> attempts, whether the host is blamed, the state after the last attempt
TABLE = {
    FailureKind.CONNECT_REFUSED: (ATTEMPTS, True, "dead_letter"),
    FailureKind.THROTTLED: (ATTEMPTS, True, "dead_letter"),
    FailureKind.PROTOCOL: (2, False, "dead_letter"),
    FailureKind.HEADERS_TOO_LARGE: (1, False, "dead_letter"),
    FailureKind.TYPE_UNWANTED: (1, False, "refused"),
}
# one entry each of the bounded caches, so that every step also misses them
SETTINGS = Settings(
    crawl=CrawlSettings(scope="any"),
    retry=RetrySettings(attempts=ATTEMPTS, backoff=BACKOFF, quarantine_after=4),
    frontier=FrontierSettings(tasks_per_lease=3, cached_hosts=1, recent_keys=2),
)


def found(url: str, via: Via = Via.LINK) -> Discovered:
    path = next(path for path in PATHS if url.endswith(path))
    return discovered(url, via=via, depth=1, priority=PATHS[path])


def host_of(url: str) -> str:
    return next(host for host in HOSTS if url.startswith(host + "/"))


@dataclass
class Url:
    state: str = "queued"
    attempts: int = 0
    due: float = 0.0


@dataclass
class Site:
    """A host, as the model sees it."""

    last_start: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    penalty: float = 1.0
    crawl_delay: float = 0.0
    policy: HostPolicy = field(default_factory=HostPolicy)
    body: bytes = b""
    robots_until: float = 0.0
    elsewhere: bool = False
    lease: HostLease | None = None
    deadline: float = 0.0
    open_keys: set[bytes] = field(default_factory=set)

    def delay(self) -> float:
        delay = max(1.0, self.crawl_delay) if self.policy.delay is None else self.policy.delay
        return max(delay, 1.0) * self.penalty if self.penalty > 1 else delay

    def earliest(self) -> float:
        return max(self.not_before, self.last_start + self.delay())

    def denies(self, url: str) -> bool:
        return self.body == DENYING.body and "/private/" in url

    def well(self) -> None:
        self.failures = 0
        if self.penalty > 1:
            self.penalty = max(1.0, 1.0 / min(1.0, 1.0 / self.penalty + 0.1))

    def blame(self, kind: FailureKind, now: float) -> None:
        self.failures += 1
        wait = 86_400.0 if self.failures >= 4 else BACKOFF[min(self.failures, 3) - 1]
        if kind is FailureKind.THROTTLED:
            self.penalty = min(self.penalty * 2, 64.0)
        self.not_before = max(self.not_before, now + wait)


page_results = st.one_of(
    st.lists(st.sampled_from(URLS), max_size=3).map(
        lambda urls: Fetched(status=200, size=3, links=tuple(found(url) for url in urls))
    ),
    st.just(Fetched(status=404, size=1)),
    st.sampled_from(URLS).map(lambda url: redirected(url, status=302)),
    st.sampled_from(sorted(TABLE)).map(failed),
)
robots_results = st.one_of(
    st.sampled_from([RobotsRead(status=404), DENYING, SLOW]),
    st.sampled_from(HOSTS).map(lambda host: redirected(host + "/moved.txt")),
    st.sampled_from([FailureKind.CONNECT_REFUSED, FailureKind.PROTOCOL, FailureKind.THROTTLED]).map(failed),
)
waits = st.sampled_from([0.0, 0.5, 1.0, 7.0, 30.0, 61.0, 3600.0, 90_000.0])


class FrontierMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="skitter-machine-")
        opener = partial(_open, Path(self.folder.name) / "frontier")
        self.driver = Driver(opener, SETTINGS)
        self.clock = self.driver.clock
        self.urls: dict[str, Url] = {}
        self.sites = {host: Site() for host in HOSTS}
        self.old: list[HostLease] = []
        self.settled: list[Outcome] = []
        self.errands: list[tuple[str, str]] = []
        self.mark = 0

    # -- admission

    @rule(
        urls=st.lists(st.sampled_from(URLS), min_size=1, max_size=6),
        via=st.sampled_from([Via.SEED, Via.LINK]),
    )
    def admit(self, urls: list[str], via: Via) -> None:
        expected = [self._admitted(url, via) for url in urls]
        verdicts = self.driver.admit(*(found(url, via) for url in urls))
        assert [verdict.kind is VerdictKind.ADDED for verdict in verdicts] == expected

    def _admitted(self, url: str, via: Via) -> bool:
        known = self.urls.get(url)
        if known is not None and not (via is Via.SEED and known.state == "refused"):
            return False
        blocked = self.sites[host_of(url)].policy.blocked
        self.urls[url] = Url("refused" if blocked else "queued")
        return not blocked

    # -- leases

    @rule(
        worker=st.sampled_from(["w1", "w2", "w3"]),
        capacity=st.sampled_from([1, 2, 10]),
        duration=st.sampled_from([2.0, 60.0]),
    )
    def lease(self, worker: str, capacity: int, duration: float) -> None:
        self._lease(worker, capacity, duration)

    def _lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]:
        certain, possible = self._leasable()
        leases = self.driver.lease(capacity, duration, worker)
        hosts = [lease.host for lease in leases]
        assert len(set(hosts)) == len(hosts) <= capacity
        assert set(hosts) <= possible
        if capacity >= len(HOSTS):
            assert certain <= set(hosts), "a host that is ready and has work was passed over"
        for lease in leases:
            self._granted(lease, duration)
        self._see_denials()
        return leases

    def _leasable(self) -> tuple[set[str], set[str]]:
        """Hosts that must be leased if there is capacity, and those that may be."""
        now = self.clock.now()
        certain, possible = set(), set()
        for host, site in self.sites.items():
            if site.lease is not None or site.policy.blocked or site.earliest() > now + 1e-5:
                continue
            queued = [url for url in self._of(host) if self.urls[url].state == "queued"]
            errand = self._errands_to(host)
            if errand or (queued and not site.elsewhere):
                possible.add(host)
            unread = site.robots_until <= now
            sure = errand or (not site.elsewhere and any(unread or not site.denies(url) for url in queued))
            if sure and site.earliest() <= now - 1e-5:
                certain.add(host)
        return certain, possible

    def _of(self, host: str) -> list[str]:
        return [url for url in self.urls if url.startswith(host + "/")]

    def _errands_to(self, host: str) -> list[tuple[str, str]]:
        return [errand for errand in self.errands if errand[0] == host]

    def _granted(self, lease: HostLease, duration: float) -> None:
        site = self.sites[lease.host]
        now = self.clock.now()
        assert site.lease is None, "two leases on one host"
        assert lease.delay == pytest.approx(site.delay())
        assert lease.not_before >= max(now, site.earliest()) - 1e-5
        assert lease.deadline == now + duration
        assert all(old.token < lease.token for old in self.old)
        self._check_tasks(lease, site)
        self.old.append(lease)
        site.lease, site.deadline = lease, lease.deadline
        site.open_keys = {task.key for task in lease.tasks}

    def _check_tasks(self, lease: HostLease, site: Site) -> None:
        errands = self._errands_to(lease.host)
        kinds = {task.kind for task in lease.tasks}
        if errands:
            assert {(lease.host, str(task.behalf)) for task in lease.tasks} <= set(errands)
        elif site.robots_until <= self.clock.now():
            assert kinds == {TaskKind.ROBOTS}, "a page before its robots.txt"
            assert [task.url for task in lease.tasks] == [lease.host + "/robots.txt"]
        else:
            assert kinds == {TaskKind.PAGE}
            for task in lease.tasks:
                assert not site.denies(task.url)
                assert self.urls[task.url].state == "queued"
                assert task.attempt == self.urls[task.url].attempts + 1
                self.urls[task.url].state = "in_progress"

    def _see_denials(self) -> None:
        """Which denied URLs a lease looks at is its own affair; that it denies only those is not."""
        for url, known in self.urls.items():
            if known.state == "queued" and self.sites[host_of(url)].denies(url):
                known.state = self.driver.explain(url).state
                assert known.state in ("queued", "denied")

    def _ended(self, site: Site, last_start: float) -> None:
        assert site.lease is not None
        for task in site.lease.tasks:
            if task.kind is TaskKind.PAGE and task.key in site.open_keys:
                self.urls[task.url].state = "queued"
        site.last_start = max(site.last_start, last_start)
        site.lease = None
        site.open_keys = set()

    def _live(self) -> list[HostLease]:
        return [site.lease for site in self.sites.values() if site.lease is not None]

    @precondition(lambda self: self.old)
    @rule(choice=st.integers(0, 100))
    def release(self, choice: int) -> None:
        lease = self.old[-1 - choice % len(self.old)]
        self.driver.release(lease)
        site = self.sites[lease.host]
        if site.lease is lease:
            self._ended(site, self.clock.now())

    @precondition(lambda self: self.old)
    @rule(choice=st.integers(0, 100), duration=st.sampled_from([2.0, 60.0]))
    def renew(self, choice: int, duration: float) -> None:
        lease = self.old[-1 - choice % len(self.old)]
        site = self.sites[lease.host]
        deadline = self.driver.renew(lease, duration)
        if site.lease is lease:
            site.deadline = self.clock.now() + duration
            assert deadline == site.deadline
        else:
            assert deadline is None

    @rule()
    def reap(self) -> None:
        now = self.clock.now()
        expired = [site for site in self.sites.values() if site.lease is not None and site.deadline <= now]
        assert self.driver.reap() == len(expired)
        for site in expired:
            self._ended(site, site.deadline)

    # -- outcomes

    @precondition(lambda self: self._live())
    @rule(choices=st.data(), some=st.booleans())
    def settle(self, choices: st.DataObject, some: bool) -> None:
        """Some or all of what is out, of one or all leases, in one call."""
        outcomes = []
        for lease in self._live():
            open_tasks = [t for t in lease.tasks if t.key in self.sites[lease.host].open_keys]
            for task in open_tasks:
                if some and choices.draw(st.booleans(), label="leave it out"):
                    continue
                outcomes.append(self._draw_outcome(choices, lease, task))
        self._settle(outcomes)

    @precondition(lambda self: self.old)
    @rule(choices=st.data())
    def settle_for_an_old_lease(self, choices: st.DataObject) -> None:
        lease = choices.draw(st.sampled_from(self.old), label="lease")
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
        expected = [self._expect(outcome) for outcome in outcomes]
        settlements = self.driver.settle(*outcomes, marks=[SegmentMark("s", self.mark, self.mark)])
        assert [settlement.settled for settlement in settlements] == expected
        assert self.driver.run(self.driver.frontier.marks()) == [SegmentMark("s", self.mark, self.mark)]
        self.settled += outcomes

    def _expect(self, outcome: Outcome) -> Settled:
        site = self.sites[outcome.host]
        site.last_start = max(site.last_start, outcome.sent_at)
        live = site.lease
        if live is not None and live.token == outcome.token:
            if outcome.key not in site.open_keys:
                return Settled.STALE
            site.open_keys.discard(outcome.key)
            task = next(task for task in live.tasks if task.key == outcome.key)
            self._apply(site, task, outcome.result)
            if not site.open_keys:
                site.lease = None
            return Settled.ACCEPTED
        if outcome.kind is TaskKind.ROBOTS or isinstance(outcome.result, Failed):
            return Settled.STALE
        task = next(t for lease in self.old for t in lease.tasks if t.key == outcome.key)
        out_again = live is not None and any(task.key == outcome.key for task in live.tasks)
        if self.urls[task.url].state != "queued" or out_again:
            return Settled.STALE
        self._apply(site, task, outcome.result)
        return Settled.LATE

    def _apply(self, site: Site, task: Task, result: Result) -> None:
        if task.kind is TaskKind.ROBOTS:
            return self._apply_robots(site, task, result)
        url = self.urls[task.url]
        url.attempts += 1
        links: tuple[Discovered, ...] = ()
        match result:
            case Fetched():
                url.state = "gone" if result.status == 404 else "completed"
                links = result.links
                site.well()
            case Redirected():
                url.state = "completed"
                links = (result.target,)
                site.well()
            case Failed():
                self._fail(site, url, result.kind)
        for link in links:
            self._admitted(link.url, Via.LINK)
        return None

    def _fail(self, site: Site, url: Url, kind: FailureKind) -> None:
        now = self.clock.now()
        attempts, blames, end = TABLE[kind]
        if blames:
            site.blame(kind, now)
        if url.attempts >= attempts:
            url.state = end
        else:
            url.state = "failed"
            url.due = now + BACKOFF[min(url.attempts, 3) - 1]

    def _apply_robots(self, site: Site, task: Task, result: Result) -> None:
        now = self.clock.now()
        concerned = self.sites[task.behalf] if task.behalf else site
        if task.behalf:
            self.errands.remove((host_of(task.url), str(task.behalf)))
        concerned.elsewhere = False
        match result:
            case RobotsRead():
                site.well()
                self._learned(concerned, result.body)
            case Redirected() if task.hops >= 5:
                self._learned(concerned, b"")
            case Redirected():
                site.well()
                concerned.elsewhere = True
                asker = next(host for host, other in self.sites.items() if other is concerned)
                self.errands.append((host_of(result.target.url), asker))
            case Failed():
                blames = TABLE[result.kind][1]
                if blames:
                    site.blame(result.kind, now)
                if concerned is not site or not blames:
                    concerned.blame(result.kind, now)

    def _learned(self, site: Site, body: bytes) -> None:
        site.body = body
        site.crawl_delay = 7.0 if body == SLOW.body else 0.0
        site.robots_until = self.clock.now() + 86_400

    # -- time and the operator

    @rule(wait=waits)
    def wait(self, wait: float) -> None:
        self.clock.advance(wait)

    @rule()
    def promote(self) -> None:
        now = self.clock.now()
        self.driver.promote()
        for url, known in self.urls.items():
            if known.state == "failed" and known.due <= now:
                known.state = "queued"
            elif known.state == "denied" and not self.sites[host_of(url)].denies(url):
                known.state = self.driver.explain(url).state
                assert known.state in ("queued", "denied")

    @rule()
    def requeue(self) -> None:
        dead = [url for url, known in self.urls.items() if known.state == "dead_letter"]
        assert self.driver.requeue() == len(dead)
        for url in dead:
            self.urls[url] = Url()
            site = self.sites[host_of(url)]
            site.failures, site.not_before = 0, 0.0

    @rule(host=st.sampled_from(HOSTS), delay=st.sampled_from([None, 0.25, 20.0]), blocked=st.booleans())
    def set_policy(self, host: str, delay: float | None, blocked: bool) -> None:
        policy = HostPolicy(delay=delay, blocked=blocked)
        self.driver.set_policy(host, policy)
        self.sites[host].policy = policy

    # -- accidents

    @rule()
    def crash(self) -> None:
        self.driver.reopen()
        for site in self.sites.values():
            if site.lease is not None:
                self._ended(site, self.clock.now())

    @rule(call=st.sampled_from(["admit", "lease", "settle", "release", "promote", "reap", "requeue"]))
    def lose_a_write(self, call: str) -> None:
        """A write fails as a full disk makes it fail: the call raises, and nothing has changed."""
        driver, live = self.driver, self._live()
        results = {TaskKind.PAGE: OK, TaskKind.ROBOTS: DENYING}
        outcomes = [driver.outcome(le, results[task.kind], task) for le in live for task in le.tasks]
        calls: dict[str, Callable[[], object]] = {
            "admit": lambda: driver.admit(*(found(url, Via.SEED) for url in URLS[::2])),
            "lease": driver.lease,
            "settle": lambda: driver.settle(*outcomes, marks=[SegmentMark("s", 0, 0)]),
            "release": lambda: driver.release(*live),
            "promote": driver.promote,
            "reap": driver.reap,
            "requeue": driver.requeue,
        }
        store = driver.frontier._store
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "write", _fail)
            with contextlib.suppress(StoreFailed):  # not raised when there was nothing to write
                calls[call]()
        audit(driver.frontier)

    # -- what always holds

    @invariant()
    def every_url_is_where_the_model_has_it(self) -> None:
        for url, known in self.urls.items():
            assert self.driver.explain(url).state == known.state, url

    @invariant()
    def the_totals_are_those_of_the_model(self) -> None:
        stats = self.driver.stats()
        states = [known.state for known in self.urls.values()]
        assert {name: n for name, n in stats.urls.items() if n} == {s: states.count(s) for s in set(states)}
        assert stats.hosts["active"] == len(self._live())

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
            if self.driver.run(self.driver.frontier.horizon()).next_at is None and not self._live():
                break
        assert {known.state for known in self.urls.values()} <= {"completed", "gone", "denied", "refused"}

    def _answer(self, leases: list[HostLease]) -> None:
        kind = {TaskKind.PAGE: OK, TaskKind.ROBOTS: NO_RULES}
        self._settle([self.driver.outcome(le, kind[task.kind], task) for le in leases for task in le.tasks])
        self.every_url_is_where_the_model_has_it()


def _fail(batch: Batch) -> None:
    raise StoreFailed("the test broke this write")


def _open(folder: Path, settings: Settings, clock: Clock) -> RocksFrontier:
    return RocksFrontier(folder, settings, clock)


FrontierMachine.TestCase.settings = profile(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestFrontierMachine = FrontierMachine.TestCase
