"""A URL as two things: the fetch URL (what the page said) and the dedup key (what it means).

First step of the path: hrefs become `Discovered` values here, before admission. The fetch URL is the WHATWG
serialisation without fragment and credentials; the key hashes a stricter form with tracking and session
parameters dropped and the query sorted. Never does I/O and never decides whether a URL is wanted.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

import ada_url

from skitter.model import Host, UrlKey

_TRACKING = re.compile(
    r"(?:utm_[a-z_]+|gclid|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|igshid|mc_[ce]id|_hs(?:enc|mi)"
    r"|phpsessid|jsessionid|aspsessionid[a-z]*|sessionid|session_id|cfid|cftoken)\Z",
    re.IGNORECASE,
)


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
    return url


def _without_credentials(url: str, authority_end: int) -> str:
    # A page must not make us log in anywhere, and libcurl would send what stands before the @.
    scheme_end = url.index("//") + 2
    return url[:scheme_end] + url[url.rindex("@", 0, authority_end) + 1 :]


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
    """8 bytes that stand for a host in the stores: keyed by it, all of a host lies together."""
    return blake2b(host.encode(), digest_size=8).digest()


def key_of(url: str) -> UrlKey:
    """The dedup key of a normalised URL."""
    slash = url.index("/", 8)
    rest = url[slash:]
    question = rest.find("?")
    if question >= 0:
        rest = rest[:question] + _canonical_query(rest[question + 1 :])
    # surrogates cannot occur: ada serialises to ASCII
    return UrlKey(host_id(url[:slash]) + blake2b(rest.encode(), digest_size=8).digest())


def _canonical_query(query: str) -> str:
    if not query:
        return ""
    if "&" not in query:
        return "" if _TRACKING.match(query.partition("=")[0]) else "?" + query
    kept = [part for part in query.split("&") if part and not _TRACKING.match(part.partition("=")[0])]
    kept.sort()
    return "?" + "&".join(kept) if kept else ""
