"""The past: what was counted is told by time, from two bounded files that outlive the process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from skitter.model import FailureKind, RecordAt
from skitter.service.metrics.history import COARSE, FINE, MOST_POINTS, SLOTS, History, Past, _quantile
from skitter.service.metrics.watch import Watch
from skitter.settings import Settings
from skitter.telemetry import LATENCY_BOUNDS, STANDINGS, TIERS
from tests.frontier_kit import OK, Driver, discovered, failed
from tests.frontier_stores import RocksDisk
from tests.service_kit import running_service


class Recorder:
    """A crawl by hand with its watch and its history."""

    def __init__(self, driver: Driver, folder: Path) -> None:
        self.driver = driver
        self.folder = folder
        self.begin()

    def begin(self) -> None:
        self.watch = Watch()
        self.driver.frontier.attend(self.watch)
        self.history = History(self.folder, self.now)
        self.sample()

    @property
    def now(self) -> float:
        return self.driver.clock.now()

    def sample(self) -> None:
        self.history.sample(self.driver.stats(), self.watch, self.now)

    def pass_time(self, seconds: float) -> None:
        self.driver.clock.advance(seconds)
        self.sample()

    def past(self, first: float | None = None, last: float | None = None, step: int | None = None) -> Past:
        return self.history.past(first, last, step, self.now)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    driver = Driver(RocksDisk(tmp_path / "frontier"), Settings(), audited=False)
    driver.open_host("http://a.example/0", "http://b.example/0")
    driver.clock.advance(FINE - driver.clock.now() % FINE)
    yield Recorder(driver, tmp_path / "history")
    driver.close()


def fetch(recorder: Recorder, pages: int, took: float = 0.2) -> None:
    """Pages of one host, in the same instant; the other host fails."""
    driver = recorder.driver
    driver.admit(*(discovered(f"http://a.example/{recorder.now}/{number}") for number in range(pages)))
    page = replace(OK, record=RecordAt("s", 0, 100))
    left = pages
    for _ in range(pages):
        for lease in driver.lease():
            if lease.host == "http://a.example":
                driver.settle(*(driver.outcome(lease, page, task, took=took) for task in lease.tasks[:left]))
                driver.release(lease)
                left -= len(lease.tasks[:left])
            else:
                driver.answer(lease, failed(FailureKind.STALLED))
        driver.clock.advance(1)
        if not left:
            return


def test_a_step_tells_what_came_in_it(recorder: Recorder) -> None:
    began = recorder.now
    fetch(recorder, 4)
    recorder.pass_time(FINE - recorder.now % FINE)
    recorder.pass_time(FINE)
    told = recorder.past()
    assert told.step == FINE
    assert told.at == [began, began + FINE]
    assert told.pages_per_second == [0.4, 0.0]
    assert told.requests_per_second == [0.5, 0.0]
    assert told.bytes_per_second == [4.0, 0.0]
    assert told.errors == {"stalled": [1, 0]}
    assert told.statuses["2xx"] == [4, 0]
    assert told.workers == [1, 1]
    assert told.violations == [0, 0]
    assert told.waiting_retry == [1, 1]
    assert sum(counts[-1] for counts in told.hosts.values()) == 2
    assert set(told.queued) == set(TIERS)
    assert set(told.hosts) == set(STANDINGS)
    (first, none) = told.latency["p50"]
    assert first is not None
    assert 0.1 <= first <= 0.25
    assert none is None


def test_wider_steps_sum_counts_and_average_rates(recorder: Recorder) -> None:
    recorder.driver.clock.advance(60 - recorder.now % 60)
    recorder.sample()
    for _ in range(6):
        fetch(recorder, 1)
        recorder.pass_time(FINE - recorder.now % FINE)
    told = recorder.past(recorder.now - 60, recorder.now, step=60)
    assert told.step == 60
    assert told.pages_per_second == [0.1]
    assert told.statuses["2xx"] == [6]


def test_a_restart_goes_on_in_the_same_step_and_counts_nothing_twice(recorder: Recorder) -> None:
    fetch(recorder, 2)
    recorder.pass_time(1)
    recorder.history.close()
    recorder.begin()
    fetch(recorder, 3)
    recorder.pass_time(FINE - recorder.now % FINE)
    told = recorder.past()
    assert sum(told.statuses["2xx"]) == 5
    assert recorder.past(step=COARSE).statuses["2xx"] == [5]


def test_the_time_without_a_service_is_left_out(recorder: Recorder) -> None:
    recorder.pass_time(FINE)
    recorder.history.close()
    recorder.driver.clock.advance(10 * FINE)
    recorder.begin()
    recorder.pass_time(FINE)
    first, second = recorder.past().at
    assert second - first == 11 * FINE


def test_the_files_are_as_large_as_at_first_and_keep_the_last_round(recorder: Recorder) -> None:
    """60 rows each instead of 8,640: ten minutes in fine steps, five hours in coarse ones."""
    recorder.history.close()
    recorder.history = History(recorder.folder, recorder.now, slots=60)
    sizes = [path.stat().st_size for path in sorted(recorder.folder.iterdir())]
    for _ in range(150):
        recorder.pass_time(2 * FINE)
    for _ in range(100):
        recorder.pass_time(COARSE - 1)
    for _ in range(90):
        recorder.pass_time(FINE)
    fine, coarse = recorder.past(recorder.now - 600, step=FINE), recorder.past(0)
    assert (len(fine.at), fine.at[-1] - fine.at[0]) == (60, 590)
    assert (len(coarse.at), coarse.at[-1] - coarse.at[0]) == (60, 59 * COARSE)
    assert [path.stat().st_size for path in sorted(recorder.folder.iterdir())] == sizes


def test_a_day_and_a_month_take_a_few_megabytes(recorder: Recorder) -> None:
    assert (FINE * SLOTS, COARSE * SLOTS) == (86_400, 30 * 86_400)
    assert all(path.stat().st_size < 6_000_000 for path in recorder.folder.iterdir())
    assert len(recorder.past(0).at) <= MOST_POINTS


@pytest.mark.parametrize(
    ("first", "last", "step"),
    [(0, 0, None), (None, 0, 1), (5e9, None, None), (0, 3e10, 2_592_000), (2e9, 1e9, 7), (None, None, 11)],
)
def test_any_range_has_an_answer(
    recorder: Recorder, first: float | None, last: float | None, step: int | None
) -> None:
    recorder.pass_time(FINE)
    told = recorder.past(first, last, step)
    assert told.step >= FINE
    assert len(told.at) == len(told.workers) == len(told.pages_per_second) == len(told.latency["p99"])


def test_quantiles_lie_in_their_buckets() -> None:
    counts = np.zeros((3, len(LATENCY_BOUNDS) + 1))
    counts[0, 3] = 10  # 50 to 100 ms
    counts[1, 0], counts[1, -1] = 50, 50
    assert _quantile(counts, 0.5) == [0.075, 0.01, None]
    assert _quantile(counts, 0.99) == [0.0995, LATENCY_BOUNDS[-1], None]


def test_the_service_tells_its_past_over_http(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        history = service.context.watch.history
        assert history is not None

        async def sample(later: float) -> None:
            assert history is not None
            stats = await service.context.frontier.stats()
            history.sample(stats, service.context.watch, service.context.clock.now() + later)
            await asyncio.sleep(0)

        service.do(sample(0.5))
        soon = service.context.clock.now() + 60  # the sample may lie in the next ten seconds
        told = service.get(f"/v1/history?step=10&from={soon - 120}&to={soon}").json
        assert len(told["at"]) == 1
        assert told["pages_per_second"] == [0.0]
        assert service.get("/v1/history?from=0&to=1e9&step=300").json["at"] == []
        for wrong in ("from=nan", "from=inf", "to=-1", "step=0", "step=ten", "since=1", "from=1&from=2"):
            assert service.get(f"/v1/history?{wrong}").problem == "invalid", wrong
    assert sorted(path.name for path in (tmp_path / "history").iterdir()) == ["day", "month"]


def test_a_service_without_a_place_for_its_past_answers_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("in the way")
    with running_service(tmp_path) as service:
        assert service.get("/v1/stats").status == 200
        answer = service.get("/v1/history")
        assert (answer.status, answer.problem) == (503, "unavailable")
