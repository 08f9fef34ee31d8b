"""How the hosts of a crawl are shared among its workers."""

from __future__ import annotations

from typing import cast

from skitter.desk.crew import Crew
from skitter.desk.desk import Desk
from skitter.desk.wire import LeaseAsk
from skitter.model import Host, HostLease, Token
from skitter.testing.clock import FakeClock

WANTED = 256


class Company:
    """Workers that ask a crew for hosts, of which so many are free."""

    def __init__(self, free: int) -> None:
        self.clock = FakeClock()
        self.crew = Crew(cast(Desk, None), self.clock)
        self.free = free
        self.held: dict[str, int] = {}

    def asks(self, worker: str) -> int:
        """How many it is given."""
        ask = LeaseAsk(
            worker=worker, incarnation="1", sequence=1, capacity=WANTED, held=self.held.get(worker, 0)
        )
        self.crew.heard(ask)
        share = self.crew.share(ask)
        given = min(share, self.free)
        self.crew.gave(ask, share, [lease(number) for number in range(given)])
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
