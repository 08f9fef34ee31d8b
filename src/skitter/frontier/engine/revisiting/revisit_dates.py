"""How long until a page, sitemap or feed is looked at again: the rule in force, its bounds, and what is known.

Between `revisits.py`, which settles visits and sends pages back to their queues, and the formulas in `schedule/`.
Knows the operator's promises. Changes nothing: a date is put into the tables by who asked for it.
"""

from __future__ import annotations

import re

from skitter.frontier.rows import Habits, HostRow, UrlRow
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import host_key
from skitter.frontier.tables.url_patterns import pattern_of
from skitter.model import UrlKey
from skitter.schedule.change_rate import prior_rate, rate_of, rate_of_all
from skitter.schedule.kinds import KINDS
from skitter.schedule.revisit import (
    DAY,
    Bounds,
    RevisitRule,
    Visits,
    bounded,
    days_by_halving,
    days_by_news,
    days_by_value,
    unpack_visits,
)
from skitter.schedule.signals import Trust, days_until_due, days_when_promised
from skitter.schedule.visit_value import due_changes, weight_of
from skitter.settings import Settings
from skitter.settings.durations import seconds_of
from skitter.urls.canonical import host_id, host_of

Groups = tuple[bytes, bytes]
"""Whose habits say what to expect of a page: its pattern's and its host's."""
# Two readings of a sitemap or feed lie an hour apart at least (days).
_BETWEEN_READINGS = 1 / 24
# What is expected of a file that has been read once: one URL in two days; it counts as one such URL.
_FIRST_NEWS = 0.5
_BELIEVED_AT_FIRST = Trust()


class RevisitDates:
    def __init__(self, settings: Settings) -> None:
        chosen = settings.revisit
        self.rule = RevisitRule(chosen.rule)
        self._fixed = chosen.interval / DAY
        self._bounds = Bounds(chosen.min_age / DAY, chosen.max_age / DAY)
        self._promises = [_promise(words) for words in chosen.fresh_within]
        self._never = [re.compile(expression) for expression in chosen.never]
        self._equal = chosen.equal_weights

    def least(self, row: UrlRow) -> float:
        """Days between two visits of a page, or two readings of a file, at least."""
        return _BETWEEN_READINGS if KINDS[row.found.kind].lists_urls else self._bounds.least

    def days(
        self,
        tx: Transaction,
        host: HostRow,
        row: UrlRow,
        visits: Visits,
        groups: Groups,
        changed: bool,
        promised: float = 0.0,
    ) -> float:
        """The interval until the next visit of a page by the rule, within its bounds. The page itself has just
        `promised` to stay as it is for so many days."""
        match self.rule:
            case RevisitRule.VALUE:
                days = self._by_value(tx, row, visits, groups, promised)
            case RevisitRule.HALVE_DOUBLE:
                days = days_by_halving(visits.interval, changed)
            case _:
                days = self._fixed
        return bounded(days, self.bounds_of(host, row.url))

    def _by_value(
        self, tx: Transaction, row: UrlRow, visits: Visits, groups: Groups, promised: float
    ) -> float:
        rate = rate_of(visits.changes, visits.days, prior_of(tx.cache, groups))
        weight, price = self.weight(row), tx.tally.revisits.price
        if promised and not visits.is_told:
            target = due_changes(price * rate / weight)
            return days_when_promised(target, rate, trust_of(tx.cache, groups), promised)
        if not visits.told_at:
            return days_by_value(rate, weight, price)
        told_after = (visits.told_at - visits.seen_at) / DAY if visits.is_told else None
        listened = heard_days(tx.cache, groups, visits)
        target = due_changes(price * rate / weight)
        return days_until_due(target, rate, trust_of(tx.cache, groups), told_after, listened)

    def days_of_file(self, tx: Transaction, key: UrlKey) -> float:
        """The interval until a sitemap or feed is read again."""
        if self.rule is RevisitRule.FIXED:
            return max(self._fixed, _BETWEEN_READINGS)
        brought = tx.cache.habits_of(key)
        news = (1.0 + brought.changes) / (1.0 / _FIRST_NEWS + brought.days)
        days = days_by_news(news, tx.tally.revisits.price)
        return min(max(days, _BETWEEN_READINGS), self._bounds.most)

    def today(self, tx: Transaction, host: HostRow, key: UrlKey, row: UrlRow) -> float:
        """When a page or file would be due if its date were found with today's price and habits."""
        visits = unpack_visits(row.visits)
        if KINDS[row.found.kind].lists_urls:
            return visits.seen_at + self.days_of_file(tx, key) * DAY
        groups = groups_of(tx.cache, key, row.url)
        return visits.seen_at + self.days(tx, host, row, visits, groups, changed=False) * DAY

    def bounds_of(self, host: HostRow, url: str) -> Bounds:
        bounds = self._bounds
        if host.policy is not None and host.policy.max_age:
            bounds = Bounds(bounds.least, host.policy.max_age / DAY)
        for pattern, days in self._promises:
            if days < bounds.most and pattern.search(url):
                bounds = Bounds(bounds.least, days)
        return bounds

    def is_promised(self, host: HostRow, url: str) -> bool:
        if host.policy is not None and host.policy.max_age:
            return True
        return any(pattern.search(url) for pattern, _ in self._promises)

    def is_never_visited(self, host: HostRow, url: str) -> bool:
        if host.policy is not None and host.policy.max_age == 0:
            return True
        return any(pattern.search(url) for pattern in self._never)

    def weight(self, row: UrlRow) -> float:
        return 1.0 if self._equal else weight_of(row.priority)


def groups_of(cache: RowCache, key: UrlKey, url: str) -> Groups:
    ident = host_id(host_of(url))
    return pattern_of(cache, ident, key, url).own, host_key(ident)


def prior_of(cache: RowCache, groups: Groups) -> float:
    """The rate that a page of these groups is expected to have."""
    everywhere: Habits = cache.tally.revisits.habits
    rate = rate_of_all(everywhere.changes, everywhere.days)
    for group in (groups[1], groups[0]):
        habits = cache.habits_of(group)
        rate = prior_rate(habits.changes, habits.days, rate)
    return rate


def trust_of(cache: RowCache, groups: Groups) -> Trust:
    return cache.habits_of(groups[1]).trust or _BELIEVED_AT_FIRST


def heard_days(cache: RowCache, groups: Groups, visits: Visits) -> float:
    """How many days after the last visit of a page its host's sitemaps were last read; 0: not since then."""
    return max(0.0, (cache.habits_of(groups[1]).heard_at - visits.seen_at) / DAY)


def _promise(words: str) -> tuple[re.Pattern[str], float]:
    duration, _, expression = words.partition(" ")
    seconds = seconds_of(duration)
    assert seconds is not None, "checked when the settings were read"
    return re.compile(expression.strip()), seconds / DAY
