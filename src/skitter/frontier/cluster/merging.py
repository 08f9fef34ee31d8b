"""What all partitions say, as one answer: sums, the busiest of all, the soonest of all.

Pure. Each figure of a partition is of its own hosts and URLs alone, so counts add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TypeVar

from msgspec.structs import replace

from skitter.frontier.base import (
    FilterFigures,
    Freshness,
    Horizon,
    HostView,
    PolitenessLedger,
    RevisitFigures,
    Stats,
)
from skitter.model import SegmentMark
from skitter.plan.estimate import MOST_HOSTS, Estimate
from skitter.plan.growth import Band

T = TypeVar("T")


def soonest(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)


def merge_horizons(horizons: Sequence[Horizon], posts_at: float | None) -> Horizon:
    """`posts_at` is now while something is in the post: that is work to come."""
    return Horizon(
        leased_hosts=sum(one.leased_hosts for one in horizons),
        limit_reached=all(one.limit_reached for one in horizons),
        next_at=soonest((posts_at, *(one.next_at for one in horizons))),
        never_ends=any(one.never_ends for one in horizons),
    )


def busiest(views: Iterable[HostView], limit: int) -> list[HostView]:
    return sorted(views, key=lambda view: (view.fetched, view.queued, view.failures_in_a_row), reverse=True)[
        :limit
    ]


def merge_marks(marks: Iterable[SegmentMark]) -> list[SegmentMark]:
    """Of one segment the longest: it is the latest."""
    longest: dict[str, SegmentMark] = {}
    for mark in marks:
        known = longest.get(mark.segment)
        if known is None or (mark.length, mark.stored) > (known.length, known.stored):
            longest[mark.segment] = mark
    return list(longest.values())


def merge_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """Partitions work side by side: the one that takes longest says how long, and what limits it."""
    longest = max(estimates, key=lambda one: one.seconds.likely)
    hosts = sorted(
        (host for one in estimates for host in one.hosts), key=lambda host: host.seconds.likely, reverse=True
    )
    return replace(
        longest,
        urls=reduce(Band.plus, (one.urls for one in estimates)),
        pages=reduce(Band.plus, (one.pages for one in estimates)),
        bytes=reduce(Band.plus, (one.bytes for one in estimates)),
        seconds=Band(*map(max, zip(*(one.seconds for one in estimates), strict=True))),
        hosts=tuple(hosts[:MOST_HOSTS]),
        reaches_limit=any(one.reaches_limit for one in estimates),
    )


def merge_stats(stats: Sequence[Stats]) -> Stats:
    def total(name: str) -> int:
        return sum(getattr(one, name) for one in stats)

    def totals(name: str) -> dict[str, int]:
        summed: Counter[str] = Counter()
        for one in stats:
            summed.update(getattr(one, name))
        return dict(summed)

    return Stats(
        urls=totals("urls"),
        hosts=totals("hosts"),
        tiers=tuple(map(sum, zip(*(one.tiers for one in stats), strict=True))),
        pages=total("pages"),
        stored=total("stored"),
        unstored=total("unstored"),
        lost=total("lost"),
        requisites=total("requisites"),
        sitemaps=total("sitemaps"),
        fetches=total("fetches"),
        robots_fetches=total("robots_fetches"),
        bytes=total("bytes"),
        failures=totals("failures"),
        refusals=totals("refusals"),
        statuses=totals("statuses"),
        leases_expired=total("leases_expired"),
        stale_outcomes=total("stale_outcomes"),
        politeness=_merge_ledgers([one.politeness for one in stats]),
        seen_filter=_merge_filters([one.seen_filter for one in stats if one.seen_filter]),
        next_at=soonest(one.next_at for one in stats),
        near_duplicates=total("near_duplicates"),
        aliases=total("aliases"),
        came_back=totals("came_back"),
        rejudging=tuple(sorted({reason for one in stats for reason in one.rejudging})),
        verdicts=total("verdicts"),
        refusing=total("refusing"),
        revisits=_merge_revisits([one.revisits for one in stats if one.revisits]),
        over_defaults=totals("over_defaults"),
        scored=total("scored"),
        on_topic=total("on_topic"),
    )


def _merge_ledgers(ledgers: Sequence[PolitenessLedger]) -> PolitenessLedger:
    with_gaps = [one for one in ledgers if one.smallest_gap is not None]
    tightest = min(with_gaps, key=lambda one: (one.smallest_gap or 0) - (one.required or 0), default=None)
    return PolitenessLedger(
        gaps=sum(one.gaps for one in ledgers),
        violations=sum(one.violations for one in ledgers),
        smallest_gap=tightest.smallest_gap if tightest else None,
        required=tightest.required if tightest else None,
        host=tightest.host if tightest else "",
    )


def _merge_filters(filters: Sequence[FilterFigures]) -> FilterFigures | None:
    if not filters:
        return None
    asked = sum(one.asked for one in filters)
    return FilterFigures(
        bytes=sum(one.bytes for one in filters),
        layers=max(one.layers for one in filters),
        trusted=min(one.trusted for one in filters),
        asked=asked,
        false_positive_rate=_weighted((one.false_positive_rate, one.asked) for one in filters) or 0.0,
        fill=max(one.fill for one in filters),
    )


def _merge_revisits(figures: Sequence[RevisitFigures]) -> RevisitFigures | None:
    """The price is the mean of what partitions ask, by the pages that they watch."""
    if not figures:
        return None
    errors = [one.audit_error for one in figures if one.audit_error is not None]
    return RevisitFigures(
        watched=sum(one.watched for one in figures),
        queued=sum(one.queued for one in figures),
        price=_weighted((one.price, one.watched) for one in figures) or figures[0].price,
        budget=sum(one.budget for one in figures),
        visits=sum(one.visits for one in figures),
        changed=sum(one.changed for one in figures),
        late=max(one.late for one in figures),
        audits=sum(one.audits for one in figures),
        audited_freshness=_weighted(
            (one.audited_freshness, one.audits) for one in figures if one.audited_freshness is not None
        ),
        audit_error=max(errors, default=None),
    )


def merge_freshness(found: Sequence[Freshness]) -> Freshness:
    """Shares are weighted by pages, which by importance is not exact."""
    tiers = sorted({tier for one in found for tier in one.by_tier})
    errors = [one.audit_error for one in found if one.audit_error is not None]
    return Freshness(
        pages=sum(one.pages for one in found),
        expected=_weighted((one.expected, one.pages) for one in found if one.expected is not None),
        expected_plain=_weighted(
            (one.expected_plain, one.pages) for one in found if one.expected_plain is not None
        ),
        by_tier={
            tier: _weighted((one.by_tier[tier], one.pages) for one in found if tier in one.by_tier) or 0.0
            for tier in tiers
        },
        hosts=tuple(host for one in found for host in one.hosts),
        audits=sum(one.audits for one in found),
        audited=_weighted((one.audited, one.audits) for one in found if one.audited is not None),
        audit_error=max(errors, default=None),
        audited_by_tier={tier: told for one in found for tier, told in one.audited_by_tier.items()},
        age=_weighted((one.age, one.pages) for one in found if one.age is not None),
        changes_a_day=sum(one.changes_a_day for one in found),
    )


def _weighted(pairs: Iterable[tuple[float, int]]) -> float | None:
    total = weight = 0.0
    for value, count in pairs:
        total += value * count
        weight += count
    return total / weight if weight else None
