"""How honest sites make their pages findable: lists in pages, with jumps, and trees of folders.

Pure. Nothing may lie deeper than a crawl's usual limit of fifteen links: real lists of hundreds of pages have
jumps, and so do these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from skitter.testing.traps.site import Book

PER_PAGE = 20
JUMPS = (1, 5, 25, 125)


def shelve(
    book: Book, items: Sequence[str], page: Callable[[int], str], *, on: str, per_page: int = PER_PAGE
) -> list[str]:
    """Lists in pages, numbered from 1 by `page`; the first is linked from `on`. Returns the lists."""
    count = max(1, -(-len(items) // per_page))
    lists = [book.add(page(number), 1) for number in range(1, count + 1)]
    for place, target in enumerate(lists):
        book.list(target, *items[place * per_page : (place + 1) * per_page])
        steps = [place + jump * way for jump in JUMPS for way in (-1, 1)]
        book.guide(target, *(lists[step] for step in steps if 0 <= step < count))
    book.guide(on, lists[0])
    return lists


def chain(book: Book, items: Sequence[str]) -> None:
    """Previous and next."""
    for earlier, later in pairwise(items):
        book.guide(earlier, later)
        book.guide(later, earlier)


def spread(size: int, parts: int) -> list[range]:
    """`size` numbers in so many ranges, none empty while there are enough."""
    parts = max(1, min(parts, size))
    bounds = [size * part // parts for part in range(parts + 1)]
    return [range(low, high) for low, high in pairwise(bounds)]
