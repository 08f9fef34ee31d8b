"""How the hosts of a crawl are shared among its workers."""

from __future__ import annotations

from typing import cast

from skitter.committer.committer import Committer
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.worker_messages import LeaseRequest
from skitter.committer.worker_registry import WorkerRegistry
from skitter.model import Host, HostLease, Token
from skitter.settings import Settings
from skitter.testing.clock import FakeClock

WANTED = 256


class Company:
    """Workers that ask a registry for hosts, of which so many are free."""

    def __init__(self, free: int) -> None:
        self.clock = FakeClock()
        self.registry = WorkerRegistry(cast(Committer, None), self.clock, DeliveryCheck(Settings()))
        self.free = free
        self.held: dict[str, int] = {}
        self.busy: dict[str, float] = {}

    def asks(self, worker: str) -> int:
        """How many it is given."""
        ask = LeaseRequest(
            worker=worker,
            incarnation="1",
            sequence=1,
            capacity=WANTED,
            held=self.held.get(worker, 0),
            busy=self.busy.get(worker, 0.0),
        )
        self.registry.note_request(ask)
        share = self.registry.share(ask)
        given = min(share, self.free)
        self.registry.note_leases(ask, share, [lease(number) for number in range(given)])
        self.free -= given
        self.held[worker] = ask.held + given
        return given

    def answers_for_all(self, worker: str) -> int:
        """And asks for more in the same breath."""
        self.free += self.held.pop(worker, 0)
        return self.asks(worker)


def lease(number: int) -> HostLease:
    return HostLease(
        host=Host(f"http://h{number}.test"),
        token=Token(number),
        delay=1.0,
        parallel=1,
        not_before=0.0,
        deadline=60.0,
        tasks=(),
    )


def test_who_is_alone_is_given_all() -> None:
    company = Company(free=16)
    assert company.asks("a") == 16
    assert company.answers_for_all("a") == 16


def test_who_took_all_is_given_half_when_another_goes_short() -> None:
    company = Company(free=16)
    company.asks("a")
    assert company.asks("b") == 0
    assert company.answers_for_all("a") == 8
    assert company.asks("b") == 8
    assert company.answers_for_all("a") == 8


def test_what_nobody_held_is_not_kept_from_anybody() -> None:
    company = Company(free=16)
    company.asks("a")
    company.asks("b")
    company.free += 100
    shares = [company.answers_for_all(worker) for _ in range(3) for worker in "ab"]
    assert company.free == 0
    assert min(shares[-2:]) > 116 / 3


def test_who_fell_silent_is_not_waited_for() -> None:
    company = Company(free=16)
    company.asks("a")
    company.asks("b")
    company.clock.advance(1.5)
    assert company.answers_for_all("a") == 16


def test_one_host_is_still_given() -> None:
    company = Company(free=1)
    company.asks("a")
    company.asks("b")
    assert company.answers_for_all("a") == 1


def test_hosts_go_from_who_is_busy_to_who_is_not_until_both_are_alike() -> None:
    company = Company(free=16)
    shares = {"a": 8, "b": 8}
    for _ in range(40):
        company.busy = {
            worker: min(1.0, 0.1 * shares[worker] + cost) for worker, cost in (("a", 0.5), ("b", 0.0))
        }
        for worker in "ab":
            shares[worker] = company.answers_for_all(worker)
        company.clock.advance(0.3)
    assert shares["a"] + shares["b"] == 16
    assert 4 <= shares["a"] <= 6


def test_who_is_always_busy_keeps_a_host_and_who_is_idle_is_not_given_all() -> None:
    company = Company(free=64)
    company.busy = {"a": 1.0, "b": 0.0}
    given = after_a_while(company)
    assert given[0] >= 1
    assert given[1] < 64


def test_workers_that_are_equally_busy_share_alike() -> None:
    company = Company(free=16)
    company.busy = {"a": 0.9, "b": 0.9}
    assert after_a_while(company) == [8, 8]


def after_a_while(company: Company) -> list[int]:
    """What two workers are given then."""
    for _ in range(50):
        for worker in "ab":
            company.answers_for_all(worker)
        company.clock.advance(0.3)
    return [company.answers_for_all(worker) for worker in "ab"]
