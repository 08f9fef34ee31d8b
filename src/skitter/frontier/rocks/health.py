"""A host's health: what a good answer mends, what a failure costs, and when our patience ends.

Asked while settling, for the host that answered or failed to, and by promote for the hosts that were given up or
blocked: their queues are emptied a slice at a time, since a host may have a million URLs waiting. The hosts with
such work left are named in `meta`, so a restart goes on where a crash struck. Never forgets a URL: what waits for
a host that is given up becomes a dead letter with the host's reason.
"""

from __future__ import annotations

from skitter.frontier.rocks.rows import ABANDON, ERRAND_LANE, HostRow, UrlRow, decode_errand
from skitter.frontier.rocks.turn import Turn
from skitter.model import Failed, FailureKind, Host, Outcome, UrlState
from skitter.schedule.politeness import recovered, smoothed, throttled
from skitter.schedule.priority import TIERS
from skitter.schedule.retry import RULES, host_wait, is_hopeless
from skitter.settings import Settings

_LONGEST_RETRY_AFTER = 86_400.0
# One turn empties at most so much, so that no call takes long however much waits.
_MOST = 2_000
_END = b"\xff" * 9


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
        if host.failures or host.given_up:
            forgive(host)
        self.answered(host, outcome)

    def answered(self, host: HostRow, outcome: Outcome) -> None:
        """It said something, if not yet what it was asked for: a robots.txt that lies elsewhere."""
        if host.penalty > 1.0:
            host.penalty = recovered(host.penalty)
        host.response_time = smoothed(host.response_time, outcome.ended_at - outcome.sent_at)

    def blame(self, turn: Turn, host: HostRow, result: Failed, ended_at: float) -> None:
        turn.tally.failures[result.kind] = turn.tally.failures.get(result.kind, 0) + 1
        host.last_failure = f"{result.kind}: {result.detail}" if result.detail else result.kind
        if RULES[result.kind].blames_host:
            self._back_off(host, result, ended_at)

    def robots_unreachable(
        self, turn: Turn, asked: HostRow, concerned: HostRow, result: Failed, ended_at: float
    ) -> None:
        """RFC 9309 2.3.1.4: unreachable means disallowed, so whatever failed, the host has to wait."""
        concerned.robots_failing_since = concerned.robots_failing_since or ended_at
        # an answer, if a bad one: its time comes with `robots_unreachable_after`, not with the last quarantine
        patient = bool(result.status) and self._assumed_after < float("inf")
        self.blame(turn, asked, result, ended_at)
        if concerned is not asked or not RULES[result.kind].blames_host:
            elsewhere = "" if concerned is asked else f"its robots.txt is at {asked.host}: "
            concerned.last_failure = elsewhere + asked.last_failure
            self._back_off(concerned, result, ended_at)
        if patient:
            concerned.given_up = ""

    def may_be_assumed(self, concerned: HostRow, result: Failed, ended_at: float) -> bool:
        """RFC 9309 2.3.1.4: after a reasonably long time of errors, the file may be taken for unavailable."""
        since = concerned.robots_failing_since
        return bool(result.status and since) and ended_at - since >= self._assumed_after

    def _back_off(self, host: HostRow, result: Failed, ended_at: float) -> None:
        kind = result.kind
        host.alike = host.alike + 1 if host.failing_as == kind else 1
        host.failing_as = kind
        host.failures += 1
        if kind is FailureKind.THROTTLED:
            host.penalty = throttled(host.penalty)
        wait = max(host_wait(kind, host.failures, host.alike, self._retry), asked_wait(result))
        host.not_before = max(host.not_before, ended_at + wait)
        if is_hopeless(kind, host.failures, host.alike, self._retry):
            host.given_up = kind

    # -- hosts that are not asked any more

    def empty_abandoned(self, turn: Turn) -> int:
        """Up to a slice of what waits for hosts that are given up or blocked; how many URLs and errands ended."""
        left = _MOST
        for entry, _ in turn.book.store.scan("meta", ABANDON, ABANDON + _END):
            ident = entry[len(ABANDON) :]
            host = turn.book.host(ident)
            if host is None or not host.is_to_be_emptied():
                turn.delete("meta", entry)
            elif host.lease is None:
                left -= self._empty(turn, ident, left)
            if left <= 0:
                break
        return _MOST - left

    def _empty(self, turn: Turn, ident: bytes, most: int) -> int:
        host = turn.touch(ident)
        if host is None:
            return 0
        ended = self._return_errands(turn, ident, host, most)
        if host.given_up:
            ended += _bury(turn, ident, host, most - ended)
        if not host.is_to_be_emptied():
            turn.delete("meta", ABANDON + ident)
        return ended

    def _return_errands(self, turn: Turn, ident: bytes, host: HostRow, most: int) -> int:
        """Whoever waits for a robots.txt that this host should have: it cannot be had, and they back off."""
        returned = 0
        for slot, raw in turn.book.store.scan("queue", ident + bytes((ERRAND_LANE,)), ident + b"\1"):
            if returned >= most:
                break
            turn.delete("queue", slot)
            _, asking = turn.host(Host(decode_errand(raw).behalf))
            asking.robots_elsewhere = False
            asking.robots_failing_since = asking.robots_failing_since or turn.now
            kind = FailureKind(host.given_up) if host.given_up else FailureKind.ADDRESS_REFUSED
            why = "is given up" if host.given_up else "the operator blocked"
            asking.last_failure = f"{kind}: its robots.txt redirects to {host.host}, which {why}"
            self._back_off(asking, Failed(kind=kind), turn.now)
            returned += 1
        host.errands -= returned
        return returned


def forgive(host: HostRow) -> None:
    host.failures = host.alike = 0
    host.failing_as = host.given_up = ""


def asked_wait(result: Failed) -> float:
    return min(result.retry_after or 0.0, _LONGEST_RETRY_AFTER)


def _bury(turn: Turn, ident: bytes, host: HostRow, most: int) -> int:
    """What is queued for a host that is given up becomes dead letters."""
    buried = 0
    for tier in range(TIERS):
        if not host.queued[tier]:
            continue
        lane = ident + bytes((tier + 1,))
        for slot, key in turn.book.store.scan("queue", lane + host.lows[tier], ident + bytes((tier + 2,))):
            if buried >= most:
                return buried
            host.lows[tier] = slot[9:]
            row = turn.url(key)
            if row is None or row.slot != slot:
                turn.delete("queue", slot)
                continue
            _bury_one(turn, key, row, host, tier)
            buried += 1
    return buried


def _bury_one(turn: Turn, key: bytes, row: UrlRow, host: HostRow, tier: int) -> None:
    turn.dequeue(row)
    row.state = UrlState.DEAD_LETTER
    row.reason = "its host is given up"
    row.failure = host.given_up
    row.rule = f"{host.failures} failures in a row, {host.last_failure}"
    turn.put_url(key, row)
    turn.put("dead", key, b"")
    host.queued[tier] -= 1
    turn.tally.tiers[tier] -= 1
    turn.count(UrlState.QUEUED, -1)
    turn.count(UrlState.DEAD_LETTER, 1)
