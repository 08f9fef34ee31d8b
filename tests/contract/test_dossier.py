"""One host in full, and who has leases: what an operator sees is what is."""

from __future__ import annotations

from skitter.model import FailureKind
from tests.frontier_kit import Driver, discovered, failed, robots, seed

A, B = "http://a.test", "http://b.test"


def test_a_host_is_explained_with_its_robots_its_lease_and_its_latest_requests(driver: Driver) -> None:
    driver.open_host(A + "/", body=robots("Crawl-delay: 3"))
    driver.fetch(failed(FailureKind.PROTOCOL))
    driver.admit(discovered(A + "/later"))
    driver.clock.advance(60)
    lease = driver.lease_one(worker="w7")
    said = driver.explain_host(A, fetches=50)
    assert said is not None
    assert (said.view.host, said.view.delay, said.worker) == (A, 3, "w7")
    assert said.lease_until == lease.deadline
    assert said.robots_text == "User-agent: *\nCrawl-delay: 3"
    assert (said.robots_status, said.robots_size) == (200, len(said.robots_text))
    assert [(one.url, one.result) for one in said.fetches] == [
        (A + "/", "failed"),
        (A + "/robots.txt", "robotsread"),
    ]
    assert said.fetches[0].detail == "protocol: as the test says"
    newest = driver.explain_host(A, fetches=1)
    assert newest is not None
    assert newest.fetches == said.fetches[:1]


def test_a_host_that_nobody_named_is_not_explained(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    assert driver.explain_host(B, fetches=1) is None


def test_leases_are_listed_as_long_as_they_are_out(driver: Driver) -> None:
    driver.admit(seed(A + "/"), seed(B + "/"))
    assert driver.leases() == []
    driver.lease(worker="w1")
    assert {(one.host, one.worker, one.tasks) for one in driver.leases()} == {(A, "w1", 1), (B, "w1", 1)}
    assert all(one.deadline > driver.clock.now() for one in driver.leases())
    driver.clock.advance(1_000)
    driver.reap()
    assert driver.leases() == []
