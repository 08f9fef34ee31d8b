"""What has its final answer can be looked at again, conditionally, and what it had is kept."""

from __future__ import annotations

import pytest

from skitter.frontier.base import FetchView
from skitter.model import FailureKind, Fetched, HostPolicy, NotModified, RecordAt, Result, Task
from skitter.settings import CrawlSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, redirected, robots

A, B = "http://a.test", "http://b.test"
DAY = 86_400.0
PAGE = Fetched(
    status=200,
    content_type="text/html",
    size=10,
    digest=b"d" * 32,
    etag='"e1"',
    last_modified="then",
    title="T",
    record=RecordAt("s", 1, 2),
)
LATER = RecordAt("s", 50, 2)


def visited(driver: Driver, result: Result = PAGE, *, again: Result | None = None) -> None:
    """A page of A that was fetched once or, with `again`, twice."""
    driver.open_host(A + "/")
    driver.fetch(result)
    driver.clock.advance(1)
    if again is not None:
        assert driver.refresh() == 1
        driver.fetch(again)
        driver.clock.advance(1)


def looked_at_again(driver: Driver) -> Task:
    """The page's next visit: what its task says of the body that is kept."""
    assert driver.refresh() == 1
    (task,) = driver.lease_one().tasks
    return task


def last_fetch(driver: Driver) -> FetchView:
    return driver.explain(A + "/").fetches[-1]


@pytest.mark.parametrize(
    ("result", "state", "moved"),
    [
        (PAGE, "completed", 1),
        (Fetched(status=403, size=3), "completed", 1),
        (Fetched(status=404, size=3), "gone", 1),
        (Fetched(status=410, size=3), "gone", 1),
        (redirected(B + "/"), "completed", 1),
        (failed(FailureKind.TYPE_UNWANTED), "refused", 1),
        (failed(FailureKind.ADDRESS_REFUSED), "refused", 0),
        (failed(FailureKind.BAD_REDIRECT), "dead_letter", 0),
        (failed(FailureKind.SERVER_ERROR), "failed", 0),
    ],
)
def test_what_has_its_final_answer_goes_back_once(
    driver: Driver, result: Result, state: str, moved: int
) -> None:
    visited(driver, result)
    assert driver.explain(A + "/").state == state
    assert driver.refresh() == moved
    assert driver.refresh() == 0
    assert driver.explain(A + "/").state == ("queued" if moved else state)
    assert sum(driver.stats().refusals.values()) == driver.stats().urls["refused"]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 405, 406, 418, 451])
def test_other_4xx_answers_are_final_and_no_failure(driver: Driver, status: int) -> None:
    visited(driver, Fetched(status=status, size=3))
    assert driver.explain(A + "/").state == "completed"
    assert driver.stats().failures == {}
    assert driver.stats().pages == 0
    driver.clock.advance(400 * DAY)
    assert driver.promote() == 0
    assert driver.ask(driver.frontier.horizon()).next_at is None


def test_validators_are_sent_on_the_next_visit_and_survive_a_restart(driver: Driver) -> None:
    visited(driver)
    driver.refresh()
    assert "looked at again" in driver.explain(A + "/").waits
    driver.reopen()
    driver.clock.advance(1)
    (task,) = driver.lease_one().tasks
    assert (task.etag, task.last_modified, task.digest, task.attempt) == ('"e1"', "then", b"d" * 32, 1)


def test_304_is_recorded_as_such_and_the_page_keeps_what_it_had(driver: Driver) -> None:
    visited(driver, again=NotModified(record=LATER))
    assert (last_fetch(driver).result, last_fetch(driver).status) == ("notmodified", 304)
    assert driver.explain(A + "/").state == "completed"
    assert driver.explain(A + "/").title == "T"
    assert driver.stats().pages == 1
    task = looked_at_again(driver)
    assert (task.digest, task.etag, task.last_modified) == (b"d" * 32, '"e1"', "then")


def test_the_same_body_again_is_recorded_as_unchanged(driver: Driver) -> None:
    same = Fetched(status=200, size=10, digest=b"d" * 32, etag='"e2"', record=LATER)
    visited(driver, again=same)
    assert [fetch.result for fetch in driver.explain(A + "/").fetches] == ["fetched", "unchanged"]
    assert driver.stats().pages == 1
    task = looked_at_again(driver)
    assert (task.digest, task.etag, task.last_modified) == (b"d" * 32, '"e2"', "")


def test_a_changed_body_takes_the_place_of_the_old_one(driver: Driver) -> None:
    visited(driver, again=Fetched(status=200, size=11, digest=b"n" * 32, record=LATER))
    assert last_fetch(driver).result == "fetched"
    task = looked_at_again(driver)
    assert (task.digest, task.etag) == (b"n" * 32, "")


def test_a_failure_in_between_does_not_lose_the_status_of_the_body(driver: Driver) -> None:
    visited(driver)
    driver.refresh()
    driver.fetch(failed(FailureKind.SERVER_ERROR))
    driver.clock.advance(60)
    assert driver.promote() == 1
    (task,) = (lease := driver.lease_one()).tasks
    assert (task.etag, task.attempt) == ('"e1"', 2)
    driver.answer(lease, NotModified())
    assert driver.explain(A + "/").state == "completed"
    assert driver.stats().pages == 1


def test_304_for_what_was_gone_leaves_it_gone(driver: Driver) -> None:
    visited(driver, Fetched(status=404, size=3, etag='"g"'), again=NotModified())
    assert driver.explain(A + "/").state == "gone"
    assert driver.stats().pages == 0


@pytest.mark.parametrize("result", [redirected(B + "/"), failed(FailureKind.TYPE_UNWANTED)])
def test_validators_are_dropped_with_the_body_they_spoke_of(driver: Driver, result: Result) -> None:
    visited(driver, again=result)
    assert driver.refresh(url=A + "/") == 1
    (task,) = next(lease for lease in driver.lease() if lease.host == A).tasks
    assert (task.etag, task.last_modified) == ("", "")


def test_a_page_that_is_looked_at_again_counts_once(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=2)))
    driver.open_host(A + "/1", A + "/2")
    driver.answer(driver.lease_one(), PAGE, PAGE)
    driver.clock.advance(1)
    assert driver.ask(driver.frontier.horizon()).limit_reached
    assert driver.refresh() == 2
    assert driver.stats().pages == 0
    assert not driver.ask(driver.frontier.horizon()).limit_reached
    driver.answer(driver.lease_one(), NotModified())
    assert driver.stats().pages == 2
    assert driver.ask(driver.frontier.horizon()).limit_reached


@pytest.mark.parametrize(
    ("host", "url", "moved"),
    [(None, A + "/1", 1), (A, None, 2), (None, None, 3), (None, A + "/9", 0), (None, "mailto:x", 0)],
)
def test_all_or_one_host_or_one_url(driver: Driver, host: str | None, url: str | None, moved: int) -> None:
    driver.open_host(A + "/1", A + "/2", B + "/1")
    for lease in driver.lease():
        driver.answer(lease, OK)
    assert driver.refresh(host=host, url=url) == moved
    assert driver.stats().urls["queued"] == moved


def test_many_urls_go_back_in_slices(start: Start) -> None:
    driver = start(Settings(), audited=False)
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(4_500)))
    driver.set_policy(A, HostPolicy(delay=0.0))
    while leases := driver.lease():
        for lease in leases:
            driver.answer(lease, OK)
    assert driver.refresh() == 4_501
    assert driver.stats().urls["queued"] == 4_501
    assert driver.stats().pages == 0


def test_what_robots_txt_denies_meanwhile_is_not_looked_at_again(driver: Driver) -> None:
    visited(driver)
    driver.clock.advance(DAY)
    driver.refresh()
    driver.fetch(robots("Disallow: /"))
    driver.clock.advance(1)
    assert driver.lease() == []
    assert driver.explain(A + "/").state == "denied"
