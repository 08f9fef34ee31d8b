"""The settings of one worker, computed from the settings of its crawl. Nothing else changes them.

Between a pool and its workers. The operator's limits are of the whole crawl; here they are divided among the
workers that this machine runs. A worker that joins from elsewhere gets the crawl's settings as they are.
"""

from __future__ import annotations

from msgspec.structs import replace

from skitter.settings import FetchSettings, Settings

# With so many workers the committer alone keeps the crawl's own core busy: it takes 150 to 300 us for a page that
# takes a worker 500 to 600. Estimated, not measured: there were two cores. With fewer the crawl's own process is
# one of the workers.
_COMMITTER_ALONE_FROM = 4
# Seconds. A lease only guards against a worker process that hangs: it cannot outlive its crawl, and its death is
# noticed at once. On a machine that was overloaded fivefold leases of 2 s kept running out.
_SHORTEST_LEASE = 60.0


def has_own_worker(workers: int) -> bool:
    """Whether the crawl's own process is one of so many workers."""
    return workers < _COMMITTER_ALONE_FROM


def processes_for(workers: int) -> int:
    """Worker processes to start beside the crawl's own process."""
    return max(0, workers - 1) if has_own_worker(workers) else workers


def settings_of_worker(settings: Settings) -> Settings:
    """Settings of one of the `crawl.workers` workers of a crawl: an equal part of each limit, and leases that are
    long enough."""
    lease = max(settings.frontier.lease_duration, _SHORTEST_LEASE)
    return replace(
        settings,
        fetch=_divided(settings.fetch, settings.crawl.workers),
        frontier=replace(settings.frontier, lease_duration=lease),
    )


def _divided(fetch: FetchSettings, among: int) -> FetchSettings:
    return replace(
        fetch,
        concurrency=max(1, fetch.concurrency // among),
        connections=max(1, fetch.connections // among),
        body_memory=max(1, fetch.body_memory // among),
    )
