"""Regions: from where hosts are asked. What was measured lies in the rows of hosts; who is alive is in memory.

Asked at every lease of a worker with a region, and told of every answer to one. A crawl without regions pays a
look at an empty name. Never gives a host to two, and never lets one starve: who has waited long goes to anybody.
"""

from __future__ import annotations

from skitter.frontier.rows import HostRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Failed, NotModified, Outcome
from skitter.schedule.regions import PATIENCE, is_near, measured, region_of

# A region counts as alive for so long (s) after one of its workers asked for work.
_ALIVE = 60.0
# Hosts of other regions that one call looks at in vain.
MOST_PASSED_OVER = 2_000
_MOST_REGIONS = 16


class Regions:
    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}

    def asks(self, worker: str, now: float) -> str:
        """A worker asks for work; its region, where that matters: it has one, and there is another."""
        region = region_of(worker)
        if not region:
            return ""
        self._asked_at[region] = now
        self._asked_at = {name: at for name, at in self._asked_at.items() if now - at < _ALIVE}
        return region if len(self._asked_at) > 1 else ""

    def is_for(self, tx: Transaction, host: HostRow, region: str) -> bool:
        """Whether a host that is ready is to be asked from there."""
        chosen = host.policy.region if host.policy is not None else None
        if chosen in self._asked_at:
            return chosen == region
        if tx.now - tx.cache.earliest_start(host) > PATIENCE:
            return True
        return is_near(region, host.regions or {}, self._asked_at)

    def heard(self, tx: Transaction, host: HostRow, outcome: Outcome) -> None:
        """An answer to a worker with a region, under the lease that it has."""
        region = region_of(host.lease.worker) if host.lease is not None else ""
        result = outcome.result
        if not region or (isinstance(result, Failed) and not result.status):
            return
        seconds = outcome.ended_at - outcome.sent_at
        known = host.regions
        if known is None:
            known = host.regions = {}
        if region in known or len(known) < _MOST_REGIONS:
            known[region] = measured(known.get(region), seconds)
        figures = tx.tally.regions
        if region in figures or len(figures) < _MOST_REGIONS:
            requests, in_all, size = figures.get(region, (0, 0.0, 0))
            received = 0 if isinstance(result, NotModified) else result.size
            figures[region] = (requests + 1, in_all + seconds, size + received)
