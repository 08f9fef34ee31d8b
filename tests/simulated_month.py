"""A month of a crawl that is kept fresh, in simulated time: a real frontier, a polite worker, a web that changes.

    python -m tests.simulated_month --hosts 160      # 4,000 pages, and what is reported is compared every hour

The process dies twenty times, at arbitrary places. Important pages are promised to be at most so old. The web's
own log is the judge: when each page changed, and when it was asked for. `integration/test_simulated_month.py` has
the promises; with few pages the truth itself is too small a sample to compare hours with.
"""

from __future__ import annotations

import argparse
import bisect
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from skitter.frontier.base import Freshness, Stats
from skitter.model import Fetched, HostLease, NotModified, Outcome, Result, Task, TaskKind
from skitter.settings import PolitenessSettings, RevisitSettings, Settings, TrapSettings
from tests.frontier_kit import NO_RULES, Driver, seed
from tests.frontier_stores import MemoryDisk

HOUR, DAY = 3600.0, 86_400.0
KILLS = 20
PAGES, TICK = 25, 120.0
PROMISE = 6 * HOUR


def settings(pages: int) -> Settings:
    """A visit a page and day."""
    return Settings(
        revisit=RevisitSettings(
            keep_fresh=True,
            per_second=pages / DAY,
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

    def __init__(self, began: float, hosts: int) -> None:
        self.randomly = random.Random(5)
        self.urls = [
            f"http://h{host}.test/{self.RATES[min(number, 23) // 8 + 1 if number else 0][0]}/{number}"
            for host in range(hosts)
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
        return bisect.bisect_right(self.changes[url], now)

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
    """`reported` has what the frontier says of its freshness and the truth, every so many seconds from the second
    day on."""

    def __init__(self, driver: Driver, hosts: int, every: float = 6 * HOUR) -> None:
        self.driver = driver
        self.began = driver.clock.now()
        self.web = ChangingWeb(self.began, hosts)
        self._every = every
        self.starts: dict[str, list[float]] = {}
        self.reported: list[tuple[float, float]] = []
        self.unsettled: Counter[str] = Counter()
        self.stats: Stats
        self.freshness: Freshness

    def run(self) -> None:
        driver, randomly = self.driver, random.Random(11)
        driver.admit(*(seed(url) for url in self.web.urls))
        kills = sorted(self.began + randomly.random() * 30 * DAY for _ in range(KILLS))
        next_report = self.began + DAY
        while driver.clock.now() < self.began + 30 * DAY:
            driver.promote()
            driver.reap()
            for lease in driver.lease(duration=HOUR):
                killed = bool(kills) and kills[0] <= driver.clock.now()
                self._serve(lease, randomly.randrange(len(lease.tasks) + 1) if killed else None)
                if killed:
                    kills.pop(0)
                    driver.reopen()
                    break
            if driver.clock.now() >= next_report:
                self._compare()
                next_report += self._every
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulated_month")
    parser.add_argument("--hosts", type=int, default=160, help="of 25 pages each")
    hosts = parser.parse_args().hosts
    with tempfile.TemporaryDirectory() as place:
        driver = Driver(MemoryDisk(Path(place) / "frontier"), settings(hosts * PAGES), audited=False)
        month = Month(driver, hosts, every=HOUR)
        month.run()
        driver.close()
    errors = [said - truth for said, truth in month.reported]
    told = {
        "pages": hosts * PAGES,
        "hours": len(errors),
        "truth": sum(truth for _, truth in month.reported) / len(errors),
        "mean_error": sum(errors) / len(errors),
        "largest_error": max(map(abs, errors)),
        "hours_beyond_3_points": sum(abs(error) > 0.03 for error in errors),
        "audited": month.freshness.audited,
        "audit_error": month.freshness.audit_error,
        "violations": month.stats.politeness.violations,
    }
    print(json.dumps(told))
    return int(told["hours_beyond_3_points"] > 0)


if __name__ == "__main__":
    sys.exit(main())
