"""Traps: what goes on for ever and tells nothing new is stopped, and nothing else is."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from skitter.frontier.base import TrapView
from skitter.model import HostPolicy, Redirected, Result, VerdictKind
from skitter.settings import CrawlSettings, PolitenessSettings, Settings, TrapSettings
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, discovered, redirected, seed
from tests.trap_kit import SETTINGS, WORDS, A, Site, Web, crawl, in_force, number_in, prose


def calendar(web: Web) -> Site:
    """Next month, and the one after: the same words on every page."""

    def answer(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), [A + "/calendar/1"], title="Home")
        month = number_in(url)
        links = [f"{A}/calendar/{month + step}" for step in (1, 2, 3)]
        return web.page(url, f"{prose(1)} month {month}", links, title=f"Month {month}")

    return answer


@pytest.fixture
def driver(start: Start) -> Driver:
    return start(SETTINGS)


@pytest.fixture
def web() -> Web:
    return Web()


def test_a_calendar_without_end_is_left_after_a_few_months(driver: Driver, web: Web) -> None:
    driver.admit(seed(A + "/"))
    asked = crawl(driver, calendar(web))
    assert len(asked) < 40
    (view,) = in_force(driver)
    assert (view.host, view.skeleton, view.level) == (A, "/calendar/#", "skeleton")
    assert view.refused == driver.stats().refusals["trap"] > 0
    assert view.members == view.fetched + view.refused
    assert driver.stats().urls["queued"] == 0


def test_what_was_queued_when_the_verdict_fell_is_refused_as_well(driver: Driver, web: Web) -> None:
    """Every known URL stays in exactly one state: the audit after each call sees to that."""
    driver.admit(seed(A + "/"), *(discovered(f"{A}/calendar/{month}") for month in range(1, 200)))
    asked = crawl(driver, calendar(web))
    assert len(asked) < 40
    assert driver.stats().refusals["trap"] >= 199 - len(asked)


def test_a_verdict_also_refuses_what_a_loosened_rule_gives_back(start: Start, web: Web) -> None:
    strict = replace(SETTINGS, crawl=CrawlSettings(scope="any", exclude=("/calendar/9..",)))
    driver = start(strict)
    later = [f"{A}/calendar/{month}" for month in range(900, 905)]
    driver.admit(seed(A + "/"), *map(discovered, later))
    crawl(driver, calendar(web))
    refused = driver.stats().refusals["trap"]
    driver.reopen(SETTINGS)
    crawl(driver, calendar(web))
    assert "excluded" not in driver.stats().refusals
    assert driver.stats().refusals["trap"] == in_force(driver)[0].refused > refused
    assert "verdict" in driver.explain(later[-1]).reason


def test_what_verdicts_refused_comes_back_when_traps_are_turned_off_and_not_when_they_are_on_again(
    driver: Driver, web: Web
) -> None:
    driver.admit(seed(A + "/"), *(discovered(f"{A}/calendar/{month}") for month in range(1, 100)))
    crawl(driver, calendar(web))
    refused = driver.stats().refusals["trap"]
    driver.reopen(replace(SETTINGS, traps=TrapSettings(mode="off")))
    assert driver.promote() == refused
    assert driver.stats().came_back == {"trap": refused}
    assert driver.stats().urls["queued"] == refused
    driver.reopen(SETTINGS)
    crawl(driver, calendar(web))
    assert driver.stats().refusals["trap"] == in_force(driver)[0].refused > 0


def test_pages_that_keep_being_different_are_crawled_whole(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    items = [f"{A}/product/{number}" for number in range(600)]

    def shop(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), items, title="Shop")
        text = f"{prose(number_in(url) + 10)} add to basket delivery returns contact terms"
        return web.page(url, text, [A + "/"], title=f"Item {prose(number_in(url))[:20]}")

    driver.admit(seed(A + "/"))
    asked = crawl(driver, shop)
    assert {*asked} >= {*items}
    assert in_force(driver) == []


def test_near_duplicates_among_different_pages_do_not_stop_them(start: Start, web: Web) -> None:
    """Three colours of every shirt, page after page."""
    driver = start(SETTINGS, audited=False)
    items = [f"{A}/shirt/{number}" for number in range(300)]

    def shop(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), items, title="Shop")
        number = number_in(url)
        return web.page(url, f"{prose(number // 3 + 10)} {number}", title=f"Shirt {prose(number // 3)[:20]}")

    driver.admit(seed(A + "/"))
    assert {*crawl(driver, shop)} >= {*items}


def test_lists_that_look_alike_go_on_while_they_lead_to_something(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    lists = [f"{A}/list/{number}" for number in range(60)]

    def shop(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), lists[:3], title="Shop")
        number = number_in(url)
        if "/list/" in url:
            items = [f"{A}/thing/{number * 5 + place}" for place in range(5)]
            return web.page(url, prose(1), [*items, *lists[number + 1 : number + 3]], title="All things")
        return web.page(url, prose(number + 10), title=f"Thing {prose(number)[:20]}")

    driver.admit(seed(A + "/"))
    assert {*crawl(driver, shop)} >= {*lists}


def test_a_refused_url_says_which_verdict_and_with_what_figures(driver: Driver, web: Web) -> None:
    driver.admit(seed(A + "/"))
    crawl(driver, calendar(web))
    (view,) = in_force(driver)
    (verdict,) = driver.admit(discovered(f"{A}/calendar/99999"))
    assert verdict.kind is VerdictKind.REFUSED
    told = driver.explain(f"{A}/calendar/99999")
    assert told.state == "refused"
    for part in (f"verdict {view.id}", "/calendar/#", "in a row brought nothing new", f"--undo {view.id}"):
        assert part in told.reason
    unknown = driver.explain(f"{A}/calendar/77777")
    assert "would be refused (trap)" in unknown.reason


def test_undoing_a_verdict_lets_each_url_flow_again_once_and_for_good(driver: Driver, web: Web) -> None:
    driver.admit(seed(A + "/"), *(discovered(f"{A}/calendar/{month}") for month in range(1, 120)))
    before = crawl(driver, calendar(web))
    (view,) = in_force(driver)
    assert driver.run(driver.frontier.undo_trap(view.id)) == view.refused
    assert "trap" not in driver.stats().refusals
    assert driver.run(driver.frontier.undo_trap(view.id)) == 0
    asked = before + crawl(driver, calendar(web), most=3 * view.refused)
    pages = [url for url in asked if "/calendar/" in url]
    assert len(pages) == len({*pages}), "none was asked for twice"
    assert {f"{A}/calendar/{month}" for month in range(1, 120)} <= {*pages}
    assert in_force(driver) == []


def test_verdicts_survive_the_death_of_the_process(driver: Driver, web: Web) -> None:
    driver.admit(seed(A + "/"))
    crawl(driver, calendar(web))
    before = driver.ask(driver.frontier.traps(limit=10))
    driver.reopen()
    assert driver.ask(driver.frontier.traps(limit=10)) == before
    assert driver.admit(discovered(f"{A}/calendar/5000"))[0].kind is VerdictKind.REFUSED


def test_a_release_that_was_interrupted_is_gone_on_with(start: Start, web: Web) -> None:
    """More than one step's worth of 2,000."""
    driver = start(SETTINGS, audited=False)
    driver.admit(seed(A + "/"), *(discovered(f"{A}/calendar/{month}") for month in range(1, 2_600)))
    crawl(driver, calendar(web))
    (view,) = in_force(driver)

    async def undo_a_part() -> None:
        undoing = asyncio.create_task(driver.frontier.undo_trap(view.id))
        while (await driver.frontier.stats()).refusals["trap"] == view.refused:
            await asyncio.sleep(0)
        undoing.cancel()
        await asyncio.gather(undoing, return_exceptions=True)

    driver.run(undo_a_part())
    assert 0 < driver.stats().refusals["trap"] < view.refused
    driver.reopen()
    assert driver.ask(driver.frontier.horizon()).next_at is not None
    while driver.promote():
        pass
    assert "trap" not in driver.stats().refusals
    assert driver.stats().urls["queued"] >= view.refused


def test_a_seed_is_fetched_whatever_it_resembles(driver: Driver, web: Web) -> None:
    driver.admit(seed(A + "/"))
    crawl(driver, calendar(web))
    (view,) = in_force(driver)
    driver.admit(discovered(f"{A}/calendar/500"))
    assert driver.admit(seed(f"{A}/calendar/500"))[0].kind is VerdictKind.ADDED
    assert crawl(driver, calendar(web)) == [f"{A}/calendar/500"]
    assert driver.run(driver.frontier.undo_trap(view.id)) == in_force_refused(view, driver)


def in_force_refused(view: TrapView, driver: Driver) -> int:
    ended = next(v for v in driver.ask(driver.frontier.traps(limit=100)) if v.id == view.id)
    return ended.released


def test_the_switch_turns_all_of_it_off(start: Start, web: Web) -> None:
    off = Settings(crawl=SETTINGS.crawl, politeness=SETTINGS.politeness, traps=TrapSettings(mode="off"))
    driver = start(off, audited=False)
    driver.admit(seed(A + "/"))
    assert len(crawl(driver, calendar(web), most=300)) >= 300
    assert driver.ask(driver.frontier.traps(limit=10)) == []


# -- other kinds


def test_folders_that_come_again_are_stopped_as_one(driver: Driver, web: Web) -> None:
    def sections(url: str) -> Result:
        here = url.rstrip("/").rpartition("/")[2]
        links = [f"{url}{name}/" for name in ("news", "sport", "culture") if name != here]
        return web.page(url, prose(len(here)), links, title=f"The {here} section")

    driver.admit(seed(A + "/"))
    assert len(crawl(driver, sections)) < 80
    assert "repeating" in {view.kind for view in in_force(driver)}


def test_facets_are_stopped_by_what_they_have_in_common(driver: Driver, web: Web) -> None:
    names = ("colour", "size", "brand", "sort", "price")

    def facets(url: str) -> Result:
        chosen = url.partition("?")[2]
        left = [name for name in names if name not in chosen]
        links = [f"{A}/list?{chosen}{'&' * bool(chosen)}{name}={value}" for name in left for value in "xyz"]
        return web.page(url, f"{prose(1)} {chosen}", links, title="Our range")

    driver.admit(seed(A + "/list"))
    assert len(crawl(driver, facets)) < 80
    assert driver.stats().urls["queued"] == 0


def test_a_parameter_that_changes_nothing_is_dropped(driver: Driver, web: Web) -> None:
    def session(url: str) -> Result:
        path, _, stamp = url.partition("?sid=")
        fresh = (int(stamp or "0", 16) * 31 + number_in(path) + 7) % 2**32
        links = [f"{A}/page/{place}?sid={fresh + place:08x}" for place in range(12)]
        return web.page(path, prose(number_in(path) + 10), links, title=f"Page {prose(number_in(path))[:20]}")

    driver.admit(seed(A + "/"))
    asked = crawl(driver, session)
    assert {url.partition("?")[0] for url in asked} >= {f"{A}/page/{place}" for place in range(12)}
    assert len(asked) < 60


def test_what_a_parameter_dropped_comes_back_when_it_turns_out_to_matter(driver: Driver, web: Web) -> None:
    """For long `ref` says nothing, and then it does."""

    def cases(url: str) -> Result:
        ref = url.partition("ref=")[2]
        text = prose(1000 + int(ref)) if ref and int(ref) >= 60 else prose(1)
        title = f"Case {prose(int(ref))[:20]}" if ref and int(ref) >= 60 else "Cases"
        return web.page(url, text, title=title)

    driver.admit(seed(A + "/case"), *(discovered(f"{A}/case?ref={number}") for number in range(30)))
    crawl(driver, cases)
    (view, *_) = [v for v in in_force(driver) if v.kind == "parameter"]
    assert view.skeleton == "ref"
    driver.admit(*(discovered(f"{A}/case?ref={number}") for number in range(60, 400)))
    crawl(driver, cases)
    ended = {v.id: v.ended for v in driver.ask(driver.frontier.traps(limit=100))}
    assert ended[view.id] == "contradicted by new pages"


def test_a_host_that_has_a_page_for_everything_is_probed_once(driver: Driver, web: Web) -> None:
    def anything(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), [f"{A}/old/{word}" for word in WORDS], title="Home")
        links = [f"{url}/{word}" for word in WORDS[:4]]
        return web.page(url, f"{prose(1)} {url}", links, title="Not found")

    driver.admit(seed(A + "/"))
    asked = crawl(driver, anything)
    probes = [url for url in asked if "/no-such-page-" in url]
    assert len(probes) == 1
    told = driver.explain(probes[0])
    assert "made up" in told.found
    assert len(asked) < 120
    assert driver.stats().urls["queued"] == 0


def test_new_hosts_of_a_domain_are_stopped_when_they_say_the_same(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)

    def partners(url: str) -> Result:
        number = int(url.partition("//")[2].partition(".")[0][1:])
        links = [f"http://w{number * 3 + step}.farm.test/" for step in (1, 2, 3)]
        return web.page(url, f"{prose(1)} w{number}", links, title="Welcome")

    driver.admit(seed("http://w0.farm.test/"))
    asked = crawl(driver, partners)
    assert len(asked) < 60
    (view,) = in_force(driver)
    assert (view.kind, view.skeleton) == ("subdomains", "*.farm.test")


def test_hosts_of_a_domain_that_differ_are_all_crawled(start: Start, web: Web) -> None:
    driver = start(SETTINGS, audited=False)
    homes = [f"http://w{number}.blogs.test/" for number in range(150)]

    def blogs(url: str) -> Result:
        if url in homes:
            number = homes.index(url)
            return web.page(url, prose(number + 10), title=f"Blog of {prose(number)[:20]}")
        return web.page(url, prose(0), homes, title="All blogs")

    driver.admit(seed("http://blogs.test/"))
    assert {*crawl(driver, blogs)} >= {*homes}


def test_a_redirect_to_what_is_known_brings_nothing_new(driver: Driver, web: Web) -> None:
    def jumps(url: str) -> Result:
        if url == A + "/":
            return web.page(url, prose(0), [f"{A}/jump/{number}" for number in range(100)], title="Home")
        target: Redirected = redirected(A + "/")
        return target

    driver.admit(seed(A + "/"))
    assert len(crawl(driver, jumps)) < 40


# -- budgets


def scattered(web: Web) -> Site:
    """Nothing new, at URLs that have nothing in common."""

    def answer(url: str) -> Result:
        number = number_in(url)
        links = [f"{A}/{WORDS[(number + step) % 16]}-{number * 4 + step}" for step in range(1, 5)]
        return web.page(url, prose(1), links, title="Home")

    return answer


def test_a_host_that_brings_nothing_new_uses_its_budget_up(start: Start, web: Web) -> None:
    small = Settings(crawl=SETTINGS.crawl, politeness=SETTINGS.politeness, traps=TrapSettings(host_start=5))
    driver = start(small)
    driver.admit(seed(A + "/"))
    assert len(crawl(driver, scattered(web))) < 40
    assert "budget" in {view.kind for view in in_force(driver)}


def test_the_operators_budget_for_a_host_overrides_what_it_earned(start: Start, web: Web) -> None:
    small = Settings(crawl=SETTINGS.crawl, politeness=SETTINGS.politeness, traps=TrapSettings(host_start=5))
    driver = start(small)
    driver.set_policy(A, HostPolicy(budget=0))
    driver.admit(seed(A + "/"))
    crawl(driver, scattered(web), most=60)
    assert "budget" not in {view.kind for view in in_force(driver)}


def test_novelty_earns_a_host_more_than_the_budget_it_began_with(start: Start, web: Web) -> None:
    politeness = PolitenessSettings(delay=0.0, slow_factor=0.0, host_budget=20)
    driver = start(Settings(crawl=SETTINGS.crawl, politeness=politeness), audited=False)

    def chain(url: str) -> Result:
        number = number_in(url)
        links = [f"{A}/part/{number + step}" for step in (1, 2, 3)]
        return web.page(url, prose(number), links, title=f"Part {prose(number)[:20]}")

    driver.admit(seed(A + "/part/0"))
    assert len(crawl(driver, chain, most=200)) >= 200


def test_a_lease_takes_many_new_kinds_of_a_host_that_hardly_repeats_itself_and_few_of_one_that_does(
    start: Start,
) -> None:
    """Each page is the first of its pattern: only what the host's others were worth can tell."""
    letters = "abcdefghijklmnopqrst"
    kinds = [f"{A}/{one}/{two}/page-{one}-{two}" for one in letters for two in letters]
    assert [_tasks_at_once(start, kinds, copies) for copies in (2, 60)] == [59, 8]


def _tasks_at_once(start: Start, kinds: list[str], copies: int) -> int:
    driver, web = start(SETTINGS, audited=False), Web()
    driver.set_policy(A, HostPolicy(parallel=16))
    driver.admit(seed(A + "/"))
    known = kinds[:120]
    texts = {url: prose(max(number - copies, 0)) for number, url in enumerate(known)}

    def site(url: str) -> Result:
        return web.page(url, texts.get(url, "home"), known if url == A + "/" else ())

    crawl(driver, site)
    driver.admit(*map(discovered, kinds[200:]))
    driver.clock.advance(1.0)
    (lease,) = driver.lease()
    return len(lease.tasks)
