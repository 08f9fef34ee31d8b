"""The headline of a crawl that runs in this process: what `headline.py` is made of, gathered from its parts."""

from __future__ import annotations

from skitter.committer.door import CommitterDoor
from skitter.frontier.base import Frontier
from skitter.headline import Headline, Seen, headline_of, look
from skitter.telemetry import Metric, Telemetry


async def headline_now(
    frontier: Frontier,
    committer: CommitterDoor,
    telemetry: Telemetry,
    now: float,
    *,
    is_closing: bool = False,
    workers: int | None = None,
) -> Headline:
    """Some 2 ms with 400 hosts to look at. The gauges of `telemetry` are taken as they are."""
    stats, hosts = await look(frontier)
    return headline_of(
        Seen(
            now=now,
            stats=stats,
            hosts=hosts,
            pause=committer.why_paused,
            is_closing=is_closing or committer.is_closing,
            max_pages=telemetry.max_pages,
            workers=workers,
            in_flight=telemetry.value(Metric.IN_FLIGHT),
            concurrency=telemetry.concurrency,
            rate=telemetry.rate(now),
        )
    )
