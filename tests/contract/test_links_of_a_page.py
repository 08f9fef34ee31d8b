"""However the links of a page come, one by one, together or in bundles: the same is known afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from skitter.frontier.base import Settlement
from skitter.frontier.link_batches import count_links, pack
from skitter.model import Discovered, Fetched, HostPolicy, LinkBatch, LinkColumns, TaskKind, Via
from skitter.schedule.budgets import EARNED_BY_NOVELTY
from skitter.settings import CrawlSettings, PolitenessSettings, Settings
from skitter.urls.canonical import host_id, host_of
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, Driver, discovered
from tests.keys import key_of

A, B, C = "http://a.test", "http://b.test", "http://c.test"
OPEN = Settings(politeness=PolitenessSettings(delay=0.0), crawl=CrawlSettings(scope="any", max_depth=5))
TIGHT = msgspec.structs.replace(
    OPEN,
    politeness=PolitenessSettings(delay=0.0, host_budget=40),
    crawl=CrawlSettings(scope="host", max_depth=5, exclude=("/no/",)),
)


def pages(count: int, tied: Callable[[Sequence[Discovered]], tuple[LinkBatch, ...]] = pack) -> list[Fetched]:
    """Of links known and new, twice on a page, between hosts, refused, and to what a page needs."""
    chance = random.Random(7)
    return [
        Fetched(status=200, size=9, digest=chance.randbytes(32), link_batches=tied(links(chance)))
        for _ in range(count)
    ]


def links(chance: random.Random) -> tuple[Discovered, ...]:
    parent = key_of(chance.choice((A, B)) + "/")
    depth = chance.choice((1, 1, 1, 6))
    found = [
        discovered(
            chance.choice((A, A, A, B, C))
            + chance.choice(("/", "/", "/no/"))
            + f"{chance.randrange(80)}{chance.choice(('', '', '.zip'))}",
            depth=depth,
            parent=parent,
            priority=None,
        )
        for _ in range(chance.randrange(12))
    ]
    if chance.random() < 0.3:
        needed = discovered(A + f"/{chance.randrange(80)}", via=Via.REQUISITE, parent=parent)
        found.append(msgspec.structs.replace(needed, kind=TaskKind.REQUISITE, nesting=1))
    return tuple(found)


def singly(links: Sequence[Discovered]) -> tuple[LinkBatch, ...]:
    return tuple(link_batch for link in links for link_batch in pack([link]))


def crawl(driver: Driver, answers: list[Fetched]) -> list[Settlement]:
    left = answers.copy()
    settled: list[Settlement] = []
    driver.open_host(A + "/", B + "/")
    while left:
        driver.clock.advance(1)
        for lease in driver.lease(capacity=2):
            if lease.tasks[0].kind is TaskKind.ROBOTS:
                driver.answer(lease, NO_RULES)
                continue
            some, left = left[: len(lease.tasks)], left[len(lease.tasks) :]
            if some:
                settled += driver.answer(lease, *some)
    return settled


def what_is_known(driver: Driver) -> list[object]:
    """All that the contract tells of the URLs that the pages may have named."""
    pages = [
        f"{host}{folder}{number}" for host in (A, B, C) for folder in ("/", "/no/") for number in range(80)
    ]
    return [
        driver.stats(),
        driver.ask(driver.frontier.hosts(limit=10)),
        *(driver.explain(page + ending) for page in pages for ending in ("", ".zip")),
    ]


@pytest.mark.parametrize("settings", [OPEN, TIGHT], ids=["open", "tight"])
def test_links_in_batches_and_links_one_by_one_leave_the_same_frontier(
    start: Start, settings: Settings
) -> None:
    plain, packed = pages(60, singly), pages(60)
    assert [count_links(page) for page in plain] == [count_links(page) for page in packed]
    alone, in_batches = start(settings), start(settings)
    expected = crawl(alone, plain)
    assert sum(one.added for one in expected) > 30
    assert sum(one.known for one in expected) > 30
    assert crawl(in_batches, packed) == expected
    assert what_is_known(in_batches) == what_is_known(alone)


def test_a_page_that_links_one_url_twice_adds_it_once(start: Start) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/")
    twice = (discovered(A + "/new"), discovered(A + "/new"))
    settled = driver.fetch(Fetched(status=200, link_batches=pack(twice)))
    assert (settled.added, settled.known) == (1, 1)


def test_the_last_links_of_a_run_are_refused_when_the_budget_ends_within_it(start: Start) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/")
    driver.set_policy(A, HostPolicy(budget=3))
    run = tuple(discovered(f"{A}/{number}") for number in range(5))
    settled = driver.fetch(Fetched(status=200, link_batches=pack(run)))
    assert (settled.added, settled.refused) == (2, 3)


def test_the_crawls_own_budget_ends_within_a_run_too(start: Start) -> None:
    driver = start(msgspec.structs.replace(OPEN, politeness=PolitenessSettings(delay=0.0, host_budget=3)))
    driver.open_host(A + "/")
    run = tuple(discovered(f"{A}/{number}") for number in range(60))
    settled = driver.fetch(Fetched(status=200, link_batches=pack(run)))
    # of the budget the seed has taken one; what its page earns counts for the links of the next one
    assert (settled.added, settled.refused) == (2, 58)
    more = tuple(discovered(f"{A}/more/{number}") for number in range(60))
    again = driver.fetch(Fetched(status=200, link_batches=pack(more)))
    assert (again.added, again.refused) == (EARNED_BY_NOVELTY, 60 - EARNED_BY_NOVELTY)


def test_a_url_found_in_a_turn_is_known_to_the_other_pages_of_that_turn(start: Start) -> None:
    """Links from two more hosts raise its priority, for which its row is read again."""
    driver = start(OPEN)
    driver.open_host(A + "/", B + "/", C + "/")
    leases = {lease.host: lease for lease in driver.lease()}
    new = [discovered(A + "/new", parent=key_of(host + "/"), priority=None) for host in (A, B, C)]
    outcomes = [
        driver.outcome(leases[host_of(host + "/")], Fetched(status=200, link_batches=pack([link])))
        for host, link in zip((A, B, C), new, strict=True)
    ]
    settled = driver.settle(*outcomes)
    assert [one.added for one in settled] == [1, 0, 0]
    assert driver.explain(A + "/new").priority == 70


def test_links_to_what_another_host_is_known_to_have_leave_that_host_alone(start: Start) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/", B + "/")
    driver.admit(discovered(B + "/known", parent=key_of(B + "/")))
    driver.set_policy(B, HostPolicy(blocked=True))
    driver.restart()  # what is known for certain is kept, rows of hosts are not
    lease = driver.lease_one()
    link = discovered(B + "/known", parent=key_of(A + "/"))
    with driver.watched() as watch:
        driver.answer(lease, Fetched(status=200, link_batches=pack([link])))
    assert ("hosts", host_id(B)) not in watch.reads
    with driver.watched() as watch:
        driver.admit(discovered(B + "/new", parent=key_of(A + "/")))
    assert ("hosts", host_id(B)) in watch.reads


def test_a_link_with_a_priority_of_its_own_waits_in_the_tier_that_it_names(driver: Driver) -> None:
    """As a sitemap tells it: two links of one batch, and the one that comes later goes first."""
    driver.open_host(A + "/")
    (batch,) = pack([discovered(A + "/low", priority=None), discovered(A + "/high", priority=None)])
    batch = msgspec.structs.replace(batch, columns=LinkColumns(priority=(5, 78)))
    driver.fetch(Fetched(status=200, link_batches=(batch,)))
    driver.clock.advance(10)
    assert [task.url for task in driver.lease_one().tasks] == [A + "/high", A + "/low"]


@pytest.mark.parametrize("small", [True, False], ids=["small host", "large host"])
@pytest.mark.parametrize("between", ["nothing", "end", "kill"])
def test_what_was_too_deep_comes_in_when_a_shorter_way_leads_to_it(
    start: Start, small: bool, between: str
) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/")
    others = tuple(discovered(f"{A}/{number}", depth=1) for number in range(50 if small else 300))
    driver.fetch(Fetched(status=200, link_batches=pack(others)))
    deep = tuple(discovered(f"{A}/deep/{number}", depth=6) for number in range(3))
    assert driver.fetch(Fetched(status=200, link_batches=pack(deep))).refused == 3
    {"nothing": lambda: None, "end": driver.restart, "kill": driver.reopen}[between]()
    again = (*deep, discovered(A + "/still/deep", depth=6))
    settled = driver.fetch(Fetched(status=200, link_batches=pack(again)))
    assert (settled.known, settled.refused) == (3, 1)
    near = tuple(discovered(f"{A}/deep/{number}", depth=2) for number in range(2))
    settled = driver.fetch(Fetched(status=200, link_batches=pack(near)))
    assert settled.added == 2
    assert driver.stats().refusals == {"depth": 2}
    assert driver.explain(A + "/deep/0").depth == 2
    assert [driver.explain(f"{A}/deep/{number}").state for number in range(3)] == [
        "queued",
        "queued",
        "refused",
    ]
