"""Which requests in flight are idle: they wait for a name, a connection or a first byte, or hardly move.

Beside the fetch. The worker does not count idle requests against the number that it may have in flight, so that
slow hosts never keep others from being asked. Never ends a request: the time limits do that.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from skitter.fetch.timer_wheel import TimerWheel

LOOK_EVERY = 1.0
# Bytes a second. At 256 requests that move no faster than this, a crawler would fetch nine real pages a second.
_MOVING = 1000


class IdleRequests:
    """`count` is how many requests are idle now."""

    def __init__(self, timers: TimerWheel) -> None:
        self.count = 0
        self.timers = timers


class IdleCheck:
    """Looks at one request every second. `received` gives the bytes so far; None says that nothing comes because
    we do not read."""

    def __init__(self, requests: IdleRequests, received: Callable[[], int | None]) -> None:
        self._requests = requests
        self._received = received
        self._seen = 0
        self._is_idle = False

    def begin(self, first_look: float = LOOK_EVERY) -> None:
        """The first look is in so many seconds."""
        self._timer = self._requests.timers.call_later(first_look, self._look)

    def end(self) -> None:
        self._timer.cancel()
        self._set_idle(False)

    def __enter__(self) -> None:
        self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _look(self) -> None:
        received = self._received()
        if received is None:
            self._set_idle(False)
        else:
            self._set_idle(received - self._seen < _MOVING * LOOK_EVERY)
            self._seen = received
        self._timer = self._requests.timers.call_later(LOOK_EVERY, self._look)

    def _set_idle(self, is_idle: bool) -> None:
        if is_idle != self._is_idle:
            self._is_idle = is_idle
            self._requests.count += 1 if is_idle else -1
