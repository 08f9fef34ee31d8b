"""A host is asked from the region that gets its answers soonest, by one worker at a time."""

from __future__ import annotations

import msgspec
import pytest

from skitter.model import HostLease, HostPolicy, TaskKind
from skitter.schedule.regions import is_near, measured, name_in, region_of
from skitter.settings import Settings, TrapSettings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, seed

PLAIN = Settings(traps=TrapSettings(mode="off"))
HOSTS = [f"http://h{number}.test" for number in range(8)]
EAST, WEST = "remote:east@1", "remote:west@1"


def seconds_of(worker: str, host: str) -> float:
    """Even hosts are near to the east, odd ones to the west."""
    is_even = int(host.removeprefix("http://h").partition(".")[0]) % 2 == 0
    return 0.005 if is_even == (worker == EAST) else 0.150


def lease(driver: Driver, worker: str, capacity: int = 20) -> list[HostLease]:
    return driver.run(driver.frontier.lease(worker, capacity, 60.0, most_tasks=1))


def serve(driver: Driver, leases: list[HostLease], worker: str) -> list[str]:
    """Answers as fast as the region is near; the hosts that it were."""
    driver.clock.advance(0.15)
    for one in leases:
        (task,) = one.tasks
        result = NO_RULES if task.kind is TaskKind.ROBOTS else OK
        outcome = driver.outcome(one, result, task)
        ended = one.not_before + seconds_of(worker, one.host)
        driver.settle(msgspec.structs.replace(outcome, sent_at=one.not_before, ended_at=ended))
    return [one.host for one in leases]


def crawl(driver: Driver, rounds: int, workers: tuple[str, ...] = (EAST, WEST)) -> dict[str, list[str]]:
    asked: dict[str, list[str]] = {worker: [] for worker in workers}
    for number in range(rounds):
        # by turns: the first to ask is not always the same
        for worker in workers if number % 2 else reversed(workers):
            asked[worker] += serve(driver, lease(driver, worker), worker)
            driver.clock.advance(1.0)
    return asked


def with_pages(driver: Driver) -> Driver:
    driver.audited = False
    driver.admit(*(seed(f"{host}/") for host in HOSTS))
    driver.admit(*(discovered(f"{host}/{number}") for host in HOSTS for number in range(200)))
    return driver


def test_hosts_end_up_near(start: Start) -> None:
    driver = with_pages(start(PLAIN))
    crawl(driver, 8)
    asked = crawl(driver, 10)
    for worker, hosts in asked.items():
        assert hosts
        assert {seconds_of(worker, host) for host in hosts} == {0.005}
    driver.audit()
    assert driver.stats().politeness.violations == 0
    words = driver.explain_host(HOSTS[0], fetches=0)
    assert words is not None
    assert "answers by region: east 5 ms, west 150 ms" in words.pace
    figures = driver.stats().regions
    assert set(figures) == {"east", "west"}
    assert figures["east"].requests > 10


def test_what_was_measured_survives_a_restart(start: Start) -> None:
    driver = with_pages(start(PLAIN))
    crawl(driver, 8)
    driver.reopen()
    driver.clock.advance(120)
    serve(driver, lease(driver, WEST), WEST)
    driver.clock.advance(2)
    asked = crawl(driver, 3)
    assert {seconds_of(EAST, host) for host in asked[EAST]} == {0.005}


def test_a_region_without_workers_leaves_its_hosts_to_the_others(start: Start) -> None:
    driver = with_pages(start(PLAIN))
    crawl(driver, 8)
    driver.clock.advance(100)
    asked = crawl(driver, 6, (EAST,))
    assert set(asked[EAST]) == set(HOSTS)


def test_a_host_that_waits_long_for_its_region_goes_to_anybody(start: Start) -> None:
    driver = with_pages(start(PLAIN))
    crawl(driver, 8)
    for _ in range(3):
        # the west asks for one host only, and is alive
        serve(driver, lease(driver, WEST, 1), WEST)
        driver.clock.advance(15)
    leased = {one.host for one in lease(driver, EAST)}
    assert any(seconds_of(EAST, host) > 0.1 for host in leased)


def test_the_operators_region_goes_before_what_was_measured(start: Start) -> None:
    driver = with_pages(start(PLAIN))
    driver.set_policy(HOSTS[0], HostPolicy(region="west"))
    crawl(driver, 6)
    asked = crawl(driver, 6)
    assert HOSTS[0] not in asked[EAST]
    assert HOSTS[0] in asked[WEST]


def test_workers_without_a_region_are_given_what_is_ready(start: Start) -> None:
    driver = with_pages(start(PLAIN))
    assert len(lease(driver, "w1")) == len(HOSTS)
    assert driver.stats().regions == {}


def test_names_and_measures() -> None:
    assert region_of("remote:east@machine-1") == "east"
    assert region_of("remote:trusted-worker-1f/east@machine-1") == "east"
    assert region_of("machine-1") == region_of("remote:machine") == ""
    assert name_in("east", "m") == "east@m"
    assert name_in("", "m") == "m"
    assert measured(None, 0.2) == 0.2
    assert measured(0.2, 0.1) == pytest.approx(0.15)
    assert measured(0.1, 0.2) == pytest.approx(0.11)
    assert is_near("a", {"a": 0.1}, {"a", "b"})
    assert is_near("b", {"a": 0.1}, {"a", "b"})
    assert not is_near("b", {"a": 0.1, "b": 0.2}, {"a", "b"})
    assert is_near("b", {"a": 0.1, "b": 0.2}, {"b"})
