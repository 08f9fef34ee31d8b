"""A link's address as a page writes it, made ready to be compared and resolved, but not resolved.

The hottest code of reading a page after the parser itself: it runs for every distinct href. It drops what no
crawler follows, and must never change which resource an address means.
"""

from __future__ import annotations

import re

# URL standard 4.4: C0 controls and spaces at the ends, tabs and newlines anywhere, are not part of a URL.
_EDGE = "".join(map(chr, range(0x21)))
_INSIDE = {ord("\t"): None, ord("\n"): None, ord("\r"): None}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_REFRESH = re.compile(
    r"[\t\n\f\r ]*(?:(?P<seconds>[0-9]+)|(?=\.))[0-9.]*(?:\Z|(?=[\t\n\f\r ;,]))"
    r"[\t\n\f\r ]*[;,]?[\t\n\f\r ]*(?P<rest>.*)",
    re.DOTALL,
)
_URL_EQUALS = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)


def clean_href(raw: str) -> str:
    """Without what WHATWG strips and without its fragment; empty when it is not for a crawler to follow."""
    if raw.isprintable():
        href = raw.strip(" ")
    else:
        href = raw.strip(_EDGE).translate(_INSIDE)
    if "#" in href:
        href = without_fragment(href)
    if ":" in href and (scheme := _SCHEME.match(href)) and scheme[0].lower() not in ("http:", "https:"):
        return ""
    return href


def without_fragment(href: str) -> str:
    """A space before the # belongs to the address, and at the end it would be stripped: so it is escaped."""
    href = href[: href.index("#")]
    if not href.endswith(" "):
        return href
    bare = href.rstrip(" ")
    return bare + "%20" * (len(href) - len(bare)) if bare else ""


def parse_refresh(content: str) -> tuple[int, str] | None:
    """The seconds and the URL of a meta refresh (HTML 4.2.5.3); an empty URL means the page itself."""
    found = _REFRESH.match(content)
    if not found:
        return None
    rest = found["rest"]
    if named := _URL_EQUALS.match(rest):
        rest = rest[named.end() :]
    if rest[:1] in ("'", '"'):
        rest = rest[1:].partition(rest[0])[0]
    seconds = int((found["seconds"] or "0")[:9])  # a thousand digits are as far away as nine
    return seconds, rest.strip(_EDGE).translate(_INSIDE)
