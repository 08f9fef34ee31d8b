"""The sums of a target: so many pages in so much time, and what that takes of network, disk, machines and hosts.

The classic ones of this field: a billion pages a week are 1,650 a second, 165 MB/s and 100 TB. Pure arithmetic;
every figure that is not given is an assumption with a name, and is printed as one.
"""

from __future__ import annotations

from math import ceil

import msgspec

from skitter.plan.prices import Prices

SECONDS_A_MONTH = 30 * 86_400.0


class Assumptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a page and a machine are taken to be. `archived` is the share of a page's bytes that its records take,
    compressed, with indexes and tables. A core reads `pages_a_core` pages a second; `bytes_a_url` are of the
    frontier's disk and `memory_a_url` of its memory. `known` URLs are remembered for each that is fetched."""

    page_bytes: float = 100_000.0
    archived: float = 0.25
    links: float = 50.0
    known: float = 3.0
    pages_a_core: float = 700.0
    cores: int = 8
    bytes_a_url: float = 250.0
    memory_a_url: float = 50.0
    worker_memory: float = 200e6
    delay: float = 1.0
    segment_bytes: float = 1e9


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """`crawling` is paid once, for the time of the crawl; `keeping` every month afterwards."""

    currency: str
    prices: str
    machines: float
    received: float
    requests: float
    crawling: float
    keeping: float


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What so many pages in so many seconds take. `hosts_at_once` is how many hosts must have something to ask
    for at any moment; `puts` are requests to the object store."""

    pages: float
    seconds: float
    pages_a_second: float
    bytes_a_second: float
    links_a_second: float
    received_bytes: float
    archived_bytes: float
    frontier_bytes: float
    frontier_memory: float
    memory: float
    hosts_at_once: float
    cores: float
    machines: int
    segments: int
    puts: int
    cost: Cost | None = None


def target(pages: float, seconds: float, given: Assumptions, prices: Prices | None = None) -> Target:
    rate = pages / seconds
    cores = rate / given.pages_a_core
    machines = max(1, ceil(cores / given.cores))
    archived = pages * given.page_bytes * given.archived
    segments = max(1, ceil(archived / given.segment_bytes))
    known = pages * (1 + given.known)
    found = Target(
        pages=pages,
        seconds=seconds,
        pages_a_second=rate,
        bytes_a_second=rate * given.page_bytes,
        links_a_second=rate * given.links,
        received_bytes=pages * given.page_bytes,
        archived_bytes=archived,
        frontier_bytes=known * given.bytes_a_url,
        frontier_memory=known * given.memory_a_url,
        memory=known * given.memory_a_url + ceil(cores) * given.worker_memory,
        hosts_at_once=rate * given.delay,
        cores=cores,
        machines=machines,
        segments=segments,
        # the segment, its index and its three tables; parts of a large object are requests too
        puts=segments * (4 + ceil(given.segment_bytes / _PART)),
    )
    return found if prices is None else msgspec.structs.replace(found, cost=cost_of(found, prices))


_PART = 16e6


def cost_of(found: Target, prices: Prices) -> Cost:
    hours = found.seconds / 3600
    machines = found.machines * hours * prices.machine_hour
    disk = found.frontier_bytes / 1e9 * prices.disk_gb_month * found.seconds / SECONDS_A_MONTH
    received = found.received_bytes / 1e9 * prices.received_gb
    requests = found.puts / 1000 * prices.put_thousand
    return Cost(
        currency=prices.currency,
        prices=prices.name,
        machines=machines + disk,
        received=received,
        requests=requests,
        crawling=machines + disk + received + requests,
        keeping=found.archived_bytes / 1e9 * prices.stored_gb_month,
    )
