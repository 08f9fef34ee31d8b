"""A web graph with known ranks: hosts of all sizes, links that prefer the famous, and PageRank of every page.

As measured webs have it: sizes of hosts and links to them follow power laws, and most links stay within their
host. A share of the hosts are farms: made by machines, large, full of links to each other, and linked by few.
Made from a seed.
"""

from __future__ import annotations

import bisect
import itertools
import random
from array import array
from dataclasses import dataclass

_DAMPING = 0.85
_ROUNDS = 40


@dataclass
class WebGraph:
    """Pages are numbers; `host_of` says which host each is on, `links` where it leads. `ranks` add up to 1."""

    host_of: list[int]
    links: list[list[int]]
    first_page: list[int]
    ranks: list[float]
    is_farm: list[bool]

    @property
    def pages(self) -> int:
        return len(self.host_of)

    def url(self, page: int) -> str:
        host = self.host_of[page]
        return f"http://h{host}.example/{page - self.first_page[host] or ''}"

    def page(self, url: str) -> int:
        host, _, number = url.removeprefix("http://h").partition(".example/")
        return self.first_page[int(host)] + int(number or 0)


def web_graph(seed: int, hosts: int, farms_share: float = 0.35) -> WebGraph:
    randomly = random.Random(seed)
    is_farm = [randomly.random() < farms_share for _ in range(hosts)]
    sizes = [
        randomly.randrange(50, 250) if farm else min(400, round(4 * randomly.paretovariate(1.1)))
        for farm in is_farm
    ]
    first = [0, *itertools.accumulate(sizes)]
    fame = [randomly.paretovariate(0.8) for _ in range(hosts)]
    for host in range(hosts):
        fame[host] *= 0.01 if is_farm[host] else 1.0
    reach = list(itertools.accumulate(fame))
    host_of = [host for host in range(hosts) for _ in range(sizes[host])]
    farms = [host for host in range(hosts) if is_farm[host]]
    links = [
        _links(page, host_of[page], sizes, first, reach, farms, is_farm, randomly)
        for page in range(len(host_of))
    ]
    return WebGraph(host_of, links, first, _page_rank(links), is_farm)


def _links(
    page: int,
    host: int,
    sizes: list[int],
    first: list[int],
    reach: list[float],
    farms: list[int],
    is_farm: list[bool],
    randomly: random.Random,
) -> list[int]:
    if is_farm[host]:
        # a page of a farm is like any other of it: it leads to any of its own, and to any of other farms
        found = [first[host] + randomly.randrange(sizes[host]) for _ in range(15)]
        found += [first[other] + randomly.randrange(sizes[other]) for other in randomly.choices(farms, k=6)]
        return [to for to in dict.fromkeys(found) if to != page]
    found = [first[host], *(first[host] + int(sizes[host] * randomly.random() ** 2) for _ in range(6))]
    if randomly.random() < 0.6:
        for _ in range(randomly.randrange(1, 6)):
            other = bisect.bisect_left(reach, randomly.random() * reach[-1])
            found.append(first[other] + int(sizes[other] * randomly.random() ** 4))
        if farms and randomly.random() < 0.15:
            found.append(first[randomly.choice(farms)])
    return [to for to in dict.fromkeys(found) if to != page]


def _page_rank(links: list[list[int]]) -> list[float]:
    count = len(links)
    ranks = array("d", [1 / count]) * count
    for _ in range(_ROUNDS):
        lost = sum(ranks[page] for page in range(count) if not links[page])
        base = (1 - _DAMPING + _DAMPING * lost) / count
        after = array("d", [base]) * count
        for page, targets in enumerate(links):
            if targets:
                share = _DAMPING * ranks[page] / len(targets)
                for to in targets:
                    after[to] += share
        ranks = after
    return list(ranks)
