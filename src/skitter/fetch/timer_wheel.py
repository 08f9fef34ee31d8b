"""Thousands of timers that may be a little late, served by one timer of the event loop.

Beside the fetch: a request has several time limits that it hardly ever reaches, and a timer here costs half
of what one of the event loop does. A timer is never early by the event loop's time, and late by two steps at
most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush


class Timer:
    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self._call = None

    def fire(self) -> None:
        if self._call is not None:
            self._call()


class TimerWheel:
    """Timers that are due in the same step of `step` seconds are one list. Cancelled timers stay in their
    list until then, but hold nothing."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._due: dict[int, list[Timer]] = {}
        self._steps: list[int] = []  # the keys of `_due`, as a heap
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        loop = self._loop or self._bind()
        timer = Timer(call)
        step = int((loop.time() + seconds) / self._step) + 1
        timers = self._due.get(step)
        if timers is None:
            self._due[step] = [timer]
            heappush(self._steps, step)
            if self._handle is None or step < self._armed_for:
                self._arm(loop, step)
        else:
            timers.append(timer)
        return timer

    def time(self) -> float:
        return (self._loop or self._bind()).time()

    def close(self) -> None:
        self._due.clear()
        self._steps.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _bind(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.get_running_loop()
        return self._loop

    def _arm(self, loop: asyncio.AbstractEventLoop, step: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed_for = step
        self._handle = loop.call_at(step * self._step, self._fire)

    def _fire(self) -> None:
        loop = self._loop or self._bind()
        self._handle = None
        now = int(loop.time() / self._step)
        while self._steps and self._steps[0] <= now:
            for timer in self._due.pop(heappop(self._steps)):
                timer.fire()
        if self._steps and self._handle is None:
            self._arm(loop, self._steps[0])
