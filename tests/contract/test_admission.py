"""What gets in: seen-check, scope, limits and budget, one verdict per URL in order."""

from __future__ import annotations

import pytest

from skitter.errors import StoreFailed
from skitter.model import Discovered, Fetched, HostPolicy, Refusal, VerdictKind, Via
from skitter.settings import CrawlSettings, FetchSettings, FrontierSettings, PolitenessSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, discovered, redirected, seed

ADDED, KNOWN, REFUSED = VerdictKind.ADDED, VerdictKind.KNOWN, VerdictKind.REFUSED
A = "http://a.test"


def kinds(driver: Driver, *urls: str) -> list[VerdictKind]:
    return [verdict.kind for verdict in driver.admit(*(discovered(url) for url in urls))]


def test_each_verdict_belongs_to_the_url_in_its_place(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    urls = [A + "/", A + "/1", "http://far.test/", A + "/2", A + "/pic.jpg", A + "/1"]
    assert kinds(driver, *urls) == [KNOWN, ADDED, REFUSED, ADDED, REFUSED, KNOWN]
    assert kinds(driver, *urls) == [KNOWN] * 6


def test_of_duplicates_in_one_call_the_first_is_added(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    assert kinds(driver, *[A + "/x"] * 3, *[A + "/?utm_source=x"] * 2) == [ADDED, KNOWN, KNOWN, KNOWN, KNOWN]
    assert driver.stats().urls["queued"] == 2


@pytest.mark.parametrize("recent_keys", [1, 1000])
def test_a_url_is_known_for_ever(start: Start, recent_keys: int) -> None:
    driver = start(Settings(frontier=FrontierSettings(recent_keys=recent_keys)))
    urls = [f"{A}/{i}" for i in range(20)]
    driver.admit(seed(A + "/"))
    assert kinds(driver, *urls) == [ADDED] * 20
    driver.reopen()
    assert kinds(driver, *reversed(urls)) == [KNOWN] * 20
    assert [v.kind for v in driver.admit(*(seed(url) for url in urls))] == [KNOWN] * 20


def test_more_urls_than_one_batch_keep_their_order(start: Start) -> None:
    driver = start(audited=False)
    driver.admit(seed(A + "/"))
    urls = [f"{A}/{i // 2}" for i in range(11_000)]
    assert kinds(driver, *urls) == [ADDED, KNOWN] * 5500


def test_an_admission_that_fails_admits_nothing(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    with driver.failing_commits(), pytest.raises(StoreFailed):
        driver.admit(seed("http://b.test/"), discovered(A + "/1"))
    driver.audit()
    assert kinds(driver, A + "/1", "http://b.test/x") == [ADDED, REFUSED]
    assert driver.admit(seed("http://b.test/"))[0].kind is ADDED


# -- scope

SCOPES = {
    "host": [True, True, False, False, False, True],
    "domain": [True, True, True, False, True, True],
    "prefix": [True, False, False, False, False, True],
    "any": [True, True, True, True, True, True],
}


@pytest.mark.parametrize("scope", SCOPES)
def test_links_stay_in_scope_of_the_seeds_also_after_a_restart(start: Start, scope: str) -> None:
    driver = start(Settings(crawl=CrawlSettings(scope=scope)))
    driver.admit(seed("http://www.example.co.uk/docs/index.html"))
    for run in range(2):
        links = [
            f"http://www.example.co.uk/docs/deep/{run}",
            f"http://www.example.co.uk/{run}",
            f"http://other.example.co.uk/{run}",
            f"http://example.org/{run}",
            f"http://www.example.co.uk:8080/{run}",
            f"https://www.example.co.uk/docs/{run}",
        ]
        assert [kind is ADDED for kind in kinds(driver, *links)] == SCOPES[scope]
        driver.reopen()


def test_another_scope_may_be_chosen_for_the_next_run(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(scope="prefix")))
    driver.admit(seed(A + "/docs/"))
    assert kinds(driver, A + "/1") == [REFUSED]
    driver.reopen(Settings(crawl=CrawlSettings(scope="host")))
    assert kinds(driver, A + "/2") == [ADDED]


def test_a_seeds_redirect_brings_its_target_into_scope_and_a_links_does_not(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(redirected("http://www.a.test/", depth=0))
    driver.admit(discovered(A + "/link"))
    assert kinds(driver, "http://www.a.test/1") == [ADDED]
    away = discovered("http://else.test/", via=Via.REDIRECT, depth=1, hops=1)
    assert driver.admit(away)[0].reason is Refusal.SCOPE
    assert kinds(driver, "http://else.test/1") == [REFUSED]


@pytest.mark.parametrize("recent_keys", [1, 1000])
def test_a_seeds_redirect_brings_its_target_into_scope_even_if_a_link_was_refused_there(
    start: Start, recent_keys: int
) -> None:
    driver = start(Settings(frontier=FrontierSettings(recent_keys=recent_keys)))
    driver.open_host(A + "/")
    assert kinds(driver, "http://www.a.test/", A + "/1", A + "/2") == [REFUSED, ADDED, ADDED]
    driver.fetch(redirected("http://www.a.test/", depth=0))
    assert driver.explain("http://www.a.test/").state == "queued"
    assert kinds(driver, "http://www.a.test/more") == [ADDED]


# -- the rules

RULED = Settings(
    crawl=CrawlSettings(max_depth=3, max_url_length=40, include=("/in/", "[.]jpg"), exclude=("/in/out",)),
    fetch=FetchSettings(max_redirects=2),
)


@pytest.mark.parametrize(
    ("found", "reason", "rule"),
    [
        (discovered(A + "/in/1", depth=3), None, ""),
        (discovered(A + "/in/1", depth=4), Refusal.DEPTH, "crawl.max_depth is 3"),
        (discovered(A + "/in/" + "x" * 40), Refusal.LENGTH, "crawl.max_url_length is 40"),
        (seed(A + "/in/" + "x" * 40), Refusal.LENGTH, "crawl.max_url_length is 40"),
        (discovered(A + "/in/a.JPG?x"), Refusal.EXTENSION, ".jpg is in crawl.skip_extensions"),
        (discovered(A + "/in/out"), Refusal.EXCLUDED, "matches exclude '/in/out'"),
        (discovered(A + "/other"), Refusal.EXCLUDED, "matches none of the include patterns"),
        (seed(A + "/other"), None, ""),
        (discovered(A + "/in/1", via=Via.REDIRECT, hops=2), None, ""),
        (discovered(A + "/in/1", via=Via.REDIRECT, hops=3), Refusal.REDIRECTS, "fetch.max_redirects is 2"),
        (discovered("http://b.test/in/1"), Refusal.SCOPE, "scope is host and no seed has this host (b.test)"),
    ],
)
def test_a_refusal_names_its_rule(start: Start, found: Discovered, reason: Refusal | None, rule: str) -> None:
    driver = start(RULED)
    driver.admit(seed(A + "/"))
    (verdict,) = driver.admit(found)
    assert (verdict.kind is ADDED, verdict.reason) == (reason is None, reason)
    assert verdict.rule.endswith(rule)
    assert driver.stats().refusals == ({reason: 1} if reason else {})


def test_a_host_is_admitted_up_to_its_budget(start: Start) -> None:
    driver = start(Settings(politeness=PolitenessSettings(host_budget=3)))
    driver.admit(seed(A + "/"), seed("http://b.test/"))
    assert kinds(driver, *(f"{A}/{i}" for i in range(4))) == [ADDED, ADDED, REFUSED, REFUSED]
    assert kinds(driver, "http://b.test/1") == [ADDED]
    (verdict,) = driver.admit(discovered(A + "/9"))
    assert verdict.reason is Refusal.BUDGET
    driver.reopen()
    assert kinds(driver, A + "/10") == [REFUSED]


@pytest.mark.parametrize(("budget", "expected"), [(1, REFUSED), (5, ADDED), (0, ADDED)])
def test_an_operators_budget_counts_at_once(start: Start, budget: int, expected: VerdictKind) -> None:
    driver = start(Settings(politeness=PolitenessSettings(host_budget=2)))
    driver.admit(seed(A + "/"))
    driver.set_policy(A, HostPolicy(budget=budget))
    assert kinds(driver, A + "/1") == [expected]


def test_a_blocked_hosts_urls_are_refused(driver: Driver) -> None:
    driver.set_policy(A, HostPolicy(blocked=True))
    assert driver.admit(seed(A + "/"))[0].reason is Refusal.BLOCKED
    driver.set_policy(A, HostPolicy())
    assert driver.admit(seed(A + "/"))[0].kind is ADDED


def test_a_seed_readmits_what_a_link_was_refused(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    (verdict,) = driver.admit(discovered("http://b.test/x"))
    assert (verdict.kind, verdict.reason) == (REFUSED, Refusal.SCOPE)
    assert driver.admit(seed("http://b.test/x"))[0].kind is ADDED
    assert driver.stats().refusals == {}


def test_a_seed_that_was_fetched_is_not_readmitted(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(Fetched(status=200))
    assert driver.admit(seed(A + "/"))[0].kind is KNOWN
    assert driver.explain(A + "/").state == "completed"
