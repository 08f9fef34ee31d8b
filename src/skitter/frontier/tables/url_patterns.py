"""URL patterns: the skeleton of a URL, and the keys of the evidence on it and on its family.

Needed when a page of a host that repeats itself is leased or settled, and for the page that led to it. Patterns
are cached by the URL's key; one that was dropped is made again from the URL. Never decides anything.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from skitter.urls.canonical import host_id, host_of
from skitter.urls.skeleton import Skeleton, skeleton

if TYPE_CHECKING:
    from skitter.frontier.tables.row_cache import RowCache
    from skitter.frontier.tables.transaction import Transaction


class Pattern(NamedTuple):
    """The pattern of URLs of one host. `own` and `family` are keys of evidence."""

    shape: Skeleton
    own: bytes
    family: bytes

    @property
    def host(self) -> bytes:
        """The id of the host."""
        return self.own[:8]


def subject(ident: bytes, name: str) -> bytes:
    return ident + blake2b(name.encode(), digest_size=8).digest()


subject_key = lru_cache(maxsize=4_096)(subject)


def pattern_of(cache: RowCache, ident: bytes, key: bytes, url: str) -> Pattern:
    """The pattern of a URL of the host `ident`."""
    pattern = cache.patterns.get(key)
    if pattern is None:
        shape = skeleton(url)
        family = subject_key(ident, "family " + shape.coarse)
        pattern = cache.patterns[key] = Pattern(shape, subject(ident, shape.fine), family)
    return pattern


def pattern_of_known(tx: Transaction, key: bytes) -> Pattern | None:
    """The pattern of a known URL. Its row is read only if the pattern is not cached."""
    pattern = tx.cache.patterns.get(key)
    if pattern is None and (row := tx.url(key)) is not None:
        pattern = pattern_of(tx.cache, host_id(host_of(row.url)), key, row.url)
    return pattern
