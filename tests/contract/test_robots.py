"""robots.txt comes first, decides, and may lie elsewhere (RFC 9309)."""

from __future__ import annotations

import pytest

from skitter.model import FailureKind, HostLease, RobotsRead, TaskKind
from skitter.schedule.retry import wait_after
from skitter.settings import CrawlSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, redirected, robots, seed

A, B = "http://a.test", "http://b.test"
DAY = 86_400.0


def robots_lease(driver: Driver) -> HostLease:
    lease = driver.lease_one()
    assert [task.kind for task in lease.tasks] == [TaskKind.ROBOTS]
    return lease


def test_a_new_hosts_first_task_is_its_robots_txt_and_nothing_else(driver: Driver) -> None:
    driver.admit(seed(A + "/"), seed(A + "/2"), seed("https://a.test:8443/"))
    leases = driver.lease()
    assert sorted(task.url for lease in leases for task in lease.tasks) == [
        A + "/robots.txt",
        "https://a.test:8443/robots.txt",
    ]
    driver.clock.advance(30)
    assert driver.lease() == []


def test_no_page_is_leased_until_robots_txt_was_settled(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.release(robots_lease(driver))
    driver.clock.advance(1)
    robots_lease(driver)
    driver.clock.advance(100)
    driver.reap()
    robots_lease(driver)
    driver.reopen()
    driver.clock.advance(1)
    driver.answer(robots_lease(driver), robots())
    driver.clock.advance(1)
    assert driver.lease_one().tasks[0].url == A + "/"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_4xx_answer_allows_everything(driver: Driver, status: int) -> None:
    driver.open_host(A + "/private/1", body=RobotsRead(status=status))
    assert driver.lease_one().tasks[0].url == A + "/private/1"
    assert str(status) in driver.host(A).robots


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - {FailureKind.ADDRESS_REFUSED}))
def test_a_host_whose_robots_txt_is_unreachable_waits_until_it_was_read(
    driver: Driver, kind: FailureKind
) -> None:
    driver.admit(seed(A + "/"))
    for failures in (1, 2):
        driver.answer(robots_lease(driver), failed(kind))
        wait = wait_after(kind, failures, driver.settings.retry.backoff)
        driver.clock.advance(wait - 0.1)
        assert driver.lease() == []
        driver.clock.advance(0.1)
    driver.answer(robots_lease(driver), robots())
    driver.clock.advance(10)
    assert driver.lease_one().tasks[0].kind is TaskKind.PAGE


def test_the_pages_of_a_host_at_a_refused_address_are_refused_without_a_request(driver: Driver) -> None:
    driver.admit(*(seed(f"{A}/{number}") for number in range(600)))
    driver.answer(robots_lease(driver), failed(FailureKind.ADDRESS_REFUSED))
    for _ in range(3):
        driver.clock.advance(1)
        assert driver.lease() == []
    assert driver.stats().urls["refused"] == driver.stats().refusals["address_refused"] == 600
    assert driver.explain(A + "/7").reason == "address_refused: as the test says"
    assert driver.ask(driver.frontier.horizon()).next_at is None
    driver.admit(seed(A + "/late"))
    driver.clock.advance(1)
    assert driver.lease() == []
    assert driver.explain(A + "/late").state == "refused"


@pytest.mark.parametrize("later", ["a day", "a restart"])
def test_a_refused_address_is_looked_at_again_after(driver: Driver, later: str) -> None:
    driver.admit(seed(A + "/"))
    driver.answer(robots_lease(driver), failed(FailureKind.ADDRESS_REFUSED))
    driver.clock.advance(1)
    assert driver.lease() == []
    if later == "a restart":
        driver.reopen()
        driver.clock.advance(1)
    else:
        driver.clock.advance(DAY)
    driver.admit(seed(A + "/"))
    driver.answer(robots_lease(driver), robots())
    driver.clock.advance(1)
    assert driver.lease_one().tasks[0].url == A + "/"


def test_a_robots_txt_that_leads_to_a_refused_address_counts_as_unreachable(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.answer(robots_lease(driver), redirected("http://127.0.0.1/robots.txt"))
    driver.clock.advance(1)
    driver.answer(robots_lease(driver), failed(FailureKind.ADDRESS_REFUSED))
    driver.clock.advance(58)
    assert driver.lease() == []
    driver.clock.advance(2)
    lease = robots_lease(driver)
    assert (lease.host, lease.tasks[0].url) == (A, A + "/robots.txt")
    driver.release(lease)
    explained = driver.explain(A + "/")
    assert explained.state == "queued"
    assert "its robots.txt is at http://127.0.0.1: address_refused: as the test says" in explained.waits


def test_robots_txt_is_read_again_after_a_day(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch()
    driver.clock.advance(DAY)
    driver.admit(discovered(A + "/2"))
    driver.answer(robots_lease(driver), robots("Disallow: /2"))
    driver.clock.advance(1)
    assert driver.lease() == []
    assert driver.explain(A + "/2").state == "denied"


def test_an_old_reading_does_not_stand_in_for_one_that_fails(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.clock.advance(DAY)
    driver.answer(robots_lease(driver), failed(FailureKind.SERVER_ERROR))
    driver.clock.advance(60)
    robots_lease(driver)


# -- redirects


def test_a_robots_txt_may_redirect_within_its_host(driver: Driver) -> None:
    driver.admit(seed(A + "/private/1"), seed(A + "/2"))
    driver.answer(robots_lease(driver), redirected(A + "/moved.txt"))
    driver.clock.advance(1)
    lease = robots_lease(driver)
    assert (lease.tasks[0].url, lease.tasks[0].behalf, lease.tasks[0].hops) == (A + "/moved.txt", A, 1)
    driver.answer(lease, robots("Disallow: /private/"))
    driver.clock.advance(1)
    assert [task.url for task in driver.lease_one().tasks] == [A + "/2"]


def test_a_robots_txt_on_another_host_is_asked_there_in_that_hosts_turn(driver: Driver) -> None:
    driver.open_host(B + "/")
    driver.admit(seed(A + "/private/1"), seed(A + "/2"))
    busy = driver.lease_one(capacity=1)
    (asked,) = driver.lease()
    pages, own = (busy, asked) if busy.host == B else (asked, busy)
    driver.answer(own, redirected(B + "/shared.txt"))
    driver.clock.advance(30)
    assert driver.lease() == [], "B is busy, and A has to wait for B"
    driver.answer(pages, OK)
    driver.clock.advance(1)
    lease = robots_lease(driver)
    assert (lease.host, lease.tasks[0].behalf, lease.tasks[0].url) == (B, A, B + "/shared.txt")
    driver.answer(lease, robots("Disallow: /private/", "Crawl-delay: 3"))
    assert [task.url for task in driver.lease_one().tasks] == [A + "/2"]
    assert (driver.host(A).delay, driver.host(B).delay) == (3.0, 1.0)


def test_an_errand_survives_release_expiry_and_restart(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.answer(robots_lease(driver), redirected(B + "/shared.txt"))
    driver.release(robots_lease(driver))
    driver.clock.advance(1)
    robots_lease(driver)
    driver.clock.advance(62)
    driver.reap()
    robots_lease(driver)
    driver.reopen()
    driver.clock.advance(1)
    lease = robots_lease(driver)
    assert lease.host == B
    assert [s.settled for s in driver.settle(*[driver.outcome(lease, robots())] * 2)] == ["accepted", "stale"]
    assert driver.lease_one().host == A


def test_a_failed_errand_makes_both_hosts_wait_and_then_starts_over(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.answer(robots_lease(driver), redirected(B + "/shared.txt"))
    driver.answer(robots_lease(driver), failed())
    driver.clock.advance(59.9)
    assert driver.lease() == []
    driver.clock.advance(0.1)
    lease = robots_lease(driver)
    assert (lease.host, lease.tasks[0].url) == (A, A + "/robots.txt")


def follow(driver: Driver, redirects: int) -> None:
    for hop in range(redirects):
        host = (A, B)[hop % 2]
        lease = robots_lease(driver)
        assert lease.tasks[0].hops == hop
        driver.answer(lease, redirected(f"{host}/hop{hop}.txt"))
        driver.clock.advance(2)


def test_five_redirects_are_followed(driver: Driver) -> None:
    driver.admit(seed(A + "/private/1"))
    follow(driver, 5)
    driver.answer(robots_lease(driver), robots("Disallow: /private/"))
    driver.clock.advance(2)
    assert driver.lease() == []
    assert driver.explain(A + "/private/1").state == "denied"


def test_beyond_five_redirects_there_are_no_rules(driver: Driver) -> None:
    driver.admit(seed(A + "/private/1"))
    follow(driver, 6)
    assert driver.lease_one().tasks[0].kind is TaskKind.PAGE


def test_two_hosts_that_point_at_each_other_both_get_crawled(driver: Driver) -> None:
    driver.admit(seed(A + "/"), seed(B + "/"))
    other = {A: B, B: A}
    for _ in range(30):
        for lease in driver.lease():
            results = [
                redirected(other[lease.host] + "/robots.txt") if task.kind is TaskKind.ROBOTS else OK
                for task in lease.tasks
            ]
            driver.answer(lease, *results)
        driver.clock.advance(1)
    assert driver.stats().urls["completed"] == 2


def test_many_hosts_may_share_one_robots_txt(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(scope="any")))
    driver.admit(*(seed(f"http://h{i}.test/") for i in range(12)))
    for lease in driver.lease():
        driver.answer(lease, redirected(B + "/shared.txt"))
    for _ in range(12):
        for lease in driver.lease():
            kind = lease.tasks[0].kind
            assert (kind is TaskKind.ROBOTS) == (lease.host == B)
            driver.answer(lease, robots() if kind is TaskKind.ROBOTS else OK)
        driver.clock.advance(1)
    assert driver.stats().urls["completed"] == 12


# -- denied, and looked at again


def test_what_robots_txt_denies_is_never_leased(driver: Driver) -> None:
    driver.open_host(A + "/", body=robots("Disallow: /private/", "Allow: /private/open"))
    driver.admit(*(discovered(f"{A}/private/{name}") for name in ("1", "open", "2")), discovered(A + "/ok"))
    urls = sorted(task.url for task in driver.lease_one().tasks)
    assert urls == [A + "/", A + "/ok", A + "/private/open"]
    assert driver.stats().urls["denied"] == 2
    assert driver.host(A).denied == 2


def test_a_long_run_of_denied_urls_does_not_hide_what_is_behind_it(start: Start) -> None:
    driver = start(audited=False)
    driver.open_host(A + "/private/0", body=robots("Disallow: /private/"))
    driver.admit(*(discovered(f"{A}/private/{i}") for i in range(700)), discovered(A + "/ok"))
    leases = [lease for _ in range(5) for lease in driver.lease()]
    assert [task.url for lease in leases for task in lease.tasks] == [A + "/ok"]
    assert driver.stats().urls["denied"] == 700


def test_denied_urls_are_looked_at_again_when_robots_txt_changes_and_only_then(driver: Driver) -> None:
    driver.open_host(A + "/private/1", body=robots("Disallow: /private/"))
    driver.admit(discovered(A + "/private/2"))
    assert driver.lease() == []
    for body, moved in (("Disallow: /private/", 0), ("Disallow: /private/2", 1)):
        driver.clock.advance(DAY)
        driver.admit(discovered(f"{A}/{moved}"))
        driver.answer(robots_lease(driver), robots(body))
        assert driver.promote() == moved
        assert driver.promote() == 0
        driver.clock.advance(1)
        driver.answer(driver.lease_one(), OK)
    assert driver.explain(A + "/private/1").state == "completed"
    assert driver.explain(A + "/private/2").state == "denied"


def test_many_denied_urls_are_looked_at_again_in_bounded_steps(start: Start) -> None:
    driver = start(audited=False)
    driver.open_host(A + "/private/0", body=robots("Disallow: /private/"))
    driver.admit(*(discovered(f"{A}/private/{i}") for i in range(2500)))
    while driver.stats().urls["queued"]:
        assert driver.lease() == []
    driver.clock.advance(DAY)
    driver.admit(discovered(A + "/"))
    driver.answer(robots_lease(driver), robots("Disallow: /private/1"))
    moved = [driver.promote() for _ in range(4)]
    kept = sum(str(i).startswith("1") for i in range(2500))
    assert sum(moved) == 2500 - kept
    assert max(moved) < 2000
    assert moved[2:] == [0, 0]
    assert driver.stats().urls["denied"] == kept


def test_the_horizon_is_not_empty_while_denied_urls_wait_to_be_looked_at_again(driver: Driver) -> None:
    driver.open_host(A + "/private/1", body=robots("Disallow: /private/"))
    assert driver.lease() == []
    driver.clock.advance(DAY)
    driver.admit(discovered(A + "/"))
    driver.answer(robots_lease(driver), robots("Disallow: /elsewhere/"))
    driver.clock.advance(1)
    driver.fetch()
    horizon = driver.ask(driver.frontier.horizon())
    assert horizon.next_at == driver.clock.now() + 1
    assert driver.promote() == 1
    driver.clock.advance(1)
    assert driver.lease_one().tasks[0].url == A + "/private/1"
