"""A crawl that is kept fresh visits its pages again: when, how often, and what that changes in its counts."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from skitter.model import Fetched, HostPolicy, NotModified, RecordAt, Result, SegmentMark, TaskKind
from skitter.settings import (
    ArchiveSettings,
    CrawlSettings,
    FrontierSettings,
    PolitenessSettings,
    RevisitSettings,
    Settings,
    TrapSettings,
)
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, discovered, failed, redirected, robots, seed

A, B = "http://a.test", "http://b.test"
HOUR, DAY = 3600.0, 86_400.0


def page(body: int = 1, *, simhash: int | None = None) -> Fetched:
    return Fetched(
        status=200,
        content_type="text/html",
        size=10,
        digest=body.to_bytes(32, "big"),
        etag=f'"{body}"',
        record=RecordAt("s", 1, 2),
        simhash=simhash,
    )


UNCHANGED = NotModified()


def kept_fresh(**revisit: Any) -> Settings:
    """Without audits, which come at random times; with a budget that no test uses up."""
    chosen = {"keep_fresh": True, "audit": 0.0, "per_second": 50.0, "min_age": 6 * HOUR} | revisit
    return Settings(
        revisit=RevisitSettings(**chosen),
        politeness=PolitenessSettings(address_rate=0.0),
        traps=TrapSettings(mode="off"),
    )


def fetched(start: Start, settings: Settings, *urls: str) -> Driver:
    """These pages were fetched once."""
    driver = start(settings)
    driver.open_host(*urls)
    while any(driver.explain(url).state == "queued" for url in urls):
        answer_all(driver, page())
    return driver


def answer_all(driver: Driver, result: Result, only: str = "", otherwise: Result = UNCHANGED) -> int:
    """How many pages were asked for. With `only`, other URLs are answered `otherwise` and do not count."""
    asked = 0
    for lease in driver.lease():
        if lease.tasks[0].kind is TaskKind.ROBOTS:
            driver.answer(lease, robots())
            continue
        driver.answer(lease, *(result if only in task.url else otherwise for task in lease.tasks))
        asked += sum(only in task.url for task in lease.tasks)
    driver.clock.advance(1)
    return asked


def next_visit(driver: Driver, url: str) -> float:
    at = driver.explain(url).next_at
    assert at is not None
    return at


def wait_for(driver: Driver, url: str) -> float:
    """Until the page is in its queue; how long that took from its last visit, in days."""
    before = driver.clock.now()
    planned = next_visit(driver, url)
    driver.clock.advance(max(0.0, planned - before) + 0.001)
    for _ in range(20):
        driver.promote()
        if driver.explain(url).state == "queued":
            return (planned - before) / DAY
        driver.clock.advance(60)
    raise AssertionError(f"{url} was not queued: {driver.explain(url)}")


def visit(driver: Driver, url: str, result: Result) -> float:
    """Its next visit; how long after the one before, in days."""
    waited = wait_for(driver, url)
    for _ in range(5):
        if answer_all(driver, result, only=url):
            return waited
    raise AssertionError(f"{url} was not leased")


def test_a_page_has_a_date_for_its_next_visit(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    explained = driver.explain(A + "/")
    assert explained.state == "completed"
    assert explained.waits == "for its next visit"
    assert next_visit(driver, A + "/") >= driver.clock.now() + 5 * HOUR
    figures = driver.stats().revisits
    assert figures is not None
    assert (figures.watched, figures.queued, figures.visits) == (1, 0, 0)


def test_a_due_page_is_asked_for_once_with_its_validators_and_stays_a_page_meanwhile(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    wait_for(driver, A + "/")
    assert driver.promote() == 0
    assert driver.stats().pages == 1
    lease = driver.lease_one()
    if lease.tasks[0].kind is TaskKind.ROBOTS:
        driver.answer(lease, robots())
        driver.clock.advance(1)
        lease = driver.lease_one()
    (task,) = lease.tasks
    assert (task.url, task.etag) == (A + "/", '"1"')
    assert driver.stats().pages == 1
    driver.answer(lease, UNCHANGED)
    assert driver.stats().pages == 1
    figures = driver.stats().revisits
    assert figures is not None
    assert (figures.watched, figures.visits, figures.changed) == (1, 1, 0)


def test_a_page_that_changes_is_visited_more_often_than_one_that_does_not(start: Start) -> None:
    bodies = itertools.count(2)
    driver = fetched(start, kept_fresh(min_age=60.0), A + "/often", B + "/seldom")
    for _ in range(12):
        visit(driver, A + "/often", page(next(bodies)))
    often = visit(driver, A + "/often", page(next(bodies)))
    for _ in range(5):
        visit(driver, B + "/seldom", UNCHANGED)
    assert often < visit(driver, B + "/seldom", UNCHANGED) / 2


def test_a_page_that_is_gone_is_asked_for_rarely_and_then_never(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    visit(driver, A + "/", Fetched(status=404, size=3))
    assert driver.stats().pages == 0
    waits = [visit(driver, A + "/", Fetched(status=404, size=3)) for _ in range(3)]
    assert [round(days) for days in waits] == [7, 30, 90]
    explained = driver.explain(A + "/")
    assert (explained.state, explained.next_at) == ("gone", None)


def test_a_page_that_comes_back_is_a_page_again(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    visit(driver, A + "/", Fetched(status=410, size=3))
    visit(driver, A + "/", page(2))
    assert driver.explain(A + "/").state == "completed"
    assert driver.stats().pages == 1
    # the count of times in a row begins anew
    visit(driver, A + "/", Fetched(status=404, size=3))
    assert round((next_visit(driver, A + "/") - driver.clock.now()) / DAY) == 7


def test_a_page_that_moves_is_followed_and_its_redirect_looked_at_again(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    visit(driver, A + "/", redirected(A + "/new"))
    assert driver.stats().pages == 0
    assert driver.explain(A + "/new").state == "queued"
    answer_all(driver, page(3))
    assert driver.stats().pages == 1
    assert visit(driver, A + "/", page(4)) == pytest.approx(30, abs=0.1)
    assert driver.stats().pages == 2


def test_errors_are_no_visits(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    visit(driver, A + "/", failed())
    assert driver.explain(A + "/").state == "failed"
    assert driver.stats().pages == 0
    figures = driver.stats().revisits
    assert figures is not None
    assert (figures.visits, figures.watched) == (0, 0)
    driver.clock.advance(DAY)
    driver.promote()
    for _ in range(3):
        answer_all(driver, UNCHANGED)
    assert driver.stats().pages == 1
    figures = driver.stats().revisits
    assert figures is not None
    assert (figures.visits, figures.changed, figures.watched) == (1, 0, 1)


def test_what_robots_txt_forbids_by_now_is_not_visited_again(start: Start) -> None:
    driver = fetched(start, kept_fresh(rule="fixed", interval=2 * DAY), A + "/deny")
    wait_for(driver, A + "/deny")
    for _ in range(3):
        for lease in driver.lease():
            assert lease.tasks[0].kind is TaskKind.ROBOTS
            driver.answer(lease, robots("Disallow: /deny"))
        driver.clock.advance(1)
    assert driver.explain(A + "/deny").state == "denied"
    assert driver.stats().pages == 0


# -- promises and exceptions


def test_a_promise_bounds_the_interval_and_never_means_never(start: Start) -> None:
    settings = kept_fresh(
        max_age=3 * DAY, fresh_within=("1h /news/", "2h /news"), never=("/imprint",), min_age=HOUR / 2
    )
    driver = fetched(start, settings, A + "/news/1", A + "/imprint", B + "/other")
    for _ in range(3):
        assert visit(driver, A + "/news/1", UNCHANGED) <= HOUR / DAY
    assert driver.explain(A + "/imprint").next_at is None
    assert next_visit(driver, B + "/other") <= driver.clock.now() + 3 * DAY


def test_a_host_has_its_own_policy(start: Start) -> None:
    driver = start(kept_fresh())
    driver.set_policy(A, HostPolicy(max_age=0))
    driver.set_policy(B, HostPolicy(max_age=8 * HOUR))
    driver.open_host(A + "/", B + "/")
    answer_all(driver, page())
    assert driver.explain(A + "/").next_at is None
    assert next_visit(driver, B + "/") <= driver.clock.now() + 8 * HOUR


def test_the_classic_rules_halve_and_double_or_keep_their_interval(start: Start) -> None:
    driver = fetched(start, kept_fresh(rule="halve-double"), A + "/")
    waits = [visit(driver, A + "/", UNCHANGED) for _ in range(3)]
    assert [round(days) for days in waits] == [7, 14, 28]
    settings = kept_fresh(rule="fixed", interval=2 * DAY)
    driver = fetched(start, settings, A + "/")
    waits = [visit(driver, A + "/", result) for result in (UNCHANGED, page(7), page(7), page(7))]
    # in between it was looked at once more, to see whether its bytes always differ
    assert waits == pytest.approx([2, 2, 0, 2], abs=0.01)


def test_bytes_that_always_differ_are_no_changes_where_the_text_stays(start: Start) -> None:
    """Three pages of the pattern are asked once more; then their texts decide."""
    urls = [f"{A}/item/{number}" for number in range(4)]
    settings = kept_fresh(rule="fixed", interval=DAY)
    driver = fetched(start, settings, *urls)
    bodies = itertools.count(100)
    for _ in range(8):
        for _ in range(40):
            driver.promote()
            answer_all(driver, page(next(bodies), simhash=5))
            driver.clock.advance(HOUR / 2)
    before = driver.stats().revisits
    assert before is not None
    for _ in range(100):
        driver.promote()
        answer_all(driver, page(next(bodies), simhash=5))
        driver.clock.advance(HOUR / 2)
    after = driver.stats().revisits
    assert after is not None
    assert after.visits > before.visits + 4
    assert after.changed == before.changed
    for _ in range(60):
        driver.promote()
        answer_all(driver, page(next(bodies), simhash=6))
        driver.clock.advance(HOUR / 2)
    last = driver.stats().revisits
    assert last is not None
    assert last.changed == after.changed + 4


# -- budgets and shares


def test_no_more_pages_are_visited_again_than_the_budget_has(start: Start) -> None:
    urls = [f"http://h{number}.test/" for number in range(30)]
    driver = fetched(start, kept_fresh(rule="fixed", interval=DAY, per_second=0.1), *urls)
    driver.clock.advance(2 * DAY)
    asked = 0
    for _ in range(100):
        driver.promote()
        asked += answer_all(driver, UNCHANGED)
    # six were saved up
    assert 14 <= asked <= 18


def test_the_price_rises_when_visits_come_late_and_falls_when_the_budget_is_not_used(start: Start) -> None:
    urls = [f"http://h{number}.test/" for number in range(12)]
    driver = fetched(start, kept_fresh(per_second=0.001), *urls)
    figures = driver.stats().revisits
    assert figures is not None
    first = figures.price
    driver.clock.advance(20 * DAY)
    for _ in range(30):
        driver.promote()
        answer_all(driver, UNCHANGED)
        driver.clock.advance(500)
    late = driver.stats().revisits
    assert late is not None
    assert late.price > first
    driver.reopen(kept_fresh(per_second=1.0, min_age=60.0))
    for _ in range(60):
        driver.promote()
        answer_all(driver, UNCHANGED)
        driver.clock.advance(60)
    early = driver.stats().revisits
    assert early is not None
    assert early.price < late.price


def test_many_due_pages_of_one_host_do_not_fill_its_queue_nor_raise_the_price(start: Start) -> None:
    urls = [f"{A}/{number}" for number in range(40)]
    driver = fetched(start, kept_fresh(rule="fixed", interval=DAY), *urls)
    driver.clock.advance(2 * DAY)
    before = driver.stats().revisits
    driver.promote()
    figures = driver.stats().revisits
    assert figures is not None
    assert before is not None
    assert figures.queued == 16
    assert figures.price == before.price
    asked = 0
    for _ in range(200):
        asked += answer_all(driver, UNCHANGED)
        driver.promote()
    assert asked == 40


@pytest.mark.parametrize(("share", "least", "most"), [(0.3, 0.2, 0.4), (0.9, 0.8, 0.97), (0.0, 0.005, 0.1)])
def test_new_pages_and_revisits_share_requests_as_stated(
    start: Start, share: float, least: float, most: float
) -> None:
    old = [f"{A}/old/{number}" for number in range(30)]
    settings = Settings(
        revisit=RevisitSettings(
            keep_fresh=True, audit=0.0, per_second=50.0, rule="fixed", interval=20.0, min_age=1.0, share=share
        ),
        traps=TrapSettings(mode="off"),
        frontier=FrontierSettings(tasks_per_lease=1),
    )
    driver = fetched(start, settings, *old)
    driver.audited = False
    driver.admit(*(discovered(f"{A}/new/{number}") for number in range(600)))
    driver.clock.advance(120)
    again = new = 0
    for _ in range(250):
        driver.promote()
        for lease in driver.lease():
            again += sum(bool(task.etag) for task in lease.tasks)
            new += sum(not task.etag for task in lease.tasks)
            driver.answer(lease, page())
        driver.clock.advance(2)
    assert least <= again / (again + new) <= most, (again, new)
    driver.audit()


def test_a_crawl_that_has_its_pages_visits_them_again_and_takes_no_others(start: Start) -> None:
    settings = kept_fresh()
    limited = Settings(
        revisit=settings.revisit,
        crawl=CrawlSettings(max_pages=2),
        traps=settings.traps,
    )
    driver = fetched(start, limited, A + "/1", A + "/2")
    driver.admit(discovered(A + "/3"), discovered(B + "/4"))
    assert driver.stats().pages == 2
    bodies = itertools.count(50)
    for _ in range(4):
        visit(driver, A + "/1", page(next(bodies)))
        assert driver.stats().pages == 2
    assert driver.explain(A + "/3").state == "queued"
    # one that is gone makes room
    visit(driver, A + "/2", Fetched(status=404, size=3))
    for _ in range(4):
        answer_all(driver, page())
    assert driver.stats().pages == 2
    assert driver.explain(A + "/3").state == "completed"


# -- when it is on, and what it lives through


def test_a_crawl_that_is_not_kept_fresh_ends_and_gives_no_dates(start: Start) -> None:
    driver = fetched(start, Settings(), A + "/")
    assert driver.explain(A + "/").next_at is None
    assert driver.stats().revisits is None
    horizon = driver.ask(driver.frontier.horizon())
    assert (horizon.next_at, horizon.never_ends) == (None, False)


def test_pages_of_an_earlier_run_get_dates_when_a_crawl_is_kept_fresh(start: Start) -> None:
    driver = fetched(start, Settings(), A + "/1", A + "/2", B + "/3")
    driver.reopen(kept_fresh())
    assert driver.promote() == 3
    figures = driver.stats().revisits
    assert figures is not None
    assert figures.watched == 3
    horizon = driver.ask(driver.frontier.horizon())
    assert horizon.never_ends
    first = min(next_visit(driver, url) for url in (A + "/1", A + "/2", B + "/3"))
    assert horizon.next_at == pytest.approx(first, abs=0.001)
    # and what was fetched meanwhile without, when it is again
    driver.reopen(Settings())
    assert driver.ask(driver.frontier.horizon()).next_at is None
    driver.refresh(url=A + "/1")
    driver.clock.advance(2)
    answer_all(driver, page(9))
    assert driver.explain(A + "/1").next_at is None
    driver.reopen(kept_fresh())
    assert driver.promote() == 1
    assert next_visit(driver, A + "/1") > driver.clock.now()


def test_refresh_by_hand_takes_the_place_of_the_next_visit(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    assert driver.refresh(url=A + "/") == 1
    figures = driver.stats().revisits
    assert figures is not None
    assert figures.watched == 0
    answer_all(driver, UNCHANGED)
    assert next_visit(driver, A + "/") > driver.clock.now()


def test_a_revisit_survives_the_death_of_the_process(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    planned = next_visit(driver, A + "/")
    driver.reopen()
    assert next_visit(driver, A + "/") == planned
    wait_for(driver, A + "/")
    driver.reopen()
    assert driver.explain(A + "/").state == "queued"
    driver.clock.advance(2)
    leases = driver.lease()
    driver.reopen()
    assert leases
    assert driver.stats().pages == 1
    driver.clock.advance(2)
    for _ in range(3):
        answer_all(driver, UNCHANGED)
    figures = driver.stats().revisits
    assert figures is not None
    assert (figures.visits, figures.watched) == (1, 1)


def test_a_commit_that_fails_forgets_what_it_had_learnt(start: Start) -> None:
    driver = fetched(start, kept_fresh(), A + "/")
    wait_for(driver, A + "/")
    answer_all(driver, page(1))
    driver.clock.advance(2)
    leases = driver.lease()
    if leases:
        with driver.failing_commits(), pytest.raises(Exception, match=r"full|fail"):
            driver.answer(leases[0], page(2))
        driver.audit()
        driver.answer(leases[0], page(2))
    driver.audit()


def test_pages_of_a_host_that_is_given_up_are_put_off(start: Start) -> None:
    driver = fetched(start, kept_fresh(rule="fixed", interval=DAY), A + "/")
    driver.set_policy(A, HostPolicy(blocked=True))
    driver.clock.advance(DAY + 1)
    assert driver.promote() == 0
    assert driver.explain(A + "/").state == "completed"
    assert next_visit(driver, A + "/") == pytest.approx(driver.clock.now() + DAY)


def test_a_page_that_waits_for_upload_is_visited_again_and_held_once(start: Start) -> None:
    settings = kept_fresh(rule="fixed", interval=DAY)
    held = Settings(revisit=settings.revisit, archive=ArchiveSettings(url="file:///x"), traps=settings.traps)
    driver = fetched(start, held, A + "/")
    assert driver.stats().unstored == 1
    again = Fetched(status=200, size=10, digest=b"n" * 32, record=RecordAt("t", 5, 2))
    visit(driver, A + "/", again)
    assert driver.stats().unstored == 1
    driver.settle(marks=[SegmentMark("s", 10, 1), SegmentMark("t", 10, 1)])
    driver.stored("s")
    assert driver.stats().unstored == 1
    driver.stored("t")
    assert (driver.stats().stored, driver.stats().unstored) == (1, 0)


def test_audits_measure_how_fresh_copies_are(start: Start) -> None:
    urls = [f"http://h{number}.test/" for number in range(12)]
    driver = fetched(start, kept_fresh(rule="fixed", interval=DAY, audit=1.0), *urls)
    driver.audited = False
    for _ in range(400):
        driver.promote()
        answer_all(driver, UNCHANGED)
        driver.clock.advance(HOUR / 4)
    figures = driver.stats().revisits
    assert figures is not None
    assert figures.audits > 50
    assert figures.audited_freshness == 1.0
    driver.reopen()
    found = driver.ask(driver.frontier.freshness())
    assert sum(one.audits for one in found.audited_by_tier.values()) == figures.audits
    assert {one.fresh for one in found.audited_by_tier.values()} == {1.0}
    of_hosts = [one.audited for one in found.hosts if one.audited is not None]
    assert sum(one.audits for one in of_hosts) == figures.audits
    assert found.age is not None
    assert 0 < found.age < 1.5
    assert 0 < found.changes_a_day < 1
    driver.audit()


def test_seeds_are_visited_again_sooner_than_deep_pages(start: Start) -> None:
    driver = start(kept_fresh())
    driver.admit(seed(A + "/"), discovered(A + "/deep", depth=9, priority=10))
    for _ in range(4):
        answer_all(driver, page())
    assert next_visit(driver, A + "/") < next_visit(driver, A + "/deep")


def test_promises_do_not_eat_the_budget_of_other_pages(start: Start) -> None:
    """Front pages change at every visit, so visits are worth it long before their promise ends."""
    fronts = [f"http://f{number}.test/front/" for number in range(4)]
    others = [f"http://o{number}.test/page" for number in range(20)]
    driver = fetched(
        start,
        kept_fresh(per_second=36 / DAY, min_age=HOUR, fresh_within=("6h /front/",), equal_weights=True),
        *fronts,
        *others,
    )
    driver.audited = False
    asked: dict[str, list[float]] = {url: [] for url in (*fronts, *others)}
    began, bodies = driver.clock.now(), itertools.count(2)
    while driver.clock.now() < began + 4 * DAY:
        driver.promote()
        for lease in driver.lease():
            for task in lease.tasks:
                is_front = task.url in fronts
                if task.kind is TaskKind.PAGE:
                    asked[task.url].append(driver.clock.now())
                changed = page(next(bodies)) if is_front else UNCHANGED
                result = changed if task.kind is TaskKind.PAGE else robots()
                driver.settle(driver.outcome(lease, result, task))
                driver.clock.advance(lease.delay)
        driver.clock.advance(300)
    for url in fronts:
        gaps = [later - earlier for earlier, later in itertools.pairwise(asked[url])]
        assert max(gaps) <= 6 * HOUR + 600
    assert all(asked[url] for url in others), "none is starved"
    # of 144 visits in four days promises take 64 at least
    assert sum(len(asked[url]) for url in others) >= 40


def test_first_visits_again_do_not_come_in_the_order_of_the_crawl(start: Start) -> None:
    urls = [f"http://h{number}.test/" for number in range(30)]
    driver = fetched(start, kept_fresh(equal_weights=True), *urls)
    waits = [next_visit(driver, url) - driver.explain(url).fetches[0].at for url in urls]
    assert max(waits) > 1.5 * min(waits)
    assert min(waits) >= 6 * HOUR
