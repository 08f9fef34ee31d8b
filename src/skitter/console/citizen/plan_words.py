"""A plan in words: what is left, how long it takes, what limits it, and the sums of all of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from skitter.console.display.table import table
from skitter.console.display.wording import counted, plain, size, span
from skitter.plan.estimate import Estimate
from skitter.plan.growth import Band
from skitter.plan.target import Assumptions, Cost, Target

_MOST_HOSTS = 10


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """`pages` and `bytes` are there already. `is_measured`: what is assumed of pages is what they were so far."""

    assumed: Assumptions
    estimate: Estimate | None = None
    target: Target | None = None
    folder: str = ""
    hosts: int = 0
    pages: int = 0
    bytes: int = 0
    is_measured: bool = False


def lines_of(planned: Planned) -> Iterator[str]:
    if planned.estimate is not None:
        yield from _estimate(planned, planned.estimate)
        yield ""
    if planned.target is not None:
        yield from _target(planned.target, planned.assumed)
        yield ""
    yield from _assumed(planned)


def _estimate(planned: Planned, found: Estimate) -> Iterator[str]:
    hosts = counted(planned.hosts, "host")
    if planned.folder:
        so_far = f"{counted(planned.pages, 'page')} so far, {size(planned.bytes)} received"
        yield f"{plain(planned.folder)}: {hosts}, {so_far}"
    else:
        yield f"{hosts}, and nothing crawled yet"
    if found.urls.high < 0.5:
        yield "  nothing is left to fetch"
        return
    yield f"  left        {amounts(found.pages)} pages, {_sizes(found.bytes)}"
    yield f"  time        {time_words(found.seconds)}"
    if found.is_open and not found.reaches_limit:
        yield "              for what is known by now: links to any host are followed, so there is no end"
    if found.reaches_limit:
        yield "              until crawl.max_pages is reached"
    for limit in found.limits:
        yield f"  limited by  {limit.words}: {limit.share:.0%} of the time"
    yield from _hosts(found)


def _hosts(found: Estimate) -> Iterator[str]:
    if len(found.hosts) < 2:
        return
    rows = [("host", "URLs", "every", "time", "because of")]
    rows += [
        (
            host.host,
            f"{host.urls.likely:,.0f}",
            f"{host.interval:.3g} s",
            span(host.seconds.likely),
            host.why,
        )
        for host in found.hosts[:_MOST_HOSTS]
    ]
    yield "\nHosts that take longest"
    yield from (f"  {line}" for line in table(rows, right=(1, 2, 3)))


def _target(found: Target, given: Assumptions) -> Iterator[str]:
    yield f"{found.pages:,.0f} pages in {span(found.seconds)}"
    bits = found.bytes_a_second * 8 / 1e9
    rows = [
        ("pages", f"{found.pages_a_second:,.4g} a second"),
        (
            "network",
            f"{size(found.bytes_a_second)}/s ({bits:,.3g} Gbit/s), {size(found.received_bytes)} in all",
        ),
        ("links", f"{found.links_a_second:,.4g} a second to look up, before any is known"),
        ("archive", f"{size(found.archived_bytes)} in {counted(found.segments, 'segment')}"),
        ("frontier", f"{size(found.frontier_bytes)} on disk, {size(found.frontier_memory)} of memory"),
        ("hosts", f"{max(1, found.hosts_at_once):,.0f} with something to ask for at any moment"),
        ("machines", _machines(found, given)),
        ("requests", f"{found.puts:,} to the object store"),
    ]
    yield from (f"  {line}" for line in table(rows))
    if found.cost is not None:
        yield from _cost(found.cost)


def _machines(found: Target, given: Assumptions) -> str:
    cores = f"{found.cores:,.3g} cores busy, {given.cores} a machine"
    return f"{found.machines:,} ({cores}), {size(found.memory)} of memory in all"


def _cost(cost: Cost) -> Iterator[str]:
    currency = plain(cost.currency)
    parts = f"machines {cost.machines:,.2f}, network {cost.received:,.2f}, requests {cost.requests:,.2f}"
    yield f"  crawling  {cost.crawling:,.2f} {currency} ({parts})"
    yield f"  keeping   {cost.keeping:,.2f} {currency} a month, by prices called {plain(cost.prices)!r}"


def _assumed(planned: Planned) -> Iterator[str]:
    given = planned.assumed
    how = "as crawled so far" if planned.is_measured else "assumed"
    pages = f"{size(given.page_bytes)} a page, {given.archived:.0%} of it once archived ({how})"
    machine = f"{given.pages_a_core:,.0f} pages a second and core, {given.links:,.0f} links a page"
    yield f"{pages}; {machine} (assumed)."
    if planned.target is not None and planned.target.cost is not None:
        yield "Prices of your own: skitter plan --example-prices > prices.toml, then --prices prices.toml."


def amounts(band: Band) -> str:
    return f"about {_round(band.likely)} ({_round(band.low)} to {_round(band.high)})"


def _round(value: float) -> str:
    """Three figures are more than is known."""
    if value < 1000:
        return f"{value:,.0f}"
    digits = 10 ** (len(f"{value:.0f}") - 3)
    return f"{round(value / digits) * digits:,}"


def _sizes(band: Band) -> str:
    return f"about {size(band.likely)} ({size(band.low)} to {size(band.high)})"


def time_words(band: Band) -> str:
    return f"about {span(band.likely)} ({span(band.low)} to {span(band.high)})"
