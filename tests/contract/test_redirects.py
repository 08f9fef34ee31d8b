"""Redirects that lead nowhere end as 599, with the chain where the operator looks for it; others are followed."""

from __future__ import annotations

from msgspec.structs import replace

from skitter.frontier.base import Explanation
from skitter.frontier.link_batches import pack
from skitter.model import Discovered, FailureKind, Fetched, Host, Redirected, UrlState, VerdictKind, Via
from skitter.settings import CrawlSettings, KeySettings, PolitenessSettings, Settings
from skitter.urls.canonical import host_of
from skitter.urls.keys import Keys
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, redirected, robots
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


def test_a_redirect_that_only_drops_what_the_key_ignores_is_followed(driver: Driver) -> None:
    driver.open_host(A + "/?utm_source=x")
    assert hop(driver, A + "/?utm_source=x", A + "/").state == "queued"
    lease = driver.lease_one()
    assert [task.url for task in lease.tasks] == [A + "/"]
    driver.answer(lease, OK)
    found = driver.explain(A + "/?utm_source=x")
    assert (found.url, found.state) == (A + "/", "completed")
    assert [(f.status, f.detail) for f in found.fetches] == [(301, f"redirects to {A}/"), (200, "")]
    assert driver.stats().pages == 1


def test_redirects_among_urls_with_one_key_end_after_the_usual_number(driver: Driver) -> None:
    driver.open_host(A + "/?utm_source=0")
    states = [hop(driver, A + "/", f"{A}/?utm_source={n}", hops=n).state for n in range(1, 7)]
    assert states == ["queued"] * 5 + ["dead_letter"]
    assert driver.explain(A + "/").fetches[-1].status == 599
    assert driver.lease() == []


def test_such_a_redirect_out_of_scope_is_not_followed(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(exclude=("gclid",))))
    driver.open_host(A + "/1")
    driver.fetch(Fetched(status=200, link_batches=pack([discovered(A + "/2")])))
    driver.clock.advance(1)
    driver.fetch(redirected(A + "/2?gclid=1"))
    assert driver.explain(A + "/2").state == "completed"


def test_a_budget_that_is_used_up_does_not_keep_a_page_from_being_asked_where_it_went(start: Start) -> None:
    driver = start(Settings(politeness=PolitenessSettings(host_budget=1)))
    driver.open_host(A + "/?utm_source=x")
    assert hop(driver, A + "/?utm_source=x", A + "/").state == "queued"


def test_from_a_page_to_a_gate_and_back_with_a_ticket_the_page_is_fetched(driver: Driver) -> None:
    driver.open_host(A + "/page")
    assert hop(driver, A + "/page", A + "/gate").state == "completed"
    assert hop(driver, A + "/gate", A + "/page?utm_id=ticket", hops=2).state == "completed"
    assert driver.explain(A + "/page").state == "queued"
    lease = driver.lease_one()
    assert [task.url for task in lease.tasks] == [A + "/page?utm_id=ticket"]
    driver.answer(lease, redirected(A + "/gate", depth=0, hops=3))
    found = driver.explain(A + "/page")
    assert (found.state, found.fetches[-1].status) == ("dead_letter", 599)
    assert driver.lease() == []


def test_a_page_that_moves_to_a_folded_host_is_asked_there_once(start: Start) -> None:
    driver = start(Settings(keys=KeySettings(scheme=True, www=True), crawl=CrawlSettings(scope="domain")))
    keys = Keys(driver.settings.keys)

    def folded(url: str, via: Via = Via.LINK, hops: int = 0) -> Discovered:
        return Discovered(url=url, key=keys.key_of(url), host=host_of(url), depth=0, via=via, hops=hops)

    driver.admit(folded("http://h.test/", Via.SEED))
    driver.fetch(NO_RULES)
    driver.clock.advance(1)
    there = folded("https://www.h.test/", Via.REDIRECT, 1)
    driver.fetch(Redirected(status=301, location=there.url, target=there))
    driver.fetch(NO_RULES)
    driver.clock.advance(1)
    assert driver.fetch(OK).state is UrlState.COMPLETED
    assert driver.explain("http://www.h.test/").url == "https://www.h.test/"
    assert [verdict.kind for verdict in driver.admit(folded("https://h.test/"))] == [VerdictKind.KNOWN]
    assert driver.refresh(host="http://h.test") == 0
    assert driver.refresh(host="https://www.h.test") == 1
    driver.clock.advance(1)
    assert driver.fetch(OK).state is UrlState.COMPLETED


def test_all_that_a_host_has_is_found_where_hosts_share_keys(start: Start) -> None:
    driver = start(Settings(keys=KeySettings(scheme=True)))
    keys = Keys(driver.settings.keys)
    urls = ["http://h.test/1", "https://h.test/2", "http://h.test/3", "https://h.test/deny"]
    seeds = [
        Discovered(url=url, key=keys.key_of(url), host=host_of(url), depth=0, via=Via.SEED) for url in urls
    ]
    driver.admit(*seeds)
    for lease in driver.lease():
        driver.answer(lease, robots("Disallow: /deny"))
    driver.clock.advance(1)
    for _ in range(4):
        for lease in driver.lease():
            driver.answer(lease, failed(FailureKind.BAD_REDIRECT))
        driver.clock.advance(1)
    states = {url: driver.explain(url).state for url in urls}
    assert states == dict.fromkeys(urls[:3], "dead_letter") | {urls[3]: "denied"}
    for host in ("http://h.test", "https://h.test"):
        letters = driver.ask(driver.frontier.dead_letters(limit=10, host=Host(host)))
        assert {letter.url for letter in letters} == {url for url in urls[:3] if url.startswith(host + "/")}
    assert driver.requeue(host="https://h.test") == 1
