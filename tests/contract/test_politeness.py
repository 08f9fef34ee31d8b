"""Two requests to a host never start closer than its delay, whatever happens in between."""

from __future__ import annotations

import msgspec
import pytest

from skitter.frontier.base import HostStanding
from skitter.model import FailureKind, HostLease, HostPolicy, Result
from skitter.settings import FrontierSettings, PolitenessSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, robots, seed

A = "http://a.test"
ONE_IN_TEN_SECONDS = Settings(
    politeness=PolitenessSettings(delay=10.0), frontier=FrontierSettings(tasks_per_lease=1)
)


def with_pages(driver: Driver, *, pages: int = 5) -> Driver:
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(pages)))
    return driver


def not_before(driver: Driver, seconds: float) -> HostLease:
    """No lease until `seconds` from now have passed, one as soon as they have."""
    driver.clock.advance(seconds - 0.001)
    assert driver.lease() == []
    driver.clock.advance(0.001001)
    lease = driver.lease_one()
    assert lease.not_before <= driver.clock.now()
    return lease


def test_the_delay_is_kept_after_settling(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    lease = driver.lease_one()
    driver.clock.advance(3)
    driver.settle(driver.outcome(lease, OK, took=1.0))
    assert not_before(driver, 9.0).delay == 10.0


def test_a_host_whose_page_took_too_long_to_read_rests_for_twenty_times_that(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    lease = driver.lease_one()
    driver.settle(msgspec.structs.replace(driver.outcome(lease, OK), cpu=1.5))
    assert driver.host(A).standing == HostStanding.WAITING
    told = driver.explain_host(A, fetches=0)
    assert told is not None
    assert "took too long to read" in told.pace
    driver.clock.advance(29)
    assert driver.lease() == []
    driver.clock.advance(2)  # whole seconds
    lease = driver.lease_one()
    driver.settle(driver.outcome(lease, OK))
    not_before(driver, 10.0)


def test_the_delay_counts_from_the_last_of_several_requests(start: Start) -> None:
    driver = with_pages(start(Settings(politeness=PolitenessSettings(delay=10.0))))
    lease = driver.lease_one()
    assert len(lease.tasks) == 3
    for task in lease.tasks:
        driver.clock.advance(10)
        driver.settle(driver.outcome(lease, OK, task))
    not_before(driver, 10.0)


def test_the_delay_is_kept_after_a_release(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    lease = driver.lease_one()
    driver.clock.advance(5)
    driver.release(lease)
    not_before(driver, 10.0)


def test_an_expired_host_rests_for_its_delay_from_the_deadline(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    driver.lease_one(duration=30)
    driver.clock.advance(29)
    assert driver.reap() == 0
    driver.clock.advance(1.5)
    assert driver.reap() == 1
    assert driver.stats().leases_expired == 1
    not_before(driver, 9.5)


def test_renewing_moves_the_deadline_and_with_it_the_rest(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    lease = driver.lease_one(duration=30)
    driver.clock.advance(20)
    assert driver.renew(lease, 30) == driver.clock.now() + 30
    driver.clock.advance(29)
    assert driver.reap() == 0
    driver.clock.advance(1)
    assert driver.reap() == 1
    assert driver.renew(lease, 30) is None
    not_before(driver, 10.0)


def test_a_lease_orphaned_by_a_crash_ends_and_its_host_rests_from_the_reopening(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    lease = driver.lease_one()
    driver.clock.advance(20)
    driver.reopen()
    assert driver.stats().hosts[HostStanding.ACTIVE] == 0
    assert driver.renew(lease) is None
    assert not_before(driver, 10.0).token > lease.token


def test_a_host_rests_for_its_delay_from_a_restart_also_without_a_lease(start: Start) -> None:
    """By the stored time of its last request it could be asked sooner, but the clock may have been set since."""
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    driver.fetch()
    driver.clock.advance(4)
    driver.reopen()
    restarted = driver.clock.now()
    driver.clock.advance(6.001)
    assert driver.lease_one().not_before == restarted + 10.0


def test_a_backoff_outlasts_a_restart(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    driver.fetch(failed(FailureKind.CONNECT_REFUSED))
    driver.reopen()
    not_before(driver, 60.0)


@pytest.mark.parametrize(("delay", "remaining"), [(25.0, 21.0), (5.0, 1.0)])
def test_an_operators_delay_counts_at_once(start: Start, delay: float, remaining: float) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    driver.fetch()
    driver.clock.advance(4)
    driver.set_policy(A, HostPolicy(delay=delay))
    assert not_before(driver, remaining).delay == delay


def test_an_operators_delay_set_during_a_lease_counts_for_the_next(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    lease = driver.lease_one()
    driver.set_policy(A, HostPolicy(delay=25.0))
    driver.answer(lease, OK)
    not_before(driver, 25.0)


def test_taking_a_policy_back_restores_the_crawls_delay(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    driver.set_policy(A, HostPolicy(delay=25.0))
    driver.set_policy(A, HostPolicy())
    assert driver.host(A).policy is None
    assert driver.host(A).delay == 10.0


def test_crawl_delay_raises_the_delay_up_to_the_cap(driver: Driver) -> None:
    asked = {A: "7", "http://b.test": "3600", "http://c.test": "0.1"}
    driver.admit(*(seed(host + "/") for host in asked))
    for lease in driver.lease():
        driver.answer(lease, robots(f"Crawl-delay: {asked[lease.host]}"))
    assert [driver.host(host).delay for host in asked] == [7.0, 60.0, 1.0]
    assert "Crawl-delay 7" in driver.host(A).delay_why


def test_crawl_delay_counts_from_the_request_for_robots_txt(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    lease = driver.lease_one()
    driver.clock.advance(2)
    driver.settle(driver.outcome(lease, robots("Crawl-delay: 7"), took=0.5))
    assert not_before(driver, 6.5).delay == 7.0


def test_a_slow_host_is_asked_less_often(start: Start) -> None:
    driver = with_pages(start(Settings(frontier=FrontierSettings(tasks_per_lease=1))))
    lease = driver.lease_one()
    driver.clock.advance(5)
    driver.settle(*(driver.outcome(lease, OK, task, took=5.0) for task in lease.tasks))
    # the first answer, robots.txt, took no time, so this one counts whole
    assert driver.host(A).delay == 5.0


def test_429_halves_the_rate_at_once_and_good_answers_bring_it_back(start: Start) -> None:
    driver = with_pages(start(Settings(frontier=FrontierSettings(tasks_per_lease=1))), pages=20)
    driver.set_policy(A, HostPolicy(delay=2.0))
    driver.clock.advance(1)
    delays = []
    results: list[Result] = [*[failed(FailureKind.THROTTLED)] * 2, *[OK] * 9]
    for result in results:
        driver.fetch(result)
        delays.append(driver.host(A).delay)
        driver.clock.advance(3600)
    assert delays[:3] == [4.0, 8.0, pytest.approx(2 / 0.35)]
    assert delays[1:] == sorted(delays[1:], reverse=True)
    assert delays[-1] == 2.0


def test_a_throttled_host_slows_down_even_if_the_operator_set_no_delay(driver: Driver) -> None:
    with_pages(driver)
    driver.set_policy(A, HostPolicy(delay=0.0))
    driver.answer(driver.lease_one(), failed(FailureKind.THROTTLED))
    assert driver.host(A).delay >= 2.0


def test_retry_after_is_obeyed_when_longer_than_the_backoff(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    driver.fetch(failed(FailureKind.THROTTLED, retry_after=500.0))
    not_before(driver, 500.0)


def test_retry_after_cannot_shorten_the_backoff_nor_last_for_ever(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    driver.fetch(failed(FailureKind.THROTTLED, retry_after=1.0))
    not_before(driver, 60.0)
    driver.reopen()
    driver.clock.advance(60)
    driver.fetch(failed(FailureKind.THROTTLED, retry_after=1e9))
    assert driver.host(A).next_start == driver.clock.now() + 86_400


def test_even_a_stale_outcome_tells_of_a_request_that_was_made(start: Start) -> None:
    driver = with_pages(start(ONE_IN_TEN_SECONDS))
    lease = driver.lease_one()
    driver.release(lease)
    driver.clock.advance(6)
    driver.settle(driver.outcome(lease, failed()))
    not_before(driver, 10.0)
