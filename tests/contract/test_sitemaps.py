"""Sitemaps and feeds in a frontier: who brings them in, whom they may speak for, and what they count as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from skitter.frontier.link_batches import pack
from skitter.model import Discovered, Fetched, TaskKind, UrlKey, VerdictKind, Via
from skitter.settings import CrawlSettings, PolitenessSettings, Settings, SitemapSettings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, robots, seed
from tests.keys import key_of

A, B, FAR = "http://a.test", "http://b.test", "http://far.test"
MAP = A + "/sitemap.xml"
ANY = CrawlSettings(scope="any")


def named(url: str, sitemap: str, kind: TaskKind = TaskKind.PAGE, via: Via = Via.SITEMAP) -> Discovered:
    depth = 1 if kind is TaskKind.PAGE else 0
    found = discovered(url, via=via, depth=depth, priority=None, parent=key_of(sitemap))
    return replace(found, kind=kind, nesting=int(kind is TaskKind.SITEMAP))


def listing(sitemap: str, *urls: str, kind: TaskKind = TaskKind.PAGE) -> Fetched:
    return Fetched(status=200, size=10, link_batches=pack([named(url, sitemap, kind) for url in urls]))


def serve(driver: Driver, answers: Mapping[str, Any], rounds: int = 12) -> list[tuple[TaskKind, str]]:
    """A worker that answers as told, pages with nothing else; what it was asked to do."""
    asked = []
    for _ in range(rounds):
        for lease in driver.lease():
            for task in lease.tasks:
                usual = NO_RULES if task.kind is TaskKind.ROBOTS else OK
                driver.settle(driver.outcome(lease, answers.get(task.url, usual), task))
                asked.append((task.kind, task.url))
        driver.clock.advance(2)
    return asked


def sitemaps_in(asked: list[tuple[TaskKind, str]]) -> list[str]:
    return [url for kind, url in asked if kind is TaskKind.SITEMAP]


def pages_in(asked: list[tuple[TaskKind, str]]) -> set[str]:
    return {url for kind, url in asked if kind is TaskKind.PAGE}


def test_what_a_robots_txt_names_is_read_as_a_sitemap_and_counts_as_no_page(start: Start) -> None:
    driver = start()
    driver.admit(seed(A + "/"))
    answers = {A + "/robots.txt": robots(f"Sitemap: {MAP}"), MAP: listing(MAP, A + "/one", A + "/two")}
    asked = serve(driver, answers)
    assert sitemaps_in(asked) == [MAP]
    assert pages_in(asked) == {A + "/", A + "/one", A + "/two"}
    stats = driver.stats()
    assert (stats.pages, stats.sitemaps) == (3, 1)
    assert driver.explain(MAP).found == "named as a sitemap by a robots.txt"
    one = driver.explain(A + "/one")
    assert (one.found, one.depth) == (f"named by the sitemap {MAP}", 1)


def test_no_sitemap_is_asked_for_when_they_are_off(start: Start) -> None:
    driver = start(Settings(sitemaps=SitemapSettings(use="off", probe=True)))
    driver.admit(seed(A + "/"))
    assert sitemaps_in(serve(driver, {A + "/robots.txt": robots(f"Sitemap: {MAP}")})) == []


def test_the_usual_place_is_tried_only_by_setting_and_only_where_robots_txt_names_none(start: Start) -> None:
    driver = start(Settings(sitemaps=SitemapSettings(probe=True)))
    driver.admit(seed(A + "/"), seed(B + "/"))
    asked = serve(driver, {A + "/robots.txt": robots(f"Sitemap: {A}/other.xml")})
    assert sorted(sitemaps_in(asked)) == [A + "/other.xml", B + "/sitemap.xml"]


def test_sitemaps_of_hosts_that_no_seed_brought_in_are_not_asked_for(start: Start) -> None:
    driver = start()
    picture = replace(discovered(FAR + "/x.png", via=Via.REQUISITE), kind=TaskKind.REQUISITE)
    driver.admit(seed(A + "/"), picture)
    asked = serve(driver, {FAR + "/robots.txt": robots(f"Sitemap: {FAR}/sitemap.xml")})
    assert (TaskKind.REQUISITE, FAR + "/x.png") in asked
    assert sitemaps_in(asked) == []


def test_a_sitemap_that_no_robots_txt_names_speaks_for_its_folder_alone(start: Start) -> None:
    sitemap = A + "/shop/sitemap.xml"
    driver = start(Settings(crawl=ANY))
    page = Fetched(
        status=200, size=1, link_batches=pack([named(sitemap, A + "/", TaskKind.SITEMAP, Via.LINK)])
    )
    driver.admit(seed(A + "/"))
    told = listing(sitemap, A + "/shop/in", A + "/out", FAR + "/far", "https://a.test/shop/other")
    assert pages_in(serve(driver, {A + "/": page, sitemap: told})) == {A + "/", A + "/shop/in"}
    assert not driver.explain(A + "/out").known
    assert "left out" in driver.explain(sitemap).reason


def test_a_sitemap_that_robots_txt_names_speaks_for_all_of_its_host(start: Start) -> None:
    sitemap = A + "/shop/sitemap.xml"
    driver = start(Settings(crawl=ANY))
    driver.admit(seed(A + "/"))
    answers = {
        A + "/robots.txt": robots(f"Sitemap: {sitemap}"),
        sitemap: listing(sitemap, A + "/out", FAR + "/far"),
    }
    assert pages_in(serve(driver, answers)) == {A + "/", A + "/out"}


def test_a_sitemap_elsewhere_speaks_for_the_hosts_whose_robots_txt_names_it(start: Start) -> None:
    sitemap = FAR + "/maps/a.xml"
    driver = start(Settings(crawl=CrawlSettings(scope="host")))
    driver.admit(seed(A + "/"), seed(B + "/"))
    answers = {
        A + "/robots.txt": robots(f"Sitemap: {sitemap}"),
        sitemap: listing(sitemap, A + "/one", B + "/two"),
    }
    assert pages_in(serve(driver, answers)) == {A + "/", B + "/", A + "/one"}


def test_what_an_index_names_speaks_for_whom_the_index_does(start: Start) -> None:
    child = FAR + "/maps/1.xml"
    driver = start()
    driver.admit(seed(A + "/"))
    answers = {
        A + "/robots.txt": robots(f"Sitemap: {MAP}"),
        MAP: listing(MAP, child, MAP, kind=TaskKind.SITEMAP),
        child: listing(child, A + "/one", MAP, child),
    }
    asked = serve(driver, answers)
    assert sitemaps_in(asked) == [MAP, child]
    assert A + "/one" in pages_in(asked)


def test_a_host_that_names_a_sitemap_later_has_it_read_again(start: Start) -> None:
    """What it was left out of counts then."""
    driver = start(Settings(crawl=ANY))
    driver.admit(seed(A + "/"))
    answers = {A + "/robots.txt": robots(f"Sitemap: {MAP}"), MAP: listing(MAP, A + "/one", B + "/two")}
    assert B + "/two" not in pages_in(serve(driver, answers))
    driver.admit(seed(B + "/"))
    asked = serve(driver, {**answers, B + "/robots.txt": robots(f"Sitemap: {MAP}")})
    assert sitemaps_in(asked) == [MAP]
    assert B + "/two" in pages_in(asked)


def test_the_operator_s_own_sitemap_speaks_for_all_and_brings_its_host_into_scope(start: Start) -> None:
    driver = start(Settings(crawl=ANY, sitemaps=SitemapSettings(use="off")))
    driver.admit(replace(seed(MAP), kind=TaskKind.SITEMAP))
    assert pages_in(serve(driver, {MAP: listing(MAP, A + "/one", B + "/two")})) == {A + "/one", B + "/two"}


@pytest.mark.parametrize(("trust", "reached"), [("domain", {"www"}), ("any", {"www", "far"})])
def test_trust_is_a_setting(start: Start, trust: str, reached: set[str]) -> None:
    driver = start(Settings(crawl=ANY, sitemaps=SitemapSettings(trust=trust)))
    driver.admit(seed(A + "/"))
    others = {"www": "http://www.a.test/x", "far": FAR + "/x"}
    answers = {A + "/robots.txt": robots(f"Sitemap: {MAP}"), MAP: listing(MAP, *others.values())}
    assert pages_in(serve(driver, answers)) == {A + "/", *(others[name] for name in reached)}


def test_what_a_budget_has_no_room_for_is_left_out_and_may_still_be_linked(start: Start) -> None:
    driver = start(Settings(politeness=PolitenessSettings(host_budget=4)))
    driver.admit(seed(A + "/"))
    answers = {
        A + "/robots.txt": robots(f"Sitemap: {MAP}"),
        MAP: listing(MAP, *(f"{A}/{n}" for n in range(90))),
    }
    asked = serve(driver, answers, rounds=3)
    assert sitemaps_in(asked) == [MAP]
    assert not driver.explain(A + "/89").known
    assert driver.stats().refusals.get("budget", 0) == 0
    assert driver.admit(discovered(A + "/89"))[0].kind is not VerdictKind.KNOWN


def test_a_host_has_so_many_sitemaps_and_no_more(start: Start) -> None:
    driver = start(Settings(sitemaps=SitemapSettings(max_files=3)))
    driver.admit(seed(A + "/"))
    children = [f"{A}/{n}.xml" for n in range(9)]
    answers = {
        A + "/robots.txt": robots(f"Sitemap: {MAP}"),
        MAP: listing(MAP, *children, kind=TaskKind.SITEMAP),
    }
    assert sitemaps_in(serve(driver, answers)) == [MAP, *children[:2]]
    assert "sitemaps.max_files" in driver.explain(children[8]).reason


def test_sitemaps_are_read_again_when_the_robots_txt_that_names_them_is(start: Start) -> None:
    driver = start(Settings(politeness=PolitenessSettings(robots_ttl=7200)))
    driver.admit(seed(A + "/"))
    answers = {A + "/robots.txt": robots(f"Sitemap: {MAP}"), MAP: listing(MAP, A + "/one")}
    serve(driver, answers)
    driver.clock.advance(8000)
    driver.admit(seed(A + "/new"))
    asked = serve(driver, {**answers, MAP: listing(MAP, A + "/one", A + "/two")})
    assert sitemaps_in(asked) == [MAP]
    assert pages_in(asked) == {A + "/new", A + "/two"}


def test_robots_txt_forbids_sitemaps_like_everything_else(start: Start) -> None:
    driver = start()
    driver.admit(seed(A + "/"))
    asked = serve(driver, {A + "/robots.txt": robots("Disallow: /sitemap", f"Sitemap: {MAP}")})
    assert sitemaps_in(asked) == []
    assert driver.explain(MAP).state == "denied"


def test_links_that_go_ahead_of_their_sitemap_are_known_when_it_is_settled(start: Start) -> None:
    driver = start()
    driver.admit(seed(A + "/"))
    answers = {A + "/robots.txt": robots(f"Sitemap: {MAP}")}
    serve(driver, answers, rounds=1)
    whole = listing(MAP, *(f"{A}/{n}" for n in range(6)), FAR + "/x")
    (told,) = driver.ask(driver.frontier.admit_listed(whole.link_batches))
    assert (told.added, told.known, told.refused) == (6, 0, 1)
    driver.reopen()
    (again,) = driver.ask(driver.frontier.admit_listed(whole.link_batches))
    assert (again.added, again.known, again.refused) == (0, 6, 1)


def test_a_page_that_a_sitemap_names_counts_for_the_page_limit_and_the_sitemap_does_not(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=2)))
    driver.admit(seed(A + "/"))
    answers = {A + "/robots.txt": robots(f"Sitemap: {MAP}"), MAP: listing(MAP, A + "/one", A + "/two")}
    serve(driver, answers)
    assert (driver.stats().pages, driver.stats().sitemaps) == (2, 1)


def test_a_feed_may_name_what_it_likes_within_scope(start: Start) -> None:
    feed, key = A + "/feed", UrlKey(key_of(A + "/feed"))
    driver = start()
    found = replace(discovered(feed, depth=0, priority=None), kind=TaskKind.FEED)
    driver.admit(seed(A + "/"), found)
    news = [replace(discovered(url, via=Via.FEED, parent=key)) for url in (A + "/news", FAR + "/news")]
    asked = serve(driver, {feed: Fetched(status=200, size=1, link_batches=pack(news))})
    assert (TaskKind.FEED, feed) in asked
    assert pages_in(asked) == {A + "/", A + "/news"}
    assert driver.explain(FAR + "/news").reason.startswith("scope")


def test_a_link_that_was_refused_for_its_ending_is_read_when_it_is_a_sitemap(start: Start) -> None:
    driver = start()
    driver.admit(seed(A + "/"))
    zipped = A + "/sitemap.xml.gz"
    (verdict,) = driver.admit(discovered(zipped))
    assert verdict.kind is VerdictKind.REFUSED
    assert sitemaps_in(serve(driver, {A + "/robots.txt": robots(f"Sitemap: {zipped}")})) == [zipped]
