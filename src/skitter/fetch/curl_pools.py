"""libcurl, driven by events: transfers in flight, and pools of connections that are kept for the next requests.

Under the fetch. libcurl finds a kept connection by going through all that lead to the same address and port,
and the one to close by going through all there are. So connections are spread over several pools, and an
origin stays in its pool. Sockets are watched by `socket_events.py`. Never starts or ends a request on its own
account.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Protocol

import pycurl

from skitter.fetch.socket_events import FAILED, HUNG_UP, READABLE, WRITABLE, open_socket_events


class Sender(Protocol):
    """A request that is being sent. Asked after each call of libcurl until all of the request has left."""

    def note_if_sent(self) -> bool: ...


Ended = asyncio.Future[pycurl.error | None]
"""The end of one transfer: an error, or None when it went well."""

# With 3,000 connections to one address 16 pools take 30 % less CPU a request than one.
_POOLS = 16
_LEAST_IN_POOL = 64
_NEVER = float("inf")
_WATCHED = {
    pycurl.POLL_IN: READABLE,
    pycurl.POLL_OUT: WRITABLE,
    pycurl.POLL_INOUT: READABLE | WRITABLE,
}


class CurlPool:
    """Kept connections and the transfers on them. `due` is when libcurl wants to be called without an event.
    `sending` are transfers that have a connection and whose request is not known to have left."""

    def __init__(self, pools: CurlPools, number: int, connections: int) -> None:
        self._pools = pools
        self.number = number
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, partial(pools.watch, self))
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self.in_flight: dict[pycurl.Curl, Ended] = {}
        self.sending: dict[pycurl.Curl, Sender] = {}
        self.due = _NEVER

    def begin(self, curl: pycurl.Curl) -> Ended:
        ended = self._pools.loop.create_future()
        self.multi.add_handle(curl)
        self.in_flight[curl] = ended
        return ended

    def remove(self, curl: pycurl.Curl) -> None:
        """End the transfer, if it has not ended."""
        if (ended := self.in_flight.get(curl)) is not None:
            ended.cancel()
            self._end(curl, None)

    def note_connection(self, descriptor: int) -> int:
        """libcurl has opened a socket for a new connection."""
        self._pools.note_connection(descriptor)
        return int(pycurl.SOCKOPT_OK)

    def drive(self, descriptor: int, events: int) -> None:
        try:
            _, running = self.multi.socket_action(descriptor, events)
        except pycurl.error as error:
            self._fail(error)
            return
        if self.sending:
            self.sending = {
                curl: sender for curl, sender in self.sending.items() if not sender.note_if_sent()
            }
        if running < len(self.in_flight):
            self._collect()

    def close(self) -> None:
        for curl in tuple(self.in_flight):
            self.remove(curl)
        self.multi.close()

    def _collect(self) -> None:
        _, done, failed = self.multi.info_read()
        for curl in done:
            self._end(curl, None)
        for curl, code, words in failed:
            self._end(curl, pycurl.error(code, words))

    def _end(self, curl: pycurl.Curl, error: pycurl.error | None) -> None:
        ended = self.in_flight.pop(curl)
        self.multi.remove_handle(curl)
        if self.sending:
            self.sending.pop(curl, None)
        if not ended.done():
            ended.set_result(error)

    def _fail(self, error: pycurl.error) -> None:
        """libcurl itself has failed, and will report the end of no transfer any more."""
        for curl in tuple(self.in_flight):
            self._end(curl, error)

    def _on_timer(self, milliseconds: int) -> None:
        if milliseconds == 0:
            self._pools.drive_soon(self)
        elif milliseconds < 0:
            self.due = _NEVER
        else:
            self.due = due = self._pools.loop.time() + milliseconds / 1000
            # libcurl sets this timer twice a request, mostly to a later time than another pool's
            if due < self._pools.wakes_at:
                self._pools.wake_by(due)


class CurlPools:
    """All pools together have at most `connections`, in use or kept. Bound to the event loop of the first
    request."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, connections: int) -> None:
        count = max(1, min(_POOLS, connections // _LEAST_IN_POOL))
        self._each = -(-connections // count)
        self._pools = [CurlPool(self, number, self._each) for number in range(count)]
        self._most = 2 * connections
        self._by_origin: dict[str, CurlPool] = {}
        self._assigned = 0
        self._events = open_socket_events()
        self._watched: dict[int, CurlPool] = {}
        self._registered: dict[int, int] = {}
        self._connections: set[int] = set()
        self._soon: dict[CurlPool, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.wakes_at = _NEVER
        self._is_bound = False

    def assign(self, origin: str) -> CurlPool:
        """The pool of an origin, old or new. One pool is filled after the other: each reads the list of
        trusted issuers for itself, which takes 29 ms and 1.6 MB, and most crawls need one pool only. The
        oldest origins are forgotten: their connections are gone."""
        pool = self._by_origin.get(origin)
        if pool is None:
            if not self._is_bound:
                self._bind()
            pool = self._pools[self._assigned // self._each % len(self._pools)]
            self._by_origin[origin] = pool
            self._assigned += 1
            if len(self._by_origin) > self._most:
                del self._by_origin[next(iter(self._by_origin))]
        return pool

    def number_of(self, pool: CurlPool, connection: int) -> int:
        """A number for the connection among those of all pools: libcurl counts from 0 in each pool."""
        return connection * len(self._pools) + pool.number

    def close(self) -> None:
        for pool in self._pools:
            pool.close()
        # only now: libcurl sets timers while it ends transfers
        if self._timer is not None:
            self._timer.cancel()
        self._events.close()

    def _bind(self) -> None:
        self._is_bound = True
        self.loop = asyncio.get_running_loop()
        self._events.bind(self.loop, self._on_ready)

    # -- sockets

    def watch(self, pool: CurlPool, what: int, descriptor: int, multi: object, assigned: object) -> None:
        """libcurl's wish for a socket: which events it waits for; none also when it is about to close the socket.

        Between two requests a kept connection stays registered, because the next request waits for the same
        events: that spares two calls of the kernel a request. This holds for connections only. Of other sockets
        (libcurl has one to be woken by) we do not hear when their number becomes another socket's."""
        if events := _WATCHED.get(what, 0):
            self._watched[descriptor] = pool
            if self._registered.get(descriptor) != events:
                self._register(descriptor, events)
        elif self._watched.pop(descriptor, None) is not None and not self._stays(descriptor):
            self._unregister(descriptor)

    def _stays(self, descriptor: int) -> bool:
        return descriptor in self._connections and self._events.forgets_closed

    def note_connection(self, descriptor: int) -> None:
        """The number may be that of a connection that was closed since; the kernel has forgotten that one."""
        self._registered.pop(descriptor, None)
        self._connections.add(descriptor)

    def _register(self, descriptor: int, events: int) -> None:
        if descriptor in self._registered:
            self._events.modify(descriptor, events)
        else:
            self._events.register(descriptor, events)
        self._registered[descriptor] = events

    def _unregister(self, descriptor: int) -> None:
        if self._registered.pop(descriptor, None) is not None:
            with contextlib.suppress(OSError):
                self._events.unregister(descriptor)

    def _on_ready(self) -> None:
        for descriptor, events in self._events.ready():
            # an event before this one may have closed it
            pool = self._watched.get(descriptor)
            if pool is not None:
                pool.drive(descriptor, _ACTIONS[events & _KNOWN])
            else:
                # The server has closed a kept connection, or sent something unasked: libcurl finds out when it
                # wants to use the connection again.
                self._unregister(descriptor)

    # -- times

    def drive_soon(self, pool: CurlPool) -> None:
        """Not at once: libcurl may not be called from its own callback."""
        if not self._soon:
            self.loop.call_soon(self._drive_soon)
        self._soon[pool] = None

    def _drive_soon(self) -> None:
        pools, self._soon = self._soon, {}
        for pool in pools:
            pool.drive(pycurl.SOCKET_TIMEOUT, 0)

    def wake_by(self, at: float) -> None:
        """Set the timer to an earlier time."""
        if self._timer is not None:
            self._timer.cancel()
        self.wakes_at = at
        self._timer = self.loop.call_at(at, self._wake)

    def _wake(self) -> None:
        now, self.wakes_at, self._timer = self.loop.time(), _NEVER, None
        for pool in self._pools:
            if pool.due <= now:
                pool.due = _NEVER
                pool.drive(pycurl.SOCKET_TIMEOUT, 0)
        soonest = min(pool.due for pool in self._pools)
        if soonest < self.wakes_at:
            self.wake_by(soonest)


_KNOWN = READABLE | WRITABLE | FAILED | HUNG_UP


def _action(events: int) -> int:
    reading = pycurl.CSELECT_IN if events & (READABLE | HUNG_UP) else 0
    writing = pycurl.CSELECT_OUT if events & WRITABLE else 0
    return int(reading | writing | (pycurl.CSELECT_ERR if events & FAILED else 0))


# A table, because it is asked for every event.
_ACTIONS = {events: _action(events) for events in range(_KNOWN + 1) if events & _KNOWN == events}
