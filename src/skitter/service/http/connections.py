"""What a connection may cost before anybody knows who it is: limits on heads and on time.

Under the application, in the server's own protocol. `FirstHead` collects the first head of a connection and
parses nothing: a half request took the server 108 us with a parser, a timer and a place among its connections,
and takes 85 without, most of it in the kernel. `GuardedProtocol` takes over from there. Who may wait, and for how
long, `door.py` says.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import get_remote_addr

import skitter.service.http.door as limits
from skitter.service.http.door import LARGEST_HEAD, MOST_FIELDS, SECONDS_IDLE, Door

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
# A head ends with an empty line; the parser also takes lines that end without a return.
_ENDS = (b"\n\r\n", b"\n\n")
_LONGEST_END = 3


class FirstHead(asyncio.Protocol):
    """Whoever connects, until its first head is there. Over a unix socket there is no address, and only the
    crawl's owner can connect: nothing is awaited then."""

    door: ClassVar[Door]

    def __init__(self, **given: Any) -> None:
        self._given = given
        self._head = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        if transport.get_extra_info("socket").family == socket.AF_UNIX:
            self._hand_over()
            return
        address = get_remote_addr(transport)
        # Who has hung up already has none.
        self.door.enter(transport, address[0] if address is not None else "")

    def connection_lost(self, exc: Exception | None) -> None:
        self.door.leave(self._transport)

    def data_received(self, data: bytes) -> None:
        searched = max(0, len(self._head) - _LONGEST_END)
        self._head += data
        begins_well = 65 <= self._head[0] <= 90  # a method; anything else is for the parser to refuse
        if not begins_well or any(self._head.find(end, searched) >= 0 for end in _ENDS):
            self._hand_over()
        elif len(self._head) > LARGEST_HEAD:
            _refuse_head(self._transport)

    def _hand_over(self) -> None:
        self.door.note_head(self._transport)
        protocol = GuardedProtocol(self.door, **self._given)
        protocol.connection_made(self._transport)
        self._transport.set_protocol(protocol)
        if self._head:
            protocol.data_received(bytes(self._head))


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `_head_left` is how many bytes the head that is being read may still have; None while a
    body is read. `_timer` runs while something is waited for from the other side."""

    def __init__(self, door: Door, **given: Any) -> None:
        super().__init__(**given)
        self._door = door

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._head_left: int | None = LARGEST_HEAD
        self._wait(limits.SECONDS_FOR_A_HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        self._door.leave(self.transport)
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
                _refuse_head(self.transport)
                return
            piece, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(piece)
            yield piece
        if data:
            yield data

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
        self._wait(limits.SECONDS_FOR_A_HEAD)

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= MOST_FIELDS:
            raise httptools.HttpParserError("too many fields")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        given = next((value for name, value in self.headers if name == b"authorization"), b"")
        if self._door.knows(given.decode("latin-1")):
            self._door.leave(self.transport)
        self._head_left = None
        self._wait(SECONDS_IDLE)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._wait(None)
        self._head_left = LARGEST_HEAD
        super().on_message_complete()


def _refuse_head(transport: asyncio.Transport) -> None:
    transport.write(_TOO_LARGE)
    transport.close()


def guarded(door: Door) -> type[FirstHead]:
    """The protocol of one server's connections."""
    return type("Connection", (FirstHead,), {"door": door})
