"""A crawl that was kept fresh for some days, in simulated time up to now, with its history: to be looked at.

Three hosts whose pages change often, weekly and never; the frontier and the history are the shipped ones.
"""

from __future__ import annotations

import random
from pathlib import Path

from skitter.model import Fetched, HostLease, NotModified, Result, Task, TaskKind
from skitter.service.metrics.history import History
from skitter.service.metrics.watch import Watch
from skitter.settings import PolitenessSettings, RevisitSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock
from tests.frontier_kit import NO_RULES, Driver, discovered, seed
from tests.frontier_stores import RocksDisk

DAY = 86_400.0
TICK = 200.0
RATES = {"news": 2.0, "shop": 1 / 7, "archive": 0.0}
PAGES = 30
_TOML = """\
[keys]
rules = 2
[revisit]
keep_fresh = true
per_second = 0.002
audit = 0.05
[politeness]
address_rate = 0
[traps]
mode = "off"
"""
_SETTINGS = Settings(
    revisit=RevisitSettings(keep_fresh=True, per_second=0.002, audit=0.05),
    politeness=PolitenessSettings(address_rate=0.0),
    traps=TrapSettings(mode="off"),
)


class _Web:
    """Every page changes at random times."""

    def __init__(self, began: float, days: float) -> None:
        self._randomly = random.Random(3)
        self._began, self._days = began, days
        self._changes: dict[str, list[float]] = {}

    def answer(self, task: Task, now: float) -> Result:
        if task.kind is TaskKind.ROBOTS:
            return NO_RULES
        version = sum(at <= now for at in self._times(task.url))
        digest = f"{task.url} {version}".encode()[-32:].rjust(32)
        if task.digest == digest:
            return NotModified()
        return Fetched(status=200, content_type="text/html", size=10, digest=digest, etag='"e"')

    def _times(self, url: str) -> list[float]:
        if url not in self._changes:
            rate, at = RATES[url.split("/")[2].partition(".")[0]], self._began
            times = self._changes[url] = []
            while rate and at < self._began + self._days * DAY:
                at += self._randomly.expovariate(rate) * DAY
                times.append(at)
        return self._changes[url]


def kept_fresh(folder: Path, now: float, days: float = 2.0) -> None:
    """Makes the folder of a crawl that was kept fresh for so long, up to `now`."""
    folder.mkdir(parents=True)
    (folder / "crawl.toml").write_text(_TOML)
    driver = Driver(
        RocksDisk(folder / "frontier"), _SETTINGS, audited=False, clock=FakeClock(now - days * DAY)
    )
    web, watch = _Web(now - days * DAY, days), Watch()
    driver.frontier.attend(watch)
    history = History(folder / "history", driver.clock.now())
    for name in RATES:
        deep = (
            discovered(f"http://{name}.test/{number}", depth=3, priority=20 + number)
            for number in range(1, PAGES)
        )
        driver.admit(seed(f"http://{name}.test/"), *deep)
    while driver.clock.now() < now - TICK:
        driver.promote()
        for lease in driver.lease():
            _serve(driver, web, lease)
        if driver.clock.now() % (6 * TICK) < TICK:
            watch.freshness.last = driver.ask(driver.frontier.freshness())
        # sampled as often as a running service does at the least
        history.sample(driver.stats(), watch, driver.clock.now())
        driver.clock.advance(TICK)
    history.close()
    driver.close()


def _serve(driver: Driver, web: _Web, lease: HostLease) -> None:
    """One task after the other, a delay apart."""
    driver.clock.advance(max(0.0, lease.not_before - driver.clock.now()))
    for task in lease.tasks:
        driver.settle(driver.outcome(lease, web.answer(task, driver.clock.now()), task))
        driver.clock.advance(lease.delay)
