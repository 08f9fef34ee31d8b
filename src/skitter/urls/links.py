"""From the hrefs of a page to the distinct URLs it lets us follow.

Between parsing and admission. Pages of one folder repeat each other's navigation, so what an href of a folder
resolves to is remembered: a look-up is 0.2 us, resolving and hashing 6 us, and on real documentation nine of ten
links are found. The memory is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from skitter.model import Discovered, Host, Link, UrlKey
from skitter.urls.canonical import host_of, key_of, normalise

Resolved = tuple[str, UrlKey, Host]
_GENERATION = 20_000
_WEB = ("http://", "https://")
# Empty, `?x`, `#x`, also behind the base's own scheme: relative to the document, not to its folder.
_OF_DOCUMENT = re.compile(r"[\0-\x20]*(?:[a-zA-Z\t\n\r]+:)?[\0-\x20]*(?:[?#]|\Z)")


class LinkReader:
    def __init__(self) -> None:
        # Two generations, as in any cheap approximation of an LRU: what is used moves to the young one.
        self._young: dict[tuple[str, str], Resolved | None] = {}
        self._old: dict[tuple[str, str], Resolved | None] = {}

    def discover(
        self, page: UrlKey, url: str, depth: int, base: str, links: Iterable[Link]
    ) -> tuple[Discovered, ...]:
        """What the page `url` at `depth` points at, each URL once, itself and nofollow links left out."""
        folder = _folder(base)
        found: dict[str, Discovered] = {}
        for link in links:
            if "nofollow" in link.rel:
                continue
            resolved = self._resolve(base, folder, link.href)
            if resolved is None or resolved[0] in found or resolved[0] == url:
                continue
            target, key, host = resolved
            found[target] = Discovered(url=target, key=key, host=host, depth=depth + 1, parent=page)
        return tuple(found.values())

    def _resolve(self, base: str, folder: str, href: str) -> Resolved | None:
        place = (folder, href)
        try:
            return self._young[place]
        except KeyError:
            pass
        if _OF_DOCUMENT.match(href):
            return _resolved(href, base)
        resolved = self._old[place] if place in self._old else _resolved(href, base)
        self._young[place] = resolved
        if len(self._young) >= _GENERATION:
            self._old, self._young = self._young, {}
        return resolved


def _folder(base: str) -> str:
    # <base href="mailto:x"> is legal, and such a base has no folders
    return base[: base.partition("?")[0].rindex("/") + 1] if base.startswith(_WEB) else base


def _resolved(href: str, base: str) -> Resolved | None:
    url = normalise(href, base)
    return None if url is None else (url, key_of(url), host_of(url))
