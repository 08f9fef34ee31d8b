"""The account of a crawl must find what is wrong with it: each of these crawls has one thing wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from bench._account import MOST_LOST, Cause, Death, Due, account
from bench._records import Fetch, Known, Record, ident_of
from bench._starved import Hunger, Span, Spans

from skitter.testing.request_log import Request

PAGE, OTHER = "http://h.test/a", "http://h.test/b"
SEGMENT = "s.warc.gz"


def request(url: str, start: float, *, aborted: bool = False, status: int = 200) -> Request:
    number = int(start * 10)
    path = url.removeprefix("http://h.test")
    return Request(
        id=number,
        start=start,
        end=start + 0.01,
        host="h.test",
        path=path,
        status=status,
        connection=1,
        aborted=aborted,
    )


def fetch(url: str, sent_at: float, offset: int, status: int = 200) -> Fetch:
    return Fetch(url, ident_of(url), sent_at, "fetched", status, (SEGMENT, offset, 10))


def record(url: str, offset: int, status: int = 200) -> Record:
    return Record(url, status, SEGMENT, offset, f"<{offset}>", "")


class Crawl:
    """Two pages, fetched once each; a test spoils it."""

    def __init__(self) -> None:
        self.requests = [request(PAGE, 1), request(OTHER, 2)]
        self.fetches = [fetch(PAGE, 1.001, 0), fetch(OTHER, 2.001, 10)]
        self.records = [record(PAGE, 0), record(OTHER, 10)]
        self.states = {PAGE: "completed", OTHER: "completed"}
        self.kills: list[float] = []
        self.others: list[Death] = []
        self.starved: list[Span] | None = None
        self.pauses: list[tuple[float, float]] = []

    def faults(self) -> set[str]:
        due = Due(pages={PAGE: 1, OTHER: 1}, robots={}, least={}, withheld=set())
        known = Known(self.fetches, self.states, [])
        deaths = [*map(Death, self.kills), *self.others]
        self.result = account(self.requests, known, self.records, due, deaths, self.pauses, self.starved)
        return set(self.result.faults)


@pytest.fixture
def crawl() -> Crawl:
    return Crawl()


def test_a_crawl_without_fault_has_none(crawl: Crawl) -> None:
    assert crawl.faults() == set()
    assert crawl.result.lost == 0


def test_a_settled_page_that_is_not_in_the_archive_is_found(crawl: Crawl) -> None:
    crawl.records.pop()
    assert crawl.faults() == {"settled, not archived"}


def test_a_record_that_no_fetch_names_is_found(crawl: Crawl) -> None:
    crawl.requests.insert(0, request(OTHER, 0.5))
    crawl.records.append(record(OTHER, 20))
    crawl.kills = [0.6]
    assert crawl.faults() == {"archived, not settled"}


def test_a_record_of_another_page_than_the_ledger_says_is_found(crawl: Crawl) -> None:
    crawl.records = [record(OTHER, 0), record(PAGE, 10)]
    assert crawl.faults() == {"ledger and record differ"}


def test_a_record_of_what_was_never_requested_is_found(crawl: Crawl) -> None:
    crawl.records[1] = record(OTHER, 10, status=404)
    assert crawl.faults() == {"archived, not requested", "ledger and record differ"}


def test_a_page_that_was_never_fetched_is_found(crawl: Crawl) -> None:
    for rows in (crawl.requests, crawl.fetches, crawl.records):
        del rows[1]
    crawl.states[OTHER] = "queued"
    assert crawl.faults() == {"missing", "left undone"}


def test_a_page_that_was_settled_twice_is_found(crawl: Crawl) -> None:
    crawl.requests.append(request(PAGE, 3))
    crawl.fetches.append(fetch(PAGE, 3.001, 20))
    crawl.records.append(record(PAGE, 20))
    assert crawl.faults() == {"settled too often", "completed twice"}


def test_a_fetch_that_the_web_never_saw_is_found(crawl: Crawl) -> None:
    crawl.requests[1] = request(OTHER, 2.5)
    assert crawl.faults() == {"settled, not requested", "repeated without a kill"}


def test_a_request_is_not_repeated_unless_a_kill_lost_it(crawl: Crawl) -> None:
    crawl.requests.insert(0, request(PAGE, 0.5))
    assert crawl.faults() == {"repeated without a kill"}
    crawl.kills = [0.52]
    assert crawl.faults() == set()
    assert crawl.result.lost_unsettled == 1


def test_a_request_that_was_answered_long_before_the_kill_is_not_excused_by_it(crawl: Crawl) -> None:
    crawl.requests = [request(PAGE, 1), request(OTHER, 2), request(PAGE, 9)]
    crawl.fetches[0] = fetch(PAGE, 9.001, 0)
    crawl.kills = [5.0]
    assert crawl.faults() == {"repeated without a kill"}


def test_a_request_in_flight_at_a_kill_is_lost_to_it(crawl: Crawl) -> None:
    crawl.requests.insert(0, request(PAGE, 0.5, aborted=True))
    crawl.kills = [0.505]
    assert crawl.faults() == set()
    assert crawl.result.lost_in_flight == 1


def test_a_crawl_that_was_stopped_is_not_blamed_for_what_it_could_not_settle(crawl: Crawl) -> None:
    crawl.requests = [request(PAGE, 1), request(OTHER, 2), request(PAGE, 9)]
    crawl.fetches[0] = fetch(PAGE, 9.001, 0)
    crawl.kills = [5.0]
    crawl.pauses = [(1.5, 4.5)]
    assert crawl.faults() == set()
    assert crawl.result.lost_unsettled == 1


def test_what_a_torn_log_took_is_told_from_what_the_kill_before_it_took(crawl: Crawl) -> None:
    crawl.requests = [request(PAGE, 1), request(OTHER, 1.02), request(PAGE, 9), request(OTHER, 9.5)]
    crawl.fetches = [fetch(PAGE, 9.001, 0), fetch(OTHER, 9.501, 10)]
    crawl.kills = [1.2]
    crawl.others = [Death(1.015, Cause.TEAR)]
    assert crawl.faults() == set()
    tolls = {cause: toll.unsettled for cause, toll in crawl.result.tolls.items() if toll.unsettled}
    assert tolls == {Cause.TEAR: 1, Cause.KILL: 1}


def test_a_kill_that_took_more_than_can_have_been_in_flight_is_found(crawl: Crawl) -> None:
    urls = [f"http://h.test/{number}" for number in range(MOST_LOST + 1)]
    crawl.requests[:0] = [request(url, 0.5, aborted=True) for url in urls]
    crawl.kills = [0.6]
    assert crawl.faults() == {"too much lost at once"}
    del crawl.requests[0]
    assert crawl.faults() == set()
    (loss,) = crawl.result.losses
    assert (loss.in_flight, loss.unsettled) == (MOST_LOST, 0)


def test_what_a_full_disk_took_is_counted_once_whenever_it_was_noticed(crawl: Crawl) -> None:
    urls = [f"http://h.test/{number}" for number in range(MOST_LOST + 1)]
    crawl.requests[:0] = [request(url, 0.1 + number % 2) for number, url in enumerate(urls)]
    crawl.others = [Death(0.5, Cause.FULL, 0.05), Death(1.5, Cause.FULL, 0.05)]
    assert crawl.faults() == {"too much lost at once"}
    crawl.others = [Death(0.5, Cause.FULL, 0.05), Death(1.5, Cause.FULL, 0.06)]
    assert crawl.faults() == set()


def test_what_is_asked_again_before_anything_happened_is_not_excused_by_the_next_kill(crawl: Crawl) -> None:
    crawl.requests = [request(PAGE, 1), request(OTHER, 2), request(PAGE, 2.1)]
    crawl.fetches[0] = fetch(PAGE, 2.101, 0)
    crawl.kills = [3.0]
    assert crawl.faults() == set()  # by who does not know every death
    crawl.starved = []
    assert crawl.faults() == {"repeated without a kill"}
    crawl.kills = [1.5, 3.0]
    assert crawl.faults() == set()


def test_a_crawl_that_had_no_core_is_not_blamed_for_what_it_could_not_settle(crawl: Crawl) -> None:
    crawl.requests = [request(PAGE, 1), request(OTHER, 2), request(PAGE, 9)]
    crawl.fetches[0] = fetch(PAGE, 9.001, 0)
    crawl.kills = [5.0]
    crawl.starved = [(1.5, 2.0), (2.5, 3.0)]
    assert crawl.faults() == set()
    assert crawl.result.oldest_lost == pytest.approx(2.99)
    crawl.starved = [(0.5, 1.0), (5.0, 8.0)]
    assert crawl.faults() == {"repeated without a kill"}


def test_the_seconds_of_spans_between_two_moments_are_counted_to_the_moment() -> None:
    spans = Spans([(4.0, 5.0), (1.0, 2.0)])
    assert [spans.between(0, at) for at in (0.5, 1.5, 3, 4.5, 9)] == [0, 0.5, 1, 1.5, 2]
    assert spans.between(1.5, 4.25) == 0.75


def test_a_process_that_shares_a_core_is_seen_to_wait_for_it() -> None:
    if not os.path.exists("/proc/self/schedstat"):
        pytest.skip("the kernel does not count it")
    core = min(os.sched_getaffinity(0))
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        for child in children:
            os.sched_setaffinity(child.pid, {core})
        hunger, until = Hunger(), time.monotonic() + 30
        while not hunger.spans and time.monotonic() < until:
            hunger.look(children[0].pid)
        assert hunger.spans
        assert all(begin < end <= time.time() for begin, end in hunger.spans)
    finally:
        for child in children:
            child.kill()
            child.wait()
