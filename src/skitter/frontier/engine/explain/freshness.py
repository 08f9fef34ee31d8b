"""How fresh a crawl's copies are expected to be now: a walk over all pages, in slices.

For `skitter stats --freshness`. The chance that a copy is still what its page says follows from what the page and
its pattern have shown (`schedule/change_rate.py`). Changes nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from skitter.frontier.base import Audited, Freshness, HostFreshness
from skitter.frontier.engine.revisiting.revisit_dates import groups_of, prior_of
from skitter.frontier.engine.revisiting.visit_lessons import chance_current, correction, correction_errors
from skitter.frontier.rows import Audits, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import Cursor
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.trap_tables import host_key
from skitter.model import Host, UrlKey, UrlState
from skitter.schedule.change_rate import error_of_all, rate_of
from skitter.schedule.kinds import KINDS
from skitter.schedule.priority import TIERS, tier_of
from skitter.schedule.revisit import DAY, Purpose, audited_freshness, unpack_visits
from skitter.schedule.visit_value import weight_of
from skitter.urls.canonical import host_id, host_of

_AT_ONCE = 2_000
_MOST_HOSTS = 20


class _Sums:
    def __init__(self) -> None:
        self.pages = 0
        self.weight = self.fresh = self.plain = 0.0
        self.days = self.rate = 0.0

    def add(self, weight: float, fresh: float) -> None:
        self.pages += 1
        self.weight += weight
        self.fresh += weight * fresh
        self.plain += fresh


class _Doubts:
    """What a standard error of the expected freshness is made of. Each page is current or not, by chance. The
    corrections come from so many visits and no more. And the rate of all pages, from which each page's is shrunk,
    may be off: that is most of it while a crawl is young."""

    def __init__(self) -> None:
        self.weight = self.chance = self.exposed = 0.0
        self.forecast = [0.0, 0.0]

    def add(self, weight: float, fresh: float, stale: float, age: float, *, promised: bool) -> None:
        """`stale` is as it was forecast, `fresh` as it is reported; `age` in days."""
        self.weight += weight
        self.chance += weight * weight * fresh * (1 - fresh)
        self.exposed += weight * age * fresh
        self.forecast[promised] += weight * stale

    def error(self, corrections: Sequence[float], rate: float) -> float | None:
        if not self.weight:
            return None
        by_correction = math.hypot(*(s * e for s, e in zip(self.forecast, corrections, strict=True)))
        return math.hypot(math.sqrt(self.chance), by_correction, rate * self.exposed) / self.weight


class FreshnessWalk:
    def __init__(self, cache: RowCache, now: float) -> None:
        """`now` is in the frontier's own time."""
        self._cache = cache
        self._now = now
        self._all = _Sums()
        self._doubts, self._plain_doubts = _Doubts(), _Doubts()
        self._tiers = [_Sums() for _ in range(TIERS)]
        self._hosts: dict[str, _Sums] = {}

    def go_on(self, start: Cursor) -> Cursor | None:
        """The next slice; where to go on."""
        keys = list(itertools.islice(queries.urls(self._cache, None, start), _AT_ONCE + 1))
        for key in keys[:_AT_ONCE]:
            row = self._cache.url(key)
            if row is not None and row.visits and row.state in (UrlState.COMPLETED, UrlState.QUEUED):
                self._add(key, row)
        return keys[_AT_ONCE] if len(keys) > _AT_ONCE else None

    def _add(self, key: UrlKey, row: UrlRow) -> None:
        visits = unpack_visits(row.visits)
        if not visits.seen_at or not 200 <= row.answer.status < 300 or not KINDS[row.found.kind].is_page:
            return
        age = max(0.0, self._now - visits.seen_at) / DAY
        groups = groups_of(self._cache, key, row.url)
        prior = prior_of(self._cache, groups)
        stale = 1 - chance_current(self._cache, groups, prior, visits, age)
        fresh = max(0.0, 1 - correction(self._cache, visits) * stale)
        self._all.days += age
        self._all.rate += rate_of(visits.changes, visits.days, prior)
        weight, host = weight_of(row.priority), host_of(row.url)
        promised = visits.purpose == Purpose.PROMISE
        self._doubts.add(weight, fresh, stale, age, promised=promised)
        self._plain_doubts.add(1.0, fresh, stale, age, promised=promised)
        for sums in (self._all, self._tiers[tier_of(row.priority)], self._hosts.setdefault(host, _Sums())):
            sums.add(weight, fresh)

    def result(self) -> Freshness:
        found, everything = self._cache.tally.revisits, self._all
        doubted = correction_errors(self._cache), error_of_all(found.habits.changes, found.habits.days)
        audited, error = audited_freshness(found.audits, found.audited, found.audited_fresh)
        stalest = sorted(self._hosts.items(), key=lambda item: item[1].fresh - item[1].weight)[:_MOST_HOSTS]
        return Freshness(
            pages=everything.pages,
            expected=everything.fresh / everything.weight if everything.weight else None,
            expected_plain=everything.plain / everything.pages if everything.pages else None,
            error=self._doubts.error(*doubted),
            error_plain=self._plain_doubts.error(*doubted),
            by_tier={
                f"F{tier}": sums.fresh / sums.weight for tier, sums in enumerate(self._tiers) if sums.pages
            },
            hosts=tuple(
                HostFreshness(
                    host=host,
                    pages=sums.pages,
                    expected=sums.fresh / sums.weight,
                    audited=_audited(self._cache.habits_of(host_key(host_id(Host(host)))).audits),
                )
                for host, sums in stalest
            ),
            audits=found.audits,
            audited=audited,
            audit_error=error,
            audited_by_tier={
                f"F{tier}": told
                for tier, audits in enumerate(found.audited_tiers)
                if (told := _audited(audits)) is not None
            },
            age=everything.days / everything.pages if everything.pages else None,
            changes_a_day=everything.rate,
        )


def _audited(audits: Audits | None) -> Audited | None:
    if audits is None:
        return None
    fresh, error = audited_freshness(audits.count, audits.weight, audits.fresh)
    if fresh is None or error is None:
        return None
    return Audited(audits=audits.count, fresh=fresh, error=error)
