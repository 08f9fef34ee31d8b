"""The links of a page as they cross the wire: runs that differ in URL and key alone, in two strings each.

Between `worker/remote.py`, which bundles, and `service/work.py`, which unties. Nine of ten links are known: a key
that is among those told before is never made into a link again. In a busy server 30 links take 36 us to decode
and untie, where structs took 26 to decode and some 17 to be found known. A bundle comes from elsewhere: one whose
strings do not match is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from struct import unpack

import msgspec

from skitter.model import Discovered, Host, UrlKey, Via

_KEY = 16
_HOST = 8
# Keys, in each of two sets: some 20 MB in all.
_MOST = 100_000


class Bundle(msgspec.Struct, frozen=True, array_like=True):
    """`keys` are joined, `urls` are one a line: a normalised URL has no line break."""

    keys: bytes
    urls: str
    host: Host
    depth: int
    via: Via = Via.LINK
    parent: UrlKey | None = None
    hops: int = 0
    priority: int | None = None
    requisite: int = 0


_common = attrgetter(*Bundle.__struct_fields__[2:])


def bundled(links: Iterable[Discovered]) -> list[Bundle]:
    return [_bundle(list(run), common) for common, run in groupby(links, _common)]


def _bundle(run: Sequence[Discovered], common: tuple[object, ...]) -> Bundle:
    keys, urls = b"".join([link.key for link in run]), "\n".join([link.url for link in run])
    return Bundle(keys, urls, *common)  # type: ignore[arg-type]


class Told:
    """Keys of links that accepted pages told of, within their own hosts: telling of them again says nothing new.
    Bounded, by forgetting the older half. Absence means nothing."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._new: set[bytes] = set()
        self._old: set[bytes] = set()

    def among(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that were told."""
        known = self._new.intersection(keys)
        return known | self._old.intersection(keys) if self._old and len(known) < len(keys) else known

    def add(self, keys: Iterable[bytes]) -> None:
        self._new.update(keys)
        if len(self._new) > self._most:
            self._old, self._new = self._new, set()

    def forget(self) -> None:
        self._new, self._old = set(), set()


class Untied:
    """What is left of a page's bundles: the links that may be new, how many others there were, and the keys that
    are told once the page is accepted."""

    def __init__(self, page: UrlKey, bundles: Iterable[Bundle], told: Told) -> None:
        self.links: list[Discovered] = []
        self.known = 0
        self.own: list[bytes] = []
        for bundle in bundles:
            keys = _keys(bundle)
            if bundle.via is not Via.LINK or bundle.keys[:_HOST] != page[:_HOST]:
                self._untie(bundle, keys, range(len(keys)))
                continue
            known = told.among(keys)
            if len(known) == len(keys):
                self.known += len(keys)
                continue
            fresh = [place for place, key in enumerate(keys) if key not in known]
            self.known += len(keys) - len(fresh)
            if fresh:
                self.own += [keys[place] for place in fresh]
                self._untie(bundle, keys, fresh)

    def _untie(self, bundle: Bundle, keys: Sequence[UrlKey], places: Iterable[int]) -> None:
        urls = bundle.urls.split("\n")
        if len(urls) != len(keys):
            raise ValueError(f"{len(urls)} URLs with {len(keys)} keys")
        # Field by field: 0.4 us a link, 0.8 from a dict of what is common.
        host, depth, via, parent = bundle.host, bundle.depth, bundle.via, bundle.parent
        hops, priority, requisite = bundle.hops, bundle.priority, bundle.requisite
        self.links += [
            Discovered(
                url=urls[place],
                key=keys[place],
                host=host,
                depth=depth,
                via=via,
                parent=parent,
                hops=hops,
                priority=priority,
                requisite=requisite,
            )
            for place in places
        ]


def _keys(bundle: Bundle) -> tuple[UrlKey, ...]:
    count, rest = divmod(len(bundle.keys), _KEY)
    if rest or not count:
        raise ValueError(f"{len(bundle.keys)} bytes are no keys")
    return unpack(f"{_KEY}s" * count, bundle.keys)
