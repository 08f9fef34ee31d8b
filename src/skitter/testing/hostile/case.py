"""What one entry of the catalogue is: a misbehaviour, and how a crawl of it must end.

The vocabulary that the catalogue is written in; it serves nothing and judges nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

DOMAIN = "hostile.test"
DEAD, DONE, QUEUED, REFUSED = "dead_letter", "completed", "queued", "refused"


class Wire(Protocol):
    """A connection on which one request was read. What it sends to a client that has left is lost."""

    host: str
    path: str

    async def send(self, *parts: bytes) -> None: ...

    async def pause(self, seconds: float) -> None: ...

    async def hold(self) -> None:
        """Say nothing more until the client leaves."""

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""


Play = Callable[[Wire], Awaitable[None]]


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How the URL ends. `result` and `status` are those of its last fetch in the ledger; `detail` is part of what
    the ledger says about it: for a failure its kind, for a page what was wrong with the body. `requests` is how
    often it is asked, 0 for as often as `retry.attempts` says."""

    result: str
    status: int = 0
    state: str = DONE
    detail: str = ""
    requests: int = 1
    never: bool = False
    """The page is never asked for: `result` is empty."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`robots` serves the host's robots.txt; without it there is none (404). `watched` is the path whose ending
    is told, where the first one only leads there."""

    name: str
    about: str
    ends: Ending
    play: Play | None = None
    robots: Play | None = None
    watched: str = "/"
    scheme: str = "http"
    port: int = 0
    prepare: Callable[[], object] | None = None
    """Makes what is sent, before anybody asks for it."""

    def host(self, number: int | None = None) -> str:
        label = self.name if number is None else f"{self.name}.{number}"
        return f"{label}.{DOMAIN}"

    def origin(self, number: int | None = None) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{self.host(number)}{port}"


def page(status: int = 200, state: str = DONE, detail: str = "") -> Ending:
    return Ending(result="fetched", status=status, state=state, detail=detail)


def fails(kind: str, requests: int = 0, status: int = 0, state: str = DEAD) -> Ending:
    return Ending(result="failed", status=status, state=state, detail=kind, requests=requests)


def moved(status: int = 302) -> Ending:
    return Ending(result="redirected", status=status)


def endless() -> Ending:
    return fails("endless_redirect", 1, 599)


def withheld(kind: str, state: str = QUEUED) -> Ending:
    """robots.txt fails in this way, so the page has to wait, or is refused with its host."""
    return Ending(result="", state=state, detail=kind, requests=0, never=True)


def says(*parts: bytes) -> Play:
    """Sends these bytes and closes."""

    async def play(wire: Wire) -> None:
        await wire.send(*parts)

    return play


def says_and_holds(*parts: bytes) -> Play:
    async def play(wire: Wire) -> None:
        await wire.send(*parts)
        await wire.hold()

    return play


def repeats(part: bytes, *, first: bytes = b"", pause: float = 0.0) -> Play:
    """Sends the same bytes for ever, `pause` seconds apart."""

    async def play(wire: Wire) -> None:
        await wire.send(first)
        while True:
            await wire.send(part)
            if pause:
                await wire.pause(pause)

    return play


def head(*lines: bytes, status: bytes = b"200 OK") -> bytes:
    """A response head of HTML, with these lines more."""
    return b"\r\n".join([b"HTTP/1.1 " + status, b"Content-Type: text/html", *lines, b"\r\n"])


def whole(body: bytes, *lines: bytes, status: bytes = b"200 OK") -> bytes:
    return head(b"Content-Length: %d" % len(body), *lines, status=status) + body
