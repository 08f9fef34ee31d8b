"""The site that kept folders are crawls of. It must stay as it is: later versions ask it again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.raw_server import page, serving

_LINKS = b"<title>Kept</title>" + b" ".join(
    b'<a href="%b">x</a>' % path for path in (b"/one", b"/two", b"/secret/x", b"/gone")
)
PAGES = {
    "/": _LINKS,
    "/one": b'<title>One</title><script type="application/ld+json">{"@type": "Thing", "name": "one"}</script>',
    "/two": b"<title>Two</title><p>" + b" ".join(b"word%d" % n for n in range(200)),
}
_ROBOTS = b"User-agent: *\nDisallow: /secret/\n"


@contextmanager
def serving_kept_site() -> Iterator[tuple[str, list[str]]]:
    """Yields what `--resolve` takes, and the statuses of answers by path as they are given."""
    answered: list[str] = []

    def answer(connection: socket.socket, raw: bytes) -> bool:
        path = raw.split()[1].decode()
        body, tag = PAGES.get(path), f'"{path}"'.encode()
        if path == "/robots.txt":
            reply = page(_ROBOTS).replace(b"text/html", b"text/plain")
        elif body is None:
            reply = page(b"nothing here", status=b"404 Not Found")
        elif b"if-none-match: " + tag in raw.lower():
            reply = b"HTTP/1.1 304 Not Modified\r\nETag: %b\r\n\r\n" % tag
        else:
            reply = page(body, b"ETag: " + tag)
        answered.append(f"{reply.split()[1].decode()} {path}")
        connection.sendall(reply)
        return True

    with serving(answer) as server:
        yield f"kept.test:80:127.0.0.1:{server.port}", answered
