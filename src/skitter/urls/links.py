"""From the hrefs of a page to the distinct URLs it lets us follow.

Between parsing and admission. Nearly all hrefs are plain: names in folders, paths from the root, URLs of hosts
with simple names, queries of parameters that are known to be kept. The kernel in C resolves and hashes those at
0.4 us each. What the others resolve to is remembered, by folder unless they say it all themselves, because pages
repeat each other's navigation: a look-up is 0.1 us, resolving and hashing 4 to 12 us. All memory is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from skitter.model import Bundle, Host, Link, UrlKey, Via
from skitter.urls.canonical import host_of, joined, normalise
from skitter.urls.keys import Keys
from skitter.urls.links_plain import Resolved

__all__ = ["LinkReader", "Resolved", "discovered", "followed", "told"]

_Known = dict[str, Resolved | None]
_resolve_plain: (
    Callable[
        [Sequence[Link], str, str, bytes, bool, set[str], _Known, _Known],
        tuple[list[Resolved | None], list[int]],
    ]
    | None
)
try:
    from skitter.native.hrefs import followed, told
    from skitter.native.hrefs import resolve as _resolve_plain
except ImportError:
    from skitter.urls.links_plain import followed, told

    _resolve_plain = None

_GENERATION = 20_000
_OF_FOLDER = 10_000
_PARAMETERS = 10_000
_LONGEST_PARAMETER = 40
_WEB = ("http://", "https://")
# Stands for every folder: of hrefs that mean the same in all of them.
_ANY = ""
# Empty, `?x`, `#x`, also behind the base's own scheme: relative to the document, not to its folder.
_OF_DOCUMENT = re.compile(r"[\0-\x20]*(?:[a-zA-Z\t\n\r]+:)?[\0-\x20]*(?:[?#]|\Z)")


_UNSEEN = ("", UrlKey(b""), Host(""))


class LinkReader:
    """Two generations of folders, as in any cheap approximation of an LRU: a folder that is used moves to the
    young one. About twice `_GENERATION` hrefs are remembered at most, of which a single folder is
    forgotten between two pages once it has more than `_OF_FOLDER`: as many as one page may have.

    Parameters that are kept with any value are learnt from the URLs that go the long way; the kernel takes
    queries of no others. All are forgotten when there are `_PARAMETERS`."""

    def __init__(self, keys: Keys) -> None:
        self._key_of, self._prefix = keys.key_of, keys.prefix
        self._resolve_plain = _resolve_plain if keys.keeps_plain_paths else None
        self._others = not keys.folds_hosts
        self._is_kept = keys.keeps
        self._kept: set[str] = set()
        self._young: dict[str, _Known] = {}
        self._old: dict[str, _Known] = {}
        self._size = 0

    def resolve(self, base: str, links: Sequence[Link]) -> list[Resolved | None]:
        """What each of the links stands for on a page with that base; None where it is nothing to fetch."""
        folder = _folder(base)
        known = self._of_folder(folder)
        if self._resolve_plain is None or not folder.startswith(_WEB):
            found: list[Resolved | None] = [None] * len(links)
            odd: Sequence[int] = range(len(links))
        else:
            host = host_of(folder)
            anywhere = self._of_folder(_ANY)
            found, odd = self._resolve_plain(
                links, folder, host, self._prefix(host), self._others, self._kept, known, anywhere
            )
        for place in odd:
            found[place] = self._recalled(known, folder, base, links[place].href)
        return found

    def discover(
        self, page: UrlKey, url: str, depth: int, base: str, links: Sequence[Link]
    ) -> tuple[Bundle, ...]:
        """What the page `url` at `depth` points at, each URL once, itself and nofollow links left out."""
        return discovered(page, url, depth, links, self.resolve(base, links))

    def targets(self, base: str, links: Sequence[Link]) -> tuple[tuple[str, Link], ...]:
        """Every link with what it resolves to, each target once, whether or not it may be followed."""
        return told(links, self.resolve(base, links))

    def needed(
        self, page: UrlKey, url: str, depth: int, base: str, hrefs: Iterable[str], level: int
    ) -> tuple[Bundle, ...]:
        """What `url` needs to look as it does, each URL once: as deep as it is itself, for it is part of it."""
        folder = _folder(base)
        known = self._of_folder(folder)
        found: dict[str, UrlKey] = {}
        for href in hrefs:
            resolved = self._recalled(known, folder, base, href)
            if resolved is not None and resolved[0] != url:
                found[resolved[0]] = resolved[1]
        if not found:
            return ()
        keys, urls = b"".join(found.values()), "\n".join(found)
        return (Bundle(keys, urls, depth, Via.REQUISITE, page, requisite=level),)

    def _of_folder(self, folder: str) -> _Known:
        if self._size >= _GENERATION:
            self._old, self._young, self._size = self._young, {}, 0
        known = self._young.get(folder)
        if known is None:
            known = self._young[folder] = self._old.pop(folder, {})
            self._size += len(known) + 1
        if len(known) > _OF_FOLDER:
            self._size -= len(known)
            known.clear()
        return known

    def _recalled(self, known: _Known, folder: str, base: str, href: str) -> Resolved | None:
        if href.startswith(_WEB):
            # sites that link themselves in full have a folder a page: 63 links took 365 us, and take 13
            known, folder, base = self._of_folder(_ANY), _ANY, ""
        resolved = known.get(href, _UNSEEN)
        return self._learn(known, folder, base, href) if resolved is _UNSEEN else resolved

    def _learn(self, known: _Known, folder: str, base: str, href: str) -> Resolved | None:
        plain = joined(folder, href) if folder.startswith(_WEB) else None
        url = plain or normalise(href, base)
        resolved = None if url is None else (url, self._key_of(url), host_of(url))
        if url is not None and "?" in url:
            self._learn_parameters(url.partition("?")[2])
        if plain is None and _OF_DOCUMENT.match(href):
            return resolved
        known[href] = resolved
        self._size += 1
        return resolved

    def _learn_parameters(self, query: str) -> None:
        for part in query.split("&"):
            name = part.partition("=")[0]
            if name in self._kept or len(name) > _LONGEST_PARAMETER or not self._is_kept(name):
                continue
            if len(self._kept) >= _PARAMETERS:
                self._kept.clear()
            self._kept.add(name)


def discovered(
    page: UrlKey, url: str, depth: int, links: Sequence[Link], resolved: Sequence[Resolved | None]
) -> tuple[Bundle, ...]:
    """As `LinkReader.discover`, of links that were resolved."""
    keys, urls = followed(url, links, resolved)
    return (Bundle(keys, urls, depth + 1, parent=page),) if keys else ()


def _folder(base: str) -> str:
    # <base href="mailto:x"> is legal, and such a base has no folders
    return base[: base.partition("?")[0].rindex("/") + 1] if base.startswith(_WEB) else base
