"""What matters is fetched first: by the links of others, by the operator's weight, by signals from downstream."""

from __future__ import annotations

import msgspec
import pytest

from skitter.frontier.link_batches import pack
from skitter.model import Host, HostPolicy, Refusal, VerdictKind
from skitter.schedule.importance import budget_by_word, heard, points, points_by_word, worth_of_page
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings, TrapSettings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered
from tests.keys import key_of

A, B, C = "http://a.test", "http://b.test", "http://c.test"
OPEN = Settings(crawl=CrawlSettings(scope="any"), traps=TrapSettings(mode="off"))
BY_IMPORTANCE = msgspec.structs.replace(OPEN, frontier=FrontierSettings(importance=True))


def link(driver: Driver, links: dict[str, list[str]]) -> None:
    """Fetches pages of hosts whose robots.txt are known; they lead there."""
    for lease in driver.lease():
        (page,) = [task.url for task in lease.tasks]
        found = [discovered(url, priority=None, parent=key_of(page)) for url in links[page]]
        driver.answer(lease, msgspec.structs.replace(OK, link_batches=pack(found)))


def priority_of(driver: Driver, url: str) -> int:
    driver.admit(discovered(url, priority=None))
    return driver.explain(url).priority


def test_a_host_that_others_link_has_more_urgent_pages(start: Start) -> None:
    driver = start(BY_IMPORTANCE)
    voters = [f"http://v{number}.test/" for number in range(6)]
    driver.open_host(*voters)
    links = {page: [f"{B}/{number}"] for number, page in enumerate(voters)}
    links[voters[0]].append(f"{C}/0")
    link(driver, links)
    famous, obscure = priority_of(driver, f"{B}/new"), priority_of(driver, f"{C}/new")
    assert famous > obscure + 5


def test_without_the_setting_links_of_others_change_nothing_for_the_host(start: Start) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/")
    link(driver, {A + "/": [f"{B}/1", f"{B}/2"]})
    assert priority_of(driver, f"{B}/new") == priority_of(driver, f"{C}/new")


@pytest.mark.parametrize("settings", [OPEN, BY_IMPORTANCE])
def test_the_operators_weight_moves_the_pages_of_a_host(start: Start, settings: Settings) -> None:
    driver = start(settings)
    driver.open_host(A + "/", B + "/")
    usual = priority_of(driver, f"{A}/1")
    driver.set_policy(B, HostPolicy(weight=-1.0))
    assert priority_of(driver, f"{B}/1") == usual - 20


def test_signals_move_priorities_by_host_and_by_path_and_survive(start: Start) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/", B + "/")
    usual = priority_of(driver, f"{A}/1")
    for _ in range(10):
        driver.run(driver.frontier.signal(Host(B), 1.0))
        driver.run(driver.frontier.signal(Host(B), -1.0, "/old/"))
    driver.reopen()
    assert priority_of(driver, f"{B}/1") > usual + 10
    assert priority_of(driver, f"{B}/old/1") < usual - 10
    assert driver.run(driver.frontier.signal(Host("http://nobody.test"), 1.0)) is None


def test_signals_move_budgets_and_what_was_refused_comes_back(start: Start) -> None:
    driver = start(msgspec.structs.replace(OPEN, politeness=PolitenessSettings(host_budget=4)))
    driver.open_host(A + "/")
    verdicts = driver.admit(*(discovered(f"{A}/{number}") for number in range(10)))
    assert [verdict.reason for verdict in verdicts if verdict.kind is VerdictKind.REFUSED] == [
        Refusal.BUDGET
    ] * 7
    for _ in range(10):
        driver.run(driver.frontier.signal(Host(A), 1.0))
    while driver.promote():
        pass
    assert driver.stats().refusals.get("budget", 0) == 0
    for _ in range(10):
        driver.run(driver.frontier.signal(Host(B), -1.0))
        driver.run(driver.frontier.signal(Host(A), -1.0))
    assert driver.admit(discovered(f"{A}/more"))[0].reason is Refusal.BUDGET


def test_the_arithmetic_has_its_bounds() -> None:
    assert worth_of_page(10.0, 5) == pytest.approx((1 + 8.5) / 5)
    assert worth_of_page(1e9, 1) == 1000
    assert points(0.0, 0, 0.0) == 0
    assert points(8.0, 1, 1.0) > points(2.0, 1, 1.0) > points(2.0, 64, 1.0) > points(0.0, 1, 1.0) >= -30
    assert points(1e12, 1, 1.0) == 30
    assert (points_by_word(9.0), points_by_word(-9.0)) == (20, -20)
    assert heard(0.0, 1.0) == pytest.approx(0.3)
    assert (budget_by_word(100, 1.0), budget_by_word(100, -1.0), budget_by_word(0, 1.0)) == (400, 25, 0)
