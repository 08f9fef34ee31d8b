"""The fetch URL: what a page said, as WHATWG serialises it, without fragment, credentials and last dot.

First step of the path: hrefs become URLs here, before admission. What a URL means, its dedup key, is said by
`urls/keys.py`. Never does I/O and never decides whether a URL is wanted.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

import ada_url

from skitter.model import Host

# No segment begins with a dot, nothing is escaped and nothing would be.
_PLAIN = re.compile(r"((?:\.\./)*)((?:[\w-][\w.~-]*/)*[\w-][\w.~-]*/?)", re.ASCII)
# `site.test.` is the name `site.test` written in full (RFC 1034, 3.1). Two dots end no name.
_LAST_DOT = re.compile(r"(https?://[^/]*[^./])\.((?::[0-9]+)?/)")


def normalise(href: str, base: str | None = None) -> str | None:
    """The fetch URL that `href` on a page with base URL `base` stands for; None when it is no http(s) URL."""
    try:
        url: str = ada_url.join_url(base, href) if base else ada_url.normalize_url(href)
    except (ValueError, UnicodeError):
        # lone surrogates cannot be encoded; such a link names nothing a server could know
        return None
    if not url.startswith(("http://", "https://")):
        return None
    # Cut from the result, not from the href: a space before the # is part of the path, at an end it is not.
    url = url.partition("#")[0]
    authority_end = url.index("/", 8)
    if "@" in url[:authority_end]:
        url = _without_credentials(url, authority_end)
    return _without_last_dot(url) if "./" in url or ".:" in url else url


def join_plain(folder: str, href: str) -> str | None:
    """What `normalise` makes of a plain relative href: names and `../` only; None where it is not plain. A
    short cut for nine of ten links of real documentation. `folder` is a normalised URL up to its last
    slash."""
    plain = _PLAIN.fullmatch(href)
    if plain is None or "@" in folder or "#" in folder or _LAST_DOT.match(folder):
        return None
    up, rest = plain[1], plain[2]
    if not up:
        return folder + rest
    end = len(folder) - 1
    root = folder.index("/", 8)
    for _ in range(len(up) // 3):
        end = folder.rfind("/", root, end) if end > root else root
    return folder[: end + 1] + rest


def _without_credentials(url: str, authority_end: int) -> str:
    # A page must not make us log in anywhere, and libcurl would send what stands before the @.
    scheme_end = url.index("//") + 2
    return url[:scheme_end] + url[url.rindex("@", 0, authority_end) + 1 :]


def _without_last_dot(url: str) -> str:
    # Else one server would have two hosts: two queues, two robots.txt, two requests at a time.
    dotted = _LAST_DOT.match(url)
    return url if dotted is None else dotted[1] + dotted[2] + url[dotted.end() :]


def host_of(url: str) -> Host:
    """The origin of a normalised URL."""
    return Host(url[: url.index("/", 8)])


def target_of(url: str) -> str:
    """Path and query of a normalised URL: the request target."""
    return url[url.index("/", 8) :]


def robots_url(host: Host) -> str:
    return host + "/robots.txt"


@lru_cache(maxsize=65_536)
def host_id(host: str) -> bytes:
    """8 bytes that stand for a host in the stores. Keys begin with it, so that all rows of a host lie
    together."""
    return blake2b(host.encode(), digest_size=8).digest()
