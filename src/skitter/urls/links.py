"""From the hrefs of a page to the distinct URLs it lets us follow.

Between parsing and admission. Nearly all hrefs are plain: names in folders, paths from the root, URLs of
hosts with simple names, queries of parameters that are known to be kept. The kernel in C resolves and hashes
those. What the others resolve to is remembered, because pages repeat each other's navigation: by folder, or
for all folders when they are absolute. All memory is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from skitter.model import Host, Link, LinkBatch, TaskKind, UrlKey, Via
from skitter.urls.canonical import host_of, join_plain, normalise
from skitter.urls.keys import Keys
from skitter.urls.links_plain import Resolved
from skitter.urls.rewriting import Rewriting

__all__ = ["LinkReader", "Resolved", "discover_resolved", "list_targets", "select_followed"]

_Known = dict[str, Resolved | None]
_resolve_plain: (
    Callable[
        [Sequence[Link], str, str, bytes, bool, set[str], _Known, _Known],
        tuple[list[Resolved | None], list[int]],
    ]
    | None
)
try:
    from skitter.native._kernels import list_targets, select_followed
    from skitter.native._kernels import resolve_links as _resolve_plain
except ImportError:
    from skitter.urls.links_plain import list_targets, select_followed

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
    """Two generations of folders, a cheap approximation of an LRU: a folder that is used moves to the young one.
    About twice `_GENERATION` hrefs are remembered at most. A folder with more than `_OF_FOLDER` hrefs, as many as
    one page may have, is forgotten between two pages.

    Parameters that are kept with any value are learnt from the URLs that the kernel did not resolve; it resolves
    queries of no others. All are forgotten when there are `_PARAMETERS`."""

    def __init__(self, keys: Keys, rewriting: Rewriting | None = None) -> None:
        self._rewriting = rewriting
        self._key_of, self._prefix = keys.key_of, keys.prefix
        self._resolve_plain = _resolve_plain if keys.keeps_plain_paths and rewriting is None else None
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
            found[place] = self._recall(known, folder, base, links[place].href)
        return found

    def discover(
        self, page: UrlKey, url: str, depth: int, base: str, links: Sequence[Link]
    ) -> tuple[LinkBatch, ...]:
        """What the page `url` at `depth` points at, each URL once, itself and nofollow links left out."""
        return discover_resolved(page, url, depth, links, self.resolve(base, links))

    def targets(self, base: str, links: Sequence[Link]) -> tuple[tuple[str, Link], ...]:
        """Every link with what it resolves to, each target once, whether or not it may be followed."""
        return list_targets(links, self.resolve(base, links))

    def discover_requisites(
        self, page: UrlKey, url: str, depth: int, base: str, hrefs: Iterable[str], level: int
    ) -> tuple[LinkBatch, ...]:
        """What `url` needs to look as it does, each URL once. It is as deep as the page itself."""
        folder = _folder(base)
        known = self._of_folder(folder)
        found: dict[str, UrlKey] = {}
        for href in hrefs:
            resolved = self._recall(known, folder, base, href)
            if resolved is not None and resolved[0] != url:
                found[resolved[0]] = resolved[1]
        if not found:
            return ()
        keys, urls = b"".join(found.values()), "\n".join(found)
        return (LinkBatch(keys, urls, depth, Via.REQUISITE, page, kind=TaskKind.REQUISITE, nesting=level),)

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

    def _recall(self, known: _Known, folder: str, base: str, href: str) -> Resolved | None:
        if href.startswith(_WEB):
            # Sites that link themselves with absolute URLs may have a folder for every page.
            known, folder, base = self._of_folder(_ANY), _ANY, ""
        resolved = known.get(href, _UNSEEN)
        return self._learn(known, folder, base, href) if resolved is _UNSEEN else resolved

    def _learn(self, known: _Known, folder: str, base: str, href: str) -> Resolved | None:
        plain = join_plain(folder, href) if folder.startswith(_WEB) else None
        url = plain or normalise(href, base)
        if url is not None and self._rewriting is not None:
            url = self._rewriting.meant(url)
        resolved = None if url is None else (url, self._key_of(url), host_of(url))
        if url is not None and "?" in url:
            self._learn_parameters(url.partition("?")[2])
        if plain is None and _OF_DOCUMENT.match(href):
            return resolved
        known[href] = resolved
        self._size += 1
        return resolved

    def _learn_parameters(self, query: str) -> None:
        for parameter in query.split("&"):
            name = parameter.partition("=")[0]
            if name in self._kept or len(name) > _LONGEST_PARAMETER or not self._is_kept(name):
                continue
            if len(self._kept) >= _PARAMETERS:
                self._kept.clear()
            self._kept.add(name)


def discover_resolved(
    page: UrlKey, url: str, depth: int, links: Sequence[Link], resolved: Sequence[Resolved | None]
) -> tuple[LinkBatch, ...]:
    """As `LinkReader.discover`, of links that were resolved."""
    keys, urls = select_followed(url, links, resolved)
    return (LinkBatch(keys, urls, depth + 1, parent=page),) if keys else ()


def _folder(base: str) -> str:
    # <base href="mailto:x"> is legal, and such a base has no folders
    return base[: base.partition("?")[0].rindex("/") + 1] if base.startswith(_WEB) else base
