"""Requests that take their time: given up when they wait too long for a first byte, stall, or flood us.

Beside the transfer. Most requests have ended before they are looked at for the first time, so until then they are
only noted. Never ends a request but by a limit of `FetchSettings`.
"""

from __future__ import annotations

import pycurl

from skitter.fetch.lanes import Ended
from skitter.fetch.lull import LOOK, Lull, Lulls
from skitter.fetch.ticks import Tick
from skitter.fetch.transfer import Transfer
from skitter.fetch.wire import read_from
from skitter.model import FailureKind
from skitter.settings import FetchSettings

_FIRST_GLANCE = 0.25  # seconds; each glance costs 12 us


class Watches:
    """`_young` are those that were not looked at yet, in the order in which they began: one timer serves them
    all, and a request costs 0.4 us here instead of the 2.3 that a timer of its own takes."""

    def __init__(self, settings: FetchSettings, lulls: Lulls) -> None:
        self._settings = settings
        self._lulls = lulls
        self._patience = min(settings.stall_timeout, settings.first_byte_timeout)
        self._glance_after = min(_FIRST_GLANCE, self._patience)
        self._young: dict[Transfer, tuple[Ended, float]] = {}
        self._watched: dict[Transfer, Watch] = {}
        self._is_armed = False

    def begin(self, transfer: Transfer, ended: Ended) -> None:
        self._young[transfer] = (ended, self._lulls.ticks.time())
        if not self._is_armed:
            self._arm(self._glance_after)

    def end(self, transfer: Transfer) -> None:
        if self._young.pop(transfer, None) is None:
            self._watched.pop(transfer).end()

    def _arm(self, seconds: float) -> None:
        self._is_armed = True
        self._lulls.ticks.call_later(seconds, self._look)

    def _look(self) -> None:
        now = self._lulls.ticks.time()
        self._is_armed = False
        for transfer, (ended, begun) in tuple(self._young.items()):
            left = begun + self._glance_after - now
            if left > 0:
                self._arm(left)
                return
            del self._young[transfer]
            watch = Watch(transfer, ended, self._settings, self._lulls, begun, begun + self._patience)
            self._watched[transfer] = watch
            watch.glance()


class Watch:
    """Gives up a transfer that waits too long for its first byte, stalls after it, or sends too much that is
    neither head nor body.

    libcurl's own stall limit counts the wait for the first byte as well, and the longer patience that a slow
    page deserves could not be given. A chunk extension without end moves no counter of libcurl's, and would be
    read at full speed until its transfer counts as stalled, for up to half a minute; so between two looks at its
    pace the kernel is asked what came.
    """

    def __init__(
        self,
        transfer: Transfer,
        ended: Ended,
        settings: FetchSettings,
        lulls: Lulls,
        begun: float,
        due: float,
    ) -> None:
        self._transfer = transfer
        self._ended = ended
        self._settings = settings
        self._lulls = lulls
        self._begun = begun
        self._due = due
        self._seen = 0
        self._idle: int | None = None
        self._pause = _FIRST_GLANCE
        self._lull: Lull | None = None
        self._timer: Tick | None = None

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._lull is not None:
            self._lull.end()

    def _wait(self, seconds: float) -> None:
        """Until the next look, with glances on the way, ever further apart."""
        self._due = self._lulls.ticks.time() + seconds
        self._glance_in(min(self._pause, seconds))

    def _glance_in(self, seconds: float) -> None:
        self._timer = self._lulls.ticks.call_later(seconds, self.glance)
        if self._lull is None:
            self._begin_lull(seconds)

    def _begin_lull(self, seconds: float) -> None:
        """Not before it has to be looked at."""
        left = self._begun + LOOK - self._lulls.ticks.time()
        if left < seconds:
            self._lull = Lull(self._lulls, self._moved)
            self._lull.begin(left)

    def _moved(self) -> int | None:
        return None if self._transfer.is_paused else self._transfer.received

    def glance(self) -> None:
        left = self._due - self._lulls.ticks.time()
        if (kind := self._misbehaves()) is not None:
            self._give_up(kind)
        elif left <= 0:
            self._look()
        else:
            self._pause *= 2
            self._glance_in(min(self._pause, left))

    def _misbehaves(self) -> FailureKind | None:
        transfer = self._transfer
        if not transfer.received:
            return None
        if transfer.is_head_too_large():
            return FailureKind.HEADERS_TOO_LARGE
        if transfer.is_switching():
            return FailureKind.PROTOCOL
        return FailureKind.STALLED if self._is_flooded() else None

    def _is_flooded(self) -> bool:
        """More came since the first glance than framing takes; on a connection of our own, since its start."""
        curl, received = self._transfer.curl, self._transfer.received
        on_wire = read_from(curl)
        if on_wire is None:
            return False
        idle = on_wire - received
        if self._idle is None:
            self._idle = 0 if curl.getinfo(pycurl.NUM_CONNECTS) else idle
        return idle - self._idle > self._settings.max_body

    def _look(self) -> None:
        received, limits = self._transfer.received, self._settings
        if not received:
            left = self._until_first_byte()
            if left <= 0:
                self._give_up(FailureKind.FIRST_BYTE_TIMEOUT)
            else:
                self._wait(min(left, limits.stall_timeout))
        elif self._is_slow(received) and not self._transfer.is_paused:
            self._give_up(FailureKind.STALLED)
        else:
            self._seen = received
            self._wait(limits.stall_timeout)

    def _is_slow(self, received: int) -> bool:
        limits = self._settings
        return bool(self._seen) and received - self._seen < limits.stall_rate * limits.stall_timeout

    def _until_first_byte(self) -> float:
        """Counted from the request; while there is no connection yet, from the latest that there may be one."""
        limits = self._settings
        connected = self._transfer.curl.getinfo(pycurl.PRETRANSFER_TIME_T) / 1e6 or limits.connect_timeout
        return self._begun + connected + limits.first_byte_timeout - self._lulls.ticks.time()

    def _give_up(self, kind: FailureKind) -> None:
        if not self._ended.done():
            words = self._transfer.curl.errstr()
            # libcurl (8.23, driven by events) leaves a transfer hanging whose HTTP/2 session it has given up
            self._transfer.stopped = FailureKind.PROTOCOL if words.startswith("nghttp2 ") else kind
            words = words or f"gave up: {self._transfer.stopped}"
            self._ended.set_result(pycurl.error(pycurl.E_OPERATION_TIMEDOUT, words))
