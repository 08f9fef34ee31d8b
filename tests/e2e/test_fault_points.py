"""A crawl that dies at any named moment around its commits and appends, and is run again, ends as an undisturbed
one would: by the web's request log, the frontier's ledger and the archive."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

import pytest
from bench._crawls import start, web_crawl, write_quick_settings
from bench._verdict import verdict

from skitter.faultpoints import ENVIRONMENT, Point
from skitter.testing.features import FEATURE_SHARES, ROBOTS_SHARES, Feature, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

DELAY = 0.05
DEADLINE = 60.0
COUNTS = (1, 2, 15)
# Reached once a segment or part only, of which there are few.
RARE = frozenset((Point.BETWEEN_PARTS, Point.BEFORE_FINISH))
# Reached with an object store only: test_object_storage.py.
ELSEWHERE = frozenset((Point.BETWEEN_OBJECTS, Point.BEFORE_STORED, Point.BEFORE_REMOVAL))
# Reached by a worker in another process.
OF_WORKERS = (Point.BEFORE_DELIVERY, Point.AFTER_DELIVERY)
# Without what only takes time: pages that fail five times, hosts that never yield their robots.txt.
PLAN = WebPlan(
    hosts=10,
    pages=4,
    crawl_delay=0.1,
    flaky_failures=1,
    features={feature: share for feature, share in FEATURE_SHARES.items() if feature is not Feature.BROKEN},
    robots={kind: share for kind, share in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE},
)


class Trial:
    """One web and one folder. Segments are small, so that several are finished on the way."""

    def __init__(self, folder: Path, web: SyntheticWeb, *more: str) -> None:
        self._web = web
        self._more = more
        self._folder = folder
        self._deaths: list[float] = []
        write_quick_settings(folder / "quick.toml", delay=DELAY, segment_size=30_000)

    def dies_at(self, point: Point, count: int) -> None:
        assert self._run({ENVIRONMENT: f"{point}:{count}"}) == -signal.SIGKILL
        self._deaths.append(time.time())

    def completes(self, environ: Mapping[str, str] = MappingProxyType({})) -> None:
        assert self._run(environ) == 0
        self._web.stop()
        self._deaths += self.deaths_of_workers()
        crawl, log = self._folder / "crawl", self._folder / "requests.jsonl"
        # every death is known: what is asked again before one is a fault
        result = verdict(crawl, log, PLAN, DELAY, self._deaths, starved=())
        assert result.faults == {}
        assert len(list((crawl / "archive").glob("*.warc.gz"))) > 2

    def deaths_of_workers(self) -> list[float]:
        log = (self._folder / "crawl" / "skitter.log").read_text()
        told = [json.loads(line) for line in log.splitlines() if '"worker_ended"' in line]
        return [datetime.fromisoformat(event["time"]).timestamp() for event in told]

    def _run(self, environ: Mapping[str, str]) -> int:
        command = web_crawl(self._web, self._folder / "crawl", self._folder / "quick.toml", *self._more)
        with (self._folder / "output").open("ab") as output, start(command, output, environ) as child:
            try:
                return child.wait(DEADLINE)
            finally:
                child.kill()


@pytest.mark.parametrize("point", [point for point in Point if point not in (*ELSEWHERE, *OF_WORKERS)])
def test_deaths_at_any_point_cost_nothing_but_effort(tmp_path: Path, point: Point) -> None:
    """The first time it is reached, the second, and one when the crawl is well under way."""
    with SyntheticWeb(PLAN, log=tmp_path / "requests.jsonl", latency=(0.0, 0.02)) as web:
        trial = Trial(tmp_path, web)
        for count in COUNTS[:2] if point in RARE else COUNTS:
            trial.dies_at(point, count)
        trial.completes()


@pytest.mark.parametrize(
    ("of_the_committer", "of_workers"),
    [(Point.BEFORE_SETTLE, Point.BEFORE_DELIVERY), (Point.AFTER_SETTLE, Point.AFTER_DELIVERY)],
)
def test_deaths_of_a_desk_and_of_its_workers_cost_nothing_but_effort(
    tmp_path: Path, of_the_committer: Point, of_workers: Point
) -> None:
    """The committer takes its workers along; workers, each of which dies in the run after that, are replaced."""
    with SyntheticWeb(PLAN, log=tmp_path / "requests.jsonl", latency=(0.0, 0.02)) as web:
        trial = Trial(tmp_path, web, "--workers", "2")
        trial.dies_at(of_the_committer, 2)
        trial.completes({ENVIRONMENT: f"{of_workers}:8"})
        assert trial.deaths_of_workers()
