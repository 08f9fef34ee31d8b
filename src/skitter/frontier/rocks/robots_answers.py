"""Settling what came of asking for a robots.txt: its rules, an errand to where it lies, or a wait.

Asked by `settling.py`, in the turn that settles the outcome, for the host that was asked and the one that is
concerned. RFC 9309 where it says something. Never fetches, and never lets a page be asked for without rules.
"""

from __future__ import annotations

from skitter.frontier.rocks.book import mark_of_robots
from skitter.frontier.rocks.health import Health, asked_wait, forgive
from skitter.frontier.rocks.holding import hold
from skitter.frontier.rocks.ledger import enter_in_ledger
from skitter.frontier.rocks.rows import REJUDGE, Errand, HostRow, decode_errand, encode
from skitter.frontier.rocks.turn import Turn
from skitter.model import Failed, FailureKind, Host, NotModified, Outcome, Redirected, RobotsRead
from skitter.settings import Settings

_MOST_ROBOTS_HOPS = 5


class RobotsAnswers:
    def __init__(self, settings: Settings, health: Health) -> None:
        self._robots_ttl = settings.politeness.robots_ttl
        self._holds = bool(settings.archive.url)
        self._health = health

    def settle(self, turn: Turn, ident: bytes, host: HostRow, slot: bytes, outcome: Outcome) -> bool:
        """`host` was asked; what it said concerns the host an errand was run for, or itself. False when nobody
        waits for it any more."""
        if host.lease is None or not (slot or host.lease.robots):
            return False
        hops = 0
        concerned = host
        if slot:
            raw = turn.book.store.get("queue", slot)
            if raw is None:
                return False
            errand = decode_errand(raw)
            hops = errand.hops
            _, concerned = turn.host(Host(errand.behalf))
            turn.delete("queue", slot)
            host.lease.errands -= 1
        else:
            host.lease.robots = 0
        # settled: a second settle of the same errand within this lease must find nothing
        turn.book.lease_slots(ident, host.lease.token).pop(outcome.key, None)
        enter_in_ledger(turn, host, outcome)
        turn.tally.robots_fetches += 1
        self._apply(turn, host, concerned, hops, outcome)
        if self._holds:
            hold(turn, outcome, None, behalf=concerned.host)
        return True

    def _apply(self, turn: Turn, host: HostRow, concerned: HostRow, hops: int, outcome: Outcome) -> None:
        result = outcome.result
        concerned.robots_elsewhere = False
        match result:
            case RobotsRead():
                self._health.is_well(host, outcome)
                self._learn(turn, concerned, result.status, result.body)
                if result.copy is not None:
                    turn.put("copies", result.digest, encode(result.copy))
                if concerned is host and not hops and result.status < 300:
                    host.robots_etag, host.robots_last_modified = result.etag, result.last_modified
                    host.robots_digest = result.digest
            case NotModified() if concerned is host and _has_validators(host):
                self._health.is_well(host, outcome)
                self._keep(turn, host)
            case Redirected() if hops >= _MOST_ROBOTS_HOPS:
                # RFC 9309 2.3.1.2: beyond five redirects the file counts as unavailable: no rules
                self._learn(turn, concerned, result.status, b"")
            case Redirected() if turn.book.blocklists.line_against_host(result.target.host):
                listed = turn.book.blocklists.line_against_host(result.target.host)
                refused = Failed(kind=FailureKind.ADDRESS_REFUSED, detail=f"it leads elsewhere: {listed}")
                self._failed(turn, host, concerned, refused, outcome.ended_at)
            case Redirected():
                # not yet well: a file that can never be had elsewhere must not look like a fresh start each time
                self._health.answered(host, outcome)
                concerned.robots_elsewhere = True
                errand = Errand(behalf=concerned.host, url=result.target.url, hops=hops + 1)
                turn.send_errand(errand, result.target.host)
            case Failed(kind=FailureKind.ADDRESS_REFUSED) if concerned is host:
                # No wait would help its pages either: they are refused in turn, without a request.
                self._health.blame(turn, host, result, outcome.ended_at)
                host.address_refused = result.detail or "not a public address"
                host.refused_at = turn.now
                host.robots_until = turn.now + self._robots_ttl
            case Failed():
                self._failed(turn, host, concerned, result, outcome.ended_at)
            case NotModified():
                result = Failed(kind=FailureKind.PROTOCOL, detail="304 to a request without validators")
                self._failed(turn, host, concerned, result, outcome.ended_at)
            case _:
                raise TypeError(f"a robots task cannot be settled with {type(result).__name__}")

    def _failed(self, turn: Turn, host: HostRow, concerned: HostRow, result: Failed, ended_at: float) -> None:
        self._health.robots_unreachable(turn, host, concerned, result, ended_at)
        if not self._health.may_be_assumed(concerned, result, ended_at):
            return
        # Of what the RFC permits, the more careful: the last copy read, and no rules only where there was none.
        since = concerned.robots_failing_since
        ident, _ = turn.host(Host(concerned.host))
        self._learn(turn, concerned, result.status, turn.book.store.get("robots", ident) or b"")
        concerned.robots_failing_since = since
        concerned.not_before = ended_at + asked_wait(result)

    def _learn(self, turn: Turn, host: HostRow, status: int, body: bytes) -> None:
        ident, _ = turn.host(Host(host.host))
        # a host that never had any is told by its row: every host once
        before = turn.book.store.get("robots", ident) or b"" if host.robots_until else b""
        rules = turn.book.learn_rules(ident, body)
        host.address_refused = ""
        host.robots_status = status
        host.robots_mark = mark_of_robots(body)
        host.crawl_delay = rules.crawl_delay
        host.robots_etag = host.robots_last_modified = ""
        host.robots_digest = b""
        self._keep(turn, host)
        if body:
            turn.put("robots", ident, body)
        elif before:
            turn.delete("robots", ident)
        if host.denied and body != before:
            turn.put("meta", REJUDGE + ident, b"")

    def _keep(self, turn: Turn, host: HostRow) -> None:
        forgive(host)
        host.robots_at = turn.now
        host.robots_until = turn.now + self._robots_ttl
        host.robots_failing_since = 0.0


def _has_validators(host: HostRow) -> bool:
    return bool(host.robots_etag or host.robots_last_modified)
