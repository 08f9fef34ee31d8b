"""Catalogues: pages of the same words with names and figures of their own are fetched, if there is an end."""

from __future__ import annotations

import pytest

from skitter.model import Result
from skitter.settings import Settings, TrapSettings
from tests.contract.conftest import Start
from tests.frontier_kit import seed
from tests.trap_kit import SETTINGS, A, Site, Web, crawl, in_force, number_in, prose

PER_PAGE = 10
COMMON = prose(5) + " " + prose(6)


def screw(web: Web, url: str) -> Result:
    """60 words that all have, and a table of its own."""
    number = number_in(url)
    price = f"{number * 37 % 90}.{number * 71 % 100}"
    rows = f"weight {number * 13 % 997} price {price} stock {number * 7919 % 5003}"
    return web.page(url, f"{COMMON} {rows}", [A + "/"], title=f"Screw {number}")


def catalogue(web: Web, pages: int, jumps: tuple[int, ...]) -> Site:
    """A listing in numbered pages, up to `pages` of them."""

    def answer(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), [A + "/list?page=1"], title="Home")
        if "/screw/" in url:
            return screw(web, url)
        page = number_in(url)
        first = (page - 1) * PER_PAGE
        items = [f"{A}/screw/{1000 + number}" for number in range(first, first + PER_PAGE)]
        further = [f"{A}/list?page={page + jump}" for jump in jumps if page + jump <= pages]
        prices = " ".join(str(number * 37 % 9001) for number in range(first, first + PER_PAGE))
        return web.page(url, f"{COMMON} {prices}", [*items, *further], title=f"Screws, page {page}")

    return answer


@pytest.fixture
def web() -> Web:
    return Web()


def with_traps(traps: TrapSettings) -> Settings:
    return Settings(crawl=SETTINGS.crawl, politeness=SETTINGS.politeness, traps=traps)


def test_a_catalogue_that_differs_in_figures_alone_is_fetched_whole(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    driver.admit(seed(A + "/"))
    asked = crawl(driver, catalogue(web, 60, (1, 5, 20)), most=5_000)
    assert len({url for url in asked if "/screw/" in url}) == 600
    assert in_force(driver) == []
    assert driver.stats().verdicts == driver.stats().refusing == 0


def test_a_catalogue_without_end_is_stopped_with_its_entries_and_says_why(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    driver.admit(seed(A + "/"))
    asked = crawl(driver, catalogue(web, 10**9, (1, 2, 10, 300)), most=5_000)
    assert len(asked) < 500
    entries, listing = in_force(driver)
    assert (listing.kind, listing.level, listing.skeleton) == ("endless", "listing", "/list?page")
    assert "times in a row it led to a higher page" in listing.why
    assert entries.skeleton == "/screw/*"
    assert f"verdict {listing.id}" in entries.why
    assert listing.refused + entries.refused == driver.stats().refusals["trap"] > 0
    assert driver.stats().refusing == 2


def test_an_undone_listing_goes_on(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    driver.admit(seed(A + "/"))
    endless = catalogue(web, 10**9, (1, 2, 10, 300))
    crawl(driver, endless, most=5_000)
    views = in_force(driver)
    released = [driver.run(driver.frontier.undo_trap(view.id)) for view in views]
    assert released == [view.refused for view in views]
    assert driver.stats().refusing == driver.stats().verdicts == 0
    assert len(crawl(driver, endless, most=1_000)) >= 1_000
    assert in_force(driver) == []


def test_a_host_of_entries_of_which_ever_more_wait_is_stopped_in_the_end(start: Start, web: Web) -> None:
    """Listings by name, of which nobody can tell how many there are."""
    driver = start(with_traps(TrapSettings(entries_start=200)), audited=False)

    def shelves(url: str) -> Result:
        number = number_in(url)
        if "/screw/" in url:
            return screw(web, url)
        names = [f"{A}/{name}/{number * 2 + step}" for step, name in enumerate(("north", "south"), 1)]
        items = [f"{A}/screw/{number * 20 + step}" for step in range(20)]
        return web.page(
            url, f"{COMMON} {number * 17} {number * 31} {number * 7}", names + items, title=f"S{number}"
        )

    driver.admit(seed(A + "/north/0"))
    asked = crawl(driver, shelves, most=5_000)
    assert len(asked) < 500
    (view,) = in_force(driver)
    assert (view.kind, view.level) == ("budget", "host")
    assert "differ in title and figures alone" in view.why


def test_pages_with_one_title_are_no_entries_whatever_their_figures(start: Start, web: Web) -> None:
    """A clock on a page that comes again under ever new URLs."""
    driver = start(SETTINGS, audited=False)

    def answer(url: str) -> Result:
        number = number_in(url)
        links = [f"{A}/visit/{number * 3 + step}" for step in (1, 2, 3)]
        clock = f"at {number * 37 % 24}:{number * 71 % 60}:{number * 13 % 60} visitor {number * 7919}"
        return web.page(url, f"{COMMON} {clock}", links, title="Welcome")

    driver.admit(seed(A + "/"))
    assert len(crawl(driver, answer)) < 60
    assert len(in_force(driver)) == 1


def test_names_alone_make_entries_of_pages_that_lead_nowhere_further(start: Start, web: Web) -> None:
    """A reference without a word about its members; and a search that repeats what was asked for."""
    driver = start(SETTINGS, audited=False)
    members = [f"{A}/api/{number}" for number in range(300)]

    def reference(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), members, title="Members")
        name = prose(number_in(url)).split()[0] + prose(number_in(url) + 7).split()[1]
        return web.page(url, f"{COMMON} {prose(3)} {name}", [A + "/"], title=f"{name} - reference")

    driver.admit(seed(A + "/"))
    assert {*crawl(driver, reference)} >= {*members}
    assert in_force(driver) == []


def test_a_search_that_repeats_what_was_asked_for_is_stopped(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)

    def echo(url: str) -> Result:
        number = number_in(url)
        links = [f"{A}/find/{number * 3 + step}" for step in (1, 2, 3)]
        name = prose(number).split()[0]
        return web.page(url, f"{COMMON} {prose(3)} {name}", links, title=f"{name} - results")

    driver.admit(seed(A + "/"))
    assert len(crawl(driver, echo)) < 60


def test_observing_records_verdicts_and_refuses_nothing(start: Start, web: Web) -> None:
    driver = start(with_traps(TrapSettings(mode="observe")), audited=False)
    driver.admit(seed(A + "/"))

    def calendar(url: str) -> Result:
        month = number_in(url)
        links = [f"{A}/calendar/{month + step}" for step in (1, 2, 3)]
        return web.page(url, f"{COMMON} month {month}", links, title=f"Month {month}")

    assert len(crawl(driver, calendar, most=200)) >= 200
    host, months = in_force(driver)
    assert (months.skeleton, months.refused) == ("/calendar/#", 0)
    assert months.fetched > 100
    assert (host.skeleton, host.refused) == ("all of the host", 0)
    assert driver.stats().refusals == {}
    assert (driver.stats().verdicts, driver.stats().refusing) == (2, 0)
