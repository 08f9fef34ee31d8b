"""A host's health: what a good answer mends, what a failure costs, and when our patience ends.

Asked while settling, for the host that answered or failed to, and by promote for the hosts that were given up or
blocked: their queues are emptied a slice at a time, since a host may have a million URLs waiting. The hosts with
such work left are named in `meta`, so a restart goes on where a crash struck. Never forgets a URL: what waits for
a host that is given up becomes a dead letter with the host's reason.
"""

from __future__ import annotations

import itertools
from math import ceil

from skitter.frontier.posts import PostedAnswer
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Failed, FailureKind, Host, Outcome, UrlKey, UrlState
from skitter.schedule.politeness import recovered, smoothed, throttled
from skitter.schedule.priority import LANES
from skitter.schedule.retry import RULES, host_wait, is_hopeless
from skitter.settings import Settings

_LONGEST_RETRY_AFTER = 86_400.0
# One transaction empties at most so much, so that no call takes long however much waits.
_MOST = 2_000
_END = b"\xff" * 9
# A host rests for so many times the CPU seconds that reading its page took: a twentieth of a core is its share.
_CPU_REST, _LONGEST_CPU_REST = 20.0, 600.0


def _charge(host: HostRow, outcome: Outcome) -> None:
    """Its page cost too much: what the others lost waiting, it waits."""
    until = outcome.ended_at + min(_CPU_REST * outcome.cpu, _LONGEST_CPU_REST)
    host.pace.costly_until = ceil(max(host.pace.not_before, until))
    host.pace.not_before = float(host.pace.costly_until)


class Health:
    def __init__(self, settings: Settings) -> None:
        self._retry = settings.retry
        polite = settings.politeness
        # without the setting, no time is long enough
        self._assumed_after = (
            polite.robots_unreachable_after if polite.robots_unreachable == "allow" else float("inf")
        )

    # -- one answer

    def is_well(self, host: HostRow, outcome: Outcome) -> None:
        if host.health.failures or host.health.given_up:
            forgive(host)
        self.answered(host, outcome)

    def answered(self, host: HostRow, outcome: Outcome) -> None:
        """It said something, if not yet what it was asked for: a robots.txt that lies elsewhere."""
        if host.pace.penalty > 1.0:
            host.pace.penalty = recovered(host.pace.penalty)
        host.pace.response_time = smoothed(host.pace.response_time, outcome.ended_at - outcome.sent_at)
        if outcome.cpu:
            _charge(host, outcome)

    def blame(self, tx: Transaction, host: HostRow, result: Failed, ended_at: float) -> None:
        tx.tally.failures[result.kind] = tx.tally.failures.get(result.kind, 0) + 1
        host.health.last_failure = _failure_words(result)
        if RULES[result.kind].blames_host:
            self._back_off(host, result, ended_at)

    def robots_unreachable(
        self,
        tx: Transaction,
        asked: HostRow,
        concerned: HostRow,
        result: Failed,
        ended_at: float,
        *,
        is_counted: bool = False,
    ) -> None:
        """RFC 9309 2.3.1.4: unreachable means disallowed, so whatever failed, the host has to wait. `is_counted`:
        the partition of the host that was asked has blamed it already."""
        concerned.robots.failing_since = concerned.robots.failing_since or ended_at
        # an answer, if a bad one: its time comes with `robots_unreachable_after`, not with the last quarantine
        patient = bool(result.status) and self._assumed_after < float("inf")
        if is_counted:
            asked.health.last_failure = _failure_words(result)
        else:
            self.blame(tx, asked, result, ended_at)
        if concerned is not asked or not RULES[result.kind].blames_host:
            elsewhere = "" if concerned is asked else f"its robots.txt is at {asked.host}: "
            concerned.health.last_failure = elsewhere + asked.health.last_failure
            self._back_off(concerned, result, ended_at)
        if patient:
            concerned.health.given_up = ""

    def may_be_assumed(self, concerned: HostRow, result: Failed, ended_at: float) -> bool:
        """RFC 9309 2.3.1.4: after a reasonably long time of errors, the file may be taken for unavailable."""
        since = concerned.robots.failing_since
        return bool(result.status and since) and ended_at - since >= self._assumed_after

    def _back_off(self, host: HostRow, result: Failed, ended_at: float) -> None:
        kind = result.kind
        host.health.alike = host.health.alike + 1 if host.health.failing_as == kind else 1
        host.health.failing_as = kind
        host.health.failures += 1
        if kind is FailureKind.THROTTLED:
            host.pace.penalty = throttled(host.pace.penalty)
        wait = max(host_wait(kind, host.health.failures, host.health.alike, self._retry), asked_wait(result))
        host.pace.not_before = max(host.pace.not_before, ended_at + wait)
        if is_hopeless(kind, host.health.failures, host.health.alike, self._retry):
            host.health.given_up = kind

    # -- hosts that are not asked any more

    def empty_abandoned(self, tx: Transaction) -> int:
        """Up to a slice of what waits for hosts that are given up or blocked; how many URLs and errands ended."""
        left = _MOST
        for _, ident in queries.hosts_to_empty(tx.cache):
            host = tx.cache.host(ident)
            if host is None or not host.is_to_be_emptied():
                tx.unmark_to_empty(ident)
            elif host.lease is None:
                left -= self._empty(tx, ident, left)
            if left <= 0:
                break
        return _MOST - left

    def _empty(self, tx: Transaction, ident: bytes, most: int) -> int:
        host = tx.touch(ident)
        if host is None:
            return 0
        ended = self._return_errands(tx, ident, host, most)
        if host.health.given_up:
            ended += _bury(tx, ident, host, most - ended)
        if not host.is_to_be_emptied():
            tx.unmark_to_empty(ident)
        return ended

    def _return_errands(self, tx: Transaction, ident: bytes, host: HostRow, most: int) -> int:
        """Whoever waits for a robots.txt that this host should have: it cannot be had, and they back off."""
        returned = 0
        for waiting in itertools.islice(queries.errands(tx.cache, ident), most):
            tx.drop_slot(waiting.slot)
            returned += 1
            kind = FailureKind(host.health.given_up) if host.health.given_up else FailureKind.ADDRESS_REFUSED
            why = "is given up" if host.health.given_up else "the operator blocked"
            behalf = Host(waiting.errand.behalf)
            if tx.is_elsewhere(behalf):
                failed = Failed(kind=kind, detail=f"{host.host}, which {why}")
                tx.post(behalf, PostedAnswer(behalf, Host(host.host), waiting.errand.hops, failed))
                continue
            _, asking = tx.host(behalf)
            asking.robots.is_elsewhere = False
            asking.robots.failing_since = asking.robots.failing_since or tx.now
            asking.health.last_failure = f"{kind}: its robots.txt redirects to {host.host}, which {why}"
            self._back_off(asking, Failed(kind=kind), tx.now)
        host.queue.errands -= returned
        return returned


def _failure_words(result: Failed) -> str:
    return f"{result.kind}: {result.detail}" if result.detail else result.kind


def forgive(host: HostRow) -> None:
    host.health.failures = host.health.alike = 0
    host.health.failing_as = host.health.given_up = ""


def asked_wait(result: Failed) -> float:
    return min(result.retry_after or 0.0, _LONGEST_RETRY_AFTER)


def _bury(tx: Transaction, ident: bytes, host: HostRow, most: int) -> int:
    """What is queued for a host that is given up becomes dead letters."""
    buried = 0
    for tier in range(LANES):
        if not host.queue.lengths[tier]:
            continue
        for slot, key in queries.waiting(tx.cache, ident, host, tier):
            if buried >= most:
                return buried
            tx.raise_low(host, tier, slot)
            row = tx.url(key)
            if row is None or row.slot != slot:
                tx.drop_slot(slot)
                continue
            _bury_one(tx, key, row, host, tier)
            buried += 1
    return buried


def _bury_one(tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, tier: int) -> None:
    tx.dequeue(row)
    row.state = UrlState.DEAD_LETTER
    row.reason = "its host is given up"
    row.answer.failure = host.health.given_up
    row.rule = f"{host.health.failures} failures in a row, {host.health.last_failure}"
    tx.put_url(key, row)
    tx.add_dead(key)
    host.queue.lengths[tier] -= 1
    tx.tally.tiers[tier] -= 1
    tx.count(UrlState.QUEUED, -1)
    tx.count(UrlState.DEAD_LETTER, 1)
