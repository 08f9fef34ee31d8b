"""One virtual host of the synthetic web: its pages and what each of them links to.

Pure, and deterministic from `Traits`. The pages form a tree under the home page; features hang further URLs
on it. Every link that is not part of a tree leads to something that was surely discovered before (home,
siblings, children of an ancestor), so each URL has exactly one discoverer and one depth, whatever order a
crawl takes. Nothing here may break that: `WebPlan.expected` would no longer be exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import NamedTuple

import msgspec

from skitter.testing.features import Feature, Kind, Rules

BRANCH = 8
LONG_CHAIN_HOPS = 8
SITEMAP = "/sitemap.xml"
REDIRECT_STATUSES = (301, 302, 307, 308)
GUEST = re.compile(r"/guest/(0|[1-9][0-9]{0,8})[lr]\.html")

# Kinds whose links a crawler follows; every other kind ends where it is.
FOLLOWED = frozenset({Kind.PAGE, Kind.FLAKY, Kind.DUPLICATE, Kind.FRAMESET, Kind.SITEMAP})


class Link(NamedTuple):
    """To a path on a host, by the host's index. A plain tuple: a page has some thirty of them."""

    host: int
    path: str
    nofollow: bool = False
    tag: str = "a"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of the site. `fails` counts the 500s before it answers; -1 means it always fails."""

    path: str
    number: int
    kind: Kind = Kind.PAGE
    status: int = 200
    target: Link | None = None
    fails: int = 0
    original: str = ""


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan decided about a host. `fan` are the hosts it alone introduces, `siblings` those that
    were introduced together with it; `rules` is None when its robots.txt is never to be had."""

    index: int
    seed: int
    hosts: int
    pages: int
    features: frozenset[Feature]
    rules: Rules | None
    siblings: range
    fan: range
    flaky_failures: int
    listed: int = 0
    """Pages that only the host's sitemap names."""
    robots_names_sitemap: bool = False


def mix(*numbers: int) -> int:
    """A well-spread 32-bit hash, ten times as fast as seeding a `Random`."""
    value = 0x9E3779B9
    for number in numbers:
        value = ((value ^ number) * 0x85EBCA6B + 0x6A09E667) & 0xFFFFFFFF
        value ^= value >> 15
    return value


class Site:
    def __init__(self, traits: Traits) -> None:
        self.traits = traits
        trunk = _trunk(traits.pages)
        self.tree = trunk.tree
        self._places = trunk.places
        self.pages = trunk.pages.copy()
        self.extra: dict[str, list[Link]] = {}
        self._rng = Random(mix(traits.seed, traits.index))
        # what `Link(...)` does, in half the time
        self._tree_links = [tuple.__new__(Link, (traits.index, path, False, "a")) for path in self.tree]
        self._add_ruled_paths()
        for feature, grow in _GROWERS.items():
            if feature in traits.features:
                grow(self)
        if traits.listed:
            self._add_sitemaps()

    def page(self, path: str) -> Page | None:
        """What lies at the path; any existing host may have placed its one guest page of each kind here."""
        known = self.pages.get(path)
        if known is not None:
            return known
        guest = GUEST.fullmatch(path)
        if guest is None or int(guest[1]) >= self.traits.hosts:
            return None
        return Page(path=path, number=mix(int(guest[1]), len(path)))

    def links(self, page: Page) -> list[Link]:
        """Every link of the page that leads to an http URL, in the order in which it is rendered."""
        if page.original:
            page = self.pages[page.original]
        if page.kind is Kind.SITEMAP:
            return self.extra.get(page.path, [])
        place = self._places.get(page.path)
        if place is None:
            return self._tree_links[:1] + self.extra.get(page.path, [])
        return self._around(place) + self.extra.get(page.path, []) + self._outward(page)

    def add(self, path: str, **fields: object) -> str:
        self.pages[path] = Page(path=path, number=len(self.pages), **fields)  # type: ignore[arg-type]
        return path

    def hang(self, path: str, *, on: str, nofollow: bool = False, tag: str = "a") -> None:
        self.extra.setdefault(on, []).append(Link(self.traits.index, path, nofollow, tag))

    def anchor(self) -> str:
        """The home page or one of its children: near enough to the root for chains to hang on."""
        return self._rng.choice(self.tree[: BRANCH + 1])

    def choose(self, count: int) -> int:
        return self._rng.randrange(count)

    def neighbour(self) -> int:
        """Another host that was introduced together with this one, or itself when it is alone."""
        siblings = self.traits.siblings
        chosen = siblings[self.choose(len(siblings))] if siblings else self.traits.index
        if chosen == self.traits.index and len(siblings) > 1:
            return siblings[(siblings.index(chosen) + 1) % len(siblings)]
        return chosen

    def _around(self, place: int) -> list[Link]:
        """Home and navigation, then the children and, below the navigation, the siblings."""
        links = self._tree_links[: BRANCH + 1] + self._children(place)
        return links + self._children((place - 1) // BRANCH) if place > BRANCH else links

    def _children(self, place: int) -> list[Link]:
        return self._tree_links[place * BRANCH + 1 : place * BRANCH + BRANCH + 1]

    def _outward(self, page: Page) -> list[Link]:
        traits = self.traits
        hosts = list(traits.fan) if page.path == "/" else []
        if traits.siblings:
            first = mix(traits.index, page.number)
            hosts += [traits.siblings[(first + step * 7) % len(traits.siblings)] for step in range(6)]
        return [Link(host, "/") for host in hosts]

    def _add_ruled_paths(self) -> None:
        for ruled in self.traits.rules.ruled_paths if self.traits.rules else ():
            self.hang(self.add(ruled.path), on="/")

    def _add_sitemaps(self) -> None:
        """Every third host has an index of two, one in gzip. Nothing else leads to what they name."""
        listed = [self.add(f"/listed/{number}.html") for number in range(self.traits.listed)]
        root = self.add(SITEMAP, kind=Kind.SITEMAP)
        if self.traits.index % 3 == 0:
            half = len(listed) // 2
            for name, part in (("/sitemap-1.xml", listed[:half]), ("/sitemap-2.xml.gz", listed[half:])):
                self.hang(self.add(name, kind=Kind.SITEMAP), on=root, tag="sitemap")
                self._list(part, name)
        else:
            self._list(listed, root)
        if not self.traits.robots_names_sitemap:
            self.hang(root, on="/", tag="sitemap")

    def _list(self, paths: list[str], sitemap: str) -> None:
        for path in paths:
            self.hang(path, on=sitemap)


class Trunk(NamedTuple):
    """The tree of every host of one size, whatever hangs on it: made once, because a crawl meets hosts by the
    thousand. Never changed."""

    tree: tuple[str, ...]
    places: dict[str, int]
    pages: dict[str, Page]


@lru_cache(maxsize=256)
def _trunk(size: int) -> Trunk:
    tree = tuple(_tree_path(place) for place in range(size))
    places = {path: place for place, path in enumerate(tree)}
    return Trunk(tree, places, {path: Page(path=path, number=place) for path, place in places.items()})


def _tree_path(place: int) -> str:
    """Paths in the styles of the wild; the first child is always a plain file, so that it can be copied."""
    if place == 0:
        return "/"
    section = place % 7
    styles = (
        f"/s{section}/p{place}.html",
        f"/section-{place}/",
        f"/list?view=short&item={place}",
        f"/archive/2024/{section}/{place}.html",
        f"/caf%C3%A9/{place}.html",
    )
    return styles[(place - 1) % len(styles)]


def _grow_redirect(site: Site) -> None:
    status = REDIRECT_STATUSES[site.traits.index % 4]
    target = Link(site.traits.index, site.add("/moved/here.html"))
    site.hang(site.add("/go/once", kind=Kind.REDIRECT, status=status, target=target), on=site.anchor())


def _grow_redirect_across(site: Site) -> None:
    target = Link(site.neighbour(), "/" if site.traits.index % 2 else f"/guest/{site.traits.index}r.html")
    site.hang(site.add("/go/across", kind=Kind.REDIRECT, status=302, target=target), on=site.anchor())


def _add_chain(site: Site, name: str, hops: int) -> None:
    """`hops` redirects in a row; only the first is linked, only the last leads to a page."""
    target = site.add(f"/{name}/end.html")
    for hop in range(hops - 1, -1, -1):
        link, status = Link(site.traits.index, target), REDIRECT_STATUSES[hop % 4]
        target = site.add(f"/{name}/{hop}", kind=Kind.REDIRECT, status=status, target=link)
    site.hang(target, on=site.anchor())


def _grow_loop(site: Site) -> None:
    here = site.traits.index
    for path, other in (("/loop/a", "/loop/b"), ("/loop/b", "/loop/a")):
        site.add(path, kind=Kind.REDIRECT, status=302, target=Link(here, other))
    site.hang("/loop/a", on=site.anchor())


def _grow_flaky(site: Site) -> None:
    fails = 1 + site.traits.index % site.traits.flaky_failures
    site.hang(site.add("/flaky/a.html", kind=Kind.FLAKY, fails=fails), on=site.anchor())


def _grow_duplicate(site: Site) -> None:
    """A copy beside the original and found together with it, so that relative links and depths agree."""
    if len(site.tree) < 2:
        return
    folder, _, name = site.tree[1].rpartition("/")
    copy = site.add(f"{folder}/copy-of-{name}", kind=Kind.DUPLICATE, original=site.tree[1])
    site.hang(copy, on="/")


def _grow_hidden(site: Site) -> None:
    site.hang(site.add("/hidden/nofollow-link.html"), on=site.anchor(), nofollow=True)


def _grow_guest(site: Site) -> None:
    guest = Link(site.neighbour(), f"/guest/{site.traits.index}l.html")
    site.extra.setdefault("/", []).append(guest)


def _leaf(path: str, kind: Kind, status: int = 200, fails: int = 0) -> Callable[[Site], None]:
    def grow(site: Site) -> None:
        site.hang(site.add(path, kind=kind, status=status, fails=fails), on=site.anchor())

    return grow


def _parent(path: str, kind: Kind, tag: str = "a") -> Callable[[Site], None]:
    """A page with one child that nothing else links."""

    def grow(site: Site) -> None:
        site.hang(site.add(path, kind=kind), on=site.anchor())
        site.hang(site.add(f"{path}.child.html"), on=path, tag=tag)

    return grow


def _by_tag(path: str, tag: str) -> Callable[[Site], None]:
    def grow(site: Site) -> None:
        site.hang(site.add(path), on=site.anchor(), tag=tag)

    return grow


_GROWERS: dict[Feature, Callable[[Site], None]] = {
    Feature.REDIRECT: _grow_redirect,
    Feature.REDIRECT_ACROSS: _grow_redirect_across,
    Feature.CHAIN: lambda site: _add_chain(site, "chain", 3),
    Feature.LONG_CHAIN: lambda site: _add_chain(site, "long-chain", LONG_CHAIN_HOPS),
    Feature.LOOP: _grow_loop,
    Feature.MISSING: _leaf("/missing/a.html", Kind.MISSING, 404),
    Feature.GONE: _leaf("/gone/a.html", Kind.GONE, 410),
    Feature.FLAKY: _grow_flaky,
    Feature.BROKEN: _leaf("/broken/a.html", Kind.BROKEN, 500, -1),
    Feature.TEXT: _leaf("/notes/a.txt", Kind.TEXT),
    Feature.PDF: _leaf("/files/report.pdf", Kind.PDF),
    Feature.IMAGE: _leaf("/files/photo", Kind.IMAGE),
    Feature.UNTYPED: _leaf("/untyped/a", Kind.UNTYPED),
    Feature.DUPLICATE: _grow_duplicate,
    Feature.NOFOLLOW_LINK: _grow_hidden,
    Feature.NOFOLLOW_META: _parent("/nofollow/meta", Kind.NOFOLLOW_META),
    Feature.NOFOLLOW_HEADER: _parent("/nofollow/header", Kind.NOFOLLOW_HEADER),
    Feature.FRAMESET: _parent("/frames/set", Kind.FRAMESET, tag="frame"),
    Feature.AREA: _by_tag("/map/area.html", "area"),
    Feature.IFRAME: _by_tag("/embedded/inner.html", "iframe"),
    Feature.GUEST: _grow_guest,
}
