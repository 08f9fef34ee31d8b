"""Kinds of pages: of which one a URL is, and where the evidence of that kind and of its family lies.

Asked when a page of a host that repeats itself is leased, when it is settled, and for the page that led to it.
What is remembered by the URL's key is made again from the URL when it was forgotten. Never decides anything.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from skitter.urls.canonical import host_id, host_of
from skitter.urls.skeleton import Skeleton, skeleton

if TYPE_CHECKING:
    from skitter.frontier.rocks.book import Book
    from skitter.frontier.rocks.turn import Turn


class Kin(NamedTuple):
    """A kind of pages of one host."""

    shape: Skeleton
    own: bytes
    family: bytes


def subject(ident: bytes, name: str) -> bytes:
    return ident + blake2b(name.encode(), digest_size=8).digest()


subject_key = lru_cache(maxsize=4_096)(subject)


def kin_of(book: Book, ident: bytes, key: bytes, url: str) -> Kin:
    """Of a URL of the host `ident`. 0.2 us when its lease has asked before, 6 otherwise."""
    kin = book.kinds.get(key)
    if kin is None:
        shape = skeleton(url)
        family = subject_key(ident, "family " + shape.coarse)
        kin = book.kinds[key] = Kin(shape, subject(ident, shape.fine), family)
    return kin


def kin_of_known(turn: Turn, key: bytes) -> Kin | None:
    """Of a URL whose row is read once for many that ask: pages that lead to many others."""
    kin = turn.book.kinds.get(key)
    if kin is None and (row := turn.url(key)) is not None:
        kin = kin_of(turn.book, host_id(host_of(row.url)), key, row.url)
    return kin
