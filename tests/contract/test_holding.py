"""What the frontier promises of an archive in object storage: a page is safe when its segment is, not before."""

from __future__ import annotations

import msgspec
import pytest

from skitter.errors import StoreFailed
from skitter.model import (
    Copy,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    NotModified,
    RecordAt,
    Result,
    RobotsRead,
    SegmentMark,
    TaskKind,
)
from skitter.settings import ArchiveSettings, CrawlSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, seed

A = "http://a.test"
OBJECTS = Settings(crawl=CrawlSettings(scope="any"), archive=ArchiveSettings(url="s3://bucket/prefix"))
S1, S2 = "s-1.warc.gz", "s-2.warc.gz"


@pytest.fixture
def driver(start: Start) -> Driver:
    return start(OBJECTS)


def page(segment: str, *, body: bytes = b"1", first: bool = True, status: int = 200) -> Fetched:
    digest = body * 32
    copy = Copy(A + "/", 1.0, "urn:uuid:1", segment) if first else None
    return Fetched(
        status=status, digest=digest, size=9, record=RecordAt(segment, 0, 9), copy=copy, etag='"e"'
    )


def robots_in(segment: str) -> RobotsRead:
    return RobotsRead(
        status=200, body=b"User-agent: *\nDisallow: /no", record=RecordAt(segment, 5, 5), etag='"r"'
    )


def mark(segment: str, length: int = 10) -> SegmentMark:
    return SegmentMark(segment, length, length)


def settle(driver: Driver, lease: HostLease, *results: Result) -> None:
    outcomes = [
        driver.outcome(lease, result, task) for result, task in zip(results, lease.tasks, strict=True)
    ]
    segments = {result.record.segment for result in results if result.record}
    driver.settle(*outcomes, marks=[mark(segment) for segment in segments])


def fetched_in(driver: Driver, segment: str, *urls: str) -> None:
    """Robots.txt and pages of one host, each in the given segment."""
    driver.admit(*(seed(url) for url in urls))
    settle(driver, driver.lease_one(), robots_in(segment))
    while pages := driver.stats().urls["queued"]:
        driver.clock.advance(1)
        lease = driver.lease_one()
        settle(driver, lease, *[page(segment)] * len(lease.tasks))
        assert driver.stats().urls["queued"] < pages


def test_pages_are_safe_only_when_their_segment_is_stored(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1", A + "/2")
    stats = driver.stats()
    assert (stats.pages, stats.stored, stats.unstored) == (2, 0, 2)
    driver.stored(S1)
    stats = driver.stats()
    assert (stats.pages, stats.stored, stats.unstored) == (2, 2, 0)
    assert driver.ask(driver.frontier.marks()) == [msgspec.structs.replace(mark(S1), stored=True)]


def test_each_segment_is_stored_by_itself(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    fetched_in(driver, S2, "http://b.test/1", "http://b.test/2")
    driver.stored(S2)
    stats = driver.stats()
    assert (stats.stored, stats.unstored) == (2, 1)
    assert [(m.segment, m.stored, m.held) for m in driver.ask(driver.frontier.marks())] == [
        (S1, False, True),
        (S2, True, False),
    ]


def test_being_told_twice_that_a_segment_is_stored_changes_nothing(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    driver.stored(S1)
    before = driver.stats()
    driver.stored(S1)
    driver.stored("unheard-of.warc.gz")
    assert driver.stats() == before
    assert len(driver.ask(driver.frontier.marks())) == 1


def test_what_is_lost_goes_back_to_the_queue_exactly_once(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1", A + "/2", A + "/3")
    driver.reopen()
    assert driver.lost(S1) == 4
    stats = driver.stats()
    assert (stats.pages, stats.unstored, stats.urls["queued"], stats.lost) == (0, 0, 3, 4)
    assert driver.ask(driver.frontier.marks()) == []
    assert driver.lost(S1) == 0
    assert driver.stats() == stats


def test_what_was_lost_is_asked_for_without_validators_and_counts_again(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    driver.lost(S1)
    driver.clock.advance(1)
    lease = driver.lease_one()
    assert [(task.kind, task.etag) for task in lease.tasks] == [(TaskKind.ROBOTS, "")]
    settle(driver, lease, robots_in(S2))
    driver.clock.advance(1)
    lease = driver.lease_one()
    assert [(task.url, task.etag) for task in lease.tasks] == [(A + "/1", "")]
    settle(driver, lease, page(S2))
    driver.stored(S2)
    stats = driver.stats()
    assert (stats.pages, stats.stored, stats.unstored, stats.fetches, stats.lost) == (1, 1, 0, 4, 2)


def test_a_stored_segment_cannot_be_lost(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    driver.stored(S1)
    assert driver.lost(S1) == 0
    assert driver.stats().stored == 1


def test_without_an_object_store_nothing_is_held(start: Start) -> None:
    driver = start(Settings())
    fetched_in(driver, S1, A + "/1")
    assert driver.stats().unstored == 0
    assert [m.held for m in driver.ask(driver.frontier.marks())] == [False]
    assert driver.lost(S1) == 0
    assert driver.stats().pages == 1


def test_the_ledger_keeps_what_was_lost_as_lost(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    driver.lost(S1)
    (fetch,) = driver.explain(A + "/1").fetches
    assert (fetch.result, fetch.record, fetch.status) == ("lost", "", 200)
    assert S1 in fetch.detail


def test_no_record_will_refer_to_a_copy_that_was_lost(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    assert driver.ask(driver.frontier.first_copies([b"1" * 32])) != [None]
    driver.lost(S1)
    assert driver.ask(driver.frontier.first_copies([b"1" * 32])) == [None]


def test_a_later_copy_of_a_lost_body_stays(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    fetched_in(driver, S2, "http://b.test/1")
    driver.lost(S1)
    (copy,) = driver.ask(driver.frontier.first_copies([b"1" * 32]))
    assert copy is not None
    assert copy.segment == S2


def refetched_in(driver: Driver, segment: str, result: Result) -> None:
    driver.refresh()
    driver.clock.advance(1)
    settle(driver, driver.lease_one(), result)


def test_a_page_that_is_looked_at_again_is_no_page_until_then(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    driver.refresh()
    stats = driver.stats()
    assert (stats.pages, stats.stored, stats.unstored) == (0, 0, 0)
    driver.stored(S1)
    assert driver.stats().stored == 0


@pytest.mark.parametrize("again", [page(S2, first=False), NotModified(record=RecordAt(S2, 0, 9))])
def test_a_revisit_whose_body_is_lost_is_fetched_again(driver: Driver, again: Result) -> None:
    fetched_in(driver, S1, A + "/1")
    refetched_in(driver, S2, again)
    assert driver.stats().unstored == 1
    driver.lost(S1)
    stats = driver.stats()
    assert (stats.pages, stats.unstored, stats.urls["queued"]) == (0, 0, 1)


def test_a_lost_revisit_is_fetched_again_and_keeps_its_body(driver: Driver) -> None:
    fetched_in(driver, S1, A + "/1")
    driver.stored(S1)
    refetched_in(driver, S2, NotModified(record=RecordAt(S2, 0, 9)))
    driver.lost(S2)
    assert driver.stats().urls["queued"] == 1
    driver.clock.advance(1)
    (task,) = driver.lease_one().tasks
    assert task.etag == '"e"'


def test_an_old_failure_that_is_lost_does_not_disturb_the_page(driver: Driver) -> None:
    driver.open_host(A + "/1")
    answered = Failed(kind=FailureKind.SERVER_ERROR, status=500, record=RecordAt(S1, 0, 9))
    settle(driver, driver.lease_one(), answered)
    driver.clock.advance(100)
    driver.promote()
    settle(driver, driver.lease_one(), page(S2))
    driver.lost(S1)
    stats = driver.stats()
    assert (stats.pages, stats.urls["completed"], stats.lost) == (1, 1, 1)


def test_a_dead_letter_whose_answer_is_lost_is_tried_again(driver: Driver) -> None:
    driver.open_host(A + "/1")
    answered = Failed(kind=FailureKind.HEADERS_TOO_LARGE, status=200, record=RecordAt(S1, 0, 9))
    settle(driver, driver.lease_one(), answered)
    assert driver.stats().urls["dead_letter"] == 1
    driver.lost(S1)
    assert driver.stats().urls["queued"] == 1
    assert driver.explain(A + "/1").attempts == 0


def test_a_loss_that_is_interrupted_is_gone_on_with(start: Start) -> None:
    """More than one step's worth of 2,000: each step is whole, and none is done twice."""
    driver = start(OBJECTS, audited=False)
    fetched_in(driver, S1, *(f"{A}/{n}" for n in range(2_100)))
    with driver.failing_commits(after=1), pytest.raises(StoreFailed):
        driver.lost(S1)
    assert driver.stats().lost == 2_000
    driver.reopen()
    assert driver.lost(S1) == 101
    stats = driver.stats()
    assert (stats.lost, stats.urls["queued"], stats.pages) == (2_101, 2_100, 0)


def test_a_segment_with_nothing_but_stale_outcomes_is_held_too(driver: Driver) -> None:
    driver.settle(marks=[mark(S1)])
    assert [m.held for m in driver.ask(driver.frontier.marks())] == [True]
    assert driver.lost(S1) == 0
    assert driver.ask(driver.frontier.marks()) == []
