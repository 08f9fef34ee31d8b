"""Webs of ten shapes for `bench.plan`: hosts with pages, links, sizes, answer times and faults, made from a seed.

A page is a number of its host; 0 is the seed. What a page links to follows from the number alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Links = Callable[[int, random.Random], list[int]]


@dataclass
class Site:
    """`answers_in` is in seconds, `crawl_delay` what its robots.txt asks for. Of its pages a share is `broken`
    for good (404), and a share fails `once` or twice before it answers."""

    name: str
    pages: int
    links: Links
    answers_in: float = 0.05
    size: float = 30_000.0
    crawl_delay: float = 0.0
    broken: float = 0.0
    once: float = 0.0

    @property
    def url(self) -> str:
        return f"http://{self.name}"


@dataclass
class Shape:
    """`cpu` seconds of a single core are spent on each page; `most_pages` is the limit of the crawl."""

    name: str
    sites: Sequence[Site]
    cpu: float = 0.001
    most_pages: int = 0
    by_name: dict[str, Site] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name = {site.url: site for site in self.sites}


def at_random(pages: int, each: int) -> Links:
    """A wiki: links to anywhere, and the same few in every menu."""

    def links(page: int, randomly: random.Random) -> list[int]:
        return [*range(min(pages, 6)), *(randomly.randrange(pages) for _ in range(each))]

    return links


def by_fame(pages: int, each: int) -> Links:
    """Most links lead to what is famous; the rest of the pages is found late. One link goes on to the next."""

    def links(page: int, randomly: random.Random) -> list[int]:
        famous = [int(pages * randomly.random() ** 3) for _ in range(each)]
        return [0, min(page + 1, pages - 1), *famous]

    return links


def as_tree(pages: int, fan_out: int) -> Links:
    """A directory: a page leads to those below it, to the one above and to the first."""

    def links(page: int, randomly: random.Random) -> list[int]:
        below = range(fan_out * page + 1, min(pages, fan_out * page + fan_out + 1))
        return [0, (page - 1) // fan_out if page else 0, *below]

    return links


def as_shop(pages: int, on_a_list: int) -> Links:
    """Lists, which lead to the next few lists and to their products; products lead to others like them."""
    lists = pages // (on_a_list + 1)

    def links(page: int, randomly: random.Random) -> list[int]:
        if page < lists:
            ahead = range(page, min(lists, page + 6))
            first = lists + page * on_a_list
            return [0, lists - 1, *ahead, *range(first, min(pages, first + on_a_list))]
        alike = [min(pages - 1, max(lists, page + randomly.randrange(-30, 30))) for _ in range(4)]
        return [0, (page - lists) // on_a_list, *alike]

    return links


def as_manual(pages: int) -> Links:
    """Chapters with sections: the first page has all chapters, a chapter all its sections, sections go on."""
    chapters = max(2, round(pages**0.5))

    def links(page: int, randomly: random.Random) -> list[int]:
        if page == 0:
            return list(range(1, min(pages, chapters)))
        if page < chapters:
            return [0, *range(chapters + (page - 1), pages, chapters - 1)]
        return [0, 1 + (page - chapters) % (chapters - 1), min(pages - 1, page + chapters - 1)]

    return links


def ten_shapes(seed: int, scale: float = 1.0) -> list[Shape]:
    randomly = random.Random(seed)

    def some(low: int, high: int) -> int:
        return max(10, round(randomly.uniform(low, high) * scale))

    def sites(count: int, size: Callable[[], int], **given: float) -> list[Site]:
        return [_site(f"s{number}.example", size(), randomly, given) for number in range(count)]

    size = some(2_000, 4_000)
    return [
        Shape("a wiki", [Site("wiki.example", size, at_random(size, 12))]),
        Shape("a directory", [Site("tree.example", size, as_tree(size, randomly.randrange(4, 12)))]),
        Shape("a shop", [Site("shop.example", size, as_shop(size, randomly.randrange(10, 40)))]),
        Shape("a manual", [Site("manual.example", size, as_manual(size))]),
        Shape("fame", [Site("blog.example", size, by_fame(size, 15))]),
        Shape("many alike", sites(150, lambda: some(20, 40))),
        Shape(
            "few large, many small", sites(100, lambda: round(10 * randomly.paretovariate(0.9)) % 1_500 + 3)
        ),
        Shape("a slow core", sites(100, lambda: some(20, 80)), cpu=0.04),
        Shape("slow hosts and faults", _faulty(sites(50, lambda: some(20, 100)), randomly)),
        Shape("a page limit", sites(120, lambda: some(20, 200)), most_pages=some(2_000, 4_000)),
    ]


def _site(name: str, pages: int, randomly: random.Random, given: dict[str, float]) -> Site:
    kinds = (
        at_random(pages, 8),
        by_fame(pages, 10),
        as_tree(pages, 5),
        as_shop(pages, 15),
        as_manual(pages),
    )
    size = 30_000 * randomly.lognormvariate(0, 0.7)
    return Site(name, pages, randomly.choice(kinds), size=size, answers_in=randomly.uniform(0.02, 0.4))


def _faulty(sites: list[Site], randomly: random.Random) -> list[Site]:
    for site in sites:
        site.answers_in = randomly.choice((0.1, 0.5, 2.0, 4.0))
        site.crawl_delay = randomly.choice((0.0, 0.0, 2.0, 5.0))
        site.broken, site.once = randomly.uniform(0, 0.1), randomly.uniform(0, 0.03)
    return sites
