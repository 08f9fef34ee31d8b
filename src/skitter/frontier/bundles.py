"""The links of a page in bundles: those that differ in URL and key alone, in two strings.

Made by a worker, straight from what its page says, and taken apart by the frontier only as far as it has to be:
nine of ten links are known by their key, and never become anything else. On a wire 30 links are two strings to
decode instead of thirty structs, and a sixth fewer bytes. A bundle may come from elsewhere: one whose strings do
not match is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from skitter.frontier import bundles_plain
from skitter.model import Bundle, Discovered, Fetched, UrlKey
from skitter.urls.skeleton import section

try:
    from skitter.native.bundles import parted as _parted
    from skitter.native.bundles import picked as _picked
except ImportError:
    from skitter.frontier.bundles_plain import parted as _parted
    from skitter.frontier.bundles_plain import picked as _picked

_KEY = 16
_common = attrgetter(*Bundle.__struct_fields__[2:])


def runs_of(links: Iterable[Discovered]) -> list[list[Discovered]]:
    """Links that differ in URL, key and host alone."""
    return [list(run) for _, run in groupby(links, _common)]


def bundled(links: Iterable[Discovered]) -> tuple[Bundle, ...]:
    return tuple([_bundle(run) for run in runs_of(links)])


def _bundle(run: Sequence[Discovered]) -> Bundle:
    keys, urls = b"".join([link.key for link in run]), "\n".join([link.url for link in run])
    return Bundle(keys, urls, *_common(run[0]))


def check(bundles: Iterable[Bundle]) -> None:
    """Raises ValueError when one is none."""
    for bundle in bundles:
        count, rest = divmod(len(bundle.keys), _KEY)
        if rest or not count:
            raise ValueError(f"{len(bundle.keys)} bytes are no keys")
        if (urls := bundle.urls.count("\n") + 1) != count:
            raise ValueError(f"{urls} URLs with {count} keys")


def untied(bundles: Iterable[Bundle]) -> list[Discovered]:
    return [link for bundle in bundles for link in picked(bundle, range(size(bundle)))]


def size(bundle: Bundle) -> int:
    return len(bundle.keys) // _KEY


def count_links(page: Fetched) -> int:
    """All that the page has, also those that were told before."""
    return sum([len(bundle.keys) for bundle in page.bundles]) // _KEY + page.told_before


def keys_of(bundle: Bundle) -> list[UrlKey]:
    keys = bundle.keys
    return [UrlKey(keys[start : start + _KEY]) for start in range(0, len(keys), _KEY)]


def urls_of(bundle: Bundle) -> list[str]:
    return bundle.urls.split("\n")


def picked(bundle: Bundle, numbers: Sequence[int]) -> list[Discovered]:
    """Some of its links, by their places: 0.3 us each."""
    return _picked(
        bundle.keys,
        bundle.urls,
        numbers,
        Discovered,
        bundle.depth,
        bundle.via,
        bundle.parent,
        bundle.hops,
        bundle.priority,
        bundle.requisite,
    )


def sifted(bundle: Bundle, numbers: Sequence[int], page: str) -> tuple[Bundle, bytes]:
    """The same with these of its links alone. Of the others marks of those within the section that the page lies
    in, but not of the folders that it lies in: from these the frontier learns whether a section has an end
    (`rocks/growth.py`)."""
    part = _parted if bundle.urls.isascii() and page.isascii() else bundles_plain.parted
    keys, urls, marks = part(bundle.keys, bundle.urls, numbers, section(page) if page else "", page)
    return Bundle(keys, urls, *_common(bundle)), marks
