"""What a connection may cost before anybody knows who it is: limits on heads, time and numbers.

Under the application, in the server's own protocol. A stranger is a connection that has not yet sent the head of
a request that gives it a role. Strangers share little room: when it is full the oldest goes, so that a newcomer
with a token is heard. Who has a role is bounded by the server's limit of connections alone. Never reads a body.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from skitter.service.http.access import Access

LARGEST_HEAD = 65_536
MOST_FIELDS = 100
SECONDS_FOR_A_HEAD = 10.0
SECONDS_IDLE = 60
MOST_STRANGERS = 512
MOST_STRANGERS_AN_ADDRESS = 64
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Door:
    """The strangers of one server, in the order in which they came."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._strangers: dict[GuardedProtocol, str] = {}
        self._by_address: dict[str, dict[GuardedProtocol, None]] = {}
        self.turned_away = 0

    def enter(self, connection: GuardedProtocol, address: str) -> None:
        """The oldest stranger leaves, of the same address or of all, where there is no room."""
        here = self._by_address.setdefault(address, {})
        if len(here) >= MOST_STRANGERS_AN_ADDRESS:
            self._turn_away(next(iter(here)))
        elif len(self._strangers) >= MOST_STRANGERS:
            self._turn_away(next(iter(self._strangers)))
        self._strangers[connection] = address
        self._by_address.setdefault(address, {})[connection] = None

    def leave(self, connection: GuardedProtocol) -> None:
        """It has gone, or is no stranger any more."""
        address = self._strangers.pop(connection, None)
        if address is None:
            return
        here = self._by_address[address]
        del here[connection]
        if not here:
            del self._by_address[address]

    def knows(self, authorization: str) -> bool:
        return self._access.role_of(authorization) is not None

    def _turn_away(self, connection: GuardedProtocol) -> None:
        self.turned_away += 1
        self.leave(connection)
        connection.transport.abort()


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `_head_left` is how many bytes the head that is being read may still have; None while a
    body is read. `_timer` runs while something is waited for from the other side."""

    door: ClassVar[Door]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._head_left: int | None = LARGEST_HEAD
        self._wait(SECONDS_FOR_A_HEAD)
        if self.client is not None:
            # Over a unix socket there is no address, and only the crawl's owner can connect.
            self.door.enter(self, self.client[0])

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        self.door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for piece in self._pieces(data):
            if self.transport.is_closing():
                return
            if self._head_left is None:
                self._wait(SECONDS_IDLE)
            super().data_received(piece)

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """No more of a head than it may have: the parser joins what it is given, again and again."""
        while data and self._head_left is not None:
            if not self._head_left:
                self._refuse_head()
                return
            piece, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(piece)
            yield piece
        if data:
            yield data

    def _refuse_head(self) -> None:
        self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _wait(self, seconds: float | None) -> None:
        """For the other side, so long at most; None when it is our turn."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if self.flow.read_paused:
            # It is us who do not read on.
            self._wait(SECONDS_IDLE)
            return
        self.transport.abort()

    # -- the parser's calls

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait(SECONDS_FOR_A_HEAD)

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= MOST_FIELDS:
            raise httptools.HttpParserError("too many fields")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        given = next((value for name, value in self.headers if name == b"authorization"), b"")
        if self.door.knows(given.decode("latin-1")):
            self.door.leave(self)
        self._head_left = None
        self._wait(SECONDS_IDLE)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._wait(None)
        self._head_left = LARGEST_HEAD
        super().on_message_complete()


def guarded(access: Access) -> type[GuardedProtocol]:
    """The protocol of one server."""
    return type("Protocol", (GuardedProtocol,), {"door": Door(access)})
