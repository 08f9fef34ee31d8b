"""Whole hosts: robots.txt that is none, Retry-After that is nonsense, names and ports that lead nowhere."""

from __future__ import annotations

from skitter.testing.hostile.case import (
    REFUSED,
    Case,
    Ending,
    Play,
    Wire,
    fails,
    head,
    page,
    repeats,
    says,
    says_and_holds,
    whole,
    withheld,
)
from skitter.testing.hostile.codings import brotli_bomb

REFUSED_PORT, FULL_PORT, BROKEN_TLS_PORT, SILENT_TLS_PORT, DNS_PORT = 81, 82, 443, 444, 8080
HELLO = whole(b"<title>hello</title>")
RULES = b"User-agent: *\nDisallow: /private\n"


def _throttles(name: str, about: str, retry_after: bytes, ends: Ending) -> Case:
    response = whole(b"later", b"Retry-After: " + retry_after, status=b"429 Slow")
    return Case(name=name, about=about, play=says(response), ends=ends)


def _robots(name: str, about: str, robots: Play, ends: Ending) -> Case:
    return Case(name=name, about=about, play=says(HELLO), robots=robots, ends=ends)


def _plain(body: bytes, *lines: bytes, status: bytes = b"200 OK") -> bytes:
    return whole(body, *lines, status=status).replace(b"text/html", b"text/plain", 1)


async def _robots_loop(wire: Wire) -> None:
    await wire.send(head(b"Location: /robots.txt", b"Content-Length: 0", status=b"302 Found"))


async def _robots_bomb(wire: Wire) -> None:
    await wire.send(_plain(brotli_bomb(), b"Content-Encoding: br"))


THROTTLED = fails("throttled", 0, 429)

RETRY_AFTER = (
    _throttles("retry-negative", "Retry-After: -5", b"-5", THROTTLED),
    _throttles("retry-words", "Retry-After: soon", b"soon", THROTTLED),
    _throttles("retry-past", "a Retry-After in the past", b"Tue, 14 Nov 2000 22:14:20 GMT", THROTTLED),
    _throttles("retry-fraction", "Retry-After: 0.5", b"0.5", THROTTLED),
    _throttles(
        "retry-huge",
        "a Retry-After of 30,000 years: one day is waited",
        b"9" * 12,
        fails("throttled", 1, 429, "failed"),
    ),
)

ROBOTS = (
    _robots(
        "robots-giant", "a robots.txt of 10 MB", says(_plain(RULES + b"Disallow: /x\n" * 750_000)), page()
    ),
    _robots("robots-endless", "a robots.txt without end", repeats(b"# more\n" * 5000, first=head()), page()),
    _robots("robots-binary", "a robots.txt of noise", says(_plain(bytes(range(256)) * 400)), page()),
    _robots("robots-html", "a home page as robots.txt", says(HELLO), page()),
    _robots("robots-bomb", "a robots.txt of 250 MB in br", _robots_bomb, page()),
    _robots("robots-loop", "a robots.txt that redirects to itself", _robots_loop, page()),
    _robots("robots-403", "a robots.txt that is forbidden", says(whole(b"no", status=b"403 No")), page()),
    _robots(
        "robots-stalls",
        "a robots.txt that never ends its answer",
        says_and_holds(head(b"Content-Length: 9")),
        withheld("stalled"),
    ),
    _robots(
        "robots-silent",
        "a robots.txt that is never answered",
        says_and_holds(),
        withheld("first_byte_timeout"),
    ),
    _robots(
        "robots-500",
        "a robots.txt that fails for ever",
        says(whole(b"oops", status=b"500 Oops")),
        withheld("server_error"),
    ),
    _robots("robots-garbage", "a robots.txt that is not HTTP", says(b"\0\1\2" * 99), withheld("protocol")),
    _robots("robots-closes", "a robots.txt that closes the connection", says(), withheld("connection_lost")),
)

# No connection comes to a play of theirs: their robots.txt cannot be had, so no page of them is ever asked for.
UNREACHABLE = (
    Case(
        name="refused",
        about="a port where nobody listens",
        port=REFUSED_PORT,
        ends=withheld("connect_refused"),
    ),
    Case(
        name="full",
        about="a port that accepts no connection",
        port=FULL_PORT,
        ends=withheld("connect_timeout"),
    ),
    Case(name="tls-garbage", about="noise instead of a TLS handshake", scheme="https", ends=withheld("tls")),
    Case(
        name="tls-silent",
        about="a TLS handshake that is never answered",
        scheme="https",
        port=SILENT_TLS_PORT,
        ends=withheld("connect_timeout"),
    ),
    Case(name="no-name", about="a name that does not exist", port=DNS_PORT, ends=withheld("dns_not_found")),
    Case(
        name="dns-broken",
        about="name servers that answer with an error",
        port=DNS_PORT,
        ends=withheld("dns_failed"),
    ),
    Case(
        name="dns-silent",
        about="name servers that do not answer",
        port=DNS_PORT,
        ends=withheld("dns_timeout"),
    ),
    Case(
        name="dns-inside",
        about="a public name with a loopback address",
        port=DNS_PORT,
        ends=withheld("address_refused", REFUSED),
    ),
    Case(
        name="dns-metadata",
        about="a public name with a cloud's metadata address",
        port=DNS_PORT,
        ends=withheld("address_refused", REFUSED),
    ),
)

CASES = RETRY_AFTER + ROBOTS + UNREACHABLE
