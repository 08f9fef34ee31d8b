"""Dates of sitemaps, feeds and headers: what they make due, whom they make it due for, and for how long a liar is
believed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skitter.frontier.link_batches import pack
from skitter.model import Discovered, Fetched, NotModified, Result, TaskKind, Via
from skitter.settings import PolitenessSettings, RevisitSettings, Settings, SitemapSettings, TrapSettings
from skitter.urls.canonical import host_of
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, robots
from tests.keys import key_of

A, B = "http://a.test", "http://b.test"
MAP, FEED = A + "/sitemap.xml", A + "/feed.xml"
HOUR, DAY = 3600.0, 86_400.0


def kept_fresh() -> Settings:
    return Settings(
        revisit=RevisitSettings(keep_fresh=True, audit=0.0, per_second=0.01, min_age=6 * HOUR),
        politeness=PolitenessSettings(address_rate=0.0, robots_ttl=400 * DAY),
        traps=TrapSettings(mode="off"),
        sitemaps=SitemapSettings(trust="any"),
    )


def page(body: int = 1, last_modified: str = "") -> Fetched:
    digest = body.to_bytes(32, "big")
    return Fetched(status=200, size=10, digest=digest, etag='"1"', last_modified=last_modified)


def listing(file: str, via: Via, entries: Sequence[tuple[str, float | None]]) -> Fetched:
    """A sitemap or feed that names these pages with these dates."""
    links = [
        Discovered(
            url=url, key=key_of(url), host=host_of(url), depth=1, via=via, parent=key_of(file), lastmod=at
        )
        for url, at in entries
    ]
    return Fetched(status=200, size=10, digest=b"m" * 32, link_batches=pack(links))


class Site:
    """A driver whose pages and files answer as a test says."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.answers: dict[str, Result] = {}
        self.asked: list[str] = []

    def begin(self, *urls: str, files: Sequence[tuple[str, TaskKind]] = ()) -> None:
        self.driver.open_host(*urls)
        self.driver.admit(
            *(
                Discovered(url=url, key=key_of(url), host=host_of(url), depth=0, via=Via.ROBOTS, kind=kind)
                for url, kind in files
            )
        )
        for _ in range(10):
            self.serve()

    def serve(self) -> None:
        driver = self.driver
        driver.promote()
        for lease in driver.lease():
            if lease.tasks[0].kind is TaskKind.ROBOTS:
                driver.answer(lease, robots())
                continue
            driver.answer(lease, *(self.answers.get(task.url, page()) for task in lease.tasks))
            self.asked += [task.url for task in lease.tasks]
        driver.clock.advance(1)

    def read_file(self, file: str, answer: Result) -> None:
        """The file is read again when that is due."""
        self.answers[file] = answer
        read = self.asked.count(file)
        at = self.driver.explain(file).next_at
        assert at is not None, "a file has a date for its next reading"
        self.driver.clock.advance(max(0.0, at - self.driver.clock.now()) + 1)
        for _ in range(60):
            self.driver.clock.advance(100)
            self.serve()
            if self.asked.count(file) > read:
                return
        raise AssertionError(f"{file} was not read")

    def next_visit(self, url: str) -> float:
        at = self.driver.explain(url).next_at
        assert at is not None
        return at - self.driver.clock.now()


def begun(start: Start, *urls: str) -> Site:
    site = Site(start(kept_fresh()))
    site.answers[MAP] = listing(MAP, Via.SITEMAP, [(url, None) for url in urls])
    site.answers[FEED] = listing(FEED, Via.FEED, [])
    site.begin(*urls, files=[(MAP, TaskKind.SITEMAP), (FEED, TaskKind.FEED)])
    return site


@pytest.mark.parametrize(("file", "via"), [(MAP, Via.SITEMAP), (FEED, Via.FEED)])
def test_a_page_that_is_dated_after_our_visit_is_due_sooner_than_one_that_is_not(
    start: Start, file: str, via: Via
) -> None:
    site = begun(start, A + "/changed", A + "/as-it-was")
    now = site.driver.clock.now()
    before = site.next_visit(A + "/changed") + now
    site.read_file(file, listing(file, via, [(A + "/changed", now + 60), (A + "/as-it-was", now - DAY)]))
    assert site.next_visit(A + "/changed") + site.driver.clock.now() < before
    assert site.next_visit(A + "/changed") < site.next_visit(A + "/as-it-was")


def test_a_feed_speaks_for_its_own_host_alone(start: Start) -> None:
    site = begun(start, A + "/", B + "/")
    now = site.driver.clock.now()
    before = site.next_visit(B + "/") + now
    site.read_file(FEED, listing(FEED, Via.FEED, [(B + "/", now + 60)]))
    assert site.next_visit(B + "/") + site.driver.clock.now() == pytest.approx(before)


def told_moves(start: Start, *, is_liar: bool) -> float:
    """By which share of its wait a told page comes sooner, when twelve pages were told of six times each: by a
    host whose pages had changed then, or had not."""
    urls = [f"{A}/{number}" for number in range(12)]
    site = begun(start, *urls)
    site.driver.audited = False
    for turn in range(6):
        chosen = urls if is_liar else urls[turn % 3 :: 3]
        now = site.driver.clock.now()
        site.read_file(MAP, listing(MAP, Via.SITEMAP, [(url, now + 60) for url in chosen]))
        site.answers |= {url: page() if is_liar else page(turn + 2) for url in chosen}
        for _ in range(72):
            site.driver.clock.advance(HOUR)
            site.serve()
    url = max(urls, key=site.next_visit)
    before, asked, now = site.next_visit(url), site.asked.count(url), site.driver.clock.now()
    site.read_file(MAP, listing(MAP, Via.SITEMAP, [(url, now + 60)]))
    assert site.asked.count(url) == asked, "it was not visited in between"
    passed = site.driver.clock.now() - now
    return 1 - site.next_visit(url) / (before - passed)


def test_a_host_that_dates_everything_today_is_soon_believed_less_than_one_that_was_right(
    start: Start,
) -> None:
    liar, honest = told_moves(start, is_liar=True), told_moves(start, is_liar=False)
    assert abs(liar) < 0.2
    assert honest > 2 * abs(liar)


def test_a_file_that_brings_news_is_read_again_sooner_than_one_that_brings_none(start: Start) -> None:
    site = begun(start, A + "/")
    for turn in range(4):
        new = [(f"{A}/{turn}/{number}", None) for number in range(30)]
        site.read_file(MAP, listing(MAP, Via.SITEMAP, new))
        site.read_file(FEED, listing(FEED, Via.FEED, []))
    site.read_file(FEED, NotModified())
    feed = site.next_visit(FEED)
    site.read_file(MAP, listing(MAP, Via.SITEMAP, []))
    assert site.next_visit(MAP) < feed
    assert site.next_visit(MAP) >= HOUR - 5


def test_files_with_dates_are_no_pages_and_end_with_what_they_named(start: Start) -> None:
    site = begun(start, A + "/1", A + "/2")
    stats = site.driver.stats()
    assert (stats.pages, stats.urls["completed"]) == (2, 4)
    freshness = site.driver.ask(site.driver.frontier.freshness())
    assert freshness.pages == 2
    site.driver.reopen()
    assert site.next_visit(MAP) > 0


def test_believed_headers_say_how_long_a_new_page_has_been_as_it_is(start: Start) -> None:
    """Visits that agree with `Last-Modified` teach that a host's headers are right; then a first visit counts."""
    old, fresh = "Sat, 01 Jan 2000 00:00:00 GMT", A + "/new"
    urls = [f"{A}/{number}" for number in range(4)]
    site = begun(start, *urls)
    site.answers |= {url: page(last_modified=old) for url in [*urls, fresh]}
    for _ in range(40):
        site.driver.clock.advance(DAY)
        site.serve()
    site.driver.admit(
        Discovered(url=fresh, key=key_of(fresh), host=host_of(fresh), depth=1, via=Via.LINK),
        Discovered(url=B + "/new", key=key_of(B + "/new"), host=host_of(B + "/new"), depth=1, via=Via.SEED),
    )
    for _ in range(6):
        site.serve()
    assert site.next_visit(fresh) > site.next_visit(B + "/new")
