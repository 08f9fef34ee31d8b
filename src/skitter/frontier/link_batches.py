"""The links of a page in batches: links that differ in URL and key alone are two strings.

A worker makes them straight from what its page says. The frontier unpacks only what it must: nine of ten links
are known by their key and never become an object. On the wire 30 links are two strings instead of thirty
structs. A batch may come from outside: `check` refuses one whose strings do not match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from skitter.frontier import link_batches_plain
from skitter.model import Discovered, Fetched, LinkBatch, LinkColumns, UrlKey
from skitter.urls.skeleton import section

try:
    from skitter.native._kernels import select_links, split_batch
except ImportError:
    from skitter.frontier.link_batches_plain import select_links, split_batch

_KEY = 16
_common = attrgetter(*LinkBatch.__struct_fields__[2:-1])


def runs_of(links: Iterable[Discovered]) -> list[list[Discovered]]:
    """Links that differ in URL, key and host alone."""
    return [list(run) for _, run in groupby(links, _common)]


def pack(links: Iterable[Discovered]) -> tuple[LinkBatch, ...]:
    return tuple([_pack_run(run) for run in runs_of(links)])


def _pack_run(run: Sequence[Discovered]) -> LinkBatch:
    keys, urls = b"".join([link.key for link in run]), "\n".join([link.url for link in run])
    return _with_columns(LinkBatch(keys, urls, *_common(run[0])), _columns_of(run))


def _with_columns(link_batch: LinkBatch, columns: LinkColumns | None) -> LinkBatch:
    return link_batch if columns is None else replace(link_batch, columns=columns)


def _columns_of(run: Sequence[Discovered]) -> LinkColumns | None:
    lastmod, rel = tuple([link.lastmod for link in run]), tuple([link.rel for link in run])
    changefreq, form = tuple([link.changefreq for link in run]), tuple([link.form for link in run])
    if not (any(rel) or any(changefreq) or any(form)) and all(at is None for at in lastmod):
        return None
    return LinkColumns(
        lastmod=lastmod,
        rel=rel,
        changefreq=changefreq if any(changefreq) else (),
        form=form if any(form) else (),
    )


def check(link_batches: Iterable[LinkBatch]) -> None:
    """Raises ValueError for a batch whose keys and URLs are not equally many."""
    for link_batch in link_batches:
        count, rest = divmod(len(link_batch.keys), _KEY)
        if rest or not count:
            raise ValueError(f"{len(link_batch.keys)} bytes are no keys")
        if (urls := link_batch.urls.count("\n") + 1) != count:
            raise ValueError(f"{urls} URLs with {count} keys")
        for column in _filled(link_batch.columns):
            if len(column) != count:
                raise ValueError(f"a column of {len(column)} with {count} keys")


def _filled(columns: LinkColumns | None) -> list[Sequence[object]]:
    """Those that hold something."""
    return [] if columns is None else [one for one in msgspec.structs.astuple(columns) if one]


def unpack(link_batches: Iterable[LinkBatch]) -> list[Discovered]:
    return [link for link_batch in link_batches for link in select(link_batch, range(size(link_batch)))]


def size(link_batch: LinkBatch) -> int:
    return len(link_batch.keys) // _KEY


def count_links(page: Fetched) -> int:
    """All links of the page, also those that its worker left out because they were sent before."""
    return sum([len(link_batch.keys) for link_batch in page.link_batches]) // _KEY + page.already_sent


def keys_of(link_batch: LinkBatch) -> list[UrlKey]:
    keys = link_batch.keys
    return [UrlKey(keys[start : start + _KEY]) for start in range(0, len(keys), _KEY)]


def urls_of(link_batch: LinkBatch) -> list[str]:
    return link_batch.urls.split("\n")


def select(link_batch: LinkBatch, numbers: Sequence[int]) -> list[Discovered]:
    """Some of its links, by their places."""
    links = _select_alike(link_batch, numbers)
    columns = link_batch.columns
    if columns is None:
        return links
    return [
        replace(
            link,
            lastmod=columns.lastmod[number] if columns.lastmod else None,
            priority=columns.priority[number] if columns.priority else link.priority,
            rel=columns.rel[number] if columns.rel else "",
            changefreq=columns.changefreq[number] if columns.changefreq else "",
            form=columns.form[number] if columns.form else "",
        )
        for number, link in zip(numbers, links, strict=True)
    ]


def _select_alike(link_batch: LinkBatch, numbers: Sequence[int]) -> list[Discovered]:
    return select_links(
        link_batch.keys,
        link_batch.urls,
        numbers,
        Discovered,
        link_batch.depth,
        link_batch.via,
        link_batch.parent,
        link_batch.hops,
        link_batch.priority,
        link_batch.kind,
        link_batch.nesting,
    )


def split(link_batch: LinkBatch, kept: Sequence[int], page: str) -> tuple[LinkBatch, bytes]:
    """The batch with the links at the places `kept` alone, and the ends of the keys of the others, joined: of
    those within the section that `page` lies in, but not of its own folders. From these the frontier learns
    whether a section has an end (`engine/traps/endless_sections.py`)."""
    is_ascii = link_batch.urls.isascii() and page.isascii()
    split_strings = split_batch if is_ascii else link_batches_plain.split_batch
    within = section(page) if page else ""
    keys, urls, left_out = split_strings(link_batch.keys, link_batch.urls, kept, within, page)
    kept_batch = LinkBatch(keys, urls, *_common(link_batch))
    return _with_columns(kept_batch, _columns_at(link_batch.columns, kept)), left_out


def _columns_at(columns: LinkColumns | None, kept: Sequence[int]) -> LinkColumns | None:
    """As `split` leaves links: in their order, each once."""
    if columns is None:
        return None
    numbers, given = sorted(set(kept)), msgspec.structs.astuple(columns)
    return LinkColumns(*[tuple([one[i] for i in numbers]) if one else () for one in given])
