"""Which requests in flight hardly move: they wait for a name, a connection or a first byte, or drip.

Beside the fetch. The worker does not count them among the requests that it may have under way, so that hosts
that take their time, or ours, never keep others from being asked. Never ends a request: the time limits do that.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from skitter.fetch.ticks import Ticks

LOOK = 1.0
# Bytes a second. At 256 requests that move no faster than this, a crawler would fetch nine real pages a second.
_MOVING = 1000


class Lulls:
    """`quiet` is how many requests are in a lull now."""

    def __init__(self, ticks: Ticks) -> None:
        self.quiet = 0
        self.ticks = ticks


class Lull:
    """Looks at one request every second, first `look_in` seconds from its beginning. `received` may say None:
    nothing comes because we do not read."""

    def __init__(self, lulls: Lulls, received: Callable[[], int | None]) -> None:
        self._lulls = lulls
        self._received = received
        self._seen = 0
        self._quiet = False

    def begin(self, look_in: float = LOOK) -> None:
        self._timer = self._lulls.ticks.call_later(look_in, self._look)

    def end(self) -> None:
        self._timer.cancel()
        self._is(quiet=False)

    def __enter__(self) -> None:
        self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _look(self) -> None:
        received = self._received()
        if received is None:
            self._is(quiet=False)
        else:
            self._is(quiet=received - self._seen < _MOVING * LOOK)
            self._seen = received
        self._timer = self._lulls.ticks.call_later(LOOK, self._look)

    def _is(self, *, quiet: bool) -> None:
        if quiet != self._quiet:
            self._quiet = quiet
            self._lulls.quiet += 1 if quiet else -1
