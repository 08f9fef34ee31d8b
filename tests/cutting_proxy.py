"""A TCP proxy on loopback that hangs up at the worst moment: in the middle of a request, or before its answer."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from types import TracebackType
from typing import Self

_FIRST, _EVERY = 2, 3


class CuttingProxy:
    """Of the connections' requests that begin with `marked` every third is cut: half of its bytes have passed, or
    all of them and nothing of the answer. `cuts` counts."""

    def __init__(self, to: int, marked: bytes, *, after_the_request: bool) -> None:
        self._to = to
        self._marked = marked
        self._after = after_the_request
        self._seen = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.cuts = 0
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._begin(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(10)

    def _begin(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._begin(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(("127.0.0.1", self._to)) as server,
            contextlib.suppress(OSError),
        ):
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for side in ready:
                    received = side.recv(1 << 20)
                    if not received:
                        return
                    if side is server:
                        client.sendall(received)
                    elif self._is_to_be_cut(received):
                        self._cut(client, server, received)
                        return
                    else:
                        server.sendall(received)

    def _is_to_be_cut(self, received: bytes) -> bool:
        if not received.startswith(self._marked):
            return False
        self._seen += 1
        return self._seen % _EVERY == _FIRST

    def _cut(self, client: socket.socket, server: socket.socket, received: bytes) -> None:
        self.cuts += 1
        if not self._after:
            server.sendall(received[: len(received) // 2])
            return
        whole = _length(received)
        server.sendall(received)
        while len(received) < whole:
            more = client.recv(1 << 20)
            received += more
            server.sendall(more)
        server.recv(1)  # it was done, and nobody hears of it


def _length(request: bytes) -> int:
    head, _, _ = request.partition(b"\r\n\r\n")
    field = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return len(head) + 4 + int(field)
