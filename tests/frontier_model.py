"""The model of the frontier's state machine: hosts and URLs as an attentive reader of the contract sees them.

Shares no code with the frontier. What the web may answer is drawn here as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from skitter.clock import Clock
from skitter.frontier.base import Settled
from skitter.frontier.link_batches import pack, unpack
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    HostPolicy,
    NotModified,
    Outcome,
    Redirected,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Via,
)
from skitter.settings import (
    CrawlSettings,
    FrontierSettings,
    PolitenessSettings,
    RetrySettings,
    Settings,
)
from tests.frontier_kit import NO_RULES, OK, discovered, failed, redirected, robots

HOSTS = ("http://a.test", "http://b.test", "http://c.test")
PATHS = {"/1": 90, "/2": 60, "/3": 30, "/4": 10, "/5": 10, "/private/6": 60}
URLS = [host + path for host in HOSTS for path in PATHS]
DENYING = robots("Disallow: /private/")
SLOW = robots("Crawl-delay: 7")
TAGGED = RobotsRead(status=200, body=DENYING.body, etag='"r"')
ADDRESSES = {HOSTS[0]: "93.184.216.34", HOSTS[1]: "93.184.216.34", HOSTS[2]: "93.184.216.35"}
BACKOFF = (60.0, 3600.0, 21600.0)
ATTEMPTS = 3
GOOD: dict[TaskKind, Result] = {TaskKind.PAGE: OK, TaskKind.ROBOTS: NO_RULES}
# kind -> attempts, whether the host is blamed, the state after the last attempt
TABLE = {
    FailureKind.DNS_NOT_FOUND: (2, True, "dead_letter"),
    FailureKind.CONNECT_REFUSED: (ATTEMPTS, True, "dead_letter"),
    FailureKind.THROTTLED: (ATTEMPTS, True, "dead_letter"),
    FailureKind.PROTOCOL: (2, False, "dead_letter"),
    FailureKind.HEADERS_TOO_LARGE: (1, False, "dead_letter"),
    FailureKind.ENDLESS_REDIRECT: (1, False, "dead_letter"),
    FailureKind.TYPE_UNWANTED: (1, False, "refused"),
}
# where the waits are not those of the setting
WAITS = {FailureKind.DNS_NOT_FOUND: (3600.0,)}
# kinds with less patience than the others: waits of an hour after two in a row, the third is the last
IMPATIENT = (FailureKind.DNS_NOT_FOUND, FailureKind.ADDRESS_REFUSED)
# one entry each of the bounded caches, so that every step also misses them
SETTINGS = Settings(
    crawl=CrawlSettings(scope="any"),
    politeness=PolitenessSettings(address_rate=1.0),
    retry=RetrySettings(attempts=ATTEMPTS, backoff=BACKOFF, quarantine_after=4, quarantines=1),
    frontier=FrontierSettings(tasks_per_lease=3, cached_hosts=1, recent_keys=2),
)


class Rules(NamedTuple):
    """The settings that change in the course of a crawl. Every link is of depth 1."""

    exclude: tuple[str, ...] = ()
    max_depth: int = 5

    def settings(self) -> Settings:
        crawl = CrawlSettings(scope="any", exclude=self.exclude, max_depth=self.max_depth)
        return replace(SETTINGS, crawl=crawl)

    def forbids(self, url: str, via: Via) -> str:
        """The reason; empty when a URL is let in."""
        if via is Via.SEED:
            return ""
        if self.max_depth < 1:
            return "depth"
        return "excluded" if any(part in url for part in self.exclude) else ""

    def gives_back(self, old: Rules) -> set[str]:
        """The reasons for which `old` rules may have refused what these let in."""
        looser = {"depth"} if self.max_depth > old.max_depth else set()
        return looser if set(self.exclude) >= set(old.exclude) else looser | {"excluded"}


def found(url: str, via: Via = Via.LINK) -> Discovered:
    path = next(path for path in PATHS if url.endswith(path))
    return discovered(url, via=via, depth=1, priority=PATHS[path])


def wait_after(kind: FailureKind, failures: int) -> float:
    waits = WAITS.get(kind, BACKOFF)
    return waits[min(failures, len(waits)) - 1]


def host_of(url: str) -> str:
    return next(host for host in HOSTS if url.startswith(host + "/"))


@dataclass
class Url:
    state: str = "queued"
    attempts: int = 0
    due: float = 0.0
    status: int = 0
    body: int = 0
    via: Via = Via.LINK
    reason: str = ""

    def has_final_answer(self) -> bool:
        by_type = self.state == "refused" and self.reason == "type_unwanted"
        return self.state in ("completed", "gone") or by_type

    def refused(self, reason: str) -> None:
        self.state, self.reason = "refused", reason

    def requeued(self) -> None:
        self.state, self.reason = "queued", ""


@dataclass
class Site:
    """A host, as the model sees it."""

    last_start: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    alike: int = 0
    failing_as: FailureKind | None = None
    given_up: FailureKind | None = None
    address: str = ""
    booked: bool = False
    etag: str = ""
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

    def forgiven(self) -> None:
        self.failures = self.alike = 0
        self.failing_as = self.given_up = None

    def well(self) -> None:
        self.forgiven()
        self.answered()

    def answered(self) -> None:
        if self.penalty > 1:
            self.penalty = max(1.0, 1.0 / min(1.0, 1.0 / self.penalty + 0.1))

    def blame(self, kind: FailureKind, now: float) -> None:
        self.failures += 1
        self.alike = self.alike + 1 if self.failing_as is kind else 1
        self.failing_as = kind
        wait = 86_400.0 if self.failures >= 4 else wait_after(kind, self.failures)
        if kind in IMPATIENT and (self.failures >= 4 or self.alike >= 2):
            wait = 3600.0
        if self.failures >= 5 or (kind in IMPATIENT and self.alike >= 3):
            self.given_up = kind
        if kind is FailureKind.THROTTLED:
            self.penalty = min(self.penalty * 2, 64.0)
        self.not_before = max(self.not_before, now + wait)

    def out_of_reach(self) -> bool:
        return self.policy.blocked or self.given_up is not None

    def is_capped(self) -> bool:
        return bool(self.address) and self.policy.delay is None


class Model:
    """What the frontier should hold. `old` are all leases granted; `errands` pairs of asked and asking host."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.urls: dict[str, Url] = {}
        self.sites = {host: Site() for host in HOSTS}
        self.old: list[HostLease] = []
        self.moved: dict[str, str] = {}
        self.errands: list[tuple[str, str]] = []
        self.opened_at = 0.0
        self.rules = Rules()
        # reasons for which refused URLs are to be judged again: of all, and of single hosts
        self.rejudged: set[str] = set()
        self.rejudged_of: set[str] = set()

    def admitted(self, url: str, via: Via) -> bool:
        known = self.urls.get(url)
        if known is not None and not (via is Via.SEED and known.state == "refused"):
            return False
        self.urls[url] = Url(via=via)
        if reason := self.why_refused(url):
            self.urls[url].refused(reason)
        return not reason

    def why_refused(self, url: str) -> str:
        if self.sites[host_of(url)].policy.blocked:
            return "blocked"
        return self.rules.forbids(url, self.urls[url].via)

    def forbids(self, url: str) -> str:
        return self.rules.forbids(url, self.urls[url].via)

    def changed(self, rules: Rules) -> None:
        self.rejudged |= rules.gives_back(self.rules) & self._reasons()
        self.rules = rules

    def unblocked(self, host: str) -> None:
        if "blocked" in self._reasons():
            self.rejudged_of.add(host)

    def _reasons(self) -> set[str]:
        return {known.reason for known in self.urls.values() if known.state == "refused"}

    def judged_again(self) -> None:
        """What promote does with refused URLs whose rule was loosened."""
        for url, known in self.urls.items():
            is_of_host = known.reason == "blocked" and host_of(url) in self.rejudged_of
            if known.state != "refused" or not (is_of_host or known.reason in self.rejudged):
                continue
            if reason := self.why_refused(url):
                known.refused(reason)
            else:
                known.requeued()
        self.rejudged, self.rejudged_of = set(), set()

    def leasable(self) -> tuple[set[str], set[str]]:
        """Hosts that must be leased if there is capacity, and those that may be."""
        now = self.clock.now()
        certain, possible = set(), set()
        for host, site in self.sites.items():
            if site.lease is not None or site.out_of_reach() or site.earliest() > now + 1e-5:
                continue
            queued = [url for url in self._of(host) if self.urls[url].state == "queued"]
            errand = self._errands_to(host)
            if errand or (queued and not site.elsewhere):
                possible.add(host)
            unread = site.robots_until <= now
            allowed = any(unread or not (site.denies(url) or self.forbids(url)) for url in queued)
            sure = errand or (not site.elsewhere and allowed)
            # one whose address is shared may find it busy
            if sure and site.earliest() <= now - 1e-5 and not site.is_capped():
                certain.add(host)
        return certain, possible

    def _of(self, host: str) -> list[str]:
        return [url for url in self.urls if url.startswith(host + "/")]

    def _errands_to(self, host: str) -> list[tuple[str, str]]:
        return [errand for errand in self.errands if errand[0] == host]

    def granted(self, lease: HostLease, duration: float) -> None:
        site = self.sites[lease.host]
        now = self.clock.now()
        assert site.lease is None, "two leases on one host"
        assert lease.delay == pytest.approx(site.delay())
        assert lease.not_before >= max(now, site.earliest()) - 1e-5
        assert lease.deadline == now + duration
        assert all(old.token < lease.token for old in self.old)
        self._check_address(lease, site)
        self._check_tasks(lease, site)
        self.old.append(lease)
        site.lease, site.deadline = lease, lease.deadline
        site.open_keys = {task.key for task in lease.tasks}

    def _check_address(self, lease: HostLease, site: Site) -> None:
        """One request a second: nobody else on this address is leased or was asked less than a second ago. What
        is asked of a host that the operator gave a delay of its own since does not count."""
        site.booked = site.is_capped()
        if not site.booked:
            return
        assert lease.not_before >= self.opened_at + 1.0 - 1e-5
        for other in self.sites.values():
            if other is not site and other.booked and other.address == site.address:
                assert other.lease is None, "two hosts of one address leased"
                assert not other.is_capped() or lease.not_before >= other.last_start + 1.0 - 1e-5

    def _check_tasks(self, lease: HostLease, site: Site) -> None:
        errands = self._errands_to(lease.host)
        kinds = {task.kind for task in lease.tasks}
        if errands:
            assert {(lease.host, str(task.behalf)) for task in lease.tasks} <= set(errands)
        elif site.robots_until <= self.clock.now():
            assert kinds == {TaskKind.ROBOTS}, "a page before its robots.txt"
            assert [task.url for task in lease.tasks] == [lease.host + "/robots.txt"]
            assert lease.tasks[0].etag == site.etag
        else:
            assert kinds == {TaskKind.PAGE}
            for task in lease.tasks:
                assert not site.denies(task.url)
                assert not self.forbids(task.url)
                assert self.urls[task.url].state == "queued"
                assert task.attempt == self.urls[task.url].attempts + 1
                self.urls[task.url].state = "in_progress"

    def ended(self, site: Site, last_start: float) -> None:
        assert site.lease is not None
        for task in site.lease.tasks:
            if task.kind is TaskKind.PAGE and task.key in site.open_keys:
                self.urls[task.url].state = "queued"
        site.last_start = max(site.last_start, last_start)
        site.lease = None
        site.open_keys = set()

    def abandoned(self) -> list[str]:
        """What promote makes of hosts that are out of reach: those that waited for an answer from one of them
        back off, and of those that are given up the queued URLs are to be dead letters."""
        out = {host for host, site in self.sites.items() if site.out_of_reach() and site.lease is None}
        given_up = {host for host in out if self.sites[host].given_up is not None}
        returned = [errand for errand in self.errands if errand[0] in out]
        for asked, asking in returned:
            self.errands.remove((asked, asking))
            self.sites[asking].elsewhere = False
            kind = self.sites[asked].given_up or FailureKind.ADDRESS_REFUSED
            self.sites[asking].blame(kind, self.clock.now())
        return [url for host in given_up for url in self._of(host) if self.urls[url].state == "queued"]

    def has_work_in_vain(self, host: str) -> bool:
        """A host that is given up, and something that is not leased waits for it all the same."""
        site = self.sites[host]
        leased = [t for t in site.lease.tasks if t.behalf and t.key in site.open_keys] if site.lease else []
        waits = len(self._errands_to(host)) > len(leased)
        waits = waits or any(self.urls[url].state == "queued" for url in self._of(host))
        return site.given_up is not None and waits

    def live(self) -> list[HostLease]:
        return [site.lease for site in self.sites.values() if site.lease is not None]

    def expected(self, outcome: Outcome) -> Settled:
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
        site.address = ADDRESSES[task.url[: task.url.index("/", 8)]]
        if task.kind is TaskKind.ROBOTS:
            return self._apply_robots(site, task, result)
        url = self.urls[task.url]
        url.attempts += 1
        links: tuple[Discovered, ...] = ()
        match result:
            case Fetched():
                url.state = "gone" if result.status == 404 else "completed"
                url.status = url.body = result.status
                links = tuple(unpack(result.link_batches))
                site.well()
            case NotModified():
                url.state = "gone" if url.body == 404 else "completed"
                url.status = url.body or 304
                site.well()
            case Redirected() if self._leads_back(task.url, result.target.url):
                self._fail(site, url, FailureKind.ENDLESS_REDIRECT)
            case Redirected():
                url.state = "completed"
                url.status = result.status
                self.moved[task.url] = result.target.url
                links = (result.target,)
                site.well()
            case Failed():
                self._fail(site, url, result.kind)
        for link in links:
            self.admitted(link.url, Via.LINK)
        return None

    def _leads_back(self, url: str, target: str) -> bool:
        passed = {target}
        while target != url and self._is_moved(target) and self.moved[target] not in passed:
            target = self.moved[target]
            passed.add(target)
        return target == url

    def _is_moved(self, url: str) -> bool:
        """By its last answer: one that is looked at again may say something else."""
        known = self.urls.get(url)
        return known is not None and (known.state, known.status) == ("completed", 302)

    def _fail(self, site: Site, url: Url, kind: FailureKind) -> None:
        now = self.clock.now()
        attempts, blames, end = TABLE[kind]
        if blames:
            site.blame(kind, now)
        url.status = 0
        if url.attempts >= attempts:
            url.state = end
            url.reason = kind if end == "refused" else ""
        else:
            url.state = "failed"
            url.due = now + wait_after(kind, url.attempts)

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
                concerned.etag = "" if task.behalf else result.etag
            case NotModified() if concerned is site and site.etag and not task.behalf:
                site.well()
                site.robots_until = now + 86_400
            case NotModified():
                concerned.blame(FailureKind.PROTOCOL, now)
            case Redirected() if task.hops >= 5:
                self._learned(concerned, b"")
            case Redirected():
                site.answered()
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
        site.etag = ""
        site.forgiven()
        site.crawl_delay = 7.0 if body == SLOW.body else 0.0
        site.robots_until = self.clock.now() + 86_400


page_results: st.SearchStrategy[Result] = st.one_of(
    st.builds(
        lambda urls, simhash: Fetched(
            status=200, size=3, link_batches=pack(found(url) for url in urls), simhash=simhash
        ),
        st.lists(st.sampled_from(URLS), max_size=3),
        # some of these are near each other, some only near one that is
        st.sampled_from([None, 0, 0b1, 0b111, 0b1111, 0b11111, 1 << 40, (1 << 64) - 1]),
    ),
    st.sampled_from([Fetched(status=404, size=1), NotModified()]),
    st.sampled_from(URLS).map(lambda url: redirected(url, status=302)),
    st.sampled_from(sorted(TABLE)).map(failed),
)
robots_results: st.SearchStrategy[Result] = st.one_of(
    st.sampled_from([RobotsRead(status=404), DENYING, SLOW, TAGGED]),
    st.sampled_from([RobotsRead(status=404), TAGGED, NotModified()]),
    st.sampled_from(HOSTS).map(lambda host: redirected(host + "/moved.txt")),
    st.sampled_from([FailureKind.CONNECT_REFUSED, FailureKind.PROTOCOL, FailureKind.THROTTLED]).map(failed),
    st.just(failed(FailureKind.DNS_NOT_FOUND)),
)
rules = st.sampled_from([Rules(), Rules(exclude=("/2",)), Rules(exclude=("/2", "/3")), Rules(max_depth=0)])
waits = st.sampled_from([0.5, 0.5, 1.0, 1.0, 7.0, 30.0, 61.0, 61.0, 3600.0, 90_000.0])
