"""Strangers at the door of a server, as a process of their own: endless heads, half requests, idle connections.

    python -m bench._strangers heads|halves|idle HOST PORT SECONDS

Each makes its share of trouble spread over so many seconds, holds on to whatever the server lets it hold, and
says in JSON how much it was. Niced: strangers have machines of their own.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress

HEADERS = 100_000_000
CONNECTIONS = 10_000
_PIECE = b"a" * 65_536
_STARTS = {
    "heads": b"GET / HTTP/1.1\r\nX-Endless: ",
    "halves": b"POST /v1/seeds HTTP/1.1\r\nContent-Le",
    "idle": b"",
}
_OTHERS = 64  # descriptors that are not connections


def main() -> None:
    kind, host, port, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    os.nice(19)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    act = send_heads if kind == "heads" else hold_connections
    print(json.dumps({"kind": kind, **act(_STARTS[kind], (host, port), seconds)}), flush=True)


def send_heads(start: bytes, place: tuple[str, int], seconds: float) -> dict[str, int]:
    """Until 100 MB are sent, one connection after the other, and again until the time is over."""
    sent = connections = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(place, timeout=5) as sock:
            connections += 1
            sock.sendall(start)
            for _ in range(HEADERS // len(_PIECE)):
                sock.sendall(_PIECE)
                sent += len(_PIECE)
    return {"bytes": sent, "connections": connections}


def hold_connections(start: bytes, place: tuple[str, int], seconds: float) -> dict[str, int]:
    """10,000 in all, evenly over the first four fifths; as many stay open as descriptors allow."""
    held: deque[socket.socket] = deque()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHERS
    began = time.monotonic()
    made = refused = 0
    while (passed := time.monotonic() - began) < seconds:
        if made >= min(CONNECTIONS, CONNECTIONS * passed / (0.8 * seconds)):
            time.sleep(0.002)
            continue
        made += 1
        try:
            sock = socket.create_connection(place, timeout=5)
            sock.sendall(start)
            held.append(sock)
        except OSError:
            refused += 1
        if len(held) >= most:
            held.popleft().close()
    still = sum(is_open(sock) for sock in held)
    return {"connections": made, "refused": refused, "still_open": still}


def is_open(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    try:
        return not poll.poll(0) or bool(sock.recv(1))
    except OSError:
        return False


if __name__ == "__main__":
    main()
