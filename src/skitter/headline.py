"""The headline: one sentence that says how a crawl does, and what it waits for or what sets its pace.

Made here and nowhere else, for the dashboard, the live display and `skitter stats`. `look` gathers what the
sentence is made of, `headline_of` words it. Reads no clock and decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from skitter.frontier.base import Frontier, HostOutlook, Stats
from skitter.model import Refusal
from skitter.settings import CrawlSettings

# Hosts that a headline is made of: those that are leased, and as many that are next.
LOOKED_AT = 200
_MOST_REASONS = 2
_SOON, _TODAY = 60.0, 72_000.0
# Ready hosts that nobody has leased: below this it is the time between two looks of the workers.
_MANY_READY = 10
_USUAL_DEPTH = CrawlSettings().max_depth


class Doing(StrEnum):
    """What a crawl does, in one word."""

    EMPTY = "empty"
    STOPPED = "stopped"
    PAUSED = "paused"
    CLOSING = "closing"
    COMPLETE = "complete"
    LIMIT = "limit"
    IDLE = "idle"
    WAITING = "waiting"
    CRAWLING = "crawling"


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """`next_at` is when something can be asked next, while the crawl waits."""

    doing: Doing
    sentence: str
    next_at: float | None = None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a headline is made of. `is_running`: a process works in its folder. `pause` is why it is paused.
    `workers` is how many asked for work lately (None: unknown), `in_flight` and `concurrency` are of
    requests, `rate` is in pages a second (None: unknown)."""

    now: float
    stats: Stats
    hosts: Sequence[HostOutlook] = ()
    is_running: bool = True
    pause: str = ""
    is_closing: bool = False
    max_pages: int = 0
    workers: int | None = None
    in_flight: int = 0
    concurrency: int = 0
    rate: float | None = None
    folder: str = "DIR"


async def look(frontier: Frontier) -> tuple[Stats, list[HostOutlook]]:
    return await frontier.stats(), await frontier.outlook(limit=LOOKED_AT)


def headline_of(seen: Seen) -> Headline:
    """The first that holds: what keeps everything from being asked comes before what keeps some hosts."""
    stats = seen.stats
    queued = sum(stats.tiers)
    leased = stats.hosts["active"]
    if not sum(stats.urls.values()):
        return _said(Doing.EMPTY, "Nothing to do yet: the crawl has no seeds.")
    if seen.is_closing:
        return _said(Doing.CLOSING, f"Stopping: finishing {_requests(seen.in_flight)} in flight.")
    if seen.pause:
        return _said(Doing.PAUSED, f"Paused: {seen.pause}; {_urls(queued)} queued.")
    if seen.max_pages and stats.pages >= seen.max_pages:
        return _said(
            Doing.LIMIT, f"Stopped at the limit of {_n(seen.max_pages, 'page')}; {_urls(queued)} queued."
        )
    if stats.next_at is None and not leased:
        return _complete(stats)
    if not seen.is_running:
        return _stopped(seen, queued)
    if not leased and seen.workers == 0 and stats.next_at is not None and stats.next_at <= seen.now:
        why = f"Idle: {_urls(queued)} queued, and no worker asks for them (skitter worker --join)."
        return _said(Doing.IDLE, why)
    if not leased and stats.next_at is not None and stats.next_at > seen.now:
        return _waiting(seen, stats.next_at)
    return _crawling(seen, leased)


def _said(doing: Doing, sentence: str, next_at: float | None = None) -> Headline:
    return Headline(doing=doing, sentence=sentence, next_at=next_at)


def _complete(stats: Stats) -> Headline:
    dead, traps = stats.urls["dead_letter"], stats.refusals.get("trap", 0)
    but = [_n(dead, "dead letter")] * bool(dead) + [f"{_urls(traps)} taken for a trap"] * bool(traps)
    if stats.renderings is not None and stats.renderings.failed:
        but.append(f"{_n(stats.renderings.failed, 'page')} that could not be rendered")
    but += over_defaults(stats.over_defaults).values()
    if but:
        listed = " and ".join(", ".join(but).rsplit(", ", 1))
        return _said(Doing.COMPLETE, f"Complete but for {listed}.")
    return _said(Doing.COMPLETE, "Complete: nothing is left to fetch.")


def over_defaults(refused: Mapping[str, int]) -> dict[Refusal, str]:
    """In words, what limits have cut off that nobody chose."""
    words = {
        Refusal.DEPTH: f"further than {_USUAL_DEPTH} links from a seed",
        Refusal.BUDGET: "over the budget of their hosts",
    }
    return {
        reason: f"{_urls(refused[reason])} {said}" for reason, said in words.items() if refused.get(reason)
    }


def _stopped(seen: Seen, queued: int) -> Headline:
    left = _n(queued, "URL") + (" is" if queued == 1 else " are") + " queued"
    waits = seen.stats.urls["failed"]
    retries = f", {waits:,} to be tried again" if waits else ""
    return _said(Doing.STOPPED, f"Not running: {left}{retries}; skitter crawl --into {seen.folder} goes on.")


# -- waiting


def _waiting(seen: Seen, next_at: float) -> Headline:
    reasons = list(_reasons(seen))
    sentence = f"Waiting: {', '.join(reasons)}; {_next(next_at, seen.now)}."
    return _said(Doing.WAITING, sentence, next_at)


def _reasons(seen: Seen) -> Iterator[str]:
    """The most frequent first; hosts that fail before those that only keep to their delay."""
    waiting = [host for host in seen.hosts if not host.is_leased]
    over = "over " if len(waiting) >= LOOKED_AT else ""
    groups = Counter(_reason(host) for host in waiting)
    ranked = sorted(groups.items(), key=lambda item: (item[0][0] == _DELAY, -item[1]))
    for (one, many), count in ranked[:_MOST_REASONS]:
        yield f"{over}{count:,} {f'host {one}' if count == 1 else f'hosts {many}'}"
    if len(ranked) > _MOST_REASONS:
        rest = sum(count for _, count in ranked[_MOST_REASONS:])
        yield f"{rest:,} more for other reasons"
    if not ranked:
        retries = seen.stats.urls["failed"]
        yield f"{_n(retries, 'URL')} to be tried again" if retries else "for work that is being prepared"


_DELAY = "keeps to its delay"
_CLOSED = {
    "quiet": ("has quiet hours", "have quiet hours"),
    "spent": ("has had its load of the day", "have had their load of the day"),
}
_WORDS = {
    "connect_refused": ("refuses connections", "refuse connections"),
    "connect_timeout": ("cannot be reached", "cannot be reached"),
    "dns_not_found": ("has no address", "have no address"),
    "dns_failed": ("has a name server that fails", "have a name server that fails"),
    "dns_timeout": ("has a name server that does not answer", "have a name server that does not answer"),
    "address_refused": ("has an address that may not be asked", "have an address that may not be asked"),
    "first_byte_timeout": ("does not answer in time", "do not answer in time"),
    "stalled": ("does not answer in time", "do not answer in time"),
    "total_timeout": ("does not answer in time", "do not answer in time"),
    "connection_lost": ("hangs up", "hang up"),
    "tls_expired": ("has an expired certificate", "have an expired certificate"),
    "tls_untrusted": ("has a certificate of an unknown issuer", "have a certificate of an unknown issuer"),
    "tls_name": ("has a certificate for another name", "have a certificate for another name"),
    "tls_handshake": ("cannot speak TLS with us", "cannot speak TLS with us"),
}


def _reason(host: HostOutlook) -> tuple[str, str]:
    """Why it is not asked, of one host and of many."""
    if host.failure:
        kind, _, detail = host.failure.partition(": ")
        what = " to robots.txt" if host.is_of_robots else ""
        status = detail.removeprefix("status ").removeprefix("robots.txt answered ")
        if status.isdecimal():
            return f"answers {status}{what}", f"answer {status}{what}"
        if kind in _WORDS:
            return _WORDS[kind]
        named = kind.replace("_", " ")
        return f"backs off after a failure ({named}){what}", f"back off after a failure ({named}){what}"
    if host.closed:
        return _CLOSED[host.closed]
    if host.is_crowded:
        return "shares a busy address", "share a busy address (politeness.address_rate)"
    return _DELAY, "keep to their delay"


def _next(at: float, now: float) -> str:
    wait = at - now
    if wait < _SOON:
        return f"next in {max(1, round(wait))} s"
    when = datetime.fromtimestamp(at, UTC)
    return f"next at {when:%H:%M} UTC" if wait < _TODAY else f"next at {when:%Y-%m-%d %H:%M} UTC"


# -- crawling


def _crawling(seen: Seen, leased: int) -> Headline:
    rate = "" if seen.rate is None else f" {_rate(seen.rate)} pages a second"
    return _said(Doing.CRAWLING, f"Crawling{rate}: {_pace(seen, leased)}.")


def _pace(seen: Seen, leased: int) -> str:
    if seen.concurrency and seen.in_flight >= seen.concurrency:
        return f"fetch.concurrency sets the pace, all {seen.concurrency:,} requests are in flight"
    asked = [host for host in seen.hosts if host.is_leased]
    ready = sum(not host.is_leased and host.next_start <= seen.now for host in seen.hosts)
    if ready >= max(_MANY_READY, len(asked)):
        over = "over " if ready >= LOOKED_AT else ""
        return f"the workers set the pace, {over}{ready:,} hosts are ready and wait for one"
    hosts = asked or list(seen.hosts)
    if not hosts:
        return "hosts are being prepared"
    return f"{_n(max(leased, 1), 'host')} {'sets' if leased <= 1 else 'set'} the pace, {_spacing(hosts)}"


def _spacing(hosts: Sequence[HostOutlook]) -> str:
    """What most of them have in common."""
    ((delay, why), count), *_ = Counter((host.delay, host.delay_why) for host in hosts).most_common(1)
    most = "" if count == len(hosts) else "most "
    if not delay:
        return f"{most}asked one request after the other"
    return f"{most}asked every {delay:.3g} s ({why})"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 9.95 else f"{rate:.1f}"


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _urls(count: int) -> str:
    return _n(count, "URL")


def _requests(count: int) -> str:
    return _n(count, "request")
