"""A witness is told of everything that was settled, once, and only of what is committed."""

from __future__ import annotations

import pytest

from skitter.frontier.base import Settled, Settlement
from skitter.model import Outcome
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, seed


class Notes:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.settlements: list[Settlement] = []

    def leased(self, worker: str, leases: int, now: float) -> None:
        self.said.append(f"{worker} leased {leases}")

    def settled(self, outcomes: object, settlements: object, now: float) -> None:
        assert isinstance(outcomes, tuple | list)
        assert isinstance(settlements, list)
        assert len(outcomes) == len(settlements)
        self.settlements += settlements
        self.said.append(f"settled {len(outcomes)}")

    def syncing(self) -> None:
        self.said.append("syncing")

    def synced(self) -> None:
        self.said.append("synced")


@pytest.fixture
def notes(driver: Driver) -> Notes:
    notes = Notes()
    driver.frontier.attend(notes)
    return notes


def test_whoever_asks_and_settles_is_told_of(driver: Driver, notes: Notes) -> None:
    driver.open_host("http://a.example/1")
    assert driver.lease(worker="nobody", capacity=0) == []
    driver.fetch(worker="one")
    assert notes.said == [
        *("w1 leased 1", "settled 1", "nobody leased 0"),
        *("one leased 1", "settled 1"),
    ]


def test_an_outcome_told_twice_is_stale_the_second_time(driver: Driver, notes: Notes) -> None:
    driver.open_host("http://a.example/1")
    lease = driver.lease_one()
    outcome = driver.outcome(lease, OK)
    driver.settle(outcome)
    driver.settle(outcome)
    assert [one.settled for one in notes.settlements[1:]] == [Settled.ACCEPTED, Settled.STALE]


def test_a_sync_is_told_when_it_begins_and_when_it_is_done(driver: Driver, notes: Notes) -> None:
    driver.run(driver.frontier.sync())
    assert notes.said == ["syncing", "synced"]


def test_what_could_not_be_committed_is_not_told(start: Start) -> None:
    driver = start(audited=False)
    notes = Notes()
    driver.frontier.attend(notes)
    driver.admit(seed("http://a.example/1"))
    lease = driver.lease_one()
    bad: Outcome = driver.outcome(lease, OK)  # a page in answer to a robots task: a bug of the worker
    with pytest.raises(TypeError):
        driver.settle(bad)
    assert notes.said == ["w1 leased 1"]
