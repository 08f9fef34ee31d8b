"""What a crash, a restart, a failed write or a second process leaves behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skitter.errors import FolderInUse, StoreFailed
from skitter.frontier.base import REMOTE
from skitter.frontier.link_batches import pack
from skitter.model import Fetched, HostPolicy, SegmentMark, TaskKind
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, robots, seed

A, B = "http://a.test", "http://b.test"


def under_way(driver: Driver) -> dict[str, Callable[[], object]]:
    """A crawl with something of everything, and each call that would change it."""
    driver.open_host(A + "/", B + "/", body=robots("Disallow: /private/"))
    driver.admit(*(discovered(f"{host}/{i}") for host in (A, B) for i in range(9)))
    driver.admit(discovered(A + "/private/1"))
    driver.lease(duration=0.5, worker="slow", capacity=1)
    lease = driver.lease_one()
    driver.settle(driver.outcome(lease, failed()))
    driver.admit(seed("http://c.test/"))
    driver.clock.advance(60)
    page = Fetched(status=200, link_batches=pack([discovered(lease.host + "/new")]), digest=b"d" * 32)
    outcomes = [driver.outcome(lease, page, task) for task in lease.tasks[1:]]
    return {
        "admit": lambda: driver.admit(seed("http://d.test/")),
        "lease": driver.lease,
        "settle": lambda: driver.settle(*outcomes, marks=[SegmentMark("s", 1, 1)]),
        "renew": lambda: driver.renew(lease),
        "release": lambda: driver.release(lease),
        "reap": driver.reap,
        "promote": driver.promote,
        "set_policy": lambda: driver.set_policy(A, HostPolicy(delay=9.0)),
    }


CALLS = ("admit", "lease", "settle", "renew", "release", "reap", "promote", "set_policy")


@pytest.mark.parametrize("call", CALLS)
def test_a_failed_write_changes_nothing_in_memory_or_on_disk(driver: Driver, call: str) -> None:
    calls = under_way(driver)
    before = driver.stats()
    with driver.failing_commits(), pytest.raises(StoreFailed):
        calls[call]()
    driver.audit()
    assert driver.stats() == before
    assert driver.ask(driver.frontier.marks()) == []
    calls[call]()
    driver.reopen()


def test_rules_whose_write_failed_are_forgotten(driver: Driver) -> None:
    driver.open_host(A + "/private/1", body=robots("Allow: /"))
    driver.clock.advance(86_400)
    lease = driver.lease_one()
    with driver.failing_commits(), pytest.raises(StoreFailed):
        driver.answer(lease, robots("Disallow: /private/"))
    driver.audit()
    assert driver.explain(A + "/private/1").robots.startswith("allowed")


@pytest.mark.parametrize("call", CALLS)
def test_each_call_is_one_write(driver: Driver, call: str) -> None:
    """A crash between two writes of one call would leave half of it: so there is only one."""
    calls = under_way(driver)
    with driver.watched() as watch:
        calls[call]()
    assert len(watch.commits) == 1


def test_a_crash_at_any_call_loses_no_url(driver: Driver) -> None:
    links = tuple(discovered(f"{host}/{i}") for host in (A, B) for i in range(5))
    driver.admit(seed(A + "/"), seed(B + "/"))
    for step in range(40):
        leases = driver.lease()
        if step % 3 == 1:
            driver.reopen()
        for lease in leases:
            asked_robots = lease.tasks[0].kind is TaskKind.ROBOTS
            driver.answer(lease, NO_RULES if asked_robots else Fetched(status=200, link_batches=pack(links)))
        if step % 3 == 2:
            driver.reopen()
        driver.clock.advance(1)
    assert driver.stats().urls["completed"] == 12
    assert driver.stats().pages == 12


def test_a_frontier_is_opened_by_one_process_at_a_time(driver: Driver) -> None:
    with pytest.raises(FolderInUse, match="in use"):
        driver.open_second()
    driver.admit(seed(A + "/"))
    driver.die()
    driver.open_second()
    driver.reopen()
    assert driver.explain(A + "/").known


def test_a_crawl_can_be_looked_at_while_it_runs(driver: Driver) -> None:
    driver.open_host(A + "/")
    lease = driver.lease_one()
    with driver.reader() as reader:
        assert driver.ask(reader.stats()) == driver.stats()
        assert driver.ask(reader.explain(A + "/")).state == "in_progress"
        assert [view.host for view in driver.ask(reader.hosts(limit=5))] == [A]
        assert driver.ask(reader.horizon()) == driver.run(driver.frontier.horizon())
    driver.answer(lease, OK)
    assert driver.explain(A + "/").state == "completed"


def test_what_was_synced_is_there_after_reopening(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(OK)
    driver.run(driver.frontier.sync())
    driver.reopen()
    assert driver.explain(A + "/").state == "completed"


def test_a_host_leased_by_a_worker_elsewhere_rests_for_a_whole_lease_after_a_restart(driver: Driver) -> None:
    """That worker may go on asking until its lease ends; one in the same process died with it."""
    driver.admit(seed("http://a.test/"), seed("http://b.test/"))
    driver.lease(capacity=1, worker=f"{REMOTE}w")
    driver.lease(capacity=1, worker="w")
    duration = driver.settings.frontier.lease_duration
    driver.clock.advance(1.0)
    driver.reopen()
    opened = driver.clock.now()
    starts: list[float] = []
    while len(starts) < 2:
        starts += [lease.not_before - opened for lease in driver.lease()]
        driver.clock.advance(0.5)
    assert starts[0] < duration <= starts[1]


@pytest.mark.parametrize("renewed", [False, True])
def test_a_lease_that_was_asked_for_longer_is_waited_for_longer(driver: Driver, renewed: bool) -> None:
    driver.admit(seed("http://a.test/"))
    longer = 10 * driver.settings.frontier.lease_duration
    if renewed:
        driver.renew(driver.lease_one(worker=f"{REMOTE}w"), longer)
    else:
        driver.lease_one(worker=f"{REMOTE}w", duration=longer)
    driver.reopen()
    opened = driver.clock.now()
    driver.clock.advance(longer - 1)
    assert not driver.lease()
    driver.clock.advance(2 + driver.settings.politeness.delay)
    assert driver.lease_one().not_before >= opened + longer


def test_after_a_power_loss_nobody_is_asked_before_unknown_leases_of_workers_elsewhere_have_ended(
    driver: Driver,
) -> None:
    """Their last second is not on disk. A server that dies while it waits has not waited."""
    driver.needs_a_store_that_a_power_loss_can_harm()
    duration = driver.settings.frontier.lease_duration
    hosts = iter(range(10))

    def leases_after(kernel: str, worker: str, seconds: float = 0.0) -> bool:
        """Of a host that was never asked, so that it rests for nobody else's sake."""
        driver.reopen(boot=kernel)
        driver.admit(seed(f"http://{next(hosts)}.test/"))
        driver.clock.advance(seconds)
        return bool(driver.lease(worker=worker))

    here, there = "w", f"{REMOTE}w"
    assert leases_after("first", here)
    assert leases_after("second", there), "there were no workers elsewhere"
    assert leases_after("second", there), "the machine went on"
    assert not leases_after("third", here, duration - 1)
    assert not leases_after("third", here, duration - 1)
    assert leases_after("third", here, duration)
    assert leases_after("third", here)


def test_after_a_power_loss_the_longest_lease_that_anybody_elsewhere_had_is_waited_for(
    driver: Driver,
) -> None:
    driver.needs_a_store_that_a_power_loss_can_harm()
    longer = 10 * driver.settings.frontier.lease_duration
    driver.reopen(boot="first")
    driver.admit(seed("http://a.test/"), seed("http://b.test/"))
    driver.release(driver.lease_one(worker=f"{REMOTE}w", capacity=1, duration=longer))
    driver.release(driver.lease_one(worker=f"{REMOTE}w", capacity=1))
    driver.reopen(boot="second")
    driver.clock.advance(longer - 1)
    assert not driver.lease()
    driver.clock.advance(1)
    assert driver.lease()


def test_after_a_death_one_promotion_learns_more_keys_than_one_step_has(driver: Driver) -> None:
    """A step is ten thousand keys, so that a lease waits for no more."""

    def trusted() -> float:
        figures = driver.run(driver.frontier.stats()).seen_filter
        assert figures is not None
        return figures.trusted

    known = [discovered(f"http://h{n % 40}.test/{n}") for n in range(12_000)]
    driver.admit(*known)
    driver.reopen()
    assert trusted() == 0.0
    driver.promote()
    assert trusted() == 1.0
    before = driver.stats().urls
    driver.admit(*known[::100])
    assert driver.stats().urls == before
