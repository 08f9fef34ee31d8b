"""Sitemaps that go round in circles, never end, blow up, or speak for others.

Each host's robots.txt names its `/sitemap.xml`; the page itself is harmless. What they name lies on hosts that do
not exist, for which they may not speak: nothing of it is asked for.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import lru_cache

from skitter.testing.hostile.case import Case, Wire, head, page, whole

SITEMAP = "/sitemap.xml"
MEGABYTE = 1_000_000
_XMLNS = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 10))
_ENTRY = b"<url><loc>http://far.invalid/%d</loc></url>\n"


async def _robots(wire: Wire) -> None:
    await wire.send(whole(f"Sitemap: http://{wire.host}{SITEMAP}\n".encode()))


def _sitemap(
    name: str, about: str, make: Callable[[], bytes], detail: str, *, kind: bytes = b"text/xml"
) -> Case:
    @lru_cache
    def response() -> bytes:
        body = make()
        lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), b"Content-Type: " + kind]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    async def play(wire: Wire) -> None:
        await wire.send(response() if wire.path == SITEMAP else whole(b"<title>x</title>"))

    return Case(
        name=name,
        about=about,
        play=play,
        robots=_robots,
        watched=SITEMAP,
        ends=page(detail=detail),
        prepare=response,
    )


def urlset(content: bytes, before: bytes = b"") -> bytes:
    return b'<?xml version="1.0"?>\n' + before + b"<urlset " + _XMLNS + b">" + content + b"</urlset>"


def _index(*locs: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs).encode()
    return b"<sitemapindex " + _XMLNS + b">" + entries + b"</sitemapindex>"


def _bomb() -> bytes:
    """A valid beginning, and then a gigabyte of blanks in a megabyte."""
    return (
        gzip.compress(urlset(_ENTRY % 1)[:-9], mtime=0)
        + gzip.compress(b" " * 10 * MEGABYTE, 9, mtime=0) * 100
    )


async def _endless(wire: Wire) -> None:
    if wire.path != SITEMAP:
        await wire.send(whole(b"<title>x</title>"))
        return
    await wire.send(head() + urlset(b"")[:-9])
    number = 0
    while True:
        await wire.send(b"".join([_ENTRY % n for n in range(number, number + 1000)]))
        number += 1000


async def _cycle(wire: Wire) -> None:
    """Two indexes that name themselves and each other."""
    here = f"http://{wire.host}"
    names = _index(f"{here}{SITEMAP}", f"{here}/other.xml", f"{here}/other.xml#again")
    await wire.send(whole(names if wire.path.endswith(".xml") else b"<title>x</title>"))


async def _deep(wire: Wire) -> None:
    """An index in an index in an index, for ever."""
    if not wire.path.endswith(".xml"):
        await wire.send(whole(b"<title>x</title>"))
        return
    number = int(wire.path[1:-4]) if wire.path[1:-4].isdigit() else 0
    await wire.send(whole(_index(f"http://{wire.host}/{number + 1}.xml")))


CASES = (
    _sitemap("sitemap-bomb", "a gigabyte in gzip", _bomb, "the rest is not read", kind=b"application/gzip"),
    _sitemap(
        "sitemap-laughs",
        "entities of entities of entities",
        lambda: urlset(_ENTRY % 1 + b"&l9;", b'<!DOCTYPE x [<!ENTITY l0 "ha">' + _LAUGHS + b"]>"),
        "document type",
    ),
    _sitemap(
        "sitemap-entity",
        "an entity that is a file of ours",
        lambda: urlset(
            b"<url><loc>&f;</loc></url>", b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        ),
        "document type",
    ),
    _sitemap(
        "sitemap-nested", "200,000 nested elements", lambda: urlset(b"<a>" * 200_000), "nested more than"
    ),
    _sitemap(
        "sitemap-tag",
        "an attribute of 3 MB",
        lambda: urlset(b"<url a='" + b"x" * 3 * MEGABYTE + b"'></url>"),
        "a tag or text of more than",
    ),
    _sitemap("sitemap-broken", "XML that breaks off", lambda: urlset(_ENTRY % 1)[:-20], "broken XML"),
    _sitemap("sitemap-html", "an HTML page in its place", lambda: b"<!-- x --><html></html>", "an HTML page"),
    _sitemap("sitemap-binary", "noise", lambda: bytes(range(256)) * 1000, "no sitemap"),
    _sitemap("sitemap-others", "URLs of others", lambda: urlset(_ENTRY % 1), ""),
    Case(
        name="sitemap-endless",
        about="entries without end",
        play=_endless,
        robots=_robots,
        watched=SITEMAP,
        ends=page(detail="cut at sitemaps.max_body"),
    ),
    Case(
        name="sitemap-cycle",
        about="two indexes that name each other",
        play=_cycle,
        robots=_robots,
        watched=SITEMAP,
        ends=page(),
    ),
    Case(
        name="sitemap-deep",
        about="an index in an index in an index; the third is not followed",
        play=_deep,
        robots=_robots,
        watched="/2.xml",
        ends=page(detail="an index within 2 others"),
    ),
)
