"""Focused crawls, through the contract: links with priorities of their own, and pages off the topic in a row."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from skitter.frontier.link_batches import pack
from skitter.model import Discovered, Fetched, HostLease, Refusal
from skitter.settings import FrontierSettings, Settings, TrapSettings
from skitter.settings.focus import FocusSettings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered

A = "http://a.test"


def focused(tunnel: int = 1, floor: float = 0.5) -> Settings:
    return Settings(
        focus=FocusSettings(words=("kettle",), tunnel=tunnel, floor=floor),
        frontier=FrontierSettings(tasks_per_lease=1),
        traps=TrapSettings(mode="off"),
    )


def link(path: str, priority: int, off: int) -> Discovered:
    return replace(discovered(A + path, priority=priority, parent=discovered(A + "/").key), nesting=off)


def page(*links: Discovered, score: float | None = None) -> Fetched:
    return replace(OK, link_batches=pack(links), score=score)


def lease_one(driver: Driver) -> HostLease:
    driver.clock.advance(2)
    # so short that one task fits
    return driver.lease_one(duration=2.0)


def fetch(driver: Driver, result: Fetched) -> None:
    driver.answer(lease_one(driver), result)


def begin(driver: Driver, *links: Discovered, score: float | None = None) -> None:
    driver.open_host(A + "/")
    fetch(driver, page(*links, score=score))


def test_what_too_many_pages_off_the_topic_lead_to_is_refused_and_explained(start: Start) -> None:
    driver = start(focused())
    begin(driver, link("/near", 30, 1), link("/far", 10, 2))
    assert driver.explain(A + "/near").state == "queued"
    far = driver.explain(A + "/far")
    assert far.state == "refused"
    assert far.reason.endswith("2 pages off the topic in a row lead to it, focus.tunnel is 1")
    assert driver.stats().refusals == {Refusal.OFF_TOPIC: 1}


@pytest.mark.parametrize("between", [False, True])
def test_a_better_way_lets_it_in_also_after_a_restart(start: Start, between: bool) -> None:
    driver = start(focused())
    begin(driver, link("/far", 10, 2), link("/on", 70, 0))
    if between:
        driver.reopen()
    fetch(driver, page(link("/far", 40, 0), score=0.9))
    assert driver.explain(A + "/far").state == "queued"
    assert driver.explain(A + "/far").priority == 40
    assert driver.stats().refusals == {}


def test_a_wider_tunnel_brings_it_back(start: Start) -> None:
    driver = start(focused())
    begin(driver, link("/far", 10, 2))
    driver.reopen(focused(tunnel=2))
    for _ in range(5):
        driver.promote()
    assert driver.explain(A + "/far").state == "queued"


def test_a_link_of_a_better_page_raises_what_waits_and_never_lowers_it(start: Start) -> None:
    driver = start(focused())
    begin(driver, link("/x", 10, 1), link("/y", 60, 0), link("/z", 50, 0))
    fetch(driver, page(link("/x", 55, 0), link("/z", 20, 1)))
    assert [driver.explain(A + path).priority for path in ("/x", "/z")] == [55, 50]
    asked = []
    for _ in range(2):
        lease = lease_one(driver)
        asked.append(lease.tasks[0])
        driver.answer(lease, OK)
    assert [task.url for task in asked] == [A + "/x", A + "/z"]
    assert [task.nesting for task in asked] == [0, 0]


def test_tasks_know_how_many_pages_off_the_topic_came_before(start: Start) -> None:
    driver = start(focused(tunnel=3))
    begin(driver, link("/x", 10, 2))
    driver.reopen()
    assert lease_one(driver).tasks[0].nesting == 2


def test_the_harvest_counts_pages_by_their_first_answer(start: Start) -> None:
    driver = start(focused())
    begin(driver, link("/x", 10, 1), link("/y", 10, 1), score=0.2)
    fetch(driver, page(score=0.8))
    fetch(driver, page())
    driver.refresh(url=A + "/x")
    fetch(driver, page(score=0.1))
    assert (driver.stats().scored, driver.stats().on_topic) == (2, 1)
