"""Redirects: without end, without a target, and to where a crawler must not go."""

from __future__ import annotations

from skitter.testing.hostile.case import (
    DOMAIN,
    Case,
    Ending,
    Play,
    Wire,
    endless,
    fails,
    head,
    moved,
    page,
    says,
    whole,
)

HELLO = b"<title>hello</title>"


def _to(location: bytes) -> bytes:
    return head(b"Location: " + location, b"Content-Length: 0", status=b"302 Found")


def _sends(name: str, about: str, location: bytes, ends: Ending) -> Case:
    return Case(name=name, about=about, play=says(_to(location)), ends=ends)


async def _grows(wire: Wire) -> None:
    await wire.send(_to((wire.path.rstrip("/") + "/x").encode()))


async def _relative(wire: Wire) -> None:
    await wire.send(_to(b"there") if wire.path == "/" else whole(HELLO))


async def _refreshes(wire: Wire) -> None:
    other = b"/b" if wire.path == "/" else b"/"
    await wire.send(whole(b"<meta http-equiv=refresh content='0; url=%s'>" % other))


def _loop(other: str) -> Play:
    async def play(wire: Wire) -> None:
        await wire.send(_to((other if wire.path == "/" else "/").encode()))

    return play


async def _ping(wire: Wire) -> None:
    """To the other of the two hosts and back, with the number that a host may carry."""
    here, there = ("ping", "pong") if wire.host.startswith("ping") else ("pong", "ping")
    await wire.send(_to(f"http://{wire.host.replace(here, there, 1)}/".encode()))


CASES = (
    Case(
        name="redirect-grows",
        about="a redirect to a longer path, for ever",
        play=_grows,
        watched="/x/x/x/x/x",
        ends=endless(),
    ),
    Case(
        name="redirect-loop",
        about="two URLs that redirect to each other",
        play=_loop("/b"),
        watched="/b",
        ends=endless(),
    ),
    _sends("redirect-self", "a redirect to itself", b"/", endless()),
    Case(name="ping", about="two hosts that redirect to each other: the first", play=_ping, ends=moved()),
    Case(
        name="redirect-relative", about="a relative Location", play=_relative, watched="/there", ends=page()
    ),
    Case(
        name="redirect-two",
        about="two different Location headers",
        play=says(head(b"Location: /a", b"Location: /b", b"Content-Length: 0", status=b"302 Found")),
        ends=fails("protocol", 2, 302),
    ),
    Case(
        name="redirect-nowhere",
        about="a redirect without Location",
        play=says(head(b"Content-Length: 0", status=b"302 Found")),
        ends=fails("bad_redirect", 1, 302),
    ),
    _sends("redirect-empty", "an empty Location", b"", fails("bad_redirect", 1, 302)),
    _sends(
        "redirect-script",
        "Location: javascript:alert(1)",
        b"javascript:alert(1)",
        fails("bad_redirect", 1, 302),
    ),
    _sends(
        "redirect-file", "Location: file:///etc/passwd", b"file:///etc/passwd", fails("bad_redirect", 1, 302)
    ),
    _sends(
        "redirect-idna",
        "a Location whose name breaks IDNA",
        b"http://xn--a\xcc\x88-.test/",
        fails("bad_redirect", 1, 302),
    ),
    _sends(
        "redirect-port", "a Location with port 99999", b"http://x.test:99999/", fails("bad_redirect", 1, 302)
    ),
    _sends("redirect-long", "a Location of 20,000 characters", b"/" + b"x" * 20_000, moved()),
    _sends(
        "redirect-userinfo",
        "a Location with a password in it",
        f"http://user:secret@redirect-userinfo.{DOMAIN}/in".encode(),
        moved(),
    ),
    _sends(
        "redirect-inside", "a redirect to an address of the inner network", b"http://10.0.0.1:8080/", moved()
    ),
    Case(
        name="refresh-loop",
        about="two pages that refresh to each other",
        play=_refreshes,
        watched="/b",
        ends=page(),
    ),
)

PONG = Case(
    name="pong", about="two hosts that redirect to each other: the second", play=_ping, ends=endless()
)
"""Found by its partner; it is no seed."""
