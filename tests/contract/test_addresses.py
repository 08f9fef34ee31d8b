"""Hosts on one address share its rate, whatever happens in between."""

from __future__ import annotations

import heapq
import itertools
import random

import pytest

from skitter.model import HostLease, HostPolicy, TaskKind
from skitter.settings import CrawlSettings, PolitenessSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, robots, seed

SHARED, OTHER = "93.184.216.34", "93.184.216.35"


def settings(rate: float, delay: float = 1.0) -> Settings:
    polite = PolitenessSettings(address_rate=rate, delay=delay, robots_ttl=1e9)
    return Settings(crawl=CrawlSettings(scope="any"), politeness=polite)


def name(number: int) -> str:
    return f"http://h{number}.test"


def on_one_address(driver: Driver, hosts: int, pages: int = 4, address: str = SHARED) -> None:
    """Hosts with pages to fetch, known to be on one address since their robots.txt was read."""
    driver.addresses |= {name(i): address for i in range(hosts)}
    driver.open_host(*(f"{name(i)}/{page}" for i in range(hosts) for page in range(pages)))


class Worker:
    """Serves leases in simulated time as the real one does, sometimes slowly; keeps when each request started."""

    def __init__(self, driver: Driver, rng: random.Random) -> None:
        self.driver, self.rng = driver, rng
        self.starts: list[float] = []
        self._due: list[tuple[float, int, HostLease, int]] = []
        self._order = itertools.count()

    def crash(self) -> None:
        self._due.clear()
        self.driver.reopen()

    def run(self, seconds: float) -> None:
        end = self.driver.clock.now() + seconds
        while self.driver.clock.now() < end:
            self.driver.reap()
            for lease in self.driver.lease():
                self._plan(lease, 0, lease.not_before)
            while self._due and self._due[0][0] <= self.driver.clock.now():
                self._ask(*heapq.heappop(self._due)[2:])
            self.driver.clock.advance(0.05)

    def _plan(self, lease: HostLease, place: int, at: float) -> None:
        slip = self.rng.choice((0.0, 0.0, 0.0, 0.4, 2.5))
        heapq.heappush(self._due, (at + slip, next(self._order), lease, place))

    def _ask(self, lease: HostLease, place: int) -> None:
        now = self.driver.clock.now()
        if now >= lease.deadline or self.rng.random() < 0.02:
            self.driver.release(lease)
            return
        if SHARED in self.driver.addresses.get(lease.host, ""):
            self.starts.append(now)
        task = lease.tasks[place]
        result = OK if task.kind is not TaskKind.ROBOTS else NO_RULES
        self.driver.settle(self.driver.outcome(lease, result, task))
        if place + 1 < len(lease.tasks):
            self._plan(lease, place + 1, now + lease.delay)

    def most_in(self, window: float) -> int:
        """The most requests that started within any stretch of that length."""
        starts = sorted(self.starts)
        return max(sum(1 for s in starts if first <= s < first + window - 1e-6) for first in starts)


@pytest.mark.parametrize(
    ("rate", "delay", "window", "most"),
    [(5.0, 1.0, 1.0, 5), (5.0, 0.3, 1.0, 5), (4.0, 0.05, 1.0, 4), (0.5, 1.0, 2.0, 1), (3.0, 4.0, 1.0, 3)],
)
def test_an_address_is_never_asked_more_often_than_its_rate_not_even_across_a_crash(
    start: Start, rate: float, delay: float, window: float, most: int
) -> None:
    driver = start(settings(rate, delay), audited=False)
    on_one_address(driver, 16, pages=12)
    worker = Worker(driver, random.Random(4))
    driver.clock.advance(5)
    for seconds in (7.3, 4.1, 9.0):
        worker.run(seconds)
        worker.crash()
    worker.run(10)
    assert worker.most_in(window) <= most
    assert len(worker.starts) >= 20 * rate / 4, "the cap must not starve the address either"
    assert driver.stats().politeness.violations == 0


def test_all_hosts_of_an_address_come_to_their_turn(start: Start) -> None:
    driver = start(settings(5.0), audited=False)
    on_one_address(driver, 30, pages=3)
    Worker(driver, random.Random(1)).run(60)
    assert driver.stats().urls["completed"] == 90


def test_many_hosts_on_one_address_are_given_appointments_in_bounded_steps(start: Start) -> None:
    """A thousand in one call, and no more."""
    hosts = 1_200
    driver = start(settings(5.0), audited=False)
    driver.addresses = {name(i): SHARED for i in range(hosts)}
    driver.admit(*(seed(name(i) + "/") for i in range(hosts)))
    for lease in driver.lease(capacity=hosts):
        driver.answer(lease, NO_RULES)
    driver.clock.advance(1)
    now = driver.clock.now()
    assert len(driver.lease()) == 5

    def starts() -> list[float]:
        return [view.next_start for view in driver.ask(driver.frontier.hosts(limit=hosts))]

    assert sum(at > now for at in starts()) == 1_000
    for _ in range(2):
        assert driver.lease() == []
    assert max(starts()) == pytest.approx(now + (hosts - 5) / 5.0), "as far apart as the requests may be"


def test_a_host_that_finds_its_address_busy_waits_and_says_so(start: Start) -> None:
    driver = start(settings(2.0))
    on_one_address(driver, 5)
    driver.clock.advance(5)
    leased = {lease.host for lease in driver.lease()}
    assert len(leased) == 2
    for host in {name(i) for i in range(5)} - leased:
        assert driver.host(host).next_start > driver.clock.now()
        assert f"its address {SHARED} is busy" in driver.explain(host + "/0").waits


def test_a_host_that_may_be_asked_more_often_than_its_address_is_slowed_down_to_what_is_left(
    start: Start,
) -> None:
    driver = start(settings(4.0, delay=0.1))
    on_one_address(driver, 1)
    driver.clock.advance(5)
    assert driver.lease_one().delay == 0.25


def test_what_a_host_booked_before_it_slowed_down_counts_until_it_is_a_window_old(start: Start) -> None:
    driver = start(settings(20.0, delay=0.05))
    on_one_address(driver, 2, pages=8)
    driver.clock.advance(5)
    (fast,) = driver.lease(capacity=1)
    for task in fast.tasks[:-1]:
        driver.settle(driver.outcome(fast, OK, task))
        driver.clock.advance(fast.delay)
    driver.clock.advance(0.9)
    driver.settle(driver.outcome(fast, OK, fast.tasks[-1], took=0.9))
    driver.admit(discovered(fast.host + "/more"))
    (slow,) = driver.lease()
    assert slow.host == fast.host
    assert slow.delay == pytest.approx(0.9)
    driver.clock.advance(0.06)
    assert driver.lease() == [], "twenty a second were promised to the first host a moment ago"
    driver.clock.advance(0.1)
    assert driver.lease_one().host != fast.host


def test_a_host_that_is_asked_rarely_books_one_request_at_a_time(start: Start) -> None:
    driver = start(settings(2.0))
    driver.addresses = {name(0): SHARED}
    driver.open_host(*(f"{name(0)}/{i}" for i in range(9)), body=robots("Crawl-delay: 5"))
    assert len(driver.lease_one().tasks) == 1


@pytest.mark.parametrize(("rate", "delay", "window"), [(0.25, 1.0, 4.0), (4.0, 0.1, 1.0)])
def test_after_a_restart_a_known_address_rests_for_a_window(
    start: Start, rate: float, delay: float, window: float
) -> None:
    driver = start(settings(rate, delay))
    on_one_address(driver, 2)
    driver.clock.advance(50)
    driver.reopen()
    restarted = driver.clock.now()
    driver.clock.advance(delay)
    assert driver.lease_one().not_before == restarted + window


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.9", "fe80::1", "", "nonsense"]
)
def test_the_operators_own_network_and_unknown_addresses_are_not_capped(start: Start, address: str) -> None:
    driver = start(settings(1.0))
    on_one_address(driver, 6, address=address)
    assert len(driver.lease()) == 6


def test_a_delay_that_the_operator_set_for_a_host_is_not_capped(start: Start) -> None:
    driver = start(settings(1.0))
    on_one_address(driver, 2)
    for i in range(2):
        driver.set_policy(name(i), HostPolicy(delay=0.1))
    assert [lease.delay for lease in driver.lease()] == [0.1, 0.1]


def test_a_rate_of_0_is_no_cap(start: Start) -> None:
    driver = start(settings(0.0, delay=0.01))
    on_one_address(driver, 20)
    assert [lease.delay for lease in driver.lease()] == [0.01] * 20


def test_addresses_do_not_hold_up_each_other(start: Start) -> None:
    driver = start(settings(1.0))
    driver.addresses = {name(0): SHARED, name(1): OTHER}
    driver.open_host(name(0) + "/", name(1) + "/")
    assert len(driver.lease()) == 2
