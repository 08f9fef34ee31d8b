"""Redirects that lead nowhere end as 599, with the chain where the operator looks for it."""

from __future__ import annotations

from msgspec.structs import replace

from skitter.frontier.base import Explanation
from skitter.model import Redirected
from tests.frontier_kit import Driver, redirected
from tests.keys import key_of

A = "http://a.test"


def leads(start: str, to: str, hops: int) -> Redirected:
    moved = redirected(to, depth=0, hops=hops)
    return replace(moved, target=replace(moved.target, parent=key_of(start)))


def hop(driver: Driver, start: str, to: str, hops: int = 1) -> Explanation:
    """`start` is leased and answers with a redirect; what it became."""
    driver.fetch(leads(start, to, hops))
    driver.clock.advance(1)
    return driver.explain(start)


def test_a_redirect_to_itself_ends_as_599(driver: Driver) -> None:
    driver.open_host(A + "/")
    found = hop(driver, A + "/", A + "/")
    assert (found.state, found.fetches[-1].status) == ("dead_letter", 599)
    assert found.reason == f"endless_redirect: a loop: {A}/ -> {A}/"


def test_a_loop_ends_as_599_where_it_closes_and_shows_its_chain(driver: Driver) -> None:
    driver.open_host(A + "/1")
    assert hop(driver, A + "/1", A + "/2").state == "completed"
    found = hop(driver, A + "/2", A + "/1", hops=2)
    assert (found.state, found.fetches[-1].status) == ("dead_letter", 599)
    assert found.fetches[-1].detail == f"endless_redirect: a loop: {A}/2 -> {A}/1 -> {A}/2"


def test_the_sixth_redirect_in_a_row_ends_as_599_with_its_chain(driver: Driver) -> None:
    driver.open_host(A + "/0")
    states = [hop(driver, f"{A}/{n}", f"{A}/{n + 1}", hops=n + 1).state for n in range(6)]
    assert states == ["completed"] * 5 + ["dead_letter"]
    last = driver.explain(A + "/5")
    assert last.fetches[-1].status == 599
    assert last.reason.endswith(" -> ".join(f"{A}/{n}" for n in range(7)))
    assert not driver.explain(A + "/6").known


def test_a_redirect_that_only_drops_what_the_key_ignores_is_no_loop(driver: Driver) -> None:
    driver.open_host(A + "/?utm_source=x")
    assert hop(driver, A + "/?utm_source=x", A + "/").state == "completed"
