"""A host that is forgotten leaves no row, and the figures of the others are as if it had never been."""

from __future__ import annotations

import msgspec

from skitter.model import Copy, FailureKind, Fetched, Host, HostPolicy, Refusal, Result, TaskKind, VerdictKind
from skitter.settings import PolitenessSettings, RetrySettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, redirected, robots, seed

A, B = "http://a.test", "http://b.test"
QUICK = Settings(
    politeness=PolitenessSettings(delay=0.0, slow_factor=0.0), retry=RetrySettings(attempts=1, backoff=(1.0,))
)
RESULTS = (
    msgspec.structs.replace(
        OK, simhash=0x1234_5678_9ABC_DEF0, digest=b"d" * 32, copy=Copy(A + "/", 1.0, "urn:x")
    ),
    msgspec.structs.replace(OK, status=404),
    failed(FailureKind.SERVER_ERROR),
    msgspec.structs.replace(OK, canonical=B + "/canonical", size=77),
    msgspec.structs.replace(OK, simhash=0x1234_5678_9ABC_DEF1),
)


def crawled(driver: Driver, *hosts: str) -> Driver:
    """Each host has pages of every kind, some still queued, some denied."""
    for host in hosts:
        driver.admit(seed(host + "/"), *(discovered(f"{host}/{n}") for n in range(12)))
        driver.admit(discovered(f"{host}/private/1"))
    for _ in range(4):
        for lease in driver.lease(capacity=len(hosts)):
            if lease.tasks[0].kind is TaskKind.ROBOTS:
                driver.answer(lease, robots("Disallow: /private/"))
                continue
            results = [RESULTS[n % len(RESULTS)] for n in range(len(lease.tasks))]
            pairs = zip(lease.tasks, results, strict=True)
            mine = [(task, _of(lease.host, result)) for task, result in pairs]
            driver.settle(*(driver.outcome(lease, result, task) for task, result in mine))
        driver.clock.advance(120)
    return driver


def _of(host: str, result: Result) -> Result:
    """Pages of the two hosts resemble those of their own host alone."""
    if isinstance(result, Fetched) and result.simhash is not None and host == B:
        return msgspec.structs.replace(result, simhash=result.simhash ^ 0xFFFF_0000_0000, copy=None)
    return result


def forget(driver: Driver, *hosts: str, url: str = "") -> int:
    forgetting = driver.frontier.forgetting([Host(host) for host in hosts], url)
    forgetting.begin()
    urls = forgetting.forget_rows()
    forgetting.scrub()
    forgetting.compact()
    assert forgetting.left() == 0
    driver.audit()
    return urls


def test_a_forgotten_host_leaves_the_figures_of_the_others_alone(start: Start) -> None:
    alone = crawled(start(QUICK), B).stats()
    both = crawled(start(QUICK), A, B)
    assert forget(both, A) >= 14
    found = both.stats()
    for name in (
        "urls",
        "hosts",
        "pages",
        "fetches",
        "robots_fetches",
        "bytes",
        "statuses",
        "failures",
        "refusals",
    ):
        now, then = getattr(found, name), getattr(alone, name)
        assert (
            {k: v for k, v in now.items() if v} == {k: v for k, v in then.items() if v}
            if isinstance(now, dict)
            else now == then
        ), name
    both.restart()
    assert both.ask(both.frontier.host(Host(A))) is None


def test_what_is_forgotten_is_refused_and_gets_no_row(start: Start) -> None:
    driver = crawled(start(QUICK), A, B)
    forget(driver, A)
    known = sum(driver.stats().urls.values())
    for found in (seed(A + "/"), discovered(A + "/new"), discovered(A + "/1")):
        (verdict,) = driver.admit(found)
        assert (verdict.kind, verdict.reason) == (VerdictKind.REFUSED, Refusal.FORGOTTEN)
    driver.restart()
    driver.admit(discovered(B + "/more"))
    while leases := driver.lease():
        for lease in leases:
            is_robots = lease.tasks[0].kind is TaskKind.ROBOTS
            driver.answer(lease, NO_RULES if is_robots else redirected(A + "/there"))
    assert sum(driver.stats().urls.values()) == known + 1
    assert driver.explain(A + "/there").known is False
    assert "skitter forget" in driver.explain(A + "/there").reason


def test_one_url_is_forgotten_and_its_host_goes_on(start: Start) -> None:
    driver = crawled(start(QUICK), A)
    before = driver.stats()
    assert forget(driver, A, url=A + "/3") == 1
    assert sum(driver.stats().urls.values()) == sum(before.urls.values()) - 1
    assert driver.admit(discovered(A + "/3"))[0].reason is Refusal.FORGOTTEN
    assert driver.explain(A + "/4").known
    assert forget(driver, A, url=A + "/3") == 0


def test_a_host_is_forgotten_with_its_policy(start: Start) -> None:
    driver = crawled(start(QUICK), A, B)
    driver.set_policy(A, HostPolicy(delay=5.0))
    forget(driver, A)
    assert driver.ask(driver.frontier.hosts(limit=10))[0].host == B
