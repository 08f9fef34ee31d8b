"""Reading by turns: what arrives together is not read in one go, and nobody waits for ever."""

from __future__ import annotations

import asyncio

from skitter.testing.clock import FakeClock
from skitter.worker.cpu_turns import CpuTurns

PAGE, OTHERS = "page", "others"


class Reading:
    """Pages that take `seconds` each to read, and everybody else, who notes every turn of the event loop."""

    def __init__(self, seconds: float) -> None:
        self._clock = FakeClock()
        self._turns = CpuTurns(self._clock)
        self._seconds = seconds
        self.seen: list[str] = []

    async def read(self) -> None:
        await self._turns.take()
        self.seen.append(PAGE)
        self._clock.advance(self._seconds)

    async def _others(self) -> None:
        while True:
            self.seen.append(OTHERS)
            await asyncio.sleep(0)

    async def all(self, count: int, cancelled: int | None = None) -> None:
        others = asyncio.create_task(self._others())
        pages = [asyncio.create_task(self.read()) for _ in range(count)]
        await asyncio.sleep(0)
        if cancelled is not None:
            pages[cancelled].cancel()
        async with asyncio.timeout(10):
            await asyncio.gather(*pages, return_exceptions=True)
        others.cancel()


def test_between_two_long_pages_everybody_else_has_a_turn() -> None:
    reading = Reading(seconds=0.5)
    asyncio.run(reading.all(5))
    assert reading.seen.count(PAGE) == 5
    assert (PAGE, PAGE) not in zip(reading.seen, reading.seen[1:], strict=False)


def test_short_pages_share_a_turn() -> None:
    reading = Reading(seconds=0.001)
    asyncio.run(reading.all(5))
    assert reading.seen[:6] == [OTHERS] + [PAGE] * 5


def test_who_is_cancelled_while_waiting_keeps_nobody_waiting() -> None:
    reading = Reading(seconds=0.5)
    asyncio.run(reading.all(5, cancelled=2))
    assert reading.seen.count(PAGE) == 4


def test_those_who_wait_come_before_those_who_come_later() -> None:
    order: list[int] = []

    async def main() -> None:
        clock = FakeClock()
        turns = CpuTurns(clock)

        async def read(number: int) -> None:
            await turns.take()
            order.append(number)
            clock.advance(0.5)

        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            for number in range(6):
                tasks.create_task(read(number))
                await asyncio.sleep(0)

    asyncio.run(main())
    assert order == sorted(order)


def test_short_pages_that_had_to_wait_share_turns_as_well() -> None:
    reading = Reading(seconds=0.002)
    asyncio.run(reading.all(300))
    assert reading.seen.count(PAGE) == 300
    assert reading.seen.count(OTHERS) < 300 / 5


def test_a_turn_that_is_free_is_taken_at_once_and_not_before_those_who_wait() -> None:
    async def main() -> None:
        clock = FakeClock()
        turns = CpuTurns(clock)
        waiting = [asyncio.create_task(turns.take()) for _ in range(50)]
        assert turns.try_take()
        clock.advance(0.5)
        assert not turns.try_take()
        await asyncio.sleep(0)
        # the next turn has begun, but some still wait for it
        assert not turns.try_take()
        async with asyncio.timeout(10):
            await asyncio.gather(*waiting)
        assert turns.try_take()

    asyncio.run(main())
