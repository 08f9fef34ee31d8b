"""The witness of a frontier: counts what was settled, whichever worker brought it, and who asks for work.

Beside the path, after the commit. It holds figures of the recent past in bounded memory; what must survive is the
frontier's. Never decides anything and never keeps an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skitter.committer.report import count_settled
from skitter.frontier.base import Settled, Settlement
from skitter.model import (
    Failed,
    NotModified,
    Outcome,
    UrlState,
)
from skitter.recent import Roster, Troubles
from skitter.service.metrics.freshness_readings import EstimateReadings, FreshnessReadings
from skitter.service.metrics.readings import Readings
from skitter.telemetry import Metric, Telemetry

if TYPE_CHECKING:
    from skitter.service.metrics.history import History

# What the watch counts: told in place of what the service's own process counted, which need not have a worker.
WATCHED = frozenset(
    (
        Metric.PAGES,
        Metric.REQUISITES,
        Metric.UNCHANGED,
        Metric.REDIRECTS,
        Metric.TRUNCATED,
        Metric.ROBOTS,
        Metric.DUPLICATES,
        Metric.NEAR_DUPLICATES,
        Metric.LINKS,
        Metric.ADDED,
        Metric.ARCHIVED_BYTES,
        Metric.RETRIES,
    )
)


class Watch:
    """2.9 us an outcome."""

    def __init__(self) -> None:
        self.counted = Telemetry(0.0)
        self.troubles = Troubles()
        self.roster = Roster()
        self.readings = Readings()
        self.freshness = FreshnessReadings()
        self.estimate = EstimateReadings()
        self.history: History | None = None
        """While it is recorded; see `service/history.py`."""
        self._unsynced = self._being_synced = _NOTHING

    async def end_walks(self) -> None:
        """Before the store is closed."""
        await self.freshness.end()
        await self.estimate.end()

    def leased(self, worker: str, leases: int, now: float) -> None:
        self.roster.record(worker, now)

    def settled(self, outcomes: Sequence[Outcome], settlements: Sequence[Settlement], now: float) -> None:
        archived = added = 0
        for outcome, settlement in zip(outcomes, settlements, strict=True):
            if settlement.settled is not Settled.STALE:
                archived += self._count(outcome, settlement, now)
                added += settlement.added
        self.counted.count(Metric.ADDED, added)
        if archived:
            self.counted.count(Metric.ARCHIVED_BYTES, archived)
            size, since = self._unsynced
            self._unsynced = (size + archived, since or now)

    def syncing(self) -> None:
        size, since = self._being_synced
        more, later = self._unsynced
        # a sync that failed left its part: the next one has that to do as well
        self._being_synced, self._unsynced = (size + more, since or later), _NOTHING

    def synced(self) -> None:
        self._being_synced = _NOTHING

    def unsynced(self, now: float) -> tuple[int, float]:
        """Bytes of the archive that a power loss would take, and for how long that has been so."""
        size, since = self._being_synced
        more, later = self._unsynced
        since = since or later
        return size + more, max(0.0, now - since) if since else 0.0

    def _count(self, outcome: Outcome, settlement: Settlement, now: float) -> int:
        """How many bytes it has in the archive."""
        counted, result = self.counted, outcome.result
        count_settled(counted, outcome, settlement)
        if isinstance(result, Failed):
            if settlement.state is UrlState.FAILED:
                counted.count_labelled(Metric.RETRIES, result.kind)
            self.troubles.record(outcome.host, result.kind, result.detail, now)
        status = 304 if isinstance(result, NotModified) else result.status
        if status:
            counted.latency.observe(outcome.ended_at - outcome.sent_at)
        return result.record.length if result.record is not None else 0


_NOTHING = (0, 0.0)
