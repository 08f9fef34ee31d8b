"""What a page turned out to be: new, or much like another one that its host was known to have.

Asked when a page is settled, after its fingerprint was looked up. A page that resembles one of another host is
new to its own: mirrors are no traps. So a likeness counts where the original lies on the same host, or where the
subject has shown pages of that likeness before. Writes nothing but the host's memory of texts.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from skitter.frontier.rocks.rows import HostRow, UrlRow, decode_copy
from skitter.frontier.rocks.subjects import key_for
from skitter.frontier.rocks.turn import Turn
from skitter.model import Fetched
from skitter.schedule.near import distance
from skitter.schedule.traps import KIN, Evidence, Sight, has_mark
from skitter.urls.canonical import host_of

_NO_LETTERS = re.compile(r"[\W\d_]+")
_LETTERS = bytes(code if chr(code).isalpha() else 32 for code in range(256))
_MARK = 4
_ABOUT = 64
_TEXT = 8
_TITLED = _TEXT + _MARK
_TEXTS_KEPT = 16
_NOVEL = Sight.NOVEL


class Likeness(NamedTuple):
    """`sight` is what the page is where it resembles one of the same subject; `mark` stands for all pages that
    resemble each other; `is_here` when what it resembles is known to be on the same host, as `original`."""

    sight: Sight
    mark: bytes
    is_here: bool = False
    original: str = ""


def likeness(turn: Turn, host: HostRow, key: bytes, row: UrlRow, page: Fetched) -> Likeness:
    """1 us for a page that is like no other, 10 for one that is."""
    if (named := page.canonical) and (known := turn.url(key_for(turn.book, named))) is not None:
        return Likeness(Sight.ELSEWHERE, b"", is_here=True, original=known.url)
    title = _title_mark(page)
    if row.simhash is None:
        return _of_few_words(turn, host, row, page, title)
    mark = (row.near_of or key)[-_MARK:]
    if host.soft == mark:
        return Likeness(Sight.SOFT_404, mark, is_here=True)
    if row.near_of:
        return _near(turn, key, row, page, mark)
    is_kin = bool(page.title) and _is_kin(host.texts, row.simhash, title)
    text = row.simhash.to_bytes(_TEXT, "big") + title
    host.texts = (text + host.texts)[: _TITLED * _TEXTS_KEPT]
    return Likeness(Sight.KIN if is_kin else _NOVEL, mark, is_here=is_kin)


def _of_few_words(turn: Turn, host: HostRow, row: UrlRow, page: Fetched, title: bytes) -> Likeness:
    if host.soft and host.soft == page.digest[:_MARK]:
        return Likeness(Sight.SOFT_404, host.soft, is_here=True)
    if _is_copy(page):
        original = _first_copy(turn, page, row.url)
        return Likeness(Sight.COPY, page.digest[:_MARK], bool(original), original)
    return Likeness(Sight.BARE if page.digest else Sight.NOVEL, title)


def _near(turn: Turn, key: bytes, row: UrlRow, page: Fetched, mark: bytes) -> Likeness:
    sight = Sight.COPY if _is_copy(page) else Sight.NEAR if row.distance else Sight.SAME
    above = turn.url(row.near_of) if row.near_of[:8] == key[:8] else None
    return Likeness(sight, mark, above is not None, above.url if above is not None else "")


def _is_kin(texts: bytes, fingerprint: int, title: bytes) -> bool:
    if title not in texts:
        return False
    return any(
        texts[at + _TEXT : at + _TITLED] == title
        and distance(int.from_bytes(texts[at : at + _TEXT], "big"), fingerprint) <= KIN
        for at in range(0, len(texts), _TITLED)
    )


def as_seen_by(seen: Evidence, found: Likeness, known: bytes = b"") -> Sight:
    """Alike only to what this subject has had before, or its host: `known` are marks of that."""
    sight = found.sight
    if sight is _NOVEL:
        return sight
    if found.is_here or has_mark(seen.marks, found.mark) or has_mark(known, found.mark):
        return sight
    return _NOVEL


def _is_copy(page: Fetched) -> bool:
    """The step names the first copy of every body; it names none when there was one before."""
    return page.copy is None and bool(page.digest) and page.size > 0


def _first_copy(turn: Turn, page: Fetched, url: str) -> str:
    raw = turn.book.store.get("copies", page.digest)
    first = decode_copy(raw).url if raw else ""
    return first if first != url and first.startswith(host_of(url) + "/") else ""


def _title_mark(page: Fetched) -> bytes:
    """Of its letters; without a title the size has to do, roughly."""
    said = _letters(page.title) or b"%d" % (page.size // _ABOUT)
    return zlib.crc32(said).to_bytes(_MARK, "big")


def _letters(title: str) -> bytes:
    """With a space for all between them. In ASCII by a table: 0.3 us for a title, 3 by the pattern."""
    if not title.isascii():
        return _NO_LETTERS.sub(" ", title).encode("utf-8", "replace")
    bare = title.encode().translate(_LETTERS)
    # a letter at each end keeps the spaces there: 0.5 us, where to halve them until none is doubled takes 1.6
    return b" ".join((b"x%bx" % bare).split())[1:-1]
