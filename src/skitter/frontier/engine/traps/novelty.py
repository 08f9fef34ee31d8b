"""How new a page is: novel, or much like a page that its host already had.

Asked when a page is settled, after its fingerprint was looked up. A page that resembles one of another host is
novel on its own host: mirrors are no traps. So a resemblance counts only if the original is on the same host, or
if the subject had such pages before. Writes nothing but the host's list of its last texts.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import key_for
from skitter.model import Discovered, Fetched
from skitter.schedule.entries import (
    MOST_FROM_A_LEAF,
    Marks,
    has_own_figures,
    has_own_name,
    has_own_title,
    with_marks,
)
from skitter.schedule.kinds import KINDS
from skitter.schedule.near import distance
from skitter.schedule.traps import SAME_TEMPLATE_BITS, Evidence, PageNovelty, has_tag
from skitter.urls.canonical import host_of
from skitter.urls.keys import host_part
from skitter.urls.skeleton import skeleton

_NO_LETTERS = re.compile(r"[\W\d_]+")
_LETTERS = bytes(code if chr(code).isalpha() else 32 for code in range(256))
_TAG = 4
_ABOUT = 64
_TEXT = 8
_TITLED = _TEXT + _TAG
_TEXTS_KEPT = 16
_NOVEL = PageNovelty.NOVEL
# Pages of these kinds may be entries. Copies, soft 404s and pages that name another as canonical are none.
_ALIKE = (PageNovelty.BARE, PageNovelty.SAME_TEMPLATE, PageNovelty.NEAR, PageNovelty.SAME)


class Resemblance(NamedTuple):
    """What a page resembles. `tag` stands for all pages that resemble each other. `is_here`: the page that it
    resembles is on the same host; `original` is its URL, if known, and `title` its title."""

    novelty: PageNovelty
    tag: bytes
    is_here: bool = False
    original: str = ""
    title: str = ""


def compare_and_remember(
    tx: Transaction, host: HostRow, key: bytes, row: UrlRow, page: Fetched, fresh: Sequence[Discovered]
) -> Resemblance:
    """What the page resembles; its text is remembered in the host's row. `fresh` are its links that were new."""
    found = _compare(tx, host, key, row, page)
    if found.novelty not in _ALIKE:
        return found
    return (
        found._replace(novelty=PageNovelty.ENTRY) if _is_entry(host, row.url, page, found, fresh) else found
    )


def _is_entry(
    host: HostRow, url: str, page: Fetched, found: Resemblance, fresh: Sequence[Discovered]
) -> bool:
    """Whether a page alike is a page of its own: see `schedule/entries.py`. Its marks are noted."""
    if not page.title or page.title == found.title:
        return False
    letters = _letters(page.title)
    marks = Marks(_tag_of(page.title.encode("utf-8", "replace")), _tag_of(letters), page.figures)
    noted = host.novelty.noted
    host.novelty.noted = with_marks(noted, marks)
    # the first page that resembles one of another host has nothing here to differ from
    if not (noted or found.is_here) or not has_own_title(marks, noted):
        return False
    if has_own_figures(marks, noted, has_trap_shape=bool(skeleton(url).shape)):
        return True
    has_name = letters != _letters(found.title) and has_own_name(marks, noted)
    return has_name and brought_here(host, fresh) <= MOST_FROM_A_LEAF


def brought_here(host: HostRow, fresh: Sequence[Discovered]) -> int:
    """How many of the new links lead to pages of the host."""
    return sum([link.host == host.host and KINDS[link.kind].is_page for link in fresh])


def _compare(tx: Transaction, host: HostRow, key: bytes, row: UrlRow, page: Fetched) -> Resemblance:
    if (named := page.canonical) and (known := tx.url(key_for(tx.cache, named))) is not None:
        return Resemblance(PageNovelty.ELSEWHERE, b"", is_here=True, original=known.url)
    title = _title_tag(page)
    if row.near.simhash is None:
        return _of_few_words(tx, host, row, page, title)
    tag = (row.near.of or key)[-_TAG:]
    if host.novelty.soft_404 == tag:
        return Resemblance(PageNovelty.SOFT_404, tag, is_here=True)
    if row.near.of:
        return _near(tx, key, row, page, tag)
    has_same_template = bool(page.title) and _has_same_template(host.novelty.texts, row.near.simhash, title)
    text = row.near.simhash.to_bytes(_TEXT, "big") + title
    host.novelty.texts = (text + host.novelty.texts)[: _TITLED * _TEXTS_KEPT]
    return Resemblance(
        PageNovelty.SAME_TEMPLATE if has_same_template else _NOVEL, tag, is_here=has_same_template
    )


def _of_few_words(tx: Transaction, host: HostRow, row: UrlRow, page: Fetched, title: bytes) -> Resemblance:
    if host.novelty.soft_404 and host.novelty.soft_404 == page.digest[:_TAG]:
        return Resemblance(PageNovelty.SOFT_404, host.novelty.soft_404, is_here=True)
    if _is_copy(page):
        original = _first_copy(tx, page, row.url)
        return Resemblance(PageNovelty.COPY, page.digest[:_TAG], bool(original), original)
    return Resemblance(PageNovelty.BARE if page.digest else PageNovelty.NOVEL, title)


def _near(tx: Transaction, key: bytes, row: UrlRow, page: Fetched, tag: bytes) -> Resemblance:
    novelty = (
        PageNovelty.COPY if _is_copy(page) else PageNovelty.NEAR if row.near.distance else PageNovelty.SAME
    )
    above = tx.url(row.near.of) if host_part(row.near.of) == host_part(key) else None
    if above is None:
        return Resemblance(novelty, tag)
    return Resemblance(novelty, tag, is_here=True, original=above.url, title=above.answer.title)


def _has_same_template(texts: bytes, fingerprint: int, title: bytes) -> bool:
    if title not in texts:
        return False
    return any(
        texts[at + _TEXT : at + _TITLED] == title
        and distance(int.from_bytes(texts[at : at + _TEXT], "big"), fingerprint) <= SAME_TEMPLATE_BITS
        for at in range(0, len(texts), _TITLED)
    )


def novelty_for(seen: Evidence, found: Resemblance, known: bytes = b"") -> PageNovelty:
    """How new the page is to one subject. It is a repeat only of pages that the subject or its host had before;
    `known` are tags of the host's."""
    novelty = found.novelty
    if novelty is _NOVEL:
        return novelty
    if found.is_here or has_tag(seen.tags, found.tag) or has_tag(known, found.tag):
        return novelty
    return _NOVEL


def _is_copy(page: Fetched) -> bool:
    """The worker's step sets `copy` for the first copy of a body only."""
    return page.copy is None and bool(page.digest) and page.size > 0


def _first_copy(tx: Transaction, page: Fetched, url: str) -> str:
    copy = tx.cache.copy_of(page.digest)
    first = copy.url if copy else ""
    return first if first != url and first.startswith(host_of(url) + "/") else ""


def _title_tag(page: Fetched) -> bytes:
    """A tag of the title's letters; of the rough size where there is no title."""
    said = _letters(page.title) or b"%d" % (page.size // _ABOUT)
    return _tag_of(said)


def _tag_of(said: bytes) -> bytes:
    return zlib.crc32(said).to_bytes(_TAG, "big")


def _letters(title: str) -> bytes:
    """The letters of a title, with one space for all between them. ASCII goes by a table: ten times as fast."""
    if not title.isascii():
        return _NO_LETTERS.sub(" ", title).encode("utf-8", "replace")
    bare = title.encode().translate(_LETTERS)
    # a letter at each end, because `split` would drop the spaces there
    return b" ".join((b"x%bx" % bare).split())[1:-1]
