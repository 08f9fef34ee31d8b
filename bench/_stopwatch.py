"""Where a process's CPU goes, by stage: functions are wrapped from outside and timed, the innermost one counts.

CPU time of the main thread alone; the crawl's other threads are what is left of the process's. Nothing in the
package knows of it, and nothing but a benchmark may use it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from importlib import import_module
from inspect import iscoroutinefunction
from threading import get_ident
from typing import Any

_OUTSIDE = "outside"


class Stopwatch:
    """One stage is running at any moment; entering another one stops the clock of the one that called it."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self._stack = [_OUTSIDE]
        self._since = time.thread_time_ns()
        self.spent: dict[str, int] = defaultdict(int)
        self.calls: dict[str, int] = defaultdict(int)

    def enter(self, stage: str) -> None:
        now = time.thread_time_ns()
        self.spent[self._stack[-1]] += now - self._since
        self._stack.append(stage)
        self._since = now

    def leave(self) -> None:
        now = time.thread_time_ns()
        self.spent[self._stack.pop()] += now - self._since
        self._since = now

    def time(self, place: str, stage: str) -> None:
        """`place` is `module:name` or `module:Class.name`."""
        module, _, path = place.partition(":")
        holder: Any = import_module(module)
        *outer, name = path.split(".")
        for part in outer:
            holder = getattr(holder, part)
        work = getattr(holder, name)
        timed = self._timed_coroutine if iscoroutinefunction(work) else self._timed
        setattr(holder, name, timed(work, stage))

    def _timed(self, work: Callable[..., Any], stage: str) -> Callable[..., Any]:
        @wraps(work)
        def timed(*arguments: Any, **named: Any) -> Any:
            if get_ident() != self._thread:
                return work(*arguments, **named)
            self.calls[stage] += 1
            self.enter(stage)
            try:
                return work(*arguments, **named)
            finally:
                self.leave()

        return timed

    def _timed_coroutine(self, work: Callable[..., Any], stage: str) -> Callable[..., Any]:
        @wraps(work)
        async def timed(*arguments: Any, **named: Any) -> Any:
            self.calls[stage] += 1
            return await _Steps(self, work(*arguments, **named), stage)

        return timed

    def overhead(self) -> float:
        """Seconds that one timed call takes by itself."""
        probe = Stopwatch()
        nothing = probe._timed(lambda: None, "probe")
        began = time.thread_time()
        for _ in range(20_000):
            nothing()
        return (time.thread_time() - began) / 20_000


class _Steps(Awaitable[Any]):
    """A coroutine of which each step is timed, and none of its waiting."""

    def __init__(self, watch: Stopwatch, work: Any, stage: str) -> None:
        self._watch, self._work, self._stage = watch, work, stage

    def __await__(self) -> Generator[Any, Any, Any]:
        step, given = self._work.send, None
        while True:
            self._watch.enter(self._stage)
            try:
                waited_for = step(given)
            except StopIteration as end:
                return end.value
            finally:
                self._watch.leave()
            try:
                given = yield waited_for
                step = self._work.send
            except BaseException as error:
                step, given = self._work.throw, error
