"""Who may talk to a host, for how long, and with how many URLs."""

from __future__ import annotations

import pytest

from skitter.frontier.link_batches import pack
from skitter.model import FailureKind, Fetched, Host, HostPolicy
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings, TrapSettings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, seed

A = "http://a.test"
USUAL = FrontierSettings().tasks_per_lease


def test_a_host_is_leased_to_one_worker_at_a_time(driver: Driver) -> None:
    driver.open_host(A + "/", "http://b.test/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(50)))
    first = driver.lease(worker="w1")
    driver.clock.advance(30)
    assert sorted(lease.host for lease in first) == [A, "http://b.test"]
    assert driver.lease(worker="w2") == []


def test_a_url_is_out_in_one_lease_only(driver: Driver) -> None:
    driver.open_host(A + "/", "http://b.test/")
    driver.admit(*(discovered(f"{host}/{i}") for host in (A, "http://b.test") for i in range(30)))
    out: list[bytes] = []
    for _ in range(10):
        leases = driver.lease()
        out += [task.key for lease in leases for task in lease.tasks]
        for lease in leases:
            driver.answer(lease, OK)
        driver.clock.advance(1)
    assert len(out) == len(set(out)) == 62


def test_the_host_stays_leased_until_its_last_task_is_settled(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(19)))
    lease = driver.lease_one()
    assert len(lease.tasks) == USUAL
    for task in lease.tasks:
        assert driver.lease() == []
        driver.settle(driver.outcome(lease, OK, task))
        driver.clock.advance(1)
    assert driver.lease_one().host == A


def test_capacity_bounds_the_hosts_leased(driver: Driver) -> None:
    driver.open_host(*(f"http://h{i}.test/" for i in range(7)))
    assert [len(driver.lease(capacity=3)) for _ in range(4)] == [3, 3, 1, 0]


def test_a_released_lease_puts_its_urls_back_in_their_places(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(19)))
    lease = driver.lease_one()
    driver.settle(driver.outcome(lease, OK))
    driver.release(lease)
    assert driver.stats().urls["in_progress"] == 0
    driver.clock.advance(1)
    again = driver.lease_one()
    assert [task.url for task in again.tasks][: USUAL - 1] == [task.url for task in lease.tasks[1:]]


def test_a_stale_token_can_neither_renew_nor_release(driver: Driver) -> None:
    driver.open_host(A + "/")
    old = driver.lease_one()
    driver.release(old)
    driver.clock.advance(1)
    new = driver.lease_one()
    driver.release(old)
    assert driver.renew(old) is None
    assert driver.renew(new) is not None


def test_a_lease_holds_what_a_polite_worker_finishes_well_before_its_deadline(start: Start) -> None:
    driver = start(Settings(traps=TrapSettings(mode="off")))
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(200)))
    sizes = []
    for delay, duration in ((1.0, 60.0), (30.0, 60.0), (60.0, 60.0), (0.1, 60.0), (0.0, 60.0), (0.1, 0.5)):
        driver.set_policy(A, HostPolicy(delay=delay))
        driver.clock.advance(100)
        lease = driver.lease_one(duration=duration)
        sizes.append(len(lease.tasks))
        driver.release(lease)
    assert sizes == [USUAL, 1, 1, 20, 64, 2]


@pytest.mark.parametrize(("pages", "hosts"), [(50, 10), (4_000, 20)])
def test_the_last_pages_under_a_limit_are_shared_among_many_hosts(
    start: Start, pages: int, hosts: int
) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=pages)))
    names = [f"http://h{number}.test" for number in range(20)]
    driver.open_host(*(name + "/" for name in names))
    driver.admit(*(discovered(f"{name}/{i}") for name in names for i in range(20)))
    leases = driver.lease(capacity=20)
    each = 5 if pages == 50 else USUAL
    assert [len(lease.tasks) for lease in leases] == [each] * hosts


def test_a_host_is_asked_for_a_few_pages_until_it_has_shown_what_they_are_worth(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.set_policy(A, HostPolicy(delay=0.0))
    driver.admit(*(discovered(f"{A}/{i}") for i in range(200)))
    sizes = []
    for _ in range(4):
        lease = driver.lease_one()
        sizes.append(len(lease.tasks))
        driver.answer(lease, OK)
    assert sizes == [8, 16, 48, 64]


def test_a_parallel_lease_fits_its_duration_as_well(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(100)))
    driver.set_policy(A, HostPolicy(parallel=4))
    lease = driver.lease_one(duration=60)
    assert lease.parallel == 4
    assert len(lease.tasks) == 30


def test_a_blocked_host_is_not_leased_until_it_is_unblocked(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.set_policy(A, HostPolicy(blocked=True))
    assert driver.lease() == []
    assert driver.stats().hosts["blocked"] == 1
    driver.set_policy(A, HostPolicy())
    assert driver.lease_one().host == A


# -- the page limit


def test_the_page_limit_is_never_passed_however_many_leases_are_out(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=7)))
    hosts = [f"http://h{i}.test" for i in range(5)]
    driver.admit(*(seed(f"{host}/{i}") for host in hosts for i in range(4)))
    for lease in driver.lease():
        driver.answer(lease, NO_RULES)
    driver.clock.advance(1)
    leases = [lease for _ in range(9) for lease in driver.lease(capacity=1, worker="w")]
    assert sum(len(lease.tasks) for lease in leases) == 7
    assert len(leases) > 1
    for lease in leases:
        driver.answer(lease, OK)
        driver.clock.advance(1)
        assert driver.lease() == []
    assert driver.stats().pages == 7
    assert driver.ask(driver.frontier.horizon()).limit_reached


def test_what_came_to_nothing_leaves_its_room_under_the_page_limit(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=1)))
    driver.open_host(A + "/1")
    driver.admit(discovered(A + "/2"))
    assert len(driver.lease_one().tasks) == 1
    driver.clock.advance(61)
    driver.reap()
    driver.clock.advance(1)
    driver.fetch(failed(FailureKind.PROTOCOL))
    driver.clock.advance(1)
    driver.fetch(OK)
    assert driver.stats().pages == 1
    driver.clock.advance(60)
    driver.promote()
    assert driver.lease() == []


def test_late_pages_cannot_push_a_crawl_over_its_page_limit(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=1)))
    driver.open_host(A + "/")
    late = driver.lease_one()
    driver.clock.advance(61)
    driver.reap()
    driver.set_policy(A, HostPolicy(delay=1000.0))
    driver.open_host("http://b.test/")
    other = driver.lease_one()
    assert other.host == "http://b.test"
    driver.answer(late, OK)
    driver.answer(other, OK)
    assert driver.stats().pages == 1


@pytest.mark.parametrize("cached_hosts", [1, 2, 100])
@pytest.mark.parametrize("recent_keys", [1, 4])
def test_bounded_caches_change_nothing(start: Start, cached_hosts: int, recent_keys: int) -> None:
    driver = start(
        Settings(
            crawl=CrawlSettings(scope="any"),
            frontier=FrontierSettings(cached_hosts=cached_hosts, recent_keys=recent_keys),
        )
    )
    hosts = [f"http://h{i}.test" for i in range(8)]
    links = tuple(discovered(f"{host}/{i}") for host in hosts for i in range(4))
    driver.admit(*(seed(host + "/") for host in hosts))
    driver.serve(12, Fetched(status=200, link_batches=pack(links)), capacity=5)
    driver.promote()
    assert driver.stats().urls["completed"] == 8 * 5


def test_a_worker_may_ask_for_fewer_tasks_of_a_host(driver: Driver) -> None:
    driver.open_host(*(f"http://a.test/{number}" for number in range(5)))
    (lease,) = driver.run(driver.frontier.lease("w", 10, 60.0, most_tasks=2))
    assert len(lease.tasks) == 2
    driver.answer(lease, OK)
    driver.clock.advance(1)
    assert len(driver.lease_one().tasks) == 3


def test_hosts_without_a_delay_that_are_leased_together_need_not_end_together(start: Start) -> None:
    settings = Settings(
        crawl=CrawlSettings(scope="any"),
        politeness=PolitenessSettings(delay=0.0),
        traps=TrapSettings(mode="off"),
    )
    driver = start(settings)
    hosts = [f"http://h{number}.test" for number in range(6)]
    paced, wide = Host(hosts[4]), Host(hosts[5])
    driver.set_policy(paced, HostPolicy(delay=0.1))
    driver.set_policy(wide, HostPolicy(parallel=8))
    driver.open_host(*(host + "/" for host in hosts))
    driver.admit(*(discovered(f"{host}/{number}") for host in hosts for number in range(130)))
    sizes = []
    for staggered in (False, True):
        leases = driver.run(driver.frontier.lease("w", 10, 60.0, staggered=staggered))
        sizes.append({lease.host: len(lease.tasks) for lease in leases})
        driver.release(*leases)
        driver.clock.advance(1)
    at_once, in_turn = sizes
    assert {at_once[Host(host)] for host in hosts[:4]} == {64}
    assert len({in_turn[Host(host)] for host in hosts[:4]}) == 4
    assert (in_turn[paced], in_turn[wide]) == (at_once[paced], at_once[wide]) == (20, 128)
