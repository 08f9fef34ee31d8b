"""Pages that are not what they say, or more than anybody wants to parse."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from skitter.testing.hostile.case import REFUSED, Case, Ending, Wire, fails, page

MEGABYTE = 1_000_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20
UNWANTED = fails("type_unwanted", 1, 200, REFUSED)


def _page(
    name: str,
    about: str,
    make: Callable[[], bytes],
    content_type: bytes | None = b"text/html",
    ends: Ending | None = None,
) -> Case:
    @lru_cache
    def response() -> bytes:
        body = make()
        lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body)]
        if content_type is not None:
            lines.append(b"Content-Type: " + content_type)
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    async def play(wire: Wire) -> None:
        await wire.send(response())

    return Case(name=name, about=about, play=play, ends=ends or page(), prepare=response)


def _links() -> bytes:
    return b"".join(b"<a href=//far-%d.invalid/%d>x</a>" % (n % 1000, n) for n in range(100_000))


CASES = (
    _page("image-as-html", "an image that is called HTML", lambda: PNG, ends=UNWANTED),
    _page(
        "html-as-image", "HTML that is called an image", lambda: b"<title>x</title>", b"image/png", UNWANTED
    ),
    _page("binary-as-text", "an image that is called plain text", lambda: PNG, b"text/plain", UNWANTED),
    _page("video", "an hour of video", lambda: PNG * 1000, b"video/mp4", UNWANTED),
    _page("no-type", "no Content-Type at all", lambda: b"<title>x</title>", None),
    _page("type-garbage", "a Content-Type that is none", lambda: b"<title>x</title>", b';;;/\xff="', None),
    _page(
        "type-giant", "a Content-Type of 50 KB", lambda: b"<title>x</title>", b"text/html; x=" + b"y" * 50_000
    ),
    _page(
        "charset-lies",
        "UTF-8 that is called UTF-16",
        lambda: "<title>ж</title>".encode(),
        b"text/html; charset=utf-16",
    ),
    _page(
        "charset-unknown",
        "a charset that nobody knows",
        lambda: b"<title>x</title>",
        b"text/html; charset=klingon",
    ),
    _page("utf-16-bare", "UTF-16 without a mark or a label", lambda: "<title>x</title>".encode("utf-16-le")),
    _page("nested", "200,000 nested elements", lambda: b"<div>" * 200_000),
    _page("attribute", "an attribute of 1 MB", lambda: b"<a href='" + b"x" * MEGABYTE + b"'>x</a>"),
    _page(
        "attributes",
        "100,000 attributes of one element",
        lambda: b"<a " + b"".join(b"a%d " % n for n in range(100_000)) + b">",
    ),
    _page("links", "100,000 links to a thousand hosts", _links),
    _page("nuls", "a page of NULs", lambda: b"<title>x</title>" + bytes(MEGABYTE)),
    _page("title", "a title of 2 MB", lambda: b"<title>" + b"t " * MEGABYTE),
    _page("bases", "100,000 base elements", lambda: b"<base href='http://['>" * 100_000),
    _page("entities", "2 MB of ampersands", lambda: b"&" * (2 * MEGABYTE)),
    _page("comment", "a comment that never ends", lambda: b"<!--" + b"-" * (2 * MEGABYTE)),
    _page("formatting", "formatting elements that are never closed", lambda: b"<b><i><u><p>" * 50_000),
)
