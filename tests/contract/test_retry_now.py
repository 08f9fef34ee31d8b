"""The operator may say that a host is asked again now; and some settings change while a crawl runs."""

from __future__ import annotations

import msgspec
import pytest

from skitter.frontier.base import HostStanding
from skitter.model import FailureKind, HostPolicy
from skitter.settings import CrawlSettings, PolitenessSettings, RetrySettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, seed

A, B = "http://a.test", "http://b.test"
HOUR = 3600.0


def test_a_host_that_waits_for_its_robots_txt_is_asked_at_once(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.fetch(failed(FailureKind.SERVER_ERROR))
    driver.clock.advance(2)
    assert driver.lease() == []
    assert driver.retry(A) == 0
    assert driver.host(A).standing == HostStanding.WAITING
    assert driver.host(A).failures_in_a_row == 0
    (task,) = driver.lease_one().tasks
    assert task.url == A + "/robots.txt"


def test_retries_of_a_host_are_queued_at_once_and_those_of_others_are_not(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.SERVER_ERROR))
    driver.open_host(B + "/")
    driver.fetch(failed(FailureKind.SERVER_ERROR))
    assert driver.stats().urls["failed"] == 2
    driver.clock.advance(2)
    assert driver.retry(A) == 1
    assert driver.explain(A + "/").state == "queued"
    assert driver.explain(B + "/").state == "failed"
    (task,) = driver.lease_one().tasks
    assert task.url == A + "/"


def test_after_a_retry_no_date_is_left_to_wait_for(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.SERVER_ERROR))
    driver.clock.advance(2)
    driver.retry(A)
    driver.fetch(OK)
    assert driver.ask(driver.frontier.horizon()).next_at is None
    driver.clock.advance(24 * HOUR)
    assert driver.promote() == 0


def test_a_retry_does_not_make_a_host_asked_sooner_than_its_delay(driver: Driver) -> None:
    driver.set_policy(A, HostPolicy(delay=30.0))
    driver.admit(seed(A + "/"))
    driver.fetch(failed(FailureKind.SERVER_ERROR))
    driver.retry(A)
    assert driver.host(A).next_start - driver.clock.now() == pytest.approx(30.0)
    driver.clock.advance(29.9)
    assert driver.lease() == []
    driver.clock.advance(0.2)
    assert len(driver.lease()) == 1


def test_a_host_that_was_given_up_is_tried_again(start: Start) -> None:
    driver = start(Settings(retry=RetrySettings(quarantine_after=1, quarantines=1)))
    driver.admit(seed(A + "/"))
    for _ in range(2):
        driver.fetch(failed(FailureKind.CONNECT_REFUSED))
        driver.clock.advance(24 * HOUR)
    assert driver.host(A).standing == HostStanding.GIVEN_UP
    driver.retry(A)
    assert driver.host(A).standing == HostStanding.WAITING
    assert driver.promote() == 0
    assert len(driver.lease()) == 1


def test_a_host_nobody_knows_cannot_be_retried_and_is_not_made(driver: Driver) -> None:
    assert driver.retry(A) is None
    assert sum(driver.stats().hosts.values()) == 0


def test_a_blocked_host_stays_blocked(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.set_policy(A, HostPolicy(blocked=True))
    driver.retry(A)
    assert driver.host(A).standing == HostStanding.BLOCKED


def changed(driver: Driver, **sections: msgspec.Struct) -> None:
    driver.frontier.change_settings(Settings(**sections))  # type: ignore[arg-type]


def test_another_delay_holds_from_the_next_lease_on(driver: Driver) -> None:
    driver.open_host(A + "/", A + "/2", A + "/3")
    changed(driver, politeness=PolitenessSettings(delay=7.0))
    lease = driver.lease_one()
    assert lease.delay == 7.0
    assert lease.not_before - driver.clock.now() == pytest.approx(6.0)
    driver.clock.advance(6)
    driver.settle(driver.outcome(lease, OK))
    assert driver.stats().politeness.violations == 0
    assert "politeness.delay" in driver.host(A).delay_why


def test_another_page_limit_holds_at_once(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(OK)
    driver.admit(seed(A + "/2"))
    driver.clock.advance(1)
    changed(driver, crawl=CrawlSettings(max_pages=1))
    assert driver.ask(driver.frontier.horizon()).limit_reached
    assert driver.lease() == []
    changed(driver, crawl=CrawlSettings(max_pages=2))
    assert len(driver.lease()) == 1


def test_a_retry_does_not_disturb_a_lease_that_is_out(driver: Driver) -> None:
    driver.open_host(A + "/")
    lease = driver.lease_one()
    driver.admit(discovered(A + "/later"))
    driver.retry(A)
    assert driver.lease() == []
    driver.answer(lease, OK)
    assert driver.explain(A + "/").state == "completed"
