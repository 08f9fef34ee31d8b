"""The server of the trap web: asyncio on one loopback port, every host of the plan behind it.

It answers at once, since what it shows follows from the URL, and logs what it showed. It must never fail on a
request, whatever it asks for, and never lose a row of the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import BinaryIO, cast

import msgspec

from skitter.testing.http_request import BadRequest, Head, read_head
from skitter.testing.traps.log import Row
from skitter.testing.traps.plan import TrapPlan
from skitter.testing.traps.render import html

LOOPBACK = "127.0.0.1"
LARGEST_HEAD = 16_384
PHRASES = {200: b"OK", 400: b"Bad Request", 404: b"Not Found", 405: b"Method Not Allowed"}
Answer = Callable[[Head], tuple[int, bytes]]


class TrapServer:
    """`answer` is the whole of it; `start` listens."""

    def __init__(self, plan: TrapPlan, log: BinaryIO | None = None) -> None:
        self.plan = plan
        self._log = log
        self._encoder = msgspec.json.Encoder()
        if log is not None:
            log.write(self._encoder.encode(plan) + b"\n")

    async def start(self, port: int = 0) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Connection(self.answer), LOOPBACK, port, backlog=4096)

    def answer(self, head: Head) -> tuple[int, bytes]:
        """Status and body. The host is taken without its port: the web is one, wherever it listens."""
        host = head.host.partition(":")[0]
        site = self.plan.site(host)
        view = site.view(host, head.target) if site and head.method == "GET" else None
        status = 405 if head.method != "GET" else 200 if view else 404
        self._note(Row(host, head.target, status, site.name if site else "", view.meaning if view else ""))
        if site is None or view is None:
            return status, PHRASES[status]
        return status, html(view, landmarks=site.landmarks)

    def _note(self, row: Row) -> None:
        if self._log is not None:
            self._log.write(self._encoder.encode(row) + b"\n")


class Connection(asyncio.Protocol):
    """One client: requests in, one after the other, answers out."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._inbox = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # before 3.12 asyncio's own is not of the class that it should be
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        while not self._transport.is_closing():
            raw, end, rest = self._inbox.partition(b"\r\n\r\n")
            if not end:
                break
            self._inbox = rest
            self._respond(raw)
        if len(self._inbox) > LARGEST_HEAD:
            self._transport.close()

    def _respond(self, raw: bytes) -> None:
        try:
            head = read_head(raw)
        except BadRequest:
            self._send(400, PHRASES[400], close=True)
            return
        status, body = self._answer(head)
        self._send(status, body, close=head.close)

    def _send(self, status: int, body: bytes, *, close: bool) -> None:
        lines = b"HTTP/1.1 %d %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(lines % (status, PHRASES[status], len(body)) + body)
        if close:
            self._transport.close()
