"""A host is asked no more in a day than its operator allows, and never in its quiet hours."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest

from skitter.model import Host, HostPolicy, TaskKind
from skitter.settings import FetchSettings, PolitenessSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered

A, B = "http://a.test", "http://b.test"
HOUR, DAY = 3600.0, 86_400.0
QUICK = Settings(politeness=PolitenessSettings(delay=0.0, slow_factor=0.0))


def with_pages(driver: Driver, *, pages: int = 100) -> Driver:
    """The clock of tests begins at midnight UTC."""
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(pages)))
    return driver


def serve_until_closed(driver: Driver, size: int = 10) -> int:
    """Answers all that is leased now; how many requests that were."""
    requests = 0
    while leases := driver.lease():
        for lease in leases:
            requests += len(lease.tasks)
            is_robots = lease.tasks[0].kind is TaskKind.ROBOTS
            driver.answer(lease, NO_RULES if is_robots else msgspec.structs.replace(OK, size=size))
        driver.clock.advance(0.01)
    return requests


def test_a_host_has_so_many_requests_a_day_and_not_one_more(start: Start) -> None:
    driver = with_pages(start(QUICK))
    driver.set_policy(A, HostPolicy(daily_requests=13))
    assert serve_until_closed(driver) == 13
    driver.clock.advance(12 * HOUR)
    assert driver.lease() == []
    driver.clock.advance(12 * HOUR)
    # the day is new, and its robots.txt, which is a day old, is the first of its requests
    assert serve_until_closed(driver) == 13


def test_explain_and_the_outlook_tell_why_a_host_is_closed(start: Start) -> None:
    driver = with_pages(start(QUICK))
    driver.set_policy(A, HostPolicy(daily_requests=5, time_zone="Europe/Berlin"))
    serve_until_closed(driver)
    waits = driver.explain(f"{A}/99").waits
    assert (
        "its load of the day is spent: 5 of 5 requests (the operator's policy, days of Europe/Berlin)"
        in waits
    )
    assert driver.explain(f"{A}/99").next_at == driver.host(A).next_start
    (outlook,) = driver.ask(driver.frontier.outlook(limit=10))
    assert outlook.closed == "spent"
    driver.set_policy(A, HostPolicy(quiet_hours="00:00-08:00"))
    assert driver.lease() == []
    assert "it has quiet hours now (00:00-08:00 UTC)" in driver.explain(f"{A}/99").waits


def test_a_lease_that_ends_unheard_counts_as_asked(start: Start) -> None:
    driver = with_pages(start(QUICK))
    driver.set_policy(A, HostPolicy(daily_requests=6))
    lease = driver.lease_one(duration=30)
    asked = len(lease.tasks)
    driver.clock.advance(31)
    driver.reap()
    assert asked + serve_until_closed(driver) == 6


def test_a_kill_gives_no_host_a_second_share_of_the_day(start: Start) -> None:
    driver = with_pages(start(QUICK))
    driver.set_policy(A, HostPolicy(daily_requests=20))
    for _ in range(3):
        driver.lease_one()
        driver.reopen()
        driver.clock.advance(1)
    assert serve_until_closed(driver) <= 20 - 3


def test_the_crawls_own_limit_holds_for_every_host_and_a_policy_may_differ(start: Start) -> None:
    settings = Settings(politeness=PolitenessSettings(delay=0.0, slow_factor=0.0, daily_requests=4))
    driver = start(settings)
    driver.open_host(A + "/", B + "/")
    driver.admit(*(discovered(f"{host}/{i}") for host in (A, B) for i in range(30)))
    # one of each four was the robots.txt
    assert serve_until_closed(driver) == 2 * 3
    driver.set_policy(B, HostPolicy(daily_requests=0))
    assert serve_until_closed(driver) == 31 - 3


def test_bytes_of_a_day_are_passed_by_one_answer_at_most(start: Start) -> None:
    settings = msgspec.structs.replace(QUICK, fetch=FetchSettings(max_body=1_000))
    driver = with_pages(start(settings))
    driver.set_policy(A, HostPolicy(daily_bytes=10_000))
    assert serve_until_closed(driver, size=900) == 12
    assert driver.host(A).bytes == 12 * 900


@pytest.mark.parametrize("zone", ["", "Asia/Kolkata", "America/New_York"])
def test_no_lease_lies_in_quiet_hours_and_none_runs_into_them(start: Start, zone: str) -> None:
    driver = with_pages(start(QUICK), pages=4)
    driver.set_policy(A, HostPolicy(quiet_hours="05:15-07:45,20:00-23:00", time_zone=zone or None))
    there = ZoneInfo(zone or "UTC")
    seen_open = seen_closed = 0
    for _ in range(150):
        now = datetime.fromtimestamp(driver.clock.now(), there)
        minute = 60 * now.hour + now.minute
        is_quiet = 315 <= minute < 465 or 1200 <= minute < 1380
        leases = driver.lease(duration=60)
        assert not (leases and is_quiet), now
        for lease in leases:
            assert lease.closes_at is not None
            end = datetime.fromtimestamp(lease.closes_at, there)
            assert (end.hour, end.minute, end.second) in ((5, 15, 0), (20, 0, 0))
            driver.answer(lease, NO_RULES if lease.tasks[0].kind is TaskKind.ROBOTS else OK)
        driver.admit(discovered(f"{A}/later/{driver.clock.now()}"))
        seen_open, seen_closed = seen_open + bool(leases), seen_closed + is_quiet
        driver.clock.advance(601)
    assert seen_open > 20
    assert seen_closed > 20


def test_an_operator_opens_a_host_at_once(start: Start) -> None:
    driver = with_pages(start(QUICK))
    driver.set_policy(A, HostPolicy(quiet_hours="00:00-12:00"))
    assert driver.lease() == []
    driver.set_policy(A, HostPolicy())
    assert len(driver.lease()) == 1


def test_the_ledger_of_a_host_sums_up_what_it_was_asked(driver: Driver) -> None:
    with_pages(driver, pages=3)
    while leases := driver.lease(capacity=1):
        for task in leases[0].tasks:
            driver.clock.advance(leases[0].delay)
            driver.settle(driver.outcome(leases[0], OK, task))
        driver.clock.advance(1)
    driver.clock.advance(DAY)
    driver.admit(discovered(f"{A}/later"))
    driver.serve(3)
    found = driver.ask(driver.frontier.ledger_of(Host(A), fetches=2))
    assert found is not None
    assert found.requests == driver.stats().fetches
    assert found.robots_requests == driver.stats().robots_fetches
    assert found.bytes == driver.stats().bytes
    assert found.smallest_gap is not None
    assert found.smallest_gap >= 1.0 - 1e-6
    assert sum(day.requests for day in found.days) == found.requests
    assert len(found.latest) == 2
    assert found.latest[0].at >= found.latest[1].at
    assert driver.ask(driver.frontier.ledger_of(Host("http://nobody.test"), fetches=2)) is None
