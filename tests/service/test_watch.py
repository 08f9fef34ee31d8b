"""The watch counts what was settled, once, by what it meant; and knows what a power loss would take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from skitter.model import Copy, FailureKind, Fetched, NotModified, RecordAt, Result
from skitter.service.metrics.watch import Watch
from skitter.settings import RetrySettings, Settings
from skitter.telemetry import Metric
from tests.frontier_kit import OK, Driver, failed, redirected
from tests.frontier_stores import RocksDisk

RECORD = RecordAt("segment", 0, 700)
NEW = replace(OK, record=RECORD, copy=Copy("http://a.example/", 1.0, "urn:x"))


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    settings = Settings(retry=RetrySettings(attempts=2, backoff=(1.0,)))
    driver = Driver(RocksDisk(tmp_path / "frontier"), settings, audited=False)
    driver.open_host(*(f"http://{name}.example/" for name in "abcdef"))
    yield driver
    driver.close()


@pytest.fixture
def watch(driver: Driver) -> Watch:
    watch = Watch()
    driver.frontier.attend(watch)
    return watch


def settle(driver: Driver, *results: Result) -> None:
    """One result for each of the hosts that are ready, which have one task each."""
    leases = driver.lease(capacity=len(results))
    assert len(leases) == len(results)
    outcomes = [
        driver.outcome(lease, result, took=0.3) for lease, result in zip(leases, results, strict=True)
    ]
    driver.settle(*outcomes)


def counts(watch: Watch, *metrics: Metric) -> list[int]:
    return [watch.counted.value(metric) for metric in metrics]


def test_a_page_is_new_or_a_duplicate_by_whether_its_body_was_known(driver: Driver, watch: Watch) -> None:
    settle(
        driver, NEW, replace(NEW, copy=None), replace(NEW, copy=None, size=0), replace(NEW, truncated=True)
    )
    assert counts(watch, Metric.PAGES, Metric.DUPLICATES, Metric.TRUNCATED) == [4, 1, 1]
    assert counts(watch, Metric.ARCHIVED_BYTES) == [4 * 700]


def test_an_answer_that_is_no_page_is_not_counted_as_one(driver: Driver, watch: Watch) -> None:
    gone = Fetched(status=404, size=10, record=RECORD)
    settle(driver, gone, redirected("http://a.example/2"), NotModified(), failed())
    assert counts(watch, Metric.PAGES, Metric.REDIRECTS, Metric.UNCHANGED, Metric.ADDED) == [0, 1, 1, 1]
    assert sum(watch.counted.latency.counts) == 3, "a request without an answer has no response time"
    assert watch.counted.latency.sum == pytest.approx(0.9)


def test_a_failure_counts_as_a_retry_only_while_there_is_one(driver: Driver, watch: Watch) -> None:
    for _ in range(2):
        leases = driver.lease()
        (first,) = (lease for lease in leases if lease.host == "http://a.example")
        driver.answer(first, failed(FailureKind.PROTOCOL))
        driver.release(*(lease for lease in leases if lease is not first))
        driver.clock.advance(10)
        driver.promote()
    assert driver.stats().urls["dead_letter"] == 1
    assert watch.counted.labelled(Metric.RETRIES) == {"protocol": 1}
    (told,) = watch.troubles.worst(30, driver.clock.now())
    assert (told.host, told.kinds) == ("http://a.example", {"protocol": 2})


def test_what_is_told_twice_counts_once(driver: Driver, watch: Watch) -> None:
    (lease,) = driver.lease(capacity=1)
    outcome = driver.outcome(lease, NEW)
    for _ in range(3):
        driver.settle(outcome)
    assert counts(watch, Metric.PAGES, Metric.ARCHIVED_BYTES) == [1, 700]


def test_what_is_not_synced_is_told_with_its_age(driver: Driver, watch: Watch) -> None:
    now = driver.clock.now
    assert watch.unsynced(now()) == (0, 0.0)
    settle(driver, NEW)
    driver.clock.advance(3)
    settle(driver, NEW, NEW)
    assert watch.unsynced(now() + 2) == (2100, 5.0)
    driver.run(driver.frontier.sync())
    assert watch.unsynced(now()) == (0, 0.0)


def test_what_comes_while_a_sync_is_under_way_is_not_covered_by_it(driver: Driver, watch: Watch) -> None:
    settle(driver, NEW)
    watch.syncing()
    driver.clock.advance(1)
    settle(driver, NEW)
    assert watch.unsynced(driver.clock.now())[0] == 1400
    watch.synced()
    driver.clock.advance(1)
    assert watch.unsynced(driver.clock.now()) == (700, 1.0)


def test_a_sync_that_fails_leaves_its_part_to_the_next(driver: Driver, watch: Watch) -> None:
    settle(driver, NEW)
    watch.syncing()
    driver.clock.advance(4)
    settle(driver, NEW)
    watch.syncing()
    assert watch.unsynced(driver.clock.now()) == (1400, 4.0)
    watch.synced()
    assert watch.unsynced(driver.clock.now()) == (0, 0.0)


def test_whoever_asks_for_work_is_a_live_worker(driver: Driver, watch: Watch) -> None:
    driver.lease(worker="one", capacity=1)
    driver.lease(worker="two", capacity=1)
    assert watch.roster.live(driver.clock.now()) == 2
