"""Places for requests in flight: those that hardly move do not count, and never are there too many in all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from skitter.worker.slots import Slots


class Quiet:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        return self.count


def run(use: Callable[[Slots, Quiet], Awaitable[None]], moving: int = 2, most: int = 5) -> None:
    async def main() -> None:
        quiet = Quiet()
        async with asyncio.timeout(10):
            await use(Slots(moving, most, quiet, lambda: 0), quiet)

    asyncio.run(main())


async def settled() -> None:
    """All that can run has run."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_so_many_may_move_and_the_next_waits_for_one_to_end() -> None:
    async def use(slots: Slots, quiet: Quiet) -> None:
        await slots.acquire()
        await slots.acquire()
        third = asyncio.create_task(slots.acquire())
        await settled()
        assert not third.done()
        slots.release()
        await third

    run(use)


def test_one_that_goes_quiet_makes_room() -> None:
    async def use(slots: Slots, quiet: Quiet) -> None:
        await slots.acquire()
        await slots.acquire()
        third = asyncio.create_task(slots.acquire())
        await settled()
        quiet.count = 1
        slots.look()
        await third

    run(use)


def test_one_that_moves_again_takes_its_place_back() -> None:
    async def use(slots: Slots, quiet: Quiet) -> None:
        quiet.count = 2
        for _ in range(4):
            await slots.acquire()
        quiet.count = 0
        fifth = asyncio.create_task(slots.acquire())
        for _ in range(2):
            slots.release()
            await settled()
            assert not fifth.done()
        slots.release()
        await fifth

    run(use)


def test_there_are_never_more_in_all_than_connections() -> None:
    async def use(slots: Slots, quiet: Quiet) -> None:
        quiet.count = 99
        for _ in range(5):
            await slots.acquire()
        sixth = asyncio.create_task(slots.acquire())
        slots.look()
        await settled()
        assert not sixth.done()
        sixth.cancel()

    run(use)


def test_first_come_is_first_served() -> None:
    async def use(slots: Slots, quiet: Quiet) -> None:
        await slots.acquire()
        order: list[int] = []

        async def wait(number: int) -> None:
            await slots.acquire()
            order.append(number)
            slots.release()

        waiting = [asyncio.create_task(wait(number)) for number in range(3)]
        await settled()
        slots.release()
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2]

    run(use, moving=1)


@pytest.mark.parametrize("granted", [False, True])
def test_a_place_is_not_lost_with_one_who_was_waiting_for_it(granted: bool) -> None:
    async def use(slots: Slots, quiet: Quiet) -> None:
        await slots.acquire()
        leaver = asyncio.create_task(slots.acquire())
        await settled()
        if granted:
            slots.release()
        leaver.cancel()
        await asyncio.gather(leaver, return_exceptions=True)
        if not granted:
            slots.release()
        await slots.acquire()

    run(use, moving=1)


def test_who_comes_later_does_not_overtake_who_waits() -> None:
    async def use(slots: Slots, quiet: Quiet) -> None:
        assert slots.try_acquire()
        assert slots.try_acquire()
        assert not slots.try_acquire()
        third = asyncio.create_task(slots.acquire())
        await settled()
        quiet.count = 1
        assert not slots.try_acquire()
        slots.look()
        await third
        quiet.count = 2
        assert slots.try_acquire()

    run(use)


def test_what_is_owed_keeps_its_place_until_it_is_settled() -> None:
    owed = Quiet()

    async def main() -> None:
        slots = Slots(2, 5, lambda: 0, owed)
        await slots.acquire()
        await slots.acquire()
        third = asyncio.create_task(slots.acquire())
        await settled()
        owed.count = 1
        slots.release()
        await settled()
        assert not third.done()
        owed.count = 0
        slots.look()
        await third

    asyncio.run(main())
