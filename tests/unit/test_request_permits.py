"""Places for requests in flight: those that hardly move do not count, and never are there too many in all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from skitter.worker.request_permits import RequestPermits


class Quiet:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        return self.count


def run(use: Callable[[RequestPermits, Quiet], Awaitable[None]], moving: int = 2, most: int = 5) -> None:
    async def main() -> None:
        quiet = Quiet()
        async with asyncio.timeout(10):
            await use(RequestPermits(moving, most, quiet, lambda: 0), quiet)

    asyncio.run(main())


async def settled() -> None:
    """All that can run has run."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_so_many_may_move_and_the_next_waits_for_one_to_end() -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        await permits.acquire()
        await permits.acquire()
        third = asyncio.create_task(permits.acquire())
        await settled()
        assert not third.done()
        permits.release()
        await third

    run(use)


def test_one_that_goes_quiet_makes_room() -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        await permits.acquire()
        await permits.acquire()
        third = asyncio.create_task(permits.acquire())
        await settled()
        quiet.count = 1
        permits.admit_waiting()
        await third

    run(use)


def test_one_that_moves_again_takes_its_place_back() -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        quiet.count = 2
        for _ in range(4):
            await permits.acquire()
        quiet.count = 0
        fifth = asyncio.create_task(permits.acquire())
        for _ in range(2):
            permits.release()
            await settled()
            assert not fifth.done()
        permits.release()
        await fifth

    run(use)


def test_there_are_never_more_in_all_than_connections() -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        quiet.count = 99
        for _ in range(5):
            await permits.acquire()
        sixth = asyncio.create_task(permits.acquire())
        permits.admit_waiting()
        await settled()
        assert not sixth.done()
        sixth.cancel()

    run(use)


def test_first_come_is_first_served() -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        await permits.acquire()
        order: list[int] = []

        async def wait(number: int) -> None:
            await permits.acquire()
            order.append(number)
            permits.release()

        waiting = [asyncio.create_task(wait(number)) for number in range(3)]
        await settled()
        permits.release()
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2]

    run(use, moving=1)


@pytest.mark.parametrize("granted", [False, True])
def test_a_place_is_not_lost_with_one_who_was_waiting_for_it(granted: bool) -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        await permits.acquire()
        leaver = asyncio.create_task(permits.acquire())
        await settled()
        if granted:
            permits.release()
        leaver.cancel()
        await asyncio.gather(leaver, return_exceptions=True)
        if not granted:
            permits.release()
        await permits.acquire()

    run(use, moving=1)


def test_who_comes_later_does_not_overtake_who_waits() -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        assert permits.try_acquire()
        assert permits.try_acquire()
        assert not permits.try_acquire()
        third = asyncio.create_task(permits.acquire())
        await settled()
        quiet.count = 1
        assert not permits.try_acquire()
        permits.admit_waiting()
        await third
        quiet.count = 2
        assert permits.try_acquire()

    run(use)


def test_what_is_owed_keeps_its_place_until_it_is_settled() -> None:
    owed = Quiet()

    async def main() -> None:
        permits = RequestPermits(2, 5, lambda: 0, owed)
        await permits.acquire()
        await permits.acquire()
        third = asyncio.create_task(permits.acquire())
        await settled()
        owed.count = 1
        permits.release()
        await settled()
        assert not third.done()
        owed.count = 0
        permits.admit_waiting()
        await third

    asyncio.run(main())


def test_more_places_let_in_who_waits_and_fewer_take_none_away() -> None:
    async def use(permits: RequestPermits, quiet: Quiet) -> None:
        await permits.acquire()
        await permits.acquire()
        third = asyncio.create_task(permits.acquire())
        await settled()
        assert not third.done()
        permits.change(3)
        await settled()
        assert third.done()
        permits.change(1)
        permits.release()
        permits.release()
        assert not permits.try_acquire()
        permits.release()
        assert permits.try_acquire()

    run(use)
