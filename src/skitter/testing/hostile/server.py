"""The server of the hostile web: raw sockets on asyncio, one process, loopback only.

It reads one request of a connection, plays the case that the host's first label names, and closes. It counts
every request in a log; it must never wait for one client while others could be served, and a client that leaves
ends its play.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from typing import IO, cast

from skitter.testing.hostile.case import Play, whole
from skitter.testing.hostile.catalogue import CATALOGUE
from skitter.testing.hostile.hosts import (
    BROKEN_TLS_PORT,
    FULL_PORT,
    REFUSED_PORT,
    SILENT_TLS_PORT,
)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

LOOPBACK = "127.0.0.1"
NOT_FOUND = whole(b"not here", b"Connection: close", status=b"404 Not Found")
REQUEST_LIMIT = 65_536
# For A records by the name's first label; None is silence, a number an error (RFC 1035 4.1.1).
DNS: dict[str, str | int | None] = {
    "no-name": 3,
    "dns-broken": 2,
    "dns-silent": None,
    "dns-inside": "127.0.0.1",
    "dns-metadata": "169.254.169.254",
}


class Left(ConnectionError):
    """The client has gone."""


class Connection:
    """A request and what answers it: see `case.Wire`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.host = ""
        self.path = ""

    async def read_request(self) -> None:
        raw = await self._reader.readuntil(b"\r\n\r\n")
        lines = raw.decode("latin-1").split("\r\n")
        self.path = lines[0].split(" ")[1]
        hosts = [line[5:].strip() for line in lines if line.lower().startswith("host:")]
        self.host = hosts[0].partition(":")[0] if hosts else ""

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self._writer.write(part)
            await self._writer.drain()
        # a client that reads as fast as we write would keep us to itself
        await asyncio.sleep(0)

    async def pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.hold()

    async def hold(self) -> None:
        while await self._reader.read(REQUEST_LIMIT):
            pass
        raise Left

    def reset(self) -> None:
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._writer.transport.abort()


class HostileServer:
    """Listens from `start` until `close`."""

    def __init__(self, log: IO[str] | None = None) -> None:
        self._log = log
        self._servers: list[asyncio.Server] = []
        self._sockets: list[socket.socket] = []
        self._datagrams: asyncio.DatagramTransport | None = None
        self.resolve: tuple[str, ...] = ()
        self.nameserver = ""

    async def start(self) -> None:
        for case in CATALOGUE.values():
            if case.prepare is not None:
                case.prepare()
        ports = {
            80: await self._listen(self._http),
            BROKEN_TLS_PORT: await self._listen(_noise),
            SILENT_TLS_PORT: await self._listen(_silence),
            REFUSED_PORT: self._refusing(),
            FULL_PORT: self._full(),
        }
        self.resolve = tuple(f"*:{port}:{LOOPBACK}:{dialled}" for port, dialled in ports.items())
        loop = asyncio.get_running_loop()
        self._datagrams, _ = await loop.create_datagram_endpoint(NameServer, local_addr=(LOOPBACK, 0))
        self.nameserver = f"{LOOPBACK}:{self._datagrams.get_extra_info('sockname')[1]}"

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for sock in self._sockets:
            sock.close()
        if self._datagrams is not None:
            self._datagrams.close()

    async def _listen(self, serve: Serve) -> int:
        server = await asyncio.start_server(serve, LOOPBACK, 0, limit=REQUEST_LIMIT, backlog=4096)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def _refusing(self) -> int:
        """Bound and not listening: nobody else gets the port."""
        sock = self._own(socket.socket())
        sock.bind((LOOPBACK, 0))
        port: int = sock.getsockname()[1]
        return port

    def _full(self) -> int:
        """Its queue of connections is full and never emptied: the kernel drops what comes (listen(2))."""
        listener = self._own(socket.socket())
        listener.bind((LOOPBACK, 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(4):
            waiting = self._own(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        port: int = address[1]
        return port

    def _own(self, sock: socket.socket) -> socket.socket:
        self._sockets.append(sock)
        return sock

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await connection.read_request()
            self._note(connection)
            await _play_of(connection)(connection)
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    def _note(self, connection: Connection) -> None:
        if self._log is not None:
            self._log.write(json.dumps({"host": connection.host, "path": connection.path}) + "\n")
            self._log.flush()


def _play_of(connection: Connection) -> Play:
    case = CATALOGUE.get(connection.host.partition(".")[0])
    play = None
    if case is not None:
        play = case.robots if connection.path == "/robots.txt" else case.play
    return play or _not_found


async def _not_found(wire: object) -> None:
    assert isinstance(wire, Connection)
    await wire.send(NOT_FOUND)


async def _noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await reader.read(REQUEST_LIMIT)
        writer.write(bytes(range(256)) * 4)
        writer.close()
        await writer.wait_closed()


async def _silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(REQUEST_LIMIT):
            pass
        writer.close()


class NameServer(asyncio.DatagramProtocol):
    """Answers for the names of `DNS` as they deserve, and for no other name at all."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # before 3.12 asyncio's own is not of the class that it should be
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        if len(data) < 17 or not data[12]:
            return
        label = data[13 : 13 + data[12]].decode("latin-1").lower()
        said = DNS.get(label, 3)
        if said is not None:
            self._transport.sendto(_dns_answer(data, said), address)


def _dns_answer(query: bytes, said: str | int) -> bytes:
    end = query.index(b"\0", 12) + 5
    question = query[12:end]
    wants_a = question[-4:-2] == b"\0\1"
    code = said if isinstance(said, int) else 0
    answer = b""
    if isinstance(said, str) and wants_a:
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(said)
    flags = (0x8180 | code).to_bytes(2, "big")
    return query[:2] + flags + b"\0\1" + (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0" + question + answer
