"""Turns at the committer: one at a time, the short ones first, and nobody is forgotten."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop

from skitter.frontier.priority_lock import PriorityLock


def in_order(*kinds: str) -> list[str]:
    """Who had its turn when, of those that came in this order while somebody held it."""

    async def main() -> list[str]:
        turns, had = PriorityLock(), []

        async def come(kind: str) -> None:
            async with turns.short if kind.startswith("s") else turns.long:
                had.append(kind)
                await asyncio.sleep(0)
                assert had[-1] == kind, "somebody came between"

        async with turns.long:
            coming = [asyncio.create_task(come(kind)) for kind in kinds]
            await asyncio.sleep(0)
        await asyncio.gather(*coming)
        return had

    return asyncio.run(main())


def test_what_is_short_goes_before_what_waited_longer() -> None:
    assert in_order("l1", "l2", "s1", "l3", "s2") == ["s1", "s2", "l1", "l2", "l3"]


def test_a_short_one_that_comes_as_a_turn_ends_goes_before_the_long_ones_that_wait() -> None:
    async def main() -> list[str]:
        turns, had = PriorityLock(), []

        async def come(kind: str) -> None:
            async with turns.short if kind.startswith("s") else turns.long:
                had.append(kind)

        async with turns.long:
            coming = [asyncio.create_task(come(kind)) for kind in ("l1", "l2")]
            await asyncio.sleep(0)
        # as when its call was waiting in a socket
        await asyncio.gather(*coming, asyncio.create_task(come("s1")))
        return had

    assert asyncio.run(main()) == ["s1", "l1", "l2"]


def test_a_call_that_comes_in_during_a_long_turn_has_the_next_one() -> None:
    """However many want a long one, and though none of them ever lets go in between: as batches are settled."""

    async def main() -> int:
        turns, had = PriorityLock(), [0]
        here, there = socket.socketpair()
        here.setblocking(False)
        answered = asyncio.get_running_loop().create_future()

        class Server(asyncio.Protocol):
            def data_received(self, data: bytes) -> None:
                asking.append(asyncio.create_task(lease()))

        async def lease() -> None:
            async with turns.short:
                answered.set_result(had[0])

        async def settle() -> None:
            while not answered.done():
                async with turns.long:
                    had[0] += 1
                    if had[0] == 20:
                        there.send(b"a lease")

        asking = [asyncio.create_task(settle()) for _ in range(4)]
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(Server, here)
        last = await answered
        await asyncio.gather(*asking)
        transport.close()
        there.close()
        return int(last)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) == 20


def test_what_is_long_waits_for_eight_others_at_most() -> None:
    shorts = [f"s{number}" for number in range(20)]
    assert in_order(*shorts, "l1", "l2")[8] == "l1"
    assert in_order(*shorts, "l1", "l2")[17] == "l2"


def test_nobody_waits_for_one_who_gave_up() -> None:
    async def main() -> None:
        turns = PriorityLock()

        async def come() -> str:
            async with turns.long:
                return "had"

        async with turns.long:
            first, second, third = (asyncio.create_task(come()) for _ in range(3))
            await asyncio.sleep(0)
            first.cancel()
        second.cancel()  # it has its turn already, and does not know it yet
        async with asyncio.timeout(5):
            assert await third == "had"
        assert first.cancelled()
        with pytest.raises(asyncio.CancelledError):
            await second
        async with asyncio.timeout(5), turns.short:
            pass

    run(main())


def test_a_turn_that_ends_with_an_error_is_passed_on() -> None:
    async def main() -> None:
        turns = PriorityLock()
        with pytest.raises(ZeroDivisionError):
            async with turns.long:
                raise ZeroDivisionError
        async with asyncio.timeout(5), turns.short:
            pass

    run(main())


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)
