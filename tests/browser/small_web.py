"""Five hosts on loopback: one that is well, two that fail, one whose every word tries to become code, and one
whose pages are all the same."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.command import said, skitter
from tests.raw_server import RawServer, page, serving

WELL, HOSTILE = "http://well.test", "http://hostile.test"
BROKEN, LOST, ENDLESS = "http://broken.test", "http://lost.test", "http://endless.test"
DAYS = 40
CODE = '"><img src=x onerror="window.pwned=1"><script>window.pwned=2</script>'
HOSTILE_URL = f"{HOSTILE}/%22%3E%3Cimg%20src=x%20onerror=window.pwned=3%3E?a=%3Cscript%3E"
_ESCAPED = CODE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
_SETTINGS = """\
[politeness]
delay = 0.05
slow_factor = 0
[retry]
attempts = 2
backoff = [0.05]
[crawl]
linger = 1
[traps]
probe = false
"""


def _html(title: str, *links: str, text: str = "") -> bytes:
    anchors = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    words = " ".join(f"{title} says word number {number}." for number in range(20))
    return (
        f"<title>{title}</title><main><h1>{title}</h1><p>{text}{words}</p><ul>{anchors}</ul></main>".encode()
    )


_FAULT = page(b"out of order", status=b"500 Internal Server Error")
_PAGES = {
    ("well.test", "/"): _html(
        "The front page", "/one", "/two", "/private/diary", f"{HOSTILE}/", f"{LOST}/", f"{ENDLESS}/"
    ),
    ("well.test", "/one"): _html("The first page", "/three"),
    ("well.test", "/two"): _html("The second page"),
    ("well.test", "/three"): _html("The third page"),
    ("well.test", "/robots.txt"): page(b"User-agent: *\nDisallow: /private/\n"),
    ("broken.test", "/"): _html("Much is broken here", "/a", "/b", "/c"),
    ("broken.test", "/a"): _FAULT,
    ("broken.test", "/b"): _FAULT,
    ("broken.test", "/c"): _FAULT,
    ("lost.test", "/"): _html("Nothing is found here", "/x", "/y"),
    ("lost.test", "/x"): _FAULT,
    ("lost.test", "/y"): _FAULT,
    ("endless.test", "/"): _html("Every day", *(f"/day/{number}" for number in range(DAYS))),
    **{("endless.test", f"/day/{number}"): _html("A day like any other") for number in range(DAYS)},
    ("hostile.test", "/"): _html(_ESCAPED, HOSTILE_URL.removeprefix(HOSTILE), text=_ESCAPED),
    ("hostile.test", HOSTILE_URL.removeprefix(HOSTILE)): _html(_ESCAPED, text=_ESCAPED),
    ("hostile.test", "/robots.txt"): page(f"User-agent: *\n# {CODE}\n".encode()),
}


def _answer(connection: socket.socket, raw: bytes) -> bool:
    path = raw.split()[1].decode()
    host = raw.lower().partition(b"\nhost:")[2].split()[0].decode()
    found = _PAGES.get((host, path), page(b"nothing here", status=b"404 Not Found"))
    connection.sendall(found if found.startswith(b"HTTP/") else page(found))
    return True


@contextmanager
def small_web() -> Iterator[RawServer]:
    with serving(_answer) as server:
        yield server


def crawled(folder: Path) -> None:
    """Crawls all of it into `folder`: dead letters, a denied page, a trap."""
    config = folder.with_suffix(".toml")
    config.write_text(_SETTINGS)
    with small_web() as server:
        asked = (
            "crawl",
            f"{WELL}/",
            f"{BROKEN}/",
            "--scope",
            "any",
            "--resolve",
            f"*:80:127.0.0.1:{server.port}",
        )
        said(skitter(*asked, "--config", config, "--into", folder))
