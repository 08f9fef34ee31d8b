"""What a page needs to look as it does: let in where a link would not be, and counted apart."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from skitter.frontier.link_batches import pack
from skitter.model import (
    Discovered,
    FailureKind,
    Fetched,
    HostPolicy,
    Refusal,
    TaskKind,
    Verdict,
    VerdictKind,
    Via,
)
from skitter.schedule.priority import ByDepthAndLinks, tier_of
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, redirected, robots, seed

ADDED, KNOWN, REFUSED = VerdictKind.ADDED, VerdictKind.KNOWN, VerdictKind.REFUSED
A, FAR = "http://a.test", "http://far.test"


def needed(url: str, *, depth: int = 0, level: int = 1, parent: str = A + "/") -> Discovered:
    found = discovered(url, via=Via.REQUISITE, depth=depth, parent=discovered(parent).key)
    return replace(found, kind=TaskKind.REQUISITE, nesting=level, priority=None)


def ask(driver: Driver, *found: Discovered) -> list[VerdictKind]:
    return [verdict.kind for verdict in driver.admit(*found)]


def why(driver: Driver, found: Discovered) -> Verdict:
    return driver.admit(found)[0]


def test_a_requisite_is_let_in_whatever_its_host_extension_depth_and_the_include_patterns(
    start: Start,
) -> None:
    driver = start(Settings(crawl=CrawlSettings(include=("/docs/",), max_depth=2)))
    driver.admit(seed(A + "/docs/"))
    urls = [A + "/pic.jpg", FAR + "/style.css", A + "/docs/x.js", FAR + "/font"]
    assert ask(driver, *(needed(url, depth=9) for url in urls)) == [ADDED] * 4
    assert ask(driver, *(needed(url, depth=9) for url in urls)) == [KNOWN] * 4


def test_a_requisite_is_refused_for_exclude_blocked_hosts_budgets_and_length(start: Start) -> None:
    settings = Settings(
        crawl=CrawlSettings(exclude=("/ads/",), max_url_length=60),
        politeness=PolitenessSettings(host_budget=2),
    )
    driver = start(settings)
    driver.admit(seed(A + "/"))
    driver.set_policy("http://no.test", HostPolicy(blocked=True))
    assert why(driver, needed(FAR + "/ads/1.png")).reason is Refusal.EXCLUDED
    assert why(driver, needed("http://no.test/1.png")).reason is Refusal.BLOCKED
    assert why(driver, needed(FAR + "/" + "x" * 60)).reason is Refusal.LENGTH
    assert ask(driver, *(needed(f"{FAR}/{n}.png") for n in range(3))) == [ADDED, ADDED, REFUSED]
    assert why(driver, needed(f"{FAR}/4.png")).reason is Refusal.BUDGET


@pytest.mark.parametrize("recent_keys", [1, 1000])
def test_a_refused_link_is_let_in_when_a_page_needs_it(start: Start, recent_keys: int) -> None:
    driver = start(Settings(frontier=FrontierSettings(recent_keys=recent_keys)))
    driver.admit(seed(A + "/"))
    urls = [A + "/pic.jpg", FAR + "/x"]
    assert ask(driver, *map(discovered, urls)) == [REFUSED, REFUSED]
    assert ask(driver, *map(needed, urls)) == [ADDED, ADDED]
    assert ask(driver, *map(discovered, urls), *map(needed, urls)) == [KNOWN] * 4
    assert driver.stats().refusals == {}
    assert driver.explain(FAR + "/x").found == f"needed by {A}/"


def test_a_link_refused_for_its_type_is_fetched_again_when_a_page_needs_it(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.TYPE_UNWANTED))
    assert driver.explain(A + "/").state == "refused"
    assert ask(driver, needed(A + "/", parent=A + "/other")) == [ADDED]
    driver.clock.advance(2)
    assert driver.lease_one().tasks[0].kind is TaskKind.REQUISITE


@pytest.mark.parametrize("recent_keys", [1, 1000])
def test_what_stays_refused_is_judged_once_as_a_requisite(start: Start, recent_keys: int) -> None:
    crawl, frontier = CrawlSettings(exclude=("jpg",)), FrontierSettings(recent_keys=recent_keys)
    driver = start(Settings(crawl=crawl, frontier=frontier))
    driver.admit(seed(A + "/"))
    url = A + "/pic.jpg"
    assert ask(driver, discovered(url), needed(url)) == [REFUSED, REFUSED]
    assert ask(driver, discovered(A + "/1"), discovered(A + "/2"), needed(url)) == [ADDED, ADDED, KNOWN]
    assert driver.stats().refusals == {"excluded": 1}


def test_a_page_stays_a_page_and_a_requisite_a_requisite(driver: Driver) -> None:
    driver.open_host(A + "/")
    found = [discovered(A + "/1"), needed(A + "/1"), needed(A + "/2"), discovered(A + "/2")]
    assert ask(driver, *found) == [ADDED, KNOWN, ADDED, KNOWN]
    levels = {task.url: task.nesting for task in driver.lease_one().tasks}
    assert levels == {A + "/": 0, A + "/1": 0, A + "/2": 1}


def test_requisites_are_fetches_and_no_pages(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=2)))
    driver.open_host(A + "/")
    driver.admit(*(needed(f"{A}/{n}.png") for n in range(3)), discovered(A + "/1"))
    for _ in range(5):
        for lease in driver.lease():
            driver.answer(lease, OK)
        driver.clock.advance(5)
    stats = driver.stats()
    assert (stats.pages, stats.requisites, stats.fetches, stats.robots_fetches) == (2, 3, 6, 1)
    driver.refresh()
    assert (driver.stats().pages, driver.stats().requisites) == (0, 0)


def test_a_redirected_requisite_stays_one_and_brings_nothing_into_scope(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(replace(OK, link_batches=pack([needed(A + "/pic")])))
    driver.clock.advance(2)
    moved = redirected(FAR + "/pic.png", depth=0)
    driver.fetch(
        replace(moved, target=replace(moved.target, kind=TaskKind.REQUISITE, nesting=1, priority=None))
    )
    assert driver.explain(FAR + "/pic.png").state == "queued"
    assert "for a page that needs it" in driver.explain(FAR + "/pic.png").found
    assert ask(driver, discovered(FAR + "/page")) == [REFUSED]
    (lease,) = [one for one in driver.lease() if one.host == FAR]
    driver.answer(lease, robots())
    driver.clock.advance(2)
    assert driver.lease_one().tasks[0].kind is TaskKind.REQUISITE


def test_robots_rules_hold_for_requisites(driver: Driver) -> None:
    driver.open_host(A + "/", body=robots("User-agent: *", "Disallow: /img/"))
    driver.admit(needed(A + "/img/1.png"))
    driver.fetch()
    assert driver.explain(A + "/img/1.png").state == "denied"


def test_a_requisite_waits_a_tier_below_its_page() -> None:
    priority = ByDepthAndLinks().priority
    for depth in range(16):
        page, part = priority(Via.LINK, depth, 0), priority(Via.REQUISITE, depth, 0)
        assert 0 <= part < page
        assert tier_of(part) == min(3, tier_of(page) + 1)


def test_a_stylesheets_own_requisites_say_what_needs_them(driver: Driver) -> None:
    driver.open_host(A + "/")
    sheet = needed(A + "/a.css")
    driver.fetch(replace(OK, link_batches=pack([sheet])))
    driver.clock.advance(2)
    inner = needed(FAR + "/b.png", level=2, parent=sheet.url)
    assert (
        driver.fetch(Fetched(status=200, size=9, content_type="text/css", link_batches=pack([inner]))).added
        == 1
    )
    told = driver.explain(FAR + "/b.png")
    assert (told.found, told.trail) == (f"needed by {A}/a.css", (A + "/a.css", A + "/"))
    assert "wherever it lies" in told.admitted
