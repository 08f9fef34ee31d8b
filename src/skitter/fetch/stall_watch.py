"""Gives up requests that wait too long for a first byte, stall, or flood us with bytes that are no content.

Beside the transfer. Most requests have ended before they are looked at for the first time, so until then they are
only noted. Never ends a request but by a limit of `FetchSettings`.
"""

from __future__ import annotations

import pycurl

from skitter.fetch.curl_pools import Ended
from skitter.fetch.idle_requests import LOOK_EVERY, IdleCheck, IdleRequests
from skitter.fetch.socket_stats import bytes_read
from skitter.fetch.timer_wheel import Timer
from skitter.fetch.transfer import Transfer
from skitter.model import FailureKind
from skitter.settings import FetchSettings

_FIRST_GLANCE = 0.25  # seconds


class StallWatches:
    """`_young` are the transfers that were not looked at yet, oldest first. One timer serves them all, which
    costs a request a fifth of a timer of its own."""

    def __init__(self, settings: FetchSettings, idle: IdleRequests) -> None:
        self._settings = settings
        self._idle = idle
        self._patience = min(settings.stall_timeout, settings.first_byte_timeout)
        self._glance_after = min(_FIRST_GLANCE, self._patience)
        self._young: dict[Transfer, tuple[Ended, float]] = {}
        self._watched: dict[Transfer, StallWatch] = {}
        self._is_armed = False

    def begin(self, transfer: Transfer, ended: Ended) -> None:
        self._young[transfer] = (ended, self._idle.timers.time())
        if not self._is_armed:
            self._arm(self._glance_after)

    def end(self, transfer: Transfer) -> None:
        if self._young.pop(transfer, None) is None:
            self._watched.pop(transfer).end()

    def _arm(self, seconds: float) -> None:
        self._is_armed = True
        self._idle.timers.call_later(seconds, self._look)

    def _look(self) -> None:
        now = self._idle.timers.time()
        self._is_armed = False
        for transfer, (ended, begun) in tuple(self._young.items()):
            left = begun + self._glance_after - now
            if left > 0:
                self._arm(left)
                return
            del self._young[transfer]
            watch = StallWatch(transfer, ended, self._settings, self._idle, begun, begun + self._patience)
            self._watched[transfer] = watch
            watch.glance()


class StallWatch:
    """Gives up a transfer that waits too long for its first byte, stalls after it, or sends too much that is
    neither head nor body.

    A *look* compares what came since the last look with the limits. *Glances* in between are for servers that
    misbehave. libcurl's own stall limit is not used: it counts the wait for the first byte as well, which may be
    longer. A chunk extension without end moves no counter of libcurl's and would be read at full speed until the
    transfer counts as stalled, for up to half a minute. So a glance asks the kernel how many bytes came.
    """

    def __init__(
        self,
        transfer: Transfer,
        ended: Ended,
        settings: FetchSettings,
        idle: IdleRequests,
        begun: float,
        due: float,
    ) -> None:
        self._transfer = transfer
        self._ended = ended
        self._settings = settings
        self._idle = idle
        self._begun = begun
        self._due = due
        self._seen = 0
        self._overhead: int | None = None
        self._pause = _FIRST_GLANCE
        self._idle_check: IdleCheck | None = None
        self._timer: Timer | None = None

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._idle_check is not None:
            self._idle_check.end()

    def _wait(self, seconds: float) -> None:
        """Look again in so many seconds. Glances on the way come ever further apart."""
        self._due = self._idle.timers.time() + seconds
        self._glance_in(min(self._pause, seconds))

    def _glance_in(self, seconds: float) -> None:
        self._timer = self._idle.timers.call_later(seconds, self.glance)
        if self._idle_check is None:
            self._begin_idle_check(seconds)

    def _begin_idle_check(self, seconds: float) -> None:
        """Begin when the first look of the check falls before the next glance, not earlier."""
        left = self._begun + LOOK_EVERY - self._idle.timers.time()
        if left < seconds:
            self._idle_check = IdleCheck(self._idle, self._moved)
            self._idle_check.begin(left)

    def _moved(self) -> int | None:
        return None if self._transfer.is_paused else self._transfer.received

    def glance(self) -> None:
        left = self._due - self._idle.timers.time()
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
        """Whether more bytes came than head, body and framing take: since the first glance, or since its
        beginning on a connection that this transfer opened."""
        curl, received = self._transfer.curl, self._transfer.received
        on_wire = bytes_read(curl)
        if on_wire is None:
            return False
        overhead = on_wire - received
        if self._overhead is None:
            self._overhead = 0 if curl.getinfo(pycurl.NUM_CONNECTS) else overhead
        return overhead - self._overhead > self._settings.max_body

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
        """Seconds that are left, counted from the request; without a connection, from the end of the time to
        connect."""
        limits = self._settings
        connected = self._transfer.curl.getinfo(pycurl.PRETRANSFER_TIME_T) / 1e6 or limits.connect_timeout
        return self._begun + connected + limits.first_byte_timeout - self._idle.timers.time()

    def _give_up(self, kind: FailureKind) -> None:
        if not self._ended.done():
            words = self._transfer.curl.errstr()
            # libcurl (8.23, driven by events) leaves a transfer hanging whose HTTP/2 session it has given up
            self._transfer.stopped = FailureKind.PROTOCOL if words.startswith("nghttp2 ") else kind
            words = words or f"gave up: {self._transfer.stopped}"
            self._ended.set_result(pycurl.error(pycurl.E_OPERATION_TIMEDOUT, words))
