"""`skitter ledger`: what one host was asked, to be sent to a webmaster who wants to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from skitter.console.display.table import table
from skitter.console.display.wording import plain, size
from skitter.errors import UsageError
from skitter.fetch.curl import user_agent
from skitter.folder import CrawlFolder
from skitter.frontier.base import HostFetch, HostLedger
from skitter.seeds import hosts_named
from skitter.settings import Settings
from skitter.wiring import open_frontier

_MOST_DAYS = 60
_LONGEST_ROBOTS = 40


async def ledger(folder: CrawlFolder, settings: Settings, host: str, *, limit: int, as_json: bool) -> str:
    """Of both schemes, where a bare name is given."""
    async with open_frontier(folder, settings, read_only=True) as frontier:
        asked = [await frontier.ledger_of(one, fetches=limit) for one in hosts_named(host)]
    found = [one for one in asked if one is not None]
    if not found:
        raise UsageError(
            f"{host} is not known to this crawl: skitter hosts {folder.path} lists those that are"
        )
    if as_json:
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    return "\n\n".join("\n".join(_lines(one, settings)) for one in found)


def _lines(found: HostLedger, settings: Settings) -> Iterator[str]:
    yield f"{found.host}, asked by {user_agent(settings.identity)}"
    yield f"  {found.pace}"
    if found.first_at is None or found.last_at is None:
        yield "  It was never asked."
    else:
        yield from _sums(found)
        yield from _days(found)
    yield from _robots(found)
    yield from _fetches("Latest errors", found.latest_errors)
    yield from _fetches("Latest requests", found.latest)


def _sums(found: HostLedger) -> Iterator[str]:
    robots = f"{found.robots_requests:,} of them for robots.txt"
    yield f"  {found.requests:,} requests ({robots}), {size(found.bytes)} received"
    yield f"  first {_when(found.first_at or 0)}, last {_when(found.last_at or 0)}"
    yield f"  from addresses: {', '.join(found.addresses) or 'none told'}"
    if found.smallest_gap is not None and found.median_gap is not None:
        promised = f" (promised: {found.required:.3g} s)" if found.required is not None else ""
        gaps = f"smallest {found.smallest_gap:.3f} s{promised}, median {found.median_gap:.3f} s"
        yield f"  gaps between requests: {gaps}"
    answering = f"{found.seconds_answering:,.1f} s of answering"
    yield f"  at most {found.busiest_minute:,} requests in any minute; {answering}"
    yield f"  answers by status: {_counts(found.statuses)}"
    yield f"  errors met: {_counts(found.errors)}"


def _days(found: HostLedger) -> Iterator[str]:
    yield "\nBy day (UTC)"
    rows = [("day", "requests", "received", "errors")]
    rows += [
        (day.day, f"{day.requests:,}", size(day.bytes), f"{day.errors:,}") for day in found.days[-_MOST_DAYS:]
    ]
    yield from (f"  {line}" for line in table(rows, right=(1, 2, 3)))


def _robots(found: HostLedger) -> Iterator[str]:
    read = (
        f", read {_when(found.robots_at)}, good until {_when(found.robots_until)}" if found.robots_at else ""
    )
    yield f"\nrobots.txt in force: {found.robots}{read}"
    lines = found.robots_text.splitlines()
    yield from (f"  | {plain(line)}" for line in lines[:_LONGEST_ROBOTS])
    if len(lines) > _LONGEST_ROBOTS or found.robots_size > len(found.robots_text.encode()):
        yield f"  | ... ({found.robots_size:,} bytes in all)"


def _fetches(heading: str, fetches: Sequence[HostFetch]) -> Iterator[str]:
    if not fetches:
        return
    yield f"\n{heading}"
    rows = [
        (
            _when(fetch.at),
            fetch.url or "(not known any more)",
            str(fetch.status or "none"),
            size(fetch.size),
            f"{fetch.seconds * 1000:.0f} ms",
            fetch.detail,
        )
        for fetch in fetches
    ]
    yield from (f"  {line}" for line in table(rows, right=(3, 4)))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
