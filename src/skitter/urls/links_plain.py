"""Of a page's resolved links: which are followed, and which targets the page has. Pure.

Defines what the kernel in C says (native/python/hrefs.c), and is used where none was built: see `links.py`. Each
target once; the first link to it counts, among those followed the first that may be.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.model import Host, Link, UrlKey

Resolved = tuple[str, UrlKey, Host]


def select_followed(
    url: str, links: Sequence[Link], resolved: Sequence[Resolved | None]
) -> tuple[bytes, str]:
    """Keys and URLs of what the page `url` lets us follow, of resolved links, as a `Bundle` has them."""
    found: dict[str, UrlKey] = {}
    for link, one in zip(links, resolved, strict=True):
        if one is None or one[0] in found or one[0] == url or (link.rel and "nofollow" in link.rel):
            continue
        found[one[0]] = one[1]
    return b"".join(found.values()), "\n".join(found)


def list_targets(links: Sequence[Link], resolved: Sequence[Resolved | None]) -> tuple[tuple[str, Link], ...]:
    """As `LinkReader.targets`, of links that were resolved."""
    found: dict[str, Link] = {}
    for link, one in zip(links, resolved, strict=True):
        if one is not None and one[0] not in found:
            found[one[0]] = link
    return tuple(found.items())
