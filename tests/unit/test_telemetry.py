"""Telemetry: what is counted is told, costs next to nothing, and never grows with the crawl."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.log import Log
from skitter.model import FailureKind
from skitter.recent import SlowHosts
from skitter.telemetry import (
    EVENTS,
    METRICS,
    Event,
    FrontierFigures,
    Kind,
    Metric,
    Phase,
    Telemetry,
    status_class,
)


class HandClock:
    def __init__(self) -> None:
        self.time = 1_000.0

    def now(self) -> float:
        return self.time


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_metric_and_event_is_described() -> None:
    assert set(METRICS) == set(Metric)
    assert set(EVENTS) == set(Event)
    for metric, about in METRICS.items():
        assert metric.endswith("_total") == (about.kind is Kind.COUNTER)
        assert bool(about.label) == bool(about.labels)


def test_a_snapshot_tells_what_was_counted_and_what_the_frontier_knows() -> None:
    telemetry = Telemetry(started=100.0, max_pages=50)
    for second in range(20):
        telemetry.request("http://a.example", 200, 1_000, 30.0, 100.0 + second)
        telemetry.page(100.0 + second)
    telemetry.request("http://b.example", 503, 10, 90.0, 119.0)
    telemetry.failure(FailureKind.SERVER_ERROR)
    telemetry.gauge(Metric.IN_FLIGHT, 7)
    telemetry.count(Metric.DNS_HITS, 3)
    figures = FrontierFigures(queued=9, hosts_waiting=2, refusals={"scope": 4, "depth": 1}, next_at=130.0)
    shot = telemetry.snapshot(120.0, figures, Phase.DRAINING)
    assert (shot.pages, shot.requests, shot.bytes, shot.in_flight) == (20, 21, 20_010, 7)
    assert (shot.elapsed, shot.rate_mean, shot.max_pages, shot.dns_hits) == (20.0, 1.0, 50, 3)
    assert (shot.queued, shot.hosts_waiting, shot.refused, shot.next_at) == (9, 2, 5, 130.0)
    assert shot.errors == {"server_error": 1}
    assert shot.statuses == {"2xx": 20, "5xx": 1}
    assert [host for host, _ in shot.slowest] == ["http://b.example", "http://a.example"]
    assert shot.phase is Phase.DRAINING


def test_the_rate_is_of_the_last_ten_seconds() -> None:
    telemetry = Telemetry(started=0.0)
    for tick in range(400):
        telemetry.page(tick / 10)
    assert telemetry.snapshot(40.0).rate_now == pytest.approx(10.0, rel=0.05)
    assert telemetry.snapshot(45.0).rate_now == pytest.approx(5.0, rel=0.06)
    assert telemetry.snapshot(60.0).rate_now == 0.0


def test_the_first_moment_has_no_absurd_rate() -> None:
    telemetry = Telemetry(started=0.0)
    telemetry.page(0.001)
    assert telemetry.snapshot(0.002).rate_now == 1.0
    assert Telemetry(started=5.0).snapshot(5.0).rate_mean == 0.0


def test_a_label_outside_of_the_closed_set_is_refused() -> None:
    telemetry = Telemetry(started=0.0)
    telemetry.count_labelled(Metric.FAILURES, "tls_name", 2)
    with pytest.raises(KeyError):
        telemetry.count_labelled(Metric.FAILURES, "http://attacker.example")
    assert telemetry.labelled(Metric.FAILURES) == {"tls_name": 2}
    assert (Metric.FAILURES, "tls_name", 2) in list(telemetry.samples())


@given(st.integers())
def test_any_status_has_a_class(status: int) -> None:
    Telemetry(started=0.0).request("h", status, 0, 0.0, 0.0)
    assert (status_class(status) == "2xx") == (200 <= status <= 299)


def test_a_hundred_thousand_hosts_leave_the_five_slowest_and_bounded_memory() -> None:
    slow = SlowHosts()
    for number in range(100_000):
        slow.record(
            f"http://{number}.example", 5_000.0 + number if number % 20_000 == 7 else 20.0, number / 1e3
        )
    assert len(slow._hosts) <= SlowHosts.KEPT
    assert [ms for _, ms in slow.shown(100.0)] == [85_007.0, 65_007.0, 45_007.0, 25_007.0, 5_007.0]


def test_a_host_not_heard_of_for_minutes_is_not_called_slow() -> None:
    slow = SlowHosts()
    slow.record("http://once.example", 9_000.0, 0.0)
    slow.record("http://now.example", 10.0, 400.0)
    assert [host for host, _ in slow.shown(401.0)] == ["http://now.example"]


def _cost_of_pages(hosts: int) -> float:
    telemetry = Telemetry(started=0.0)
    names = [f"http://{number}.example" for number in range(hosts)]
    best = float("inf")
    for _ in range(5):
        begun = time.process_time()
        for number in range(10_000):
            telemetry.request(names[number % hosts], 200, 29_000, float(number % 700), number / 500)
            telemetry.page(number / 500)
        best = min(best, time.process_time() - begun)
    return best


def test_a_page_costs_no_more_when_there_are_many_hosts() -> None:
    """2 to 3 us, on a quiet machine."""
    assert _cost_of_pages(5_000) < 4 * _cost_of_pages(50)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "skitter.log"


def test_a_log_line_is_json_with_time_level_and_event_first(path: Path, clock: HandClock) -> None:
    log = Log(path, clock)
    log.write(Event.FETCH_FAILED, url="http://a.example/\x1b\n", kind=FailureKind.TLS_NAME, attempt=2)
    log.close()
    (line,) = lines_of(path)
    assert list(line) == ["time", "level", "event", "url", "kind", "attempt"]
    assert line == {
        "time": "1970-01-01T00:16:40.000Z",
        "level": "warning",
        "event": "fetch_failed",
        "url": "http://a.example/\x1b\n",
        "kind": "tls_name",
        "attempt": 2,
    }


def test_lines_are_buffered_for_a_second_at_most(path: Path, clock: HandClock) -> None:
    log = Log(path, clock)
    log.write(Event.URL_DEAD)
    assert not path.exists()
    clock.time += 1.0
    log.write(Event.URL_DEAD)
    assert len(lines_of(path)) == 2
    log.close()


def test_a_log_goes_on_where_an_earlier_one_ended(path: Path, clock: HandClock) -> None:
    for _ in range(2):
        log = Log(path, clock)
        log.write(Event.CRAWL_STARTED)
        log.close()
    assert len(lines_of(path)) == 2


def test_the_log_keeps_two_old_files_of_bounded_size_and_loses_only_the_oldest(
    path: Path, clock: HandClock
) -> None:
    log = Log(path, clock, limit=2_000)
    for number in range(500):
        log.write(Event.URL_DEAD, number=number)
        log.flush()
    log.close()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "skitter.log",
        "skitter.log.1",
        "skitter.log.2",
    ]
    assert all(file.stat().st_size <= 2_000 for file in path.parent.iterdir())
    numbers = [
        line["number"] for file in (f"{path}.2", f"{path}.1", str(path)) for line in lines_of(Path(file))
    ]
    assert numbers == list(range(500 - len(numbers), 500))


def test_a_full_disk_costs_lines_that_are_counted_and_nothing_else(clock: HandClock) -> None:
    log = Log(Path("/dev/full"), clock)
    for _ in range(3):
        log.write(Event.URL_DEAD)
        log.flush()
    log.close()
    assert log.dropped == 3


@contextmanager
def small_files() -> Iterator[None]:
    """A limit on the size of files: the next best thing to a disk that fills up half-way through a write. Not a
    fixture: it would bind pytest too, which may be writing its report to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_write_that_fits_in_part_leaves_no_half_line(path: Path, clock: HandClock) -> None:
    with small_files():
        log = Log(path, clock)
        log.write(Event.CRAWL_STARTED)
        log.flush()
        for _ in range(50):
            log.write(Event.URL_DEAD, url="http://a.example/")
        log.close()
    assert len(lines_of(path)) == 1
    assert log.dropped == 50


def test_a_log_that_can_be_written_again_tells_how_much_was_lost(path: Path, clock: HandClock) -> None:
    folder = path.parent / "later"
    log = Log(folder / "skitter.log", clock)
    log.write(Event.URL_DEAD)
    log.flush()
    os.mkdir(folder)
    log.write(Event.CRAWL_ENDED)
    log.close()
    first, second = lines_of(folder / "skitter.log")
    assert (first["event"], first["dropped"]) == ("log_resumed", 1)
    assert second["event"] == "crawl_ended"


@pytest.mark.parametrize(
    "value", ["\udc80", 2**70, object(), {1: {2: b"\xff"}}, float("nan"), "x" * 1_000_000, {"a", "b"}]
)
def test_no_value_can_break_the_log(path: Path, clock: HandClock, value: object) -> None:
    log = Log(path, clock)
    log.write(Event.URL_DEAD, value=value)
    log.close()
    (line,) = lines_of(path)
    assert "value" in line
    assert path.stat().st_size < 5_000
