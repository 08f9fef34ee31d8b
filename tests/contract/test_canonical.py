"""Pages that name another as canonical: it is crawled, they are its aliases, and none is ever lost."""

from __future__ import annotations

import pytest

from skitter.errors import SettingsError
from skitter.frontier.link_batches import pack
from skitter.model import FailureKind, Fetched, Result, Task, Via
from skitter.settings import CrawlSettings, KeySettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, discovered, failed, redirected, seed
from tests.keys import key_of

A = "http://a.test"


def names(canonical: str, by: str = A + "/print") -> Fetched:
    """A page that names another; the step has put that other among its links."""
    found = discovered(canonical, via=Via.CANONICAL, depth=0, parent=key_of(by))
    return Fetched(
        status=200, content_type="text/html", size=10, canonical=canonical, link_batches=pack([found])
    )


MISSING = Fetched(status=404)
PLAIN = Fetched(status=200, content_type="text/html", size=10)


def crawl(driver: Driver, start: str, pages: dict[str, Result]) -> list[str]:
    """All that follows from a seed, each URL answered as told; what was asked for, in order."""
    driver.open_host(start)
    asked: list[str] = []
    while leases := driver.lease():
        for lease in leases:
            tasks: tuple[Task, ...] = lease.tasks
            asked += [task.url for task in tasks]
            # what is not told is a page that cannot exist, by which soft 404s are found
            driver.answer(lease, *(pages.get(task.url, MISSING) for task in tasks))
        driver.clock.advance(1)
    return asked


def alias(driver: Driver, url: str) -> tuple[str, str]:
    found = driver.explain(url)
    return found.alias_of, found.alias_why


def test_the_canonical_page_is_crawled_and_the_other_is_its_alias(driver: Driver) -> None:
    assert crawl(driver, A + "/print", {A + "/print": names(A + "/"), A + "/": PLAIN}) == [
        A + "/print",
        A + "/",
    ]
    found = driver.explain(A + "/print")
    assert (found.canonical, found.alias_of, found.alias_why) == (A + "/", A + "/", "")
    assert driver.explain(A + "/").found == f"{A}/print names it as canonical"
    assert alias(driver, A + "/") == ("", "")
    assert (driver.stats().aliases, driver.stats().pages) == (1, 2)


def test_an_alias_whose_type_became_unwanted_is_none_once_it_is_a_seed(driver: Driver) -> None:
    crawl(driver, A + "/print", {A + "/print": names(A + "/"), A + "/": PLAIN})
    driver.refresh(url=A + "/print")
    driver.fetch(failed(FailureKind.TYPE_UNWANTED))
    driver.admit(seed(A + "/print"))
    assert driver.explain(A + "/print").canonical == ""
    assert driver.stats().aliases == 0


def test_in_a_chain_the_last_page_stands_for_all(driver: Driver) -> None:
    crawl(driver, A + "/a", {A + "/a": names(A + "/b"), A + "/b": names(A + "/c"), A + "/c": PLAIN})
    assert alias(driver, A + "/a") == alias(driver, A + "/b") == (A + "/c", "")


@pytest.mark.parametrize("loop", [("/b", "/a"), ("/b", "/c", "/a"), ("/b", "/c", "/b")])
def test_in_a_loop_each_page_counts_for_itself(driver: Driver, loop: tuple[str, ...]) -> None:
    pages: dict[str, Result] = {}
    at = A + "/a"
    for path in loop:
        pages[at] = names(A + path)
        at = A + path
    asked = crawl(driver, A + "/a", pages)
    assert sorted(asked) == sorted(pages)
    assert all(alias(driver, url)[0] == "" for url in pages)
    assert alias(driver, A + "/a")[1] == "which leads back to it"
    assert driver.stats().pages == len(pages)


def test_an_endless_chain_ends(driver: Driver) -> None:
    pages: dict[str, Result] = {f"{A}/{n}": names(f"{A}/{n + 1}") for n in range(30)}
    crawl(driver, A + "/0", pages | {A + "/30": PLAIN})
    assert alias(driver, A + "/0") == ("", "which is one of more than 10 in a row")
    assert alias(driver, A + "/25") == (A + "/30", "")


def test_a_canonical_page_that_is_gone_leaves_its_alias_for_itself(driver: Driver) -> None:
    crawl(driver, A + "/a", {A + "/a": names(A + "/b"), A + "/b": Fetched(status=404)})
    assert alias(driver, A + "/a") == ("", f"{A}/b is gone")


def test_a_canonical_page_that_answers_with_an_error_leaves_its_alias_for_itself(driver: Driver) -> None:
    crawl(driver, A + "/a", {A + "/a": names(A + "/b"), A + "/b": Fetched(status=403)})
    assert alias(driver, A + "/a") == ("", f"{A}/b is answered with 403")


def test_a_canonical_page_out_of_scope_is_not_crawled_and_its_alias_counts_for_itself(driver: Driver) -> None:
    assert crawl(driver, A + "/a", {A + "/a": names("http://b.test/")}) == [A + "/a"]
    assert alias(driver, A + "/a") == ("", "http://b.test/ is refused (scope)")
    assert driver.explain(A + "/a").canonical == "http://b.test/"


def test_a_canonical_page_on_another_host_in_scope_stands_for_its_alias(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(scope="any")))
    driver.open_host(A + "/a")
    driver.fetch(names("http://b.test/"))
    assert alias(driver, A + "/a") == ("", "http://b.test/ is queued")
    driver.clock.advance(1)
    driver.serve(3)
    assert alias(driver, A + "/a") == ("http://b.test/", "")


def test_a_canonical_url_that_redirects_back_leaves_the_page_for_itself(driver: Driver) -> None:
    pages: dict[str, Result] = {A + "/a": names(A + "/b"), A + "/b": redirected(A + "/a", depth=0)}
    assert crawl(driver, A + "/a", pages) == [A + "/a", A + "/b"]
    assert alias(driver, A + "/a") == ("", "which leads back to it")
    assert driver.explain(A + "/a").state == "completed"


def test_a_canonical_url_that_redirects_on_is_followed_to_its_end(driver: Driver) -> None:
    pages: dict[str, Result] = {
        A + "/a": names(A + "/b"),
        A + "/b": redirected(A + "/c", depth=0),
        A + "/c": PLAIN,
    }
    crawl(driver, A + "/a", pages)
    assert alias(driver, A + "/a") == (A + "/c", "")


def test_a_page_that_names_no_other_any_more_is_no_alias(driver: Driver) -> None:
    crawl(driver, A + "/a", {A + "/a": names(A + "/b"), A + "/b": PLAIN})
    assert driver.refresh(url=A + "/a") == 1
    driver.clock.advance(1)
    driver.fetch(PLAIN)
    assert (driver.explain(A + "/a").canonical, driver.stats().aliases) == ("", 0)


def test_a_canonical_page_is_as_deep_as_its_alias(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_depth=0)))
    assert crawl(driver, A + "/a", {A + "/a": names(A + "/b"), A + "/b": PLAIN}) == [A + "/a", A + "/b"]


# -- the store knows which keys it was made with


def test_a_store_is_not_opened_with_other_keys_than_it_was_made_with(driver: Driver) -> None:
    driver.open_host(A + "/")
    with pytest.raises(SettingsError, match=r"\[keys\] .* put back trailing_slash = false in crawl.toml"):
        driver.reopen(Settings(keys=KeySettings(trailing_slash=True)))
    driver.reopen()
    assert driver.explain(A + "/").known
