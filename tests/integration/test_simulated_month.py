"""What a crawl keeps that is kept fresh for a month and killed twenty times (`tests/simulated_month.py`)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from skitter.urls.canonical import host_of
from tests.frontier_fixtures import stores_for
from tests.frontier_kit import Driver
from tests.frontier_stores import DISKS
from tests.simulated_month import DAY, HOUR, PAGES, PROMISE, TICK, ChangingWeb, Month, settings

HOSTS = 6


@pytest.fixture(scope="module", params=stores_for(__name__))
def month(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Month]:
    disk = DISKS[request.param](tmp_path_factory.mktemp("month") / "frontier")
    driver = Driver(disk, settings(HOSTS * PAGES), audited=False)
    lived = Month(driver, HOSTS)
    lived.run()
    yield lived
    driver.close()
    driver.check_replay()


def test_every_change_of_an_important_page_is_seen_within_its_promise(month: Month) -> None:
    for url in month.web.urls:
        if "/front/" not in url:
            continue
        for changed in month.web.changes[url]:
            if changed > month.began + 30 * DAY - PROMISE - HOUR:
                continue
            seen = next(at for at in month.web.asked[url] if at >= changed)
            # the promise, and the time that a due page may wait for its host
            assert seen - changed <= PROMISE + 4 * TICK + 600, url


def test_counts_are_exact_after_a_month_of_kills(month: Month) -> None:
    stats = month.stats
    assert stats.pages == len(month.web.urls)
    assert sum(stats.urls.values()) == len(month.web.urls)
    asked = sum(map(len, month.web.asked.values()))
    assert stats.fetches - stats.robots_fetches == asked - sum(month.unsettled.values())
    revisits = stats.revisits
    assert revisits is not None
    # the first fetch of each page is none, and a check for noise teaches nothing of a page's rate
    assert asked - len(month.web.urls) - sum(month.unsettled.values()) >= revisits.visits
    assert revisits.watched + stats.urls["queued"] == len(month.web.urls)


def test_no_host_is_asked_sooner_than_its_delay(month: Month) -> None:
    assert month.stats.politeness.violations == 0
    for host, starts in month.starts.items():
        assert min(b - a for a, b in itertools.pairwise(starts)) >= 1.0 - 1e-6, host


def test_no_page_is_visited_twice_for_one_date(month: Month) -> None:
    """Two visits of a page are the shortest interval apart, but after a death and for a check for noise."""
    shortest = settings(HOSTS * PAGES).revisit.min_age
    close = Counter[str]()
    for url, asked in month.web.asked.items():
        close[url] = sum(
            later - earlier < min(shortest, 60.0) for earlier, later in itertools.pairwise(asked)
        )
    assert all(count <= month.unsettled[url] for url, count in close.items())


def test_what_changes_is_visited_and_what_does_not_is_left_alone(month: Month) -> None:
    visits = {kind: 0 for kind, _ in ChangingWeb.RATES}
    pages = Counter(url.split("/")[3] for url in month.web.urls)
    for url, asked in month.web.asked.items():
        visits[url.split("/")[3]] += len(asked)
    per_page = {kind: visits[kind] / pages[kind] for kind in visits}
    assert per_page["often"] > 2 * per_page["never"]
    assert {host_of(url) for url in month.web.urls} == set(month.starts)


def test_reported_freshness_is_the_truth(month: Month) -> None:
    """At any one time 150 pages are a small sample; over the month the report is within three points."""
    expected = sum(said for said, _ in month.reported) / len(month.reported)
    truth = sum(was for _, was in month.reported) / len(month.reported)
    assert abs(expected - truth) <= 0.03
    assert max(abs(said - was) for said, was in month.reported) <= 0.15
    audited, error = month.freshness.audited, month.freshness.audit_error
    assert audited is not None
    assert error is not None
    assert abs(audited - truth) <= 3 * error + 0.03


def test_the_report_says_how_far_off_it_may_be(month: Month) -> None:
    """Three standard errors, at each of its hours; more pages or visits make it narrower."""
    told = zip(month.reported, month.bands, strict=True)
    assert all(abs(said - was) <= max(0.03, band) for (said, was), band in told)
    assert month.bands[-1] < month.bands[0]
