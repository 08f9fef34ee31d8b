"""A link's address as a page writes it, made ready to be compared and resolved, but not resolved.

Runs for every distinct href of a page. It drops what no crawler follows, and must never change which resource an
address means.
"""

from __future__ import annotations

import re

# URL standard 4.4: C0 controls and spaces at the ends, tabs and newlines anywhere, are not part of a URL.
_EDGE = "".join(map(chr, range(0x21)))
_INSIDE = {ord("\t"): None, ord("\n"): None, ord("\r"): None}
# The WHATWG names that Python has no encoder for under the same name.
_PYTHON_NAMES = {"ISO-8859-8-I": "iso-8859-8", "windows-874": "cp874", "x-mac-cyrillic": "mac-cyrillic"}
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
    """A space or control before the # belongs to the address, and at the end it would be stripped: so it is
    escaped. Tabs and newlines belong to no address."""
    href = href[: href.index("#")]
    if not href or href[-1] > " ":
        return href
    bare = href.rstrip(_EDGE)
    if not bare:
        return bare
    return bare + "".join(f"%{ord(char):02X}" for char in href[len(bare) :] if char not in "\t\n\r")


def in_charset(href: str, charset: str) -> str:
    """With its query percent-encoded in the document's charset, as the URL standard (4.4, "query state") asks
    of documents that are not Unicode. A path is always UTF-8 and is left to whoever resolves."""
    head, question, query = href.partition("?")
    if query.isascii():
        return href
    return head + question + "".join(c if c < "\x80" else _percent_encoded(c, charset) for c in query)


def _percent_encoded(character: str, charset: str) -> str:
    try:
        coded = character.encode(_PYTHON_NAMES.get(charset, charset))
    except UnicodeEncodeError:
        return f"%26%23{ord(character)}%3B"
    except LookupError:
        coded = character.encode("utf-8", "replace")
    return "".join(chr(b) if 0x21 <= b <= 0x7E and b not in b"\"#<>'%" else f"%{b:02X}" for b in coded)


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
