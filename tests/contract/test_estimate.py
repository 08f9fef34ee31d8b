"""How much a crawl has left: what `skitter plan` and displays say follows from what hosts have shown."""

from __future__ import annotations

import msgspec
import pytest

from skitter.frontier.link_batches import pack
from skitter.model import HostPolicy
from skitter.plan.estimate import Estimate
from skitter.settings import CrawlSettings, PolitenessSettings, Settings, TrapSettings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered

A, B = "http://a.test", "http://b.test"
PLAIN = Settings(traps=TrapSettings(mode="off"))


def estimated(driver: Driver) -> Estimate:
    return driver.ask(driver.frontier.estimate())


def test_what_waits_is_left_and_politeness_says_how_long_that_takes(start: Start) -> None:
    driver = start(PLAIN)
    driver.open_host(A + "/", B + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(99)))
    driver.set_policy(A, HostPolicy(delay=3.0))
    found = estimated(driver)
    assert found.urls.likely == 101
    assert found.seconds.likely == pytest.approx(300)
    assert [host.host for host in found.hosts] == [A, B]
    assert found.hosts[0].interval == 3.0
    assert "operator" in found.hosts[0].why


def test_what_is_leased_is_left_until_it_is_settled(start: Start) -> None:
    driver = start(PLAIN)
    driver.open_host(A + "/")
    lease = driver.lease_one()
    assert estimated(driver).urls.likely == 1
    driver.answer(lease, OK)
    assert estimated(driver).urls.likely == 0


def test_pages_that_bring_others_are_expected_to_go_on_with_it(start: Start) -> None:
    """Each page leads to the next two of 200: half of what it brings is new, until the last."""
    driver = start(PLAIN)
    driver.open_host(A + "/0")
    for _ in range(40):
        for lease in driver.lease(duration=600):
            for task in lease.tasks:
                number = int(task.url.rpartition("/")[2])
                ahead = [discovered(f"{A}/{n}") for n in range(number + 1, min(200, number + 30))]
                page = msgspec.structs.replace(OK, link_batches=pack(ahead), digest=task.key * 2)
                driver.settle(driver.outcome(lease, page, task))
                driver.clock.advance(1)
    found = estimated(driver)
    left = 200 - driver.stats().pages
    queued = sum(driver.stats().tiers)
    assert found.urls.likely >= queued
    assert found.urls.low <= left <= max(found.urls.high, left)


def test_a_page_limit_is_what_is_left_to(start: Start) -> None:
    driver = start(msgspec.structs.replace(PLAIN, crawl=CrawlSettings(max_pages=20)))
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(99)))
    found = estimated(driver)
    assert found.reaches_limit
    assert found.seconds.likely == pytest.approx(20)


def test_a_budget_is_never_passed(start: Start) -> None:
    settings = msgspec.structs.replace(PLAIN, politeness=PolitenessSettings(host_budget=30))
    driver = start(settings)
    driver.open_host(A + "/")
    for _ in range(8):
        for lease in driver.lease(duration=600):
            for task in lease.tasks:
                more = [discovered(f"{task.url}x{n}") for n in range(5)]
                driver.settle(
                    driver.outcome(lease, msgspec.structs.replace(OK, link_batches=pack(more)), task)
                )
                driver.clock.advance(1)
    assert driver.stats().pages + estimated(driver).urls.high <= 30 + 1


def test_a_given_up_or_blocked_host_has_nothing_left(start: Start) -> None:
    driver = start(PLAIN)
    driver.open_host(A + "/")
    driver.admit(discovered(f"{A}/1"))
    driver.set_policy(A, HostPolicy(blocked=True))
    assert estimated(driver).urls.likely == 0


def test_a_restart_forgets_nothing_of_it(start: Start) -> None:
    driver = start(PLAIN)
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(50)))
    driver.serve(10)
    before = estimated(driver)
    driver.reopen()
    after = estimated(driver)
    assert (after.urls, after.bytes) == (before.urls, before.bytes)
