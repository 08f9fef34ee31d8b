"""A system's clock that is set between two runs neither stalls a crawl nor makes it rude."""

from __future__ import annotations

from skitter.model import FailureKind
from skitter.settings import PolitenessSettings, RetrySettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, discovered, failed, seed

A = "http://a.test"
DAY = 86_400.0
SETTINGS = Settings(
    politeness=PolitenessSettings(delay=10.0), retry=RetrySettings(backoff=(60.0,), quarantine=3_600.0)
)


def test_a_host_asked_in_what_is_now_the_future_rests_for_its_delay_and_no_longer(start: Start) -> None:
    driver = start(SETTINGS)
    driver.open_host(A + "/")
    driver.admit(discovered(A + "/2"), discovered(A + "/3"))
    driver.settle(driver.outcome(driver.lease_one(), OK))
    driver.clock.set_back(365 * DAY)
    driver.reopen()
    driver.clock.advance(9.9)
    assert driver.lease() == []
    driver.clock.advance(0.2)
    driver.lease_one()


def test_a_retry_waits_as_long_as_it_would_have(start: Start) -> None:
    driver = start(SETTINGS)
    driver.open_host(A + "/")
    lease = driver.lease_one()
    driver.settle(driver.outcome(lease, failed(FailureKind.PROTOCOL)))
    driver.clock.advance(20)
    driver.admit(discovered(A + "/2"))
    driver.clock.set_back(365 * DAY)
    driver.reopen()
    driver.clock.advance(39)
    assert driver.promote() == 0
    driver.clock.advance(2)
    assert driver.promote() == 1


def test_a_backed_off_host_waits_as_long_as_it_would_have(start: Start) -> None:
    driver = start(SETTINGS)
    driver.open_host(A + "/")
    driver.admit(discovered(A + "/2"))
    driver.settle(driver.outcome(driver.lease_one(), failed(FailureKind.CONNECT_REFUSED)))
    driver.clock.set_back(1_000.0)
    driver.reopen()
    driver.clock.advance(58)
    assert driver.lease() == []
    driver.clock.advance(3)
    assert driver.lease_one().deadline > driver.clock.now()


def test_times_told_outside_are_the_clocks_after_it_was_set_back(start: Start) -> None:
    driver = start(SETTINGS)
    driver.open_host(A + "/")
    driver.admit(discovered(A + "/2"))
    driver.clock.set_back(1_000.0)
    driver.reopen()
    driver.clock.advance(30)
    lease = driver.lease_one()
    now = driver.clock.now()
    assert now <= lease.not_before <= now + 11
    assert lease.deadline - now < 100
    driver.settle(driver.outcome(lease, OK))
    assert abs(driver.explain(A + "/").fetches[0].at - now) < 20
    assert abs(driver.host(A).next_start - now) < 30


def test_a_clock_that_is_right_changes_nothing(start: Start) -> None:
    driver = start(SETTINGS)
    driver.open_host(A + "/")
    driver.settle(driver.outcome(driver.lease_one(), OK))
    before = driver.host(A).next_start
    driver.clock.advance(5)
    driver.reopen()
    assert driver.host(A).next_start == before


def test_a_clock_that_is_set_ahead_does_not_shorten_the_rest_of_a_host(start: Start) -> None:
    driver = start(SETTINGS)
    driver.open_host(A + "/")
    driver.settle(driver.outcome(driver.lease_one(), OK))
    driver.admit(discovered(A + "/2"))
    driver.clock.advance(DAY / 2)
    driver.reopen()
    assert driver.lease_one().not_before == driver.clock.now() + 10.0


def test_a_crawl_that_begins_waits_for_nothing(start: Start) -> None:
    driver = start(SETTINGS)
    driver.admit(seed(A + "/"))
    assert driver.lease_one().not_before == driver.clock.now()
