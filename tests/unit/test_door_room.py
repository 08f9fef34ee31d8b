"""Who is turned away at the door: whoever was listened to, of the largest crowd, by lot from its older half."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from skitter.service.http.access import Access, Role
from skitter.service.http.door import MOST_STRANGERS, MOST_STRANGERS_AN_ADDRESS, Door

HERE, THERE = "192.0.2.7", "192.0.2.8"


class Connection(asyncio.Transport):
    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def crowd(door: Door, address: str, count: int) -> list[Connection]:
    made = [Connection() for _ in range(count)]
    for one in made:
        door.enter(one, address)
    return made


def left(connections: list[Connection]) -> int:
    return sum(not one.is_aborted for one in connections)


async def two_turns() -> None:
    """And one more: what is asked for in a turn is done in the next."""
    for _ in range(3):
        await asyncio.sleep(0)


def run(work: Callable[[Door], Awaitable[None]]) -> None:
    async def main() -> None:
        door = Door(Access([(Role.READ, "a-token-of-the-door")]))
        await work(door)
        door.close()

    asyncio.run(main())


def test_nobody_is_turned_away_before_it_could_be_read_from() -> None:
    async def work(door: Door) -> None:
        came = crowd(door, HERE, 300)
        await asyncio.sleep(0)
        assert left(came) == 300
        door.leave(came[0])  # it had a token
        await two_turns()
        assert not came[0].is_aborted
        assert left(came[1:]) == MOST_STRANGERS_AN_ADDRESS

    run(work)


def test_strangers_that_all_come_at_once_are_bounded_all_the_same() -> None:
    async def work(door: Door) -> None:
        came = crowd(door, HERE, 5_000)
        assert left(came) == 1_024
        await two_turns()
        assert left(came) == MOST_STRANGERS_AN_ADDRESS

    run(work)


def test_a_slow_one_has_a_chance_among_a_crowd_that_keeps_coming() -> None:
    """By age it would have none: more come after it than there are places."""
    survived = []

    async def work(door: Door) -> None:
        slow = crowd(door, HERE, 1)
        for _ in range(3):
            crowd(door, HERE, MOST_STRANGERS_AN_ADDRESS // 2)
            await two_turns()
        survived.append(left(slow))

    for _ in range(200):
        run(work)
    assert 10 < sum(survived) < 190  # 36 % on average, nine deviations away from either


def test_a_quick_one_outlasts_half_a_crowd_for_certain() -> None:
    async def work(door: Door) -> None:
        crowd(door, HERE, MOST_STRANGERS_AN_ADDRESS)
        await two_turns()
        quick = crowd(door, HERE, 1)
        for _ in range(MOST_STRANGERS_AN_ADDRESS // 2 - 2):
            await two_turns()
            crowd(door, HERE, 1)
        await two_turns()
        assert not quick[0].is_aborted

    for _ in range(30):
        run(work)


def test_the_largest_crowd_pays_when_the_house_is_full() -> None:
    async def work(door: Door) -> None:
        alone = crowd(door, THERE, 1)
        for number in range(12):
            crowd(door, f"198.51.100.{number}", MOST_STRANGERS_AN_ADDRESS)
            await two_turns()
        assert not alone[0].is_aborted
        assert door.turned_away == 12 * MOST_STRANGERS_AN_ADDRESS + 1 - MOST_STRANGERS

    run(work)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.7", HERE, True),
        ("fe80::1%eth0", "fe80::2", True),
        (HERE, THERE, False),
    ],
)
def test_whoever_has_a_network_has_one_place_in_line(one: str, other: str, is_same: bool) -> None:
    async def work(door: Door) -> None:
        crowd(door, one, MOST_STRANGERS_AN_ADDRESS)
        crowd(door, other, MOST_STRANGERS_AN_ADDRESS)
        await two_turns()
        assert door.turned_away == (MOST_STRANGERS_AN_ADDRESS if is_same else 0)

    run(work)


def test_a_door_that_is_closed_lets_nobody_in() -> None:
    async def work(door: Door) -> None:
        waiting = crowd(door, HERE, 1)
        door.close()
        assert left(waiting) == left(crowd(door, HERE, 1)) == 0

    run(work)
