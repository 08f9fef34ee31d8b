"""Settling what came of asking for a robots.txt: its rules, an errand to where it lies, or a wait.

Asked by `settling.py`, within its transaction, for the host that was asked and the one that is
concerned. RFC 9309 where it says something. Never fetches, and never lets a page be asked for without rules.
"""

from __future__ import annotations

from msgspec.structs import replace

from skitter.frontier.engine.admission import is_forgotten
from skitter.frontier.engine.answers.declarations import Declarations
from skitter.frontier.engine.answers.ledger import enter_in_ledger
from skitter.frontier.engine.answers.sitemaps import Sitemaps
from skitter.frontier.engine.health import Health, asked_wait, forgive
from skitter.frontier.engine.uploads.not_uploaded import hold
from skitter.frontier.posts import PostedAnswer
from skitter.frontier.rows import Errand, HostRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.row_cache import rules_key_of
from skitter.frontier.tables.transaction import Transaction
from skitter.model import (
    Failed,
    FailureKind,
    Host,
    NotModified,
    Outcome,
    Redirected,
    RobotsRead,
    TaskKind,
    Token,
    UrlKey,
)
from skitter.settings import Settings
from skitter.urls.canonical import host_id

_MOST_ROBOTS_HOPS = 5


class RobotsAnswers:
    def __init__(
        self, settings: Settings, health: Health, sitemaps: Sitemaps, declarations: Declarations
    ) -> None:
        self._sitemaps = sitemaps
        self._declarations = declarations
        self._robots_ttl = settings.politeness.robots_ttl
        self._holds = bool(settings.archive.url)
        self._health = health

    def settle(self, tx: Transaction, ident: bytes, host: HostRow, slot: bytes, outcome: Outcome) -> bool:
        """`host` was asked; what it said concerns the host an errand was run for, or itself. False when nobody
        waits for it any more."""
        if host.lease is None or not (slot or host.lease.robots):
            return False
        hops = 0
        concerned = host
        if slot:
            errand = queries.errand_at(tx.cache, slot)
            if errand is None:
                return False
            hops = errand.hops
            is_ours = not tx.is_elsewhere(Host(errand.behalf))
            concerned = tx.host(Host(errand.behalf))[1] if is_ours else HostRow(host=errand.behalf)
            tx.drop_slot(slot)
            host.lease.errands -= 1
        else:
            host.lease.robots = 0
        # settled: a second settle of the same errand within this lease must find nothing
        tx.cache.lease_slots(ident, host.lease.token).pop(outcome.key, None)
        enter_in_ledger(tx, host, outcome)
        tx.tally.robots_fetches += 1
        if tx.is_elsewhere(Host(concerned.host)):
            self._answer_elsewhere(tx, host, Host(concerned.host), hops, outcome)
        else:
            self._apply(tx, host, concerned, hops, outcome)
        if self._holds:
            hold(tx, outcome, None, behalf=concerned.host)
        return True

    def _answer_elsewhere(
        self, tx: Transaction, host: HostRow, behalf: Host, hops: int, outcome: Outcome
    ) -> None:
        """Another partition has the host that the errand was run for: what was said goes there."""
        result = outcome.result
        if isinstance(result, Failed):
            self._health.blame(tx, host, result, outcome.ended_at)
        elif isinstance(result, RobotsRead):
            self._health.is_well(host, outcome)
            if result.copy is not None:
                tx.put_copy(result.digest, result.copy)
        else:
            self._health.answered(host, outcome)
        tx.post(behalf, PostedAnswer(behalf, Host(host.host), hops, result))

    def take_answer(self, tx: Transaction, post: PostedAnswer) -> None:
        """Of a host in another partition, which was asked on behalf of one of ours."""
        concerned = tx.touch(host_id(post.behalf))
        if concerned is None or not concerned.robots.is_elsewhere:
            return
        asked, result = HostRow(host=post.asked), post.result
        if isinstance(result, Failed):
            concerned.robots.is_elsewhere = False
            self._failed(tx, asked, concerned, result, tx.now, is_counted=True)
            return
        outcome = Outcome(
            host=post.asked,
            token=Token(0),
            kind=TaskKind.ROBOTS,
            key=UrlKey(b""),
            sent_at=tx.now,
            ended_at=tx.now,
            result=replace(result, copy=None) if isinstance(result, RobotsRead) else result,
        )
        self._apply(tx, asked, concerned, post.hops, outcome)

    def _apply(self, tx: Transaction, host: HostRow, concerned: HostRow, hops: int, outcome: Outcome) -> None:
        result = outcome.result
        concerned.robots.is_elsewhere = False
        match result:
            case RobotsRead():
                self._health.is_well(host, outcome)
                is_first = not concerned.robots.read_at
                self._learn(tx, concerned, result.status, result.body)
                self._sitemaps.admit_named(tx, concerned, is_first=is_first)
                if is_first:
                    self._declarations.admit(tx, concerned)
                if result.copy is not None:
                    tx.put_copy(result.digest, result.copy)
                if concerned is host and not hops and result.status < 300:
                    host.robots.etag, host.robots.last_modified = result.etag, result.last_modified
                    host.robots.digest = result.digest
            case NotModified() if concerned is host and _has_validators(host):
                self._health.is_well(host, outcome)
                self._keep(tx, host)
                self._sitemaps.admit_named(tx, host, is_first=False)
            case Redirected() if hops >= _MOST_ROBOTS_HOPS:
                # RFC 9309 2.3.1.2: beyond five redirects the file counts as unavailable: no rules
                self._learn(tx, concerned, result.status, b"")
            case Redirected() if tx.cache.forgotten and is_forgotten(tx, result.target):
                refused = Failed(
                    kind=FailureKind.ADDRESS_REFUSED, detail="it leads to a host that was forgotten"
                )
                self._failed(tx, host, concerned, refused, outcome.ended_at)
            case Redirected() if tx.cache.blocklists.line_forbidding_host(result.target.host):
                listed = tx.cache.blocklists.line_forbidding_host(result.target.host)
                refused = Failed(kind=FailureKind.ADDRESS_REFUSED, detail=f"it leads elsewhere: {listed}")
                self._failed(tx, host, concerned, refused, outcome.ended_at)
            case Redirected():
                # not yet well: a file that can never be had elsewhere must not look like a fresh start each time
                self._health.answered(host, outcome)
                concerned.robots.is_elsewhere = True
                errand = Errand(behalf=concerned.host, url=result.target.url, hops=hops + 1)
                tx.send_errand(errand, result.target.host)
            case Failed(kind=FailureKind.ADDRESS_REFUSED) if concerned is host:
                # No wait would help its pages either: they are refused in turn, without a request.
                self._health.blame(tx, host, result, outcome.ended_at)
                host.health.address_refused = result.detail or "not a public address"
                host.health.refused_at = tx.now
                host.robots.until = tx.now + self._robots_ttl
            case Failed():
                self._failed(tx, host, concerned, result, outcome.ended_at)
            case NotModified():
                result = Failed(kind=FailureKind.PROTOCOL, detail="304 to a request without validators")
                self._failed(tx, host, concerned, result, outcome.ended_at)
            case _:
                raise TypeError(f"a robots task cannot be settled with {type(result).__name__}")

    def _failed(
        self,
        tx: Transaction,
        host: HostRow,
        concerned: HostRow,
        result: Failed,
        ended_at: float,
        *,
        is_counted: bool = False,
    ) -> None:
        self._health.robots_unreachable(tx, host, concerned, result, ended_at, is_counted=is_counted)
        if not self._health.may_be_assumed(concerned, result, ended_at):
            return
        # Of what the RFC permits, the more careful: the last copy read, and no rules only where there was none.
        since = concerned.robots.failing_since
        ident, _ = tx.host(Host(concerned.host))
        self._learn(tx, concerned, result.status, tx.cache.robots_body(ident))
        concerned.robots.failing_since = since
        concerned.pace.not_before = ended_at + asked_wait(result)

    def _learn(self, tx: Transaction, host: HostRow, status: int, body: bytes) -> None:
        ident, _ = tx.host(Host(host.host))
        # a host that never had any is told by its row: every host once
        before = tx.cache.robots_body(ident) if host.robots.until else b""
        rules = tx.cache.learn_rules(ident, body)
        host.health.address_refused = ""
        host.robots.status = status
        host.robots.rules_key = rules_key_of(body)
        host.pace.crawl_delay = rules.crawl_delay
        host.robots.etag = host.robots.last_modified = ""
        host.robots.digest = b""
        self._keep(tx, host)
        if body:
            tx.put_robots(ident, body)
        elif before:
            tx.drop_robots(ident)
        if host.counts.denied and body != before:
            tx.mark_to_rejudge(ident)

    def _keep(self, tx: Transaction, host: HostRow) -> None:
        forgive(host)
        host.robots.read_at = tx.now
        host.robots.until = tx.now + self._robots_ttl
        host.robots.failing_since = 0.0


def _has_validators(host: HostRow) -> bool:
    return bool(host.robots.etag or host.robots.last_modified)
