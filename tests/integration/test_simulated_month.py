"""A month of a crawl that is kept fresh, in simulated time: a real frontier, a polite worker, a web that changes.

The process dies twenty times, at arbitrary places. Important pages are promised to be at most so old. The web's
own log is the judge: when each page changed, and when it was asked for.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from skitter.frontier.base import Freshness, Stats
from skitter.model import Fetched, HostLease, NotModified, Outcome, Result, Task, TaskKind
from skitter.settings import PolitenessSettings, RevisitSettings, Settings, TrapSettings
from skitter.urls.canonical import host_of
from tests.frontier_kit import NO_RULES, Driver, seed
from tests.frontier_stores import DISKS

HOUR, DAY = 3600.0, 86_400.0
HOSTS, PAGES, KILLS = 6, 25, 20
TICK = 120.0
PROMISE = 6 * HOUR
SETTINGS = Settings(
    revisit=RevisitSettings(
        keep_fresh=True,
        per_second=1.0 * HOSTS * PAGES / DAY,
        fresh_within=("6h /front/",),
        equal_weights=True,
        audit=0.02,
    ),
    politeness=PolitenessSettings(address_rate=0.0),
    traps=TrapSettings(mode="off"),
)


class ChangingWeb:
    """Every page changes at random times, at a rate of its pattern; front pages most of all."""

    RATES = (("front", 2.0), ("often", 1.0), ("weekly", 1 / 7), ("never", 0.0))

    def __init__(self, began: float) -> None:
        self.randomly = random.Random(5)
        self.urls = [
            f"http://h{host}.test/{self.RATES[min(number, 23) // 8 + 1 if number else 0][0]}/{number}"
            for host in range(HOSTS)
            for number in range(PAGES)
        ]
        self.changes = {url: self._changes(dict(self.RATES)[url.split("/")[3]], began) for url in self.urls}
        self.asked: dict[str, list[float]] = {url: [] for url in self.urls}

    def _changes(self, rate: float, began: float) -> list[float]:
        times, at = [], began
        while rate and at < began + 32 * DAY:
            at += self.randomly.expovariate(rate) * DAY
            times.append(at)
        return times

    def version(self, url: str, now: float) -> int:
        return sum(at <= now for at in self.changes[url])

    def answer(self, task: Task, now: float) -> Result:
        if task.kind is TaskKind.ROBOTS:
            return NO_RULES
        self.asked[task.url].append(now)
        digest = f"{task.url} {self.version(task.url, now)}".encode()[-32:].rjust(32)
        if task.digest == digest and task.etag:
            return NotModified()
        return Fetched(status=200, content_type="text/html", size=10, digest=digest, etag='"e"')

    def is_current(self, url: str, now: float) -> bool:
        asked = self.asked[url]
        return bool(asked) and self.version(url, asked[-1]) == self.version(url, now)


class Month:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.began = driver.clock.now()
        self.web = ChangingWeb(self.began)
        self.starts: dict[str, list[float]] = {}
        self.reported: list[tuple[float, float]] = []
        self.unsettled: Counter[str] = Counter()
        self.stats: Stats
        self.freshness: Freshness

    def run(self) -> None:
        driver, randomly = self.driver, random.Random(11)
        driver.admit(*(seed(url) for url in self.web.urls))
        kills = sorted(self.began + randomly.random() * 30 * DAY for _ in range(KILLS))
        next_report = self.began + 5 * DAY
        while driver.clock.now() < self.began + 30 * DAY:
            driver.promote()
            driver.reap()
            for lease in driver.lease():
                killed = bool(kills) and kills[0] <= driver.clock.now()
                self._serve(lease, randomly.randrange(len(lease.tasks) + 1) if killed else None)
                if killed:
                    kills.pop(0)
                    driver.reopen()
                    break
            if driver.clock.now() >= next_report:
                self._compare()
                next_report += 6 * HOUR
            driver.clock.advance(TICK)
        assert not kills
        self.stats = driver.stats()
        self.freshness = driver.ask(driver.frontier.freshness())
        driver.audit()

    def _serve(self, lease: HostLease, dies_before: int | None) -> None:
        """One task after the other, a delay apart; the process may die with some of them unsettled."""
        driver = self.driver
        at = max(lease.not_before, driver.clock.now())
        for number, task in enumerate(lease.tasks):
            driver.clock.advance(max(0.0, at - driver.clock.now()))
            self.starts.setdefault(lease.host, []).append(driver.clock.now())
            result = self.web.answer(task, driver.clock.now())
            if number == dies_before:
                self.unsettled[task.url] += task.kind is TaskKind.PAGE
                return
            now = driver.clock.now()
            driver.settle(
                Outcome(
                    host=lease.host,
                    token=lease.token,
                    kind=task.kind,
                    key=task.key,
                    sent_at=now,
                    ended_at=now,
                    result=result,
                )
            )
            at = now + lease.delay

    def _compare(self) -> None:
        now = self.driver.clock.now()
        truth = sum(self.web.is_current(url, now) for url in self.web.urls) / len(self.web.urls)
        expected = self.driver.ask(self.driver.frontier.freshness()).expected_plain
        assert expected is not None
        self.reported.append((expected, truth))


@pytest.fixture(scope="module", params=DISKS)
def month(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Month]:
    disk = DISKS[request.param](tmp_path_factory.mktemp("month") / "frontier")
    driver = Driver(disk, SETTINGS, audited=False)
    lived = Month(driver)
    lived.run()
    yield lived
    driver.close()


def test_every_change_of_an_important_page_is_seen_within_its_promise(month: Month) -> None:
    for url in month.web.urls:
        if "/front/" not in url:
            continue
        for changed in month.web.changes[url]:
            if changed > month.began + 30 * DAY - PROMISE - HOUR:
                continue
            seen = next(at for at in month.web.asked[url] if at >= changed)
            # the promise, and the time that a due page may wait for its host
            assert seen - changed <= PROMISE + 4 * TICK + 600, url


def test_counts_are_exact_after_a_month_of_kills(month: Month) -> None:
    stats = month.stats
    assert stats.pages == len(month.web.urls)
    assert sum(stats.urls.values()) == len(month.web.urls)
    asked = sum(map(len, month.web.asked.values()))
    assert stats.fetches - stats.robots_fetches == asked - sum(month.unsettled.values())
    revisits = stats.revisits
    assert revisits is not None
    # the first fetch of each page is none, and a check for noise teaches nothing of a page's rate
    assert asked - len(month.web.urls) - sum(month.unsettled.values()) >= revisits.visits
    assert revisits.watched + stats.urls["queued"] == len(month.web.urls)


def test_no_host_is_asked_sooner_than_its_delay(month: Month) -> None:
    assert month.stats.politeness.violations == 0
    for host, starts in month.starts.items():
        assert min(b - a for a, b in itertools.pairwise(starts)) >= 1.0 - 1e-6, host


def test_no_page_is_visited_twice_for_one_date(month: Month) -> None:
    """Two visits of a page are the shortest interval apart, but after a death and for a check for noise."""
    shortest = SETTINGS.revisit.min_age
    close = Counter[str]()
    for url, asked in month.web.asked.items():
        close[url] = sum(
            later - earlier < min(shortest, 60.0) for earlier, later in itertools.pairwise(asked)
        )
    assert all(count <= month.unsettled[url] for url, count in close.items())


def test_what_changes_is_visited_and_what_does_not_is_left_alone(month: Month) -> None:
    visits = {kind: 0 for kind, _ in ChangingWeb.RATES}
    pages = Counter(url.split("/")[3] for url in month.web.urls)
    for url, asked in month.web.asked.items():
        visits[url.split("/")[3]] += len(asked)
    per_page = {kind: visits[kind] / pages[kind] for kind in visits}
    assert per_page["often"] > 2 * per_page["never"]
    assert {host_of(url) for url in month.web.urls} == set(month.starts)


def test_reported_freshness_is_the_truth(month: Month) -> None:
    """At any one time 150 pages are a small sample; over the month the report is within three points."""
    expected = sum(said for said, _ in month.reported) / len(month.reported)
    truth = sum(was for _, was in month.reported) / len(month.reported)
    assert abs(expected - truth) <= 0.03
    assert max(abs(said - was) for said, was in month.reported) <= 0.15
    audited, error = month.freshness.audited, month.freshness.audit_error
    assert audited is not None
    assert error is not None
    assert abs(audited - truth) <= 3 * error + 0.03
