"""Sites that are near to one region and far from another: how long an answer takes depends on who asks.

    python -m bench._far_web ADDRESS LOG HOSTS PAGES NEAR FAR

Listens on ADDRESS, says its port on standard output, and writes a line for each request when it is answered: when
it came, when it ended, its host, its path, how late it was seen, and whether it is near. Even hosts are near to
an even network, odd ones to an odd one. The kernel at hand has no netem, so that the delay is in the answer and
not on the wire.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TextIO

_LINKED = 8
_TICK = 0.005


class Pulse:
    """How late this process is: on a busy machine a request is seen some time after it came."""

    def __init__(self) -> None:
        self._last = time.time()

    async def beat(self) -> None:
        while True:
            self._last = time.time()
            await asyncio.sleep(_TICK)

    def late(self) -> float:
        return max(0.0, time.time() - self._last - _TICK)


async def answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    log: TextIO,
    pages: int,
    near: float,
    far: float,
    pulse: Pulse,
) -> None:
    network = writer.get_extra_info("peername")[0].split(".")[2]
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            came, late = time.time(), pulse.late()
            request, *fields = head.decode("latin-1").split("\r\n")
            path = request.split(" ")[1]
            host = next(line[6:] for line in fields if line.lower().startswith("host: "))
            is_near = int(host[1:].partition(".")[0]) % 2 == int(network) % 2
            await asyncio.sleep(near if is_near else far)
            body = b"" if path == "/robots.txt" else _page(path, pages)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            await writer.drain()
            print(came, time.time(), host, path, late, is_near, file=log, flush=True)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _page(path: str, pages: int) -> bytes:
    number = int(path[1:] or 0)
    below = range(_LINKED * number + 1, min(pages, _LINKED * number + _LINKED + 1))
    links = b"".join(b"<a href=/%d>page</a> " % to for to in below)
    return (
        b"<title>page %d</title><p>words %d and more %d</p>" % (number, number * 7919, number * 104729)
        + links
    )


async def main() -> None:
    address, log, _, pages, near, far = sys.argv[1:]
    pulse = Pulse()
    shape = int(pages), float(near), float(far), pulse
    with open(log, "a") as told:
        server = await asyncio.start_server(
            lambda reader, writer: answer(reader, writer, told, *shape), address, 0
        )
        print(server.sockets[0].getsockname()[1], flush=True)
        async with asyncio.TaskGroup() as together:
            together.create_task(pulse.beat())
            together.create_task(server.serve_forever())


if __name__ == "__main__":
    asyncio.run(main())
