"""Sections without end are stopped, and those that have one are crawled to their last leaf."""

from __future__ import annotations

from functools import partial

import pytest

from skitter.model import Failed, FailureKind, Result
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, seed
from tests.trap_kit import SETTINGS, A, Web, crawl, in_force, number_in, prose


@pytest.fixture
def driver(start: Start) -> Driver:
    return start(SETTINGS)


@pytest.fixture
def web() -> Web:
    return Web()


def branches(path: str, number: int, below: int) -> list[str]:
    return [f"{A}{path}{number * below + step}" for step in range(1, below + 1)]


def babble(web: Web, url: str) -> Result:
    """Every page is new, and leads to six that are."""
    number = number_in(url)
    return web.page(url, prose(number), branches("/story/", number, 6), title=f"Story {prose(number)[:20]}")


def test_a_section_that_grows_without_end_is_stopped(driver: Driver, web: Web) -> None:
    driver.admit(seed(A + "/story/0"))
    assert len(crawl(driver, partial(babble, web))) < 120
    (verdict,) = in_force(driver)
    assert verdict.kind == "endless"
    assert "4 ways down found no end" in verdict.why


def test_a_section_is_probed_across_the_death_of_the_process(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    driver.admit(seed(A + "/story/0"))
    asked: list[str] = []
    while not in_force(driver) and len(asked) < 400:
        asked += crawl(driver, partial(babble, web), most=8)
        driver.reopen()
    assert len(asked) == len(set(asked)) < 120


def test_a_way_down_that_is_never_answered_does_not_keep_its_host_waiting(start: Start, web: Web) -> None:
    """A depth probe whose page fails is given up; meanwhile and afterwards all that can be fetched is."""
    driver = start(SETTINGS, audited=False)
    size = 1 + 4 + 16 + 64 + 256

    def broken(url: str) -> Result:
        number = number_in(url)
        if number >= 85 and number % 2:
            return Failed(kind=FailureKind.TYPE_UNWANTED)
        links = [link for link in branches("/tree/", number, 4) if number_in(link) < size]
        return web.page(url, prose(number), links, title=f"Folder {prose(number)[:20]}")

    driver.admit(seed(A + "/tree/0"))
    fetched = {
        url for url in crawl(driver, broken, most=3_000) if number_in(url) < 85 or not number_in(url) % 2
    }
    assert len(fetched) == 85 + 128
    assert in_force(driver) == []


def test_a_search_that_finds_known_pages_for_ever_is_stopped(start: Start, web: Web) -> None:
    """That its results are known says nothing of its end: only what is known of the search itself does."""
    driver = start(SETTINGS, audited=False)

    def search(url: str) -> Result:
        number = number_in(url)
        if "/note/" in url:
            return web.page(url, prose(number), title=f"Note {prose(number)[:20]}")
        results = [f"{A}/note/{(number * 7 + step * 5) % 20}" for step in range(3)]
        related = branches("/tag/", number, 4)
        return web.page(url, prose(number + 100), [*results, *related], title=f"On {prose(number)[:20]}")

    driver.admit(seed(A + "/tag/0"))
    asked = crawl(driver, search)
    assert {f"{A}/note/{number}" for number in range(20)} <= {*asked}
    assert len(asked) < 160
    assert {view.kind for view in in_force(driver)} == {"endless"}


def test_a_tree_without_cross_links_is_crawled_to_its_last_leaf(start: Start, web: Web) -> None:
    """Breadth first its leaves come last, and until then each page leads to new ones: a probe finds one early."""
    driver = start(SETTINGS, audited=False)
    size = 1 + 3 + 9 + 27 + 81 + 243 + 729

    def folder(url: str) -> Result:
        number = number_in(url)
        below = branches("/tree/", number, 3)
        links = [link for link in below if number_in(link) < size]
        return web.page(url, prose(number), links, title=f"Folder {prose(number)[:20]}")

    driver.admit(seed(A + "/tree/0"))
    asked = crawl(driver, folder, most=2_000)
    assert len(asked) == len(set(asked)) == size
    assert in_force(driver) == []
    first_leaf = next(place for place, url in enumerate(asked) if number_in(url) >= size - 729)
    assert first_leaf < 120, "at least it was looked for"


def test_a_section_whose_pages_link_each_other_is_crawled_to_its_end(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    size = 701

    def wiki(url: str) -> Result:
        number = number_in(url)
        links = [f"{A}/wiki/{(number * 11 + step * 131) % size}" for step in range(1, 9)]
        return web.page(url, prose(number), links, title=f"Article {prose(number)[:20]}")

    driver.admit(seed(A + "/wiki/1"))
    assert len(crawl(driver, wiki)) > 0.95 * size
    assert in_force(driver) == []
