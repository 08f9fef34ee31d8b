"""One connection to a server, kept open: bytes are posted, bytes come back.

Below `remote.py`. HTTP/1.1 by h11 over TCP, TLS or a unix socket; 0.2 ms a call on loopback. Never retries, and
never tells more of a failure than that nobody is there (`Away`) or that the server will not have it (`Refused`).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

import h11

from skitter.errors import UsageError

UNIX = "unix:"
_READ = 262_144
_LONGEST_DETAIL = 500


class Away(Exception):
    """Nobody answered, or not in time, or not in HTTP."""


class Refused(Exception):
    """The server answered, and not with 200."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail


class Link:
    def __init__(self, where: str, token: str = "", *, patience: float = 30.0) -> None:
        self._patience = patience
        self._headers = [("Content-Type", "application/msgpack")]
        if token:
            self._headers.append(("Authorization", f"Bearer {token}"))
        self._socket = where.removeprefix(UNIX) if where.startswith(UNIX) else ""
        parts = urlsplit("http://localhost" if self._socket else where)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{where!r} is no server to join: write http://HOST:PORT or unix:PATH")
        self._host, self._is_secure = parts.hostname, parts.scheme == "https"
        self._port = parts.port or (443 if self._is_secure else 80)
        self._headers.append(("Host", parts.netloc.rpartition("@")[2]))
        self._state: h11.Connection | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def post(self, path: str, body: bytes) -> bytes:
        try:
            async with asyncio.timeout(self._patience):
                state = self._state or await self._connect()
                status, content = await self._exchange(state, path, body)
        except (OSError, TimeoutError, h11.ProtocolError, EOFError) as error:
            self.hang_up()
            raise Away(str(error) or type(error).__name__) from None
        except BaseException:
            self.hang_up()  # an answer may still come, and would be taken for the next one
            raise
        if status != 200:
            raise Refused(status, content[:_LONGEST_DETAIL].decode("utf-8", "replace"))
        return content

    def hang_up(self) -> None:
        if self._state is not None:
            self._state = None
            self._writer.close()

    async def close(self) -> None:
        if self._state is not None:
            self.hang_up()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _connect(self) -> h11.Connection:
        if self._socket:
            self._reader, self._writer = await asyncio.open_unix_connection(self._socket, limit=_READ)
        else:
            tls = ssl.create_default_context() if self._is_secure else None
            self._reader, self._writer = await asyncio.open_connection(
                self._host, self._port, ssl=tls, limit=_READ
            )
        self._state = h11.Connection(h11.CLIENT)
        return self._state

    async def _exchange(self, state: h11.Connection, path: str, body: bytes) -> tuple[int, bytes]:
        length = ("Content-Length", str(len(body)))
        request = h11.Request(method="POST", target=path, headers=[*self._headers, length])
        # The body goes past h11, which would copy it.
        self._writer.write(state.send(request) or b"")
        state.send_with_data_passthrough(h11.Data(data=body))
        self._writer.write(body)
        self._writer.write(state.send(h11.EndOfMessage()) or b"")
        await self._writer.drain()
        status, parts = 0, []
        while not isinstance(event := await self._next(state), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif isinstance(event, h11.ConnectionClosed):
                raise EOFError("the server hung up")
        if state.our_state is h11.DONE and state.their_state is h11.DONE:
            state.start_next_cycle()
        else:
            self.hang_up()
        return status, b"".join(parts)

    async def _next(self, state: h11.Connection) -> h11.Event:
        while (event := state.next_event()) is h11.NEED_DATA:
            state.receive_data(await self._reader.read(_READ))
        if event is h11.PAUSED:
            raise EOFError("the server said more than it was asked")
        return event  # type: ignore[return-value]
