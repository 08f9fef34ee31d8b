"""The parts of a URL, for the columns that are made of the `url` column when a table is written. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from skitter.urls.scope import registrable_domain

_URL = re.compile(r"([^:/?#]+)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::([0-9]{1,5}))?([^?#]*)(?:\?([^#]*))?")
_ADDRESS = re.compile(r"\[.*\]|[\d.]+")
NAMES = ("protocol", "host", "tld", "domain", "port", "path", "query")
Parts = tuple[str | None, str | None, str | None, str | None, int | None, str | None, str | None]
_NONE: Parts = (None, None, None, None, None, None, None)


def url_columns(urls: Sequence[str]) -> dict[str, Sequence[str | int | None]]:
    """By the names above."""
    columns = zip(*map(url_parts, urls), strict=True) if urls else [()] * len(NAMES)
    return dict(zip(NAMES, columns, strict=True))


def url_parts(url: str) -> Parts:
    """A part that the URL lacks is none; it has none at all where it is no URL."""
    found = _URL.match(url)
    if found is None:
        return _NONE
    protocol, host, port, path, query = found.groups()
    return protocol, host, *domain_parts(host), int(port) if port else None, path, query


@lru_cache(maxsize=4096)
def domain_parts(host: str) -> tuple[str | None, str | None]:
    """The last label and the registered domain; an address has neither."""
    if not host or _ADDRESS.fullmatch(host):
        return None, None
    return host.rstrip(".").rpartition(".")[2], registrable_domain(host)
