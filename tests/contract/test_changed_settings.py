"""Settings act on what is known: what a stricter rule forbids is not asked for, and what a loosened one refused
comes back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from skitter.frontier.link_batches import pack
from skitter.model import Discovered, Failed, FailureKind, Fetched, HostPolicy, Refusal, Result, TaskKind, Via
from skitter.settings import CrawlSettings, FetchSettings, PolitenessSettings, Settings, TrapSettings
from skitter.settings.plugins import PluginSettings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, redirected, robots, seed

A, B = "http://a.test", "http://b.test"
NO_TRAPS = TrapSettings(mode="off")


def rules(**crawl: Any) -> Settings:
    return Settings(crawl=CrawlSettings(**crawl), traps=NO_TRAPS)


def budget(pages: int, **crawl: Any) -> Settings:
    return replace(rules(**crawl), politeness=PolitenessSettings(host_budget=pages))


def redirects(most: int) -> Settings:
    return replace(rules(), fetch=FetchSettings(max_redirects=most))


def needed(url: str, *, parent: str = A + "/") -> Discovered:
    found = discovered(url, via=Via.REQUISITE, depth=0, parent=discovered(parent).key)
    return replace(found, kind=TaskKind.REQUISITE, nesting=1, priority=None)


def settle_all(driver: Driver) -> list[str]:
    """Everything that may be asked for is, at once. Which pages were."""
    asked = []
    for _ in range(40):
        driver.clock.advance(2)
        while driver.promote():
            pass
        for lease in driver.lease():
            asked += [task.url for task in lease.tasks if task.kind is not TaskKind.ROBOTS]
            driver.answer(lease, robots() if lease.tasks[0].kind is TaskKind.ROBOTS else OK)
    return sorted(asked)


def states(driver: Driver, urls: Iterable[str]) -> list[str]:
    return [driver.explain(url).state for url in urls]


# -- stricter rules


@pytest.mark.parametrize(
    ("loose", "strict", "found", "reason"),
    [
        (rules(scope="any"), rules(scope="host"), discovered(B + "/"), Refusal.SCOPE),
        (rules(scope="domain"), rules(scope="host"), discovered("http://x.a.test/"), Refusal.SCOPE),
        (rules(), rules(scope="prefix"), discovered(A + "/other/x"), Refusal.SCOPE),
        (rules(), rules(exclude=("/library/",)), discovered(A + "/library/1"), Refusal.EXCLUDED),
        (rules(), rules(include=("/docs/",)), discovered(A + "/library/1"), Refusal.EXCLUDED),
        (rules(), rules(max_depth=2), discovered(A + "/deep", depth=3), Refusal.DEPTH),
        (rules(), rules(max_url_length=30), discovered(A + "/" + "x" * 20), Refusal.LENGTH),
        (rules(), rules(skip_extensions=("html",)), discovered(A + "/1.html"), Refusal.EXTENSION),
        (redirects(3), redirects(1), discovered(A + "/moved", via=Via.REDIRECT, hops=2), Refusal.REDIRECTS),
        (rules(requisites=True), rules(), needed(B + "/1.png"), Refusal.REQUISITE),
    ],
    ids=lambda value: value.value if isinstance(value, Refusal) else "",
)
def test_what_a_stricter_rule_forbids_is_not_asked_for_though_it_was_queued_and_comes_back_with_the_old_rule(
    start: Start, loose: Settings, strict: Settings, found: Discovered, reason: Refusal
) -> None:
    driver = start(loose)
    driver.admit(seed(A + "/docs/"), found)
    assert driver.explain(found.url).state == "queued"

    driver.reopen(strict)
    assert driver.explain(found.url).state == "queued"
    assert settle_all(driver) == [A + "/docs/"]
    told = driver.explain(found.url)
    assert (told.state, told.reason.partition(":")[0]) == ("refused", reason)
    assert driver.stats().refusals == {reason: 1}

    driver.reopen(loose)
    assert driver.stats().rejudging == (reason,)
    assert settle_all(driver) == [found.url]
    assert driver.stats().refusals == {}
    assert driver.stats().came_back == {reason: 1}


def test_seeds_stay_in_scope_whatever_becomes_of_the_settings(driver: Driver) -> None:
    urls = [A + "/library/1.zip", B + "/library/deep/2"]
    driver.admit(*map(seed, urls))
    strict = CrawlSettings(
        scope="prefix", exclude=("library",), include=("x",), max_depth=0, skip_extensions=("zip",)
    )
    driver.reopen(Settings(crawl=strict))
    assert settle_all(driver) == urls


def test_what_is_given_as_a_seed_is_let_in_that_a_stricter_rule_refused(start: Start) -> None:
    driver = start(rules())
    driver.admit(seed(A + "/"), discovered(A + "/library/1"))
    driver.reopen(rules(exclude=("/library/",)))
    assert settle_all(driver) == [A + "/"]
    driver.admit(seed(A + "/library/1"))
    assert settle_all(driver) == [A + "/library/1"]


def test_retries_dead_letters_and_what_is_looked_at_again_are_judged_by_the_stricter_rule_too(
    start: Start,
) -> None:
    driver = start(rules())
    driver.open_host(A + "/")
    kinds: dict[str, Result] = {
        A + "/old/1": failed(FailureKind.SERVER_ERROR),
        A + "/old/2": failed(FailureKind.HEADERS_TOO_LARGE),
        A + "/old/3": OK,
    }
    driver.admit(*map(discovered, kinds))
    lease = driver.lease_one()
    driver.settle(*(driver.outcome(lease, kinds.get(task.url, OK), task) for task in lease.tasks))
    assert states(driver, kinds) == ["failed", "dead_letter", "completed"]

    driver.reopen(rules(exclude=("/old/",)))
    driver.clock.advance(4000)
    assert driver.requeue() == 1
    assert driver.refresh(url=A + "/old/3") == 1
    assert settle_all(driver) == []
    assert states(driver, kinds) == ["refused"] * 3
    assert driver.stats().refusals == {"excluded": 3}


def test_rules_stay_stricter_after_another_restart(start: Start) -> None:
    driver = start(rules())
    driver.admit(seed(A + "/"), discovered(A + "/library/1"))
    strict = rules(exclude=("/library/",))
    driver.reopen(strict)
    driver.restart()
    driver.reopen(strict)
    assert settle_all(driver) == [A + "/"]


def test_a_host_of_which_all_is_excluded_leaves_nothing_to_wait_for(start: Start) -> None:
    driver = start(rules(scope="any"))
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/library/{n}") for n in range(600)))
    driver.audited = False
    driver.reopen(rules(scope="any", exclude=("/library/",)))
    assert settle_all(driver) == [A + "/"]
    assert driver.ask(driver.frontier.horizon()).next_at is None
    assert driver.stats().refusals == {"excluded": 600}


def test_a_smaller_budget_leaves_what_is_too_much_and_keeps_to_the_most_urgent(start: Start) -> None:
    driver = start(budget(0))
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{n}", priority=70 - n) for n in range(20)))
    driver.reopen(budget(6))
    assert settle_all(driver) == [A + "/", *(f"{A}/{n}" for n in range(5))]
    assert driver.stats().refusals == {"budget": 15}
    assert "the budget of http://a.test is 6" in driver.explain(A + "/19").reason

    driver.reopen(budget(9))
    assert len(settle_all(driver)) == 3
    driver.reopen(budget(0))
    assert len(settle_all(driver)) == 12
    assert driver.stats().refusals == {}


def test_a_policy_gives_a_host_a_smaller_budget_and_takes_it_back(start: Start) -> None:
    driver = start(budget(0))
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{n}") for n in range(9)))
    driver.set_policy(A, HostPolicy(budget=4))
    assert len(settle_all(driver)) == 4
    driver.set_policy(A, HostPolicy(budget=7))
    assert len(settle_all(driver)) == 3
    driver.set_policy(A, HostPolicy())
    assert len(settle_all(driver)) == 3


# -- looser rules


@pytest.mark.parametrize(
    ("strict", "loose", "found", "reason"),
    [
        (rules(), rules(scope="domain"), discovered("http://x.a.test/"), Refusal.SCOPE),
        (rules(), rules(scope="any"), discovered(B + "/"), Refusal.SCOPE),
        (rules(scope="prefix"), rules(), discovered(A + "/other/x"), Refusal.SCOPE),
        (rules(exclude=("/library/", "x")), rules(exclude=("x",)), discovered(A + "/library/"), "excluded"),
        (rules(include=("/docs/",)), rules(include=("/docs/", "/l/")), discovered(A + "/l/"), "excluded"),
        (rules(max_depth=1), rules(max_depth=2), discovered(A + "/deep", depth=2), Refusal.DEPTH),
        (rules(max_url_length=30), rules(), discovered(A + "/" + "x" * 20), Refusal.LENGTH),
        (rules(), rules(skip_extensions=()), discovered(A + "/1.zip"), Refusal.EXTENSION),
        (redirects(1), redirects(2), discovered(A + "/moved", via=Via.REDIRECT, hops=2), Refusal.REDIRECTS),
    ],
)
def test_what_a_loosened_rule_refused_comes_back_once(
    start: Start, strict: Settings, loose: Settings, found: Discovered, reason: str
) -> None:
    driver = start(strict)
    driver.admit(seed(A + "/docs/"), found)
    assert settle_all(driver) == [A + "/docs/"]
    assert driver.stats().refusals == {reason: 1}

    driver.reopen(loose)
    assert driver.ask(driver.frontier.horizon()).next_at is not None
    assert settle_all(driver) == [found.url]
    assert driver.stats().came_back == {reason: 1}
    assert driver.stats().refusals == {}
    driver.reopen(loose)
    assert driver.stats().rejudging == ()
    assert driver.promote() == 0
    assert driver.explain(found.url).state == "completed"


def test_answers_of_a_type_that_is_read_now_are_asked_for_again_and_no_others(start: Start) -> None:
    driver = start(rules())
    details = {
        A + "/table": "Text/CSV; header=present",
        A + "/odd": "text/html, but its bytes are text/csv",
        A + "/image": "image/png",
        A + "/film": "text/csv, but its bytes are video/mp4",
    }
    driver.admit(seed(A + "/"), *map(discovered, details))
    for _ in range(10):
        driver.clock.advance(2)
        for lease in driver.lease():
            unread = [
                Failed(kind=FailureKind.TYPE_UNWANTED, detail=details[task.url], status=200)
                if task.url in details
                else OK
                for task in lease.tasks
            ]
            driver.answer(lease, *([robots()] if lease.tasks[0].kind is TaskKind.ROBOTS else unread))
    assert driver.stats().refusals == {"type_unwanted": 4}

    reading = replace(rules(), plugins=PluginSettings(types=("text/csv",)))
    driver.reopen(reading)
    assert settle_all(driver) == [A + "/odd", A + "/table"]
    assert driver.stats().came_back == {"type_unwanted": 2}
    assert driver.stats().refusals == {"type_unwanted": 2}
    driver.reopen(rules())
    driver.reopen(replace(reading, crawl=CrawlSettings(exclude=("/image",))))
    assert settle_all(driver) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (rules(), rules(scope="prefix")),
        (rules(exclude=("x",)), rules(exclude=("x", "y"))),
        (rules(include=("1", "x")), rules(include=("1",))),
        (rules(), rules(include=("1",))),
        (rules(max_depth=2), rules(max_depth=1)),
        (rules(max_url_length=40), rules(max_url_length=30)),
        (rules(skip_extensions=("zip",)), rules(skip_extensions=("gz", "ZIP"))),
        (redirects(3), redirects(2)),
        (budget(3), budget(2)),
        (rules(requisites=True), rules()),
    ],
)
def test_what_only_became_stricter_looks_at_nothing_again(start: Start, old: Settings, new: Settings) -> None:
    driver = start(old)
    driver.admit(seed(A + "/"), discovered(B + "/"), discovered(A + "/x"), discovered(A + "/1.zip"))
    driver.admit(discovered(A + "/deep", depth=20), discovered(A + "/" + "x" * 4000))
    driver.admit(discovered(A + "/moved", via=Via.REDIRECT, hops=9))
    driver.reopen(new)
    assert driver.stats().rejudging == ()


def test_what_comes_back_is_judged_by_all_rules_and_refused_with_its_new_reason(start: Start) -> None:
    driver = start(rules(max_depth=1))
    driver.admit(seed(A + "/"), discovered(A + "/library/1", depth=2), discovered(B + "/", depth=2))
    assert driver.stats().refusals == {"depth": 2}
    driver.reopen(rules(max_depth=5, exclude=("/library/",)))
    assert settle_all(driver) == [A + "/"]
    assert driver.stats().refusals == {"excluded": 1, "scope": 1}
    assert driver.stats().came_back == {}


def test_explain_names_the_rule_as_it_is_now(start: Start) -> None:
    driver = start(rules())
    driver.admit(seed(A + "/"), discovered(B + "/"))
    assert "scope is host" in driver.explain(B + "/").reason
    driver.reopen(rules(scope="domain"))
    while driver.promote():
        pass
    assert "scope is domain" in driver.explain(B + "/").reason


def test_many_come_back_in_bounded_steps_that_a_restart_goes_on_with(start: Start) -> None:
    driver = start(rules(exclude=("/library/",)), audited=False)
    driver.admit(seed(A + "/"), *(discovered(f"{A}/library/{n}") for n in range(5_000)))
    driver.admit(*(discovered(f"{A}/{n}") for n in range(7_000)))
    driver.reopen(rules())
    steps = [driver.promote(), driver.promote()]
    driver.restart()
    driver.audit()
    assert driver.stats().rejudging == ("excluded",)
    while moved := driver.promote():
        steps.append(moved)
    driver.audit()
    assert sum(steps) >= 5_000
    assert max(steps) <= 2_000
    assert driver.stats().urls["queued"] == 12_001
    assert driver.stats().refusals == {}


def test_a_rule_that_changes_while_a_walk_is_under_way_is_not_forgotten(start: Start) -> None:
    driver = start(rules(exclude=("/library/",), max_depth=1), audited=False)
    driver.admit(seed(A + "/"), *(discovered(f"{A}/library/{n}") for n in range(3_000)))
    driver.admit(*(discovered(f"{A}/deep/{n}", depth=2) for n in range(3_000)))
    driver.reopen(rules(max_depth=1))
    driver.promote()
    driver.reopen(rules(max_depth=2))
    assert driver.stats().rejudging == ("depth", "excluded")
    while driver.promote():
        pass
    assert driver.stats().urls["queued"] == 6_001


def test_a_write_that_fails_loses_no_step_of_a_walk(start: Start) -> None:
    driver = start(rules(exclude=("/library/",)))
    driver.admit(seed(A + "/"), *(discovered(f"{A}/library/{n}") for n in range(5)))
    driver.reopen(rules())
    with driver.failing_commits(), pytest.raises(Exception, match="broke"):
        driver.promote()
    assert driver.stats().came_back == {}
    assert driver.promote() == 5


def test_unchanged_settings_are_not_looked_at_twice(start: Start) -> None:
    driver = start(rules(exclude=("a", "b")))
    driver.admit(seed(A + "/"), discovered(B + "/"), discovered(A + "/x"))
    driver.reopen(rules(exclude=("b", "a", "b")))
    assert driver.stats().rejudging == ()
    with driver.watched() as watch:
        driver.lease()
    assert "anchors" not in watch.tables_read()


# -- budgets that were earned


def test_what_the_budget_refused_comes_back_when_novel_pages_earned_more(start: Start) -> None:
    driver = start(replace(budget(4), traps=TrapSettings(probe=False)))
    driver.open_host(A + "/")
    links = [discovered(f"{A}/{n}") for n in range(30)]
    settled = driver.fetch(Fetched(status=200, size=9, link_batches=pack(links)))
    assert (settled.added, settled.refused) == (3, 27)
    asked = settle_all(driver)
    assert sorted(asked) == sorted(link.url for link in links)
    assert driver.stats().refusals == {}
    assert driver.ask(driver.frontier.horizon()).next_at is None


# -- seeds and policies


@pytest.mark.parametrize("scope", ["host", "domain", "prefix"])
def test_a_new_seed_brings_back_what_was_out_of_scope_without_it(start: Start, scope: str) -> None:
    driver = start(rules(scope=scope))
    driver.admit(
        seed(A + "/"), discovered(B + "/1"), discovered("https://b.test/2"), discovered("http://c.test/")
    )
    assert driver.stats().refusals == {"scope": 3}
    driver.admit(seed(B + "/"))
    assert settle_all(driver) == [A + "/", B + "/", B + "/1", "https://b.test/2"]
    assert driver.stats().refusals == {"scope": 1}


def test_where_a_seed_redirects_to_what_was_out_of_scope_comes_back(start: Start) -> None:
    driver = start(rules())
    driver.open_host(A + "/", B + "/")
    driver.admit(discovered("http://www.b.test/1"))
    lease = next(lease for lease in driver.lease() if lease.host == B)
    driver.answer(lease, redirected("http://www.b.test/", depth=0))
    assert "http://www.b.test/1" in settle_all(driver)


def test_what_was_refused_because_its_host_was_blocked_comes_back_when_it_is_not(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.set_policy(A, HostPolicy(blocked=True))
    driver.admit(discovered(A + "/1"))
    assert driver.stats().refusals == {"blocked": 1}
    driver.set_policy(A, HostPolicy())
    assert settle_all(driver) == [A + "/", A + "/1"]


# -- requisites


def test_pages_of_before_requisites_were_wanted_are_asked_for_whole(start: Start) -> None:
    driver = start(rules())
    driver.open_host(A + "/")
    driver.fetch(Fetched(status=200, size=9, digest=b"d" * 32, etag='"e"', last_modified="then"))
    driver.reopen(rules(requisites=True))
    driver.clock.advance(5)
    assert driver.refresh() == 1
    (task,) = (lease := driver.lease_one()).tasks
    assert (task.etag, task.last_modified, task.digest) == ("", "", b"d" * 32)
    driver.answer(
        lease,
        Fetched(status=200, size=9, digest=b"d" * 32, etag='"e"', link_batches=pack([needed(B + "/1.png")])),
    )
    assert driver.explain(B + "/1.png").state == "queued"
    driver.clock.advance(5)
    driver.refresh(host=A)
    assert next(lease for lease in driver.lease() if lease.host == A).tasks[0].etag == '"e"'


# -- the page limit


def test_a_raised_page_limit_goes_on_where_the_crawl_stopped(start: Start) -> None:
    driver = start(rules(max_pages=2))
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{n}") for n in range(4)))
    assert len(settle_all(driver)) == 2
    assert driver.ask(driver.frontier.horizon()).limit_reached
    driver.reopen(rules(max_pages=4))
    assert len(settle_all(driver)) == 2
    driver.reopen(rules())
    assert len(settle_all(driver)) == 1
