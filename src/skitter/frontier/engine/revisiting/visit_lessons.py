"""What a visit teaches beside the rate of its page: how true its host's word is, and how good our forecast.

For `revisits.py`, within the transaction that settles the visit. Each was forecast: the chance that the page
would be as we have it. What came of the forecasts corrects the freshness that is reported. Plans nothing.
"""

from __future__ import annotations

from skitter.frontier.engine.revisiting.revisit_dates import Groups, heard_days, prior_of, trust_of
from skitter.frontier.rows import Audits, Forecasts, UrlRow
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Fetched, NotModified, Outcome, Result
from skitter.parse.dates import parse_http_date
from skitter.schedule.change_rate import expected_freshness, learn_dated
from skitter.schedule.priority import TIERS, tier_of
from skitter.schedule.revisit import DAY, Purpose, Visits
from skitter.schedule.signals import (
    Trust,
    agrees,
    freshness_when_silent,
    freshness_when_told,
    lesson,
)

# Forecasts count for so many visits a page: by then rates were learnt anew as well.
_VISITS_KEPT = 3
_NO_FORECASTS = Forecasts()


def chance_current(cache: RowCache, groups: Groups, prior: float, visits: Visits, age: float) -> float:
    """That a copy of this age (days) is what its page says, with what its host has said of the page since."""
    fresh = expected_freshness(visits.changes, visits.days, prior, age)
    if not visits.told_at:
        return fresh
    trust = trust_of(cache, groups)
    if visits.is_told:
        return freshness_when_told(fresh, trust)
    heard = min(heard_days(cache, groups, visits), age)
    fresh_when_heard = expected_freshness(visits.changes, visits.days, prior, heard)
    return freshness_when_silent(fresh, fresh_when_heard, trust)


def count_forecast(tx: Transaction, groups: Groups, visits: Visits, days: float, *, changed: bool) -> None:
    """Pages with a promise apart: they are visited whatever they are worth, and far more often."""
    found = tx.tally.revisits
    if not found.forecasts:
        found.forecasts = [Forecasts(), Forecasts()]
    prior = prior_of(tx.cache, groups)
    fresh = chance_current(tx.cache, groups, prior, visits, days)
    forecasts = found.forecasts[visits.purpose == Purpose.PROMISE]
    forecasts.add(1 - fresh, changed=changed, weight=days, kept=_VISITS_KEPT * found.watched)


def correction(cache: RowCache, visits: Visits) -> float:
    """How many pages turned out to have changed, for each that was forecast to."""
    forecasts = cache.tally.revisits.forecasts
    return forecasts[visits.purpose == Purpose.PROMISE].correction if forecasts else 1.0


def correction_errors(cache: RowCache) -> tuple[float, float]:
    """How far the corrections of routine pages and of promised ones may be off."""
    routine, promised = cache.tally.revisits.forecasts or (_NO_FORECASTS, _NO_FORECASTS)
    return routine.error, promised.error


def count_audit(tx: Transaction, groups: Groups, row: UrlRow, weight: float, *, is_fresh: bool) -> None:
    """Of all pages, of the page's tier and of its host."""
    found, of_host = tx.tally.revisits, tx.learn_habits(groups[1])
    found.audits += 1
    found.audited += weight
    found.audited_fresh += weight * is_fresh
    if not found.audited_tiers:
        found.audited_tiers = [Audits() for _ in range(TIERS)]
    of_host.audits = of_host.audits or Audits()
    for audits in (found.audited_tiers[tier_of(row.priority)], of_host.audits):
        audits.add(weight, is_fresh=is_fresh)


def learn_trust(
    tx: Transaction,
    groups: Groups,
    outcome: Outcome,
    row: UrlRow,
    visits: Visits,
    rate: float,
    *,
    changed: bool,
) -> float | None:
    """What a visit says of the host's word: of its sitemaps and of its headers. For how many days the page has
    been as it is by its own header, if that is believed."""
    dated, promised = _header_date(tx, outcome.result), promised_days(outcome.result)
    if not visits.told_at and dated is None and not promised:
        return None
    days = max(0.0, (outcome.ended_at - visits.seen_at) / DAY)
    habits = tx.learn_habits(groups[1])
    trust = habits.trust = habits.trust or Trust()
    if visits.told_at:
        listened = min(heard_days(tx.cache, groups, visits), days)
        trust.learn(lesson(float(visits.is_told), float(changed), rate, days, listened))
    if promised:
        # what it promises now stands for what it promised then: most servers say the same of a page each time
        trust.learn_promise(float(changed), rate, days, promised)
    if dated is None:
        return None
    agreed = agrees(dated, visits.seen_at, outcome.ended_at, changed=changed)
    trust.learn_header(agreed=agreed)
    return (outcome.ended_at - dated) / DAY if agreed and trust.believes_headers else None


def learn_first(tx: Transaction, groups: Groups, outcome: Outcome, row: UrlRow, visits: Visits) -> Visits:
    """A first visit says how long the page has been as it is, where the headers of its host are believed."""
    dated = _header_date(tx, outcome.result)
    if dated is None or not trust_of(tx.cache, groups).believes_headers:
        return visits
    unchanged = max(0.0, outcome.ended_at - dated) / DAY
    changes, days, _ = learn_dated(visits.changes, visits.days, 0.0, unchanged, unchanged)
    return visits._replace(changes=changes, days=days)


def promised_days(result: Result) -> float:
    """For how many days the page has just said that it stays as it is."""
    return result.promised / DAY if isinstance(result, Fetched | NotModified) else 0.0


def _header_date(tx: Transaction, result: Result) -> float | None:
    """When the page changed last by its own header, in the frontier's time."""
    if not isinstance(result, Fetched) or not result.last_modified:
        return None
    at = parse_http_date(result.last_modified)
    return None if at is None else at + tx.cache.skew
