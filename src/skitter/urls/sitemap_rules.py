"""Which URLs a sitemap may name, by where it lies (sitemaps.org, "Sitemap file location"). Pure.

Asked for what sitemaps and feeds name, before admission. A sitemap speaks for its own folder and all below it, on
its own host. One that a host's robots.txt names speaks for all of that host: who knows the robots.txt files is
the frontier, so it decides about those. Never looks at what was crawled.
"""

from __future__ import annotations

import re

from skitter.model import Host
from skitter.urls.canonical import host_of, normalise

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def absolute_loc(loc: str, sitemap: str) -> str | None:
    """The URL that a sitemap means. The standard wants it absolute; a path is resolved all the same, and a host
    name without a scheme gets that of the sitemap, if it is the sitemap's own."""
    if not _SCHEME.match(loc):
        scheme, _, rest = sitemap.partition("://")
        authority = rest.partition("/")[0]
        if loc.partition("/")[0].lower() == authority:
            loc = f"{scheme}://{loc}"
    return normalise(loc, sitemap)


def folder_of(sitemap: str) -> str:
    path = sitemap.partition("?")[0]
    return path[: path.rindex("/") + 1]


def may_speak_for(sitemap: str, url: str, host: Host) -> bool:
    """By where the sitemap lies alone."""
    return host_of(sitemap) == host and url.startswith(folder_of(sitemap))
