"""What a crawl has left to do, by its rows: a walk over all hosts, in slices, for `plan/estimate.py`.

Some 10 us a host. Changes nothing and guesses nothing: the arithmetic is the plan's.
"""

from __future__ import annotations

from collections.abc import Callable

from skitter.frontier.engine.load_limits import is_closed
from skitter.frontier.rows import HostRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import Cursor
from skitter.frontier.tables.row_cache import RowCache
from skitter.model import UrlState
from skitter.plan.estimate import Estimate, SoFar, estimate
from skitter.plan.workload import HostWork, Workload
from skitter.schedule.budgets import allowance
from skitter.schedule.priority import REVISITS
from skitter.settings import Settings

_AT_ONCE = 500
# Retries beyond so many are not looked at: theirs are the last dates.
_MOST_RETRIES = 10_000
_SETTLED = (UrlState.COMPLETED, UrlState.GONE, UrlState.DEAD_LETTER)


class WorkWalk:
    def __init__(
        self, cache: RowCache, settings: Settings, now: float, delay_why: Callable[[HostRow], str]
    ) -> None:
        """`now` is in the frontier's own time."""
        self._cache = cache
        self._settings = settings
        self._now = now
        self._delay_why = delay_why
        self._work = Workload()

    def go_on(self, start: Cursor) -> Cursor | None:
        """The next slice; where to go on."""
        rows, go_on = queries.hosts(self._cache, start, _AT_ONCE)
        for row in rows:
            if not row.is_out_of_reach():
                self._work.add(self._work_of(row))
        return go_on

    def _work_of(self, row: HostRow) -> HostWork:
        queued = sum(row.queue.lengths[:REVISITS])
        if row.lease is not None:
            queued += sum(row.lease.pages[:REVISITS])
        parallel = row.policy.parallel if row.policy is not None and row.policy.parallel else 1
        interval = max(self._cache.delay_of(row), row.pace.response_time) / parallel
        growth = row.growth
        return HostWork(
            host=row.host,
            queued=queued,
            interval=interval,
            gap=growth.gap if growth is not None else 0.0,
            opens_in=max(0.0, row.pace.not_before - self._now),
            answers=growth.answers if growth is not None else 0,
            brought=growth.brought if growth is not None else 0,
            recent=growth.recent if growth is not None else 0.0,
            bytes=row.counts.received,
            most=queued + self._room(row),
            why=self._why(row),
        )

    def _room(self, row: HostRow) -> float:
        """How many more URLs its budget lets in."""
        own = row.policy.budget if row.policy is not None else None
        budget = self._settings.politeness.host_budget if own is None else own
        if not budget:
            return float("inf")
        most = budget if own is not None else allowance(budget, row.novelty.novel)
        return max(0, most - row.queue.admitted)

    def _why(self, row: HostRow) -> str:
        if is_closed(row):
            return "quiet hours" if row.pace.closed_why == "quiet" else "its load of the day"
        if row.health.failures:
            return f"it backs off: {row.health.last_failure}"
        return self._delay_why(row)

    def result(self) -> Estimate:
        tally, crawl = self._cache.tally, self._settings.crawl
        last = 0.0
        for at, _ in queries.next_due(self._cache, _MOST_RETRIES):
            last = at
        so_far = SoFar(
            pages=tally.pages,
            settled=sum(tally.urls.get(state, 0) for state in _SETTLED),
            denied=tally.urls.get(UrlState.DENIED, 0),
            requests=tally.fetches - tally.robots_fetches,
            bytes=tally.received,
            retries_in=max(0.0, last - self._now),
            failing=max(self._settings.retry.backoff[:2], default=0.0) if tally.failures else 0.0,
            max_pages=crawl.max_pages,
            is_open=crawl.scope == "any",
        )
        return estimate(self._work.result(), so_far)
