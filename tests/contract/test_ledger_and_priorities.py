"""The politeness ledger tells the truth, and a URL that other hosts link becomes more urgent."""

from __future__ import annotations

import msgspec
import pytest

from skitter.model import Discovered, HostPolicy, Outcome, UrlKey
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered
from tests.keys import key_of

A = "http://a.test"
SPACED = Settings(
    crawl=CrawlSettings(scope="any"),
    politeness=PolitenessSettings(delay=10.0),
    frontier=FrontierSettings(tasks_per_lease=1),
)


def sent(outcome: Outcome, at: float, took: float = 0.1) -> Outcome:
    return msgspec.structs.replace(outcome, sent_at=at, ended_at=at + took)


def two_requests(driver: Driver, gap: float, took: float = 0.1) -> None:
    driver.open_host(A + "/")
    driver.admit(discovered(A + "/2"))
    driver.clock.advance(100)
    first = driver.lease_one()
    at = driver.clock.now()
    driver.settle(sent(driver.outcome(first, OK), at, took))
    driver.clock.advance(50)
    driver.settle(sent(driver.outcome(driver.lease_one(), OK), at + gap))


def test_a_worker_that_keeps_the_delay_leaves_no_violation(start: Start) -> None:
    driver = start(SPACED)
    two_requests(driver, gap=10.0)
    ledger = driver.stats().politeness
    assert (ledger.gaps, ledger.violations, ledger.host) == (2, 0, A)
    assert ledger.smallest_gap == pytest.approx(10.0)
    assert ledger.required == 10.0


@pytest.mark.parametrize(("gap", "took"), [(9.9, 0.1), (10.0, 12.0)])
def test_a_request_too_soon_or_before_the_last_one_ended_is_a_violation(
    start: Start, gap: float, took: float
) -> None:
    driver = start(SPACED)
    two_requests(driver, gap, took)
    assert driver.stats().politeness.violations == 1


def test_the_ledger_survives_a_restart(start: Start) -> None:
    driver = start(SPACED)
    two_requests(driver, gap=9.0)
    before = driver.stats().politeness
    driver.reopen()
    assert driver.stats().politeness == before


def test_a_host_that_may_be_asked_in_parallel_is_not_in_the_ledger(start: Start) -> None:
    driver = start(SPACED)
    driver.open_host(A + "/")
    driver.set_policy(A, HostPolicy(delay=0.0, parallel=4))
    driver.admit(discovered(A + "/2"))
    driver.clock.advance(100)
    lease = driver.lease_one()
    gaps = driver.stats().politeness.gaps
    for task in lease.tasks:
        driver.settle(driver.outcome(lease, OK, task))
    assert driver.stats().politeness.gaps == gaps


def linked(url: str, by: str, depth: int = 6) -> Discovered:
    parent = UrlKey(key_of(by + "/"))
    return msgspec.structs.replace(discovered(url), depth=depth, parent=parent, priority=None)


def test_each_doubling_of_linking_hosts_moves_a_queued_url_forward(start: Start) -> None:
    driver = start(SPACED)
    driver.open_host(A + "/")
    driver.admit(*(linked(f"{A}/{name}", by=A) for name in ("first", "popular", "last")))
    plain = driver.explain(A + "/popular").priority
    driver.admit(*(linked(A + "/popular", by=f"http://fan{i}.test") for i in range(4)))
    assert driver.explain(A + "/popular").priority == plain + 10
    assert driver.explain(A + "/first").priority == plain
    driver.settle(driver.outcome(driver.lease_one(), OK))
    driver.clock.advance(100)
    assert driver.lease_one().tasks[0].url == A + "/popular"


def test_a_url_that_moves_to_another_tier_takes_along_its_host_and_leaves_the_others_there(
    start: Start,
) -> None:
    """That its host is ready in these tiers and in no other is seen by the audit."""
    driver = start(SPACED)
    driver.open_host(A + "/")  # in the first tier
    driver.admit(linked(A + "/deep", by=A))
    assert driver.stats().tiers == (1, 0, 1, 0)
    driver.admit(*(linked(A + "/deep", by=f"http://fan{i}.test") for i in range(8)))
    assert driver.stats().tiers == (1, 1, 0, 0)


def test_a_url_that_moves_within_its_tier_leaves_its_host_as_it_is_stored(start: Start) -> None:
    driver = start(SPACED)
    driver.open_host(A + "/")
    driver.admit(*(linked(f"{A}/{name}", by=A) for name in ("first", "popular", "last")))
    fans = [linked(A + "/popular", by=f"http://fan{i}.test") for i in range(2)]
    driver.admit(fans[0])
    plain = driver.explain(A + "/popular").priority
    with driver.watched() as watch:
        driver.admit(fans[1])
    assert driver.explain(A + "/popular").priority == plain + 5
    assert "urls" in watch.tables_written()
    assert "hosts" not in watch.tables_written()


def test_a_url_that_moves_before_what_a_lease_began_with_is_leased_next(start: Start) -> None:
    driver = start(SPACED)
    driver.open_host(A + "/")
    driver.fetch(OK)
    driver.admit(*(linked(f"{A}/{number}", by=A) for number in range(9)))
    driver.clock.advance(100)
    driver.settle(driver.outcome(driver.lease_one(), OK))
    driver.clock.advance(100)
    driver.reopen()  # the next process has read nothing yet
    driver.admit(*(linked(A + "/8", by=f"http://fan{i}.test") for i in range(2)))
    driver.reap()
    driver.clock.advance(1_000)
    driver.reap()
    driver.clock.advance(1_000)
    assert driver.lease_one().tasks[0].url == A + "/8"


def test_a_host_that_links_twice_counts_once_and_the_urls_own_host_not_at_all(start: Start) -> None:
    driver = start(SPACED)
    driver.open_host(A + "/")
    driver.admit(linked(A + "/page", by=A))
    plain = driver.explain(A + "/page").priority
    driver.admit(*[linked(A + "/page", by="http://fan.test")] * 5, *[linked(A + "/page", by=A)] * 5)
    assert driver.explain(A + "/page").priority == plain


def test_linking_hosts_count_also_after_what_was_heard_of_a_url_is_forgotten(start: Start) -> None:
    forgetful = msgspec.structs.replace(SPACED, frontier=FrontierSettings(recent_keys=16))
    driver = start(forgetful)
    driver.open_host(A + "/")
    driver.admit(linked(A + "/popular", by="http://fan0.test"))
    plain = driver.explain(A + "/popular").priority
    driver.admit(*(linked(f"{A}/{number}", by="http://fan0.test") for number in range(32)))
    driver.admit(*(linked(A + "/popular", by=f"http://fan{i}.test") for i in range(1, 4)))
    assert driver.explain(A + "/popular").priority == plain + 10


def test_a_link_to_what_is_certainly_known_reads_no_row(start: Start) -> None:
    driver = start(msgspec.structs.replace(SPACED, frontier=FrontierSettings(recent_keys=16)))
    driver.open_host(A + "/")
    urls = [f"{A}/{number}" for number in range(32)]
    driver.admit(*(linked(url, by=A) for url in urls))
    with driver.watched() as watch:
        driver.admit(*(linked(url, by="http://fan.test") for url in urls))
    assert driver.stats().urls["queued"] == 33
    assert "urls" not in watch.tables_read()


def test_a_leased_url_is_not_moved_from_under_its_lease(start: Start) -> None:
    driver = start(SPACED)
    driver.open_host(A + "/")
    driver.settle(driver.outcome(driver.lease_one(), OK))
    driver.admit(linked(A + "/page", by=A))
    driver.clock.advance(100)
    lease = driver.lease_one()
    driver.admit(*(linked(A + "/page", by=f"http://fan{i}.test") for i in range(8)))
    driver.settle(driver.outcome(lease, OK))
    assert driver.explain(A + "/page").state == "completed"
