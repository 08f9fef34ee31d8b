"""However the links of a page come, one by one, together or in bundles: the same is known afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from skitter.frontier.base import Settlement
from skitter.frontier.bundles import bundled, count_links
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.frontier.rocks.store import Store
from skitter.model import Bundle, Discovered, Fetched, HostPolicy, TaskKind, Via
from skitter.schedule.budgets import EARNED_BY_NOVELTY
from skitter.settings import CrawlSettings, PolitenessSettings, Settings
from skitter.urls.canonical import host_id, host_of
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, Driver, _Tables, discovered
from tests.keys import key_of

A, B, C = "http://a.test", "http://b.test", "http://c.test"
OPEN = Settings(politeness=PolitenessSettings(delay=0.0), crawl=CrawlSettings(scope="any", max_depth=5))
TIGHT = msgspec.structs.replace(
    OPEN,
    politeness=PolitenessSettings(delay=0.0, host_budget=40),
    crawl=CrawlSettings(scope="host", max_depth=5, exclude=("/no/",)),
)


def pages(count: int, tied: Callable[[Sequence[Discovered]], tuple[Bundle, ...]] = bundled) -> list[Fetched]:
    """Of links known and new, twice on a page, between hosts, refused, and to what a page needs."""
    chance = random.Random(7)
    return [
        Fetched(status=200, size=9, digest=chance.randbytes(32), bundles=tied(links(chance)))
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
        found.append(msgspec.structs.replace(needed, requisite=1))
    return tuple(found)


def singly(links: Sequence[Discovered]) -> tuple[Bundle, ...]:
    return tuple(bundle for link in links for bundle in bundled([link]))


def one_by_one(frontier: RocksFrontier) -> None:
    admission = frontier._admission
    admission.admit_run = lambda turn, run: [admission.admit(turn, found) for found in run]  # type: ignore[method-assign]
    frontier._book.certain.lacks = lambda keys, ident: list(range(len(keys) // 16))  # type: ignore[assignment]
    frontier._book.certain.unheard = lambda keys, *_: list(range(len(keys) // 16))  # type: ignore[assignment]


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


def what_is_known(driver: Driver) -> dict[str, object]:
    """Everything on disk. The row of a new URL may leave out what has its default: these are compared as read."""
    tables = _Tables(driver.frontier)
    return {**tables.raw, "urls": tables.urls}


@pytest.mark.parametrize("settings", [OPEN, TIGHT], ids=["open", "tight"])
def test_links_in_bundles_and_links_one_by_one_leave_the_same_frontier(
    start: Start, settings: Settings
) -> None:
    plain, packed = pages(60, singly), pages(60)
    assert [count_links(page) for page in plain] == [count_links(page) for page in packed]
    together, in_bundles, alone = start(settings), start(settings), start(settings)
    one_by_one(alone.frontier)
    expected = crawl(alone, plain)
    assert sum(one.added for one in expected) > 30
    assert sum(one.known for one in expected) > 30
    for driver, answers in ((together, plain), (in_bundles, packed)):
        assert crawl(driver, answers) == expected
        assert what_is_known(driver) == what_is_known(alone)


def test_a_page_that_links_one_url_twice_adds_it_once(start: Start) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/")
    twice = (discovered(A + "/new"), discovered(A + "/new"))
    settled = driver.fetch(Fetched(status=200, bundles=bundled(twice)))
    assert (settled.added, settled.known) == (1, 1)


def test_the_last_links_of_a_run_are_refused_when_the_budget_ends_within_it(start: Start) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/")
    driver.set_policy(A, HostPolicy(budget=3))
    run = tuple(discovered(f"{A}/{number}") for number in range(5))
    settled = driver.fetch(Fetched(status=200, bundles=bundled(run)))
    assert (settled.added, settled.refused) == (2, 3)


def test_the_crawls_own_budget_ends_within_a_run_too(start: Start) -> None:
    driver = start(msgspec.structs.replace(OPEN, politeness=PolitenessSettings(delay=0.0, host_budget=3)))
    driver.open_host(A + "/")
    run = tuple(discovered(f"{A}/{number}") for number in range(60))
    settled = driver.fetch(Fetched(status=200, bundles=bundled(run)))
    room = 3 + EARNED_BY_NOVELTY - 1  # of which the seed has taken one
    assert (settled.added, settled.refused) == (room, 60 - room)


def test_a_url_found_in_a_turn_is_known_to_the_other_pages_of_that_turn(start: Start) -> None:
    """Links from two more hosts raise its priority, for which its row is read again."""
    driver = start(OPEN)
    driver.open_host(A + "/", B + "/", C + "/")
    leases = {lease.host: lease for lease in driver.lease()}
    new = [discovered(A + "/new", parent=key_of(host + "/"), priority=None) for host in (A, B, C)]
    outcomes = [
        driver.outcome(leases[host_of(host + "/")], Fetched(status=200, bundles=bundled([link])))
        for host, link in zip((A, B, C), new, strict=True)
    ]
    settled = driver.settle(*outcomes)
    assert [one.added for one in settled] == [1, 0, 0]
    assert driver.explain(A + "/new").priority == 70


def test_links_to_what_another_host_is_known_to_have_leave_that_host_alone(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = start(OPEN)
    driver.open_host(A + "/", B + "/")
    driver.admit(discovered(B + "/known", parent=key_of(B + "/")))
    lease = next(lease for lease in driver.lease() if lease.host == A)
    driver.frontier._book._hosts.clear()
    driver.frontier._book._dormant.clear()
    read: list[bytes] = []
    get = Store.get

    def noted(store: Store, table: str, key: bytes) -> bytes | None:
        read.append(table.encode() + key)
        return get(store, table, key)

    monkeypatch.setattr(Store, "get", noted)
    link = discovered(B + "/known", parent=key_of(A + "/"))
    driver.answer(lease, Fetched(status=200, bundles=bundled([link])))
    assert b"hosts" + host_id(A) in read
    assert b"hosts" + host_id(B) not in read
