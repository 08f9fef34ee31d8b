"""A month of a crawl that is kept fresh, in simulated time: a real frontier, a polite worker, a web that changes.

    python -m tests.simulated_month --hosts 160      # 4,000 pages, and what is reported is compared every hour
    python -m tests.simulated_month --hosts 60 --seed 6

The process dies twenty times, at arbitrary places. Important pages are promised to be at most so old. The web's
own log is the judge: when each page changed, and when it was asked for. `integration/test_simulated_month.py` has
the promises; with few pages the truth itself is too small a sample to compare hours with.

The report must be right at every hour, from the first on: within three points of the truth, or within the band
that it gives itself where that is wider.
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
# Standard errors that a band is wide, to each side.
BAND = 3.0


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

    def __init__(self, began: float, hosts: int, seed: int = 5) -> None:
        self.randomly = random.Random(seed)
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
    """`reported` has what the frontier says of its freshness and the truth, every so many seconds from the first
    report on; `bands` has how far off each may be by its own words."""

    def __init__(
        self, driver: Driver, hosts: int, every: float = 6 * HOUR, first: float = DAY, seed: int = 5
    ) -> None:
        self.driver = driver
        self.began = driver.clock.now()
        self.web = ChangingWeb(self.began, hosts, seed)
        self._every, self._first = every, first
        self.bands: list[float] = []
        self.starts: dict[str, list[float]] = {}
        self.reported: list[tuple[float, float]] = []
        self.unsettled: Counter[str] = Counter()
        self.stats: Stats
        self.freshness: Freshness

    def run(self) -> None:
        driver, randomly = self.driver, random.Random(11)
        driver.admit(*(seed(url) for url in self.web.urls))
        kills = sorted(self.began + randomly.random() * 30 * DAY for _ in range(KILLS))
        next_report = self.began + self._first
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
        said = self.driver.ask(self.driver.frontier.freshness())
        assert said.expected_plain is not None
        assert said.error_plain is not None
        self.reported.append((said.expected_plain, truth))
        self.bands.append(BAND * said.error_plain)


def judged(month: Month) -> dict[str, float]:
    """How far the report of each hour was off, and whether it said so."""
    errors = [said - truth for said, truth in month.reported]
    later = slice(24, None)
    beyond = [abs(error) > max(0.03, band) for error, band in zip(errors, month.bands, strict=True)]
    return {
        "hours": len(errors),
        "truth": sum(truth for _, truth in month.reported[later]) / len(errors[later]),
        "mean_error": sum(errors[later]) / len(errors[later]),
        "largest_error": max(map(abs, errors[later])),
        "largest_error_of_first_day": max(map(abs, errors[:24])),
        "hours_beyond_3_points": sum(abs(error) > 0.03 for error in errors[later]),
        "hours_beyond_3_points_of_first_day": sum(abs(error) > 0.03 for error in errors[:24]),
        "hours_beyond_band": sum(beyond),
        "widest_band": max(month.bands[later]),
        "last_band": month.bands[-1],
        "widest_band_of_first_day": max(month.bands[:24]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulated_month")
    parser.add_argument("--hosts", type=int, default=160, help="of 25 pages each")
    parser.add_argument("--hours", action="store_true", help="say what was reported at each")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    pages = options.hosts * PAGES
    with tempfile.TemporaryDirectory() as place:
        driver = Driver(MemoryDisk(Path(place) / "frontier"), settings(pages), audited=False)
        month = Month(driver, options.hosts, every=HOUR, first=HOUR, seed=options.seed)
        month.run()
        driver.close()
    told = {
        "pages": pages,
        **judged(month),
        "audited": month.freshness.audited,
        "audit_error": month.freshness.audit_error,
        "violations": month.stats.politeness.violations,
    }
    if options.hours:
        for hour, ((said, truth), band) in enumerate(zip(month.reported, month.bands, strict=True), 1):
            print(f"hour {hour}: {said:.1%} give or take {band:.1%}; in truth {truth:.1%}")
    print(json.dumps(told))
    return int(told["hours_beyond_band"] > 0)


if __name__ == "__main__":
    sys.exit(main())
