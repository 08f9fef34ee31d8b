"""What a host may be asked in a day, and at which hours: the operator's limits on the load that we are.

Asked when a host is about to be leased, and told of every request that was made. A host that is closed (its
quiet hours, or the day's load is spent) is given an appointment, as hosts of a busy address are. What a lease
hands out never exceeds what is left of the day, so the limit holds whatever becomes of the worker: a lease that
ends without outcomes counts as asked.
"""

from __future__ import annotations

from typing import NamedTuple

from skitter.frontier.rows import HostLoad, HostRow, LeaseRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import HostPolicy
from skitter.schedule.quiet_hours import day_of, next_day, quiet_from, quiet_until
from skitter.settings import Settings
from skitter.settings.quiet_hours import read_spans, zone_of

_NO_POLICY = HostPolicy()
QUIET, SPENT = "quiet", "spent"


class Opening(NamedTuple):
    """How a host may be leased now: so many tasks at most (None: no limit), none begun after `closes_at`."""

    most: int | None
    closes_at: float | None


class LoadLimits:
    """`limits_all`: the crawl's own settings limit the load of every host."""

    def __init__(self, settings: Settings) -> None:
        self._politeness = settings.politeness
        self._max_body = settings.fetch.max_body
        self.limits_all = bool(settings.politeness.daily_requests or settings.politeness.daily_bytes)

    def concerns(self, host: HostRow) -> bool:
        """Of most crawls no host: one look at a setting and a policy."""
        policy = host.policy
        return self.limits_all or (policy is not None and is_limiting(policy))

    def open(self, tx: Transaction, host: HostRow, start: float) -> Opening | None:
        """None: it is closed at `start`, when its next request would be sent, and has been given an
        appointment."""
        if tx.cache.earliest_start(host) > tx.now:
            return None  # met again in another tier, after it was sent away
        policy = host.policy or _NO_POLICY
        # by the clock: what people call ten in the evening is not the frontier's own time
        at, skew = tx.cache.by_the_clock(start), tx.cache.skew
        zone = zone_of(policy.time_zone or "")
        spans = read_spans(policy.quiet_hours) if policy.quiet_hours else None
        if zone is None or (policy.quiet_hours and spans is None):
            # checked when it was set: the zones of this machine are fewer. Better never than at the wrong hour.
            _close(host, start + 86_400, QUIET)
            return None
        if spans and (opens := quiet_until(spans, zone, at)) > at:
            _close(host, opens + skew, QUIET)
            return None
        requests, received = _limits(policy, self._politeness.daily_requests, self._politeness.daily_bytes)
        most = self._left_today(host, requests, received, day_of(zone, at)) if requests or received else None
        if most is not None and most <= 0:
            _close(host, next_day(zone, at) + skew, SPENT)
            return None
        closes = quiet_from(spans, zone, at) if spans else None
        return Opening(most, closes)

    def _left_today(self, host: HostRow, requests: int, received: int, today: int) -> int:
        """Tasks. Of bytes only the answer that passes the limit may be more: so as many tasks as would fit if
        all of them were as long as an answer can be."""
        load = host.load
        if load is None or load.day != today:
            load = host.load = HostLoad(day=today)
        left = requests - load.requests if requests else 1 << 30
        if not received:
            return left
        return min(
            left, max(1, (received - load.received) // self._max_body) if load.received < received else 0
        )


def _limits(policy: HostPolicy, requests: int, received: int) -> tuple[int, int]:
    """The policy's, or the crawl's; 0 means none."""
    asked, got = policy.daily_requests, policy.daily_bytes
    return requests if asked is None else asked, received if got is None else got


def is_limiting(policy: HostPolicy) -> bool:
    return bool(policy.quiet_hours or policy.daily_requests or policy.daily_bytes)


def count_request(tx: Transaction, host: HostRow, size: int, sent_at: float) -> None:
    """Whatever its outcome is worth, a request was made."""
    if (load := _load_of_day(tx, host, sent_at)) is not None:
        load.requests += 1
        load.received += size


def count_unheard(tx: Transaction, host: HostRow, lease: LeaseRow, most: int) -> None:
    """A lease ended without outcomes for some of its tasks: up to `most` of them may have been asked."""
    if (load := _load_of_day(tx, host, tx.now)) is not None:
        load.requests += min(lease.outstanding(), most)


def _load_of_day(tx: Transaction, host: HostRow, at: float) -> HostLoad | None:
    if host.load is None:
        return None
    zone = zone_of(host.policy.time_zone or "" if host.policy else "")
    today = day_of(zone, tx.cache.by_the_clock(at)) if zone is not None else host.load.day
    if today > host.load.day:
        host.load = HostLoad(day=today)
    return host.load


def _close(host: HostRow, until: float, why: str) -> None:
    host.pace.not_before = host.pace.closed_until = max(host.pace.not_before, until)
    host.pace.closed_why = why


def is_closed(host: HostRow) -> bool:
    """Whether that is what it waits for."""
    return bool(host.pace.closed_until) and host.pace.closed_until == host.pace.not_before


def open_again(host: HostRow) -> None:
    """What the operator says counts at once: the host is looked at again."""
    if is_closed(host):
        host.pace.not_before = 0.0
    host.pace.closed_until, host.pace.closed_why = 0.0, ""


def closed_words(host: HostRow, settings: Settings) -> str:
    """Why it is closed, and what would open it."""
    policy = host.policy or _NO_POLICY
    if host.pace.closed_why == QUIET:
        return f"it has quiet hours now ({policy.quiet_hours} {policy.time_zone or 'UTC'})"
    polite = settings.politeness
    requests, received = _limits(policy, polite.daily_requests, polite.daily_bytes)
    load = host.load or HostLoad()
    of = [f"{load.requests:,} of {requests:,} requests"] if requests else []
    of += [f"{load.received:,} of {received:,} bytes"] if received else []
    by = (
        "the operator's policy"
        if is_limiting(policy)
        else "politeness.daily_requests, politeness.daily_bytes"
    )
    return f"its load of the day is spent: {' and '.join(of)} ({by}, days of {policy.time_zone or 'UTC'})"
