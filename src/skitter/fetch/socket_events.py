"""Which sockets have news: by epoll where the system has it, by the event loop's own watch elsewhere.

Under `curl_pools.py`, which says what libcurl waits for. Both kinds tell the same events by the same numbers.
Never reads from a socket or writes to it.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Protocol

# As epoll(7) has them on every Linux, so that nothing is translated for each event.
READABLE, WRITABLE, FAILED, HUNG_UP = 1, 4, 8, 16
_AT_ONCE = 256


class SocketEvents(Protocol):
    forgets_closed: bool
    """Whether a socket may stay registered when it is closed."""

    def bind(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        """`on_ready` is called when `ready` has something to tell."""

    def register(self, descriptor: int, events: int) -> None: ...

    def modify(self, descriptor: int, events: int) -> None: ...

    def unregister(self, descriptor: int) -> None: ...

    def ready(self) -> list[tuple[int, int]]:
        """Descriptors and their events."""

    def close(self) -> None: ...


def open_socket_events() -> SocketEvents:
    return EpollEvents() if hasattr(select, "epoll") else LoopEvents()


class EpollEvents:
    """The event loop watches one epoll of ours, and that epoll all sockets: this spares an object for every
    wait."""

    forgets_closed = True

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.register = self._epoll.register
        self.modify = self._epoll.modify
        self.unregister = self._epoll.unregister

    def bind(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        loop.add_reader(self._epoll.fileno(), on_ready)

    def ready(self) -> list[tuple[int, int]]:
        return self._epoll.poll(0, _AT_ONCE)

    def close(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()


class LoopEvents:
    """Every socket is watched by the event loop itself. The loop must not be left with a closed one."""

    forgets_closed = False

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_ready: Callable[[], None] = lambda: None
        self._watched: dict[int, int] = {}
        self._found: list[tuple[int, int]] = []

    def bind(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop, self._on_ready = loop, on_ready

    def register(self, descriptor: int, events: int) -> None:
        self.modify(descriptor, events)

    def modify(self, descriptor: int, events: int) -> None:
        assert self._loop is not None, "bind comes first"
        before = self._watched.get(descriptor, 0)
        self._watched[descriptor] = events
        if events & READABLE:
            self._loop.add_reader(descriptor, self._tell, descriptor, READABLE)
        elif before & READABLE:
            self._loop.remove_reader(descriptor)
        if events & WRITABLE:
            self._loop.add_writer(descriptor, self._tell, descriptor, WRITABLE)
        elif before & WRITABLE:
            self._loop.remove_writer(descriptor)

    def unregister(self, descriptor: int) -> None:
        if self._watched.get(descriptor):
            self.modify(descriptor, 0)
        self._watched.pop(descriptor, None)

    def ready(self) -> list[tuple[int, int]]:
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        for descriptor in tuple(self._watched):
            self.unregister(descriptor)

    def _tell(self, descriptor: int, event: int) -> None:
        self._found.append((descriptor, event))
        self._on_ready()
