"""A server that sends exactly the bytes a test gives it, over real sockets on loopback."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

Answer = Callable[[socket.socket, bytes], bool]
"""Answers one request on a connection; True keeps the connection."""


class Received(NamedTuple):
    """One request; `at` is when its last byte had been read."""

    raw: bytes
    at: float
    connection: int


class RawServer:
    """Counts connections and resumed TLS sessions, keeps every request, and answers each with `answer`, in a
    thread per connection."""

    def __init__(self, answer: Answer, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, 0), family=family, backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://{f'[{address}]' if ':' in address else address}:{self.port}"
        self.connections = 0
        self.resumed = 0
        self.requests: list[Received] = []
        self.server_names: list[str | None] = []
        self.over = threading.Event()
        if tls:
            tls.sni_callback = lambda sock, name, context: self.server_names.append(name)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.over.set()
        # shutdown wakes the thread in accept(); close alone would not
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                number = self.connections
                threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError), connection:
            if self._tls is None:
                self._converse(connection, number)
                return
            with self._tls.wrap_socket(connection, server_side=True) as secure:
                self.resumed += bool(secure.session_reused)
                self._converse(secure, number)

    def _converse(self, connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while raw := _request(connection):
            self.requests.append(Received(raw, time.time(), number))
            if not self._answer(connection, raw):
                return


def _request(connection: socket.socket) -> bytes:
    raw = b""
    while not raw.endswith(b"\r\n\r\n"):
        more = connection.recv(65_536)
        if not more:
            return b""
        raw += more
    return raw


def sends(*parts: bytes, keep: bool = False) -> Answer:
    """Each part on its own, one after the other; then the connection is closed, or kept for more."""

    def answer(connection: socket.socket, raw: bytes) -> bool:
        for part in parts:
            connection.sendall(part)
        return keep

    return answer


@contextmanager
def serving(
    answer: Answer, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[RawServer]:
    server = RawServer(answer, address, tls)
    try:
        yield server
    finally:
        server.close()


def silent() -> Answer:
    """Takes a request and never says a word, until the client leaves."""

    def answer(connection: socket.socket, raw: bytes) -> bool:
        with contextlib.suppress(OSError):
            connection.recv(1)
        return False

    return answer


def page(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    head = [b"HTTP/1.1 " + status, b"Content-Type: text/html", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(head) + b"\r\n\r\n" + body
