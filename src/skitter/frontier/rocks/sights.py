"""What a page turned out to be: new, or much like another one that its host was known to have.

Asked when a page is settled, after its fingerprint was looked up. A page that resembles one of another host is
new to its own: mirrors are no traps. So a likeness counts where the original lies on the same host, or where the
subject has shown pages of that likeness before. Never writes.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from skitter.frontier.rocks.book import Turn
from skitter.frontier.rocks.rows import HostRow, UrlRow, decode_copy
from skitter.model import Fetched
from skitter.schedule.traps import Evidence, Sight, has_mark
from skitter.urls.canonical import host_of

_NO_LETTERS = re.compile(r"[\W\d_]+")
_MARK = 4
_ABOUT = 64


class Likeness(NamedTuple):
    """`sight` is what the page is where it resembles one of the same subject; `mark` stands for all pages that
    resemble each other; `original` is the URL of the one it resembles, if that is on the same host."""

    sight: Sight
    mark: bytes
    original: str = ""


def likeness(turn: Turn, host: HostRow, key: bytes, row: UrlRow, page: Fetched) -> Likeness:
    original = ""
    if row.simhash is None:
        mark = page.digest[:_MARK] if _is_copy(page) else _title_mark(page)
    else:
        mark = (row.near_of or key)[-_MARK:]
    if row.near_of and row.near_of[:8] == key[:8]:
        above = turn.url(row.near_of)
        original = above.url if above is not None else ""
    elif _is_copy(page):
        original = _first_copy(turn, page, row.url)
    return Likeness(_sight(host, row, page, mark), mark, original)


def _sight(host: HostRow, row: UrlRow, page: Fetched, mark: bytes) -> Sight:
    if host.soft and mark == host.soft:
        return Sight.SOFT_404
    if _is_copy(page):
        return Sight.COPY
    if row.near_of:
        return Sight.NEAR if row.distance else Sight.SAME
    return Sight.BARE if row.simhash is None and page.digest else Sight.NOVEL


def as_seen_by(seen: Evidence, found: Likeness, known: bytes = b"") -> Sight:
    """Alike only to what this subject has had before, or its host: `known` are marks of that."""
    if found.original or has_mark(seen.marks, found.mark) or has_mark(known, found.mark):
        return found.sight
    return Sight.SOFT_404 if found.sight is Sight.SOFT_404 else Sight.NOVEL


def _is_copy(page: Fetched) -> bool:
    """The step names the first copy of every body; it names none when there was one before."""
    return page.copy is None and bool(page.digest) and page.size > 0


def _first_copy(turn: Turn, page: Fetched, url: str) -> str:
    raw = turn.book.store.get("copies", page.digest)
    first = decode_copy(raw).url if raw else ""
    return first if first != url and first.startswith(host_of(url) + "/") else ""


def _title_mark(page: Fetched) -> bytes:
    """Without a title its size has to do, roughly."""
    said = _NO_LETTERS.sub(" ", page.title) or f"{page.size // _ABOUT}"
    return blake2b(said.encode("utf-8", "replace"), digest_size=_MARK).digest()
