"""Timers that may be late, never early, and hold nothing once they are cancelled."""

from __future__ import annotations

import asyncio
import gc
import weakref
from functools import partial

import pytest
import uvloop

from skitter.fetch.timer_wheel import TimerWheel

STEP = 0.01


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_ticks_come_in_order_and_never_early(factory: object) -> None:
    asked = [0.05, 0.0, 0.02, 0.031, 0.02]
    came: list[tuple[float, float]] = []

    async def use() -> None:
        timers, loop, over = TimerWheel(STEP), asyncio.get_running_loop(), asyncio.Event()
        began = loop.time()

        def note(seconds: float) -> None:
            came.append((seconds, loop.time() - began))
            if len(came) == len(asked):
                over.set()

        for seconds in asked:
            timers.call_later(seconds, partial(note, seconds))
        await over.wait()

    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        runner.run(use())
    assert [seconds for seconds, _ in came] == sorted(asked)
    assert all(at >= seconds for seconds, at in came)


def test_a_cancelled_tick_never_comes_and_holds_nothing() -> None:
    class Held:
        def call(self) -> None:
            came.append("cancelled")

    came: list[str] = []

    async def use() -> None:
        timers, over, held = TimerWheel(STEP), asyncio.Event(), Held()
        timer = timers.call_later(0.02, held.call)
        timers.call_later(0.03, over.set)
        timer.cancel()
        gone = weakref.ref(held)
        del held
        gc.collect()
        assert gone() is None
        await over.wait()

    asyncio.run(use())
    assert came == []


def test_a_tick_may_ask_for_the_next_one_and_a_sooner_one_is_not_kept_waiting() -> None:
    came: list[str] = []

    async def use() -> None:
        timers, over = TimerWheel(STEP), asyncio.Event()

        def first() -> None:
            came.append("first")
            timers.call_later(0.0, second)

        def second() -> None:
            came.append("second")
            over.set()

        far = timers.call_later(3600, lambda: came.append("far"))
        timers.call_later(0.01, first)
        async with asyncio.timeout(20):
            await over.wait()
        far.cancel()
        timers.close()

    asyncio.run(use())
    assert came == ["first", "second"]
