"""Settling: what one outcome changes, in one turn: the URL, its host's health, the ledger, and the links it
brought, which go through admission.

An outcome counts only if its lease is live and its URL is still out under it. A late page (its lease expired)
is kept when nobody has fetched or is fetching that URL, and leases out leave room for it under the page limit;
everything else that is stale changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skitter.frontier.base import Settled, Settlement
from skitter.frontier.bundles import bundled
from skitter.frontier.rocks import growth
from skitter.frontier.rocks.addresses import Addresses
from skitter.frontier.rocks.admission import Admission
from skitter.frontier.rocks.aliases import name_canonical
from skitter.frontier.rocks.health import Health, asked_wait
from skitter.frontier.rocks.holding import hold
from skitter.frontier.rocks.ledger import enter_in_ledger, is_unchanged, place_of
from skitter.frontier.rocks.near import remember
from skitter.frontier.rocks.outlinks import Admitted, admit_links
from skitter.frontier.rocks.redirects import REDIRECTS_TO, leads_to, why_endless
from skitter.frontier.rocks.robots_answers import RobotsAnswers
from skitter.frontier.rocks.rows import Gap, HostRow, UrlRow, encode, lane_of, micros
from skitter.frontier.rocks.traps import Traps
from skitter.frontier.rocks.turn import Turn
from skitter.model import (
    Bundle,
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    NotModified,
    Outcome,
    Redirected,
    Result,
    RobotsRead,
    TaskKind,
    UrlState,
    Via,
)
from skitter.schedule.retry import RULES, attempts_allowed, wait_after
from skitter.settings import Settings
from skitter.urls.canonical import host_id

_GONE = (404, 410)
# Times are floats since the epoch: differences below this are rounding.
_CLOCK_GRAIN = 0.000_01
_STALE = Settlement(Settled.STALE)
_ROBOTS_SETTLED = Settlement(Settled.ACCEPTED)
_NONE_ADMITTED = Admitted(0, 0, 0, [])
_STATES = {int(state): state for state in UrlState}
# an enum's own attribute takes 0.1 us, eight times as long
_ACCEPTED, _ROBOTS, _PROBE = Settled.ACCEPTED, TaskKind.ROBOTS, Via.PROBE
_IN_PROGRESS, _COMPLETED = UrlState.IN_PROGRESS, UrlState.COMPLETED


class Settling:
    def __init__(
        self, settings: Settings, admission: Admission, health: Health, addresses: Addresses, traps: Traps
    ) -> None:
        self._traps = traps
        self._retry = settings.retry
        self._max_pages = settings.crawl.max_pages
        self._max_redirects = settings.fetch.max_redirects
        self._holds = bool(settings.archive.url)
        self._admission = admission
        self._health = health
        self._addresses = addresses
        self._robots = RobotsAnswers(settings, health)
        self._late_room = 0

    def settle_all(self, turn: Turn, outcomes: Sequence[Outcome]) -> list[Settlement]:
        # by the room there was before the batch, as `judging` has it
        self._late_room = turn.room(self._max_pages)
        if skew := turn.book.skew:
            outcomes = [_in_our_time(outcome, skew) for outcome in outcomes]
        settle = self._settle
        return [settle(turn, outcome) for outcome in outcomes]

    def _settle(self, turn: Turn, outcome: Outcome) -> Settlement:
        ident = host_id(outcome.host)
        host = turn.touch(ident)
        if host is None:
            return _STALE
        prefix = outcome.key[:8]
        if prefix != ident and prefix != turn.book.keys.prefix(outcome.host):
            return self._stale(turn)
        lease = host.lease
        # whatever the outcome is worth, its request was made: the host's spacing counts from it
        if outcome.sent_at > host.last_sent:
            self._account_gap(turn, host, outcome)
        if outcome.sent_at > host.last_start:
            host.last_start = outcome.sent_at
        if lease is None or lease.token != outcome.token:
            self._addresses.heard(turn, ident, host)
            return self._settle_late(turn, ident, host, outcome)
        slot = turn.book.lease_slots(ident, lease.token).get(outcome.key)
        if slot is None:
            return self._stale(turn)
        hopeful = not host.given_up
        if outcome.kind is _ROBOTS:
            is_awaited = self._robots.settle(turn, ident, host, slot, outcome)
            settlement = _ROBOTS_SETTLED if is_awaited else self._stale(turn)
        else:
            settlement = self._settle_page(turn, host, slot, outcome)
        if lease.outstanding() == 0:
            turn.end_lease(ident, host)
        if hopeful and host.given_up:
            return msgspec.structs.replace(settlement, gave_up=True)
        return settlement

    def _account_gap(self, turn: Turn, host: HostRow, outcome: Outcome) -> None:
        """The politeness ledger: what was asked of workers against what they did, from their own times.
        Hosts that the operator lets be asked in parallel are out of it, and so is what is told a second time."""
        lease, sent_at = host.lease, outcome.sent_at
        if lease is not None and lease.token != outcome.token:
            lease = None
        if host.last_sent and (lease is None or lease.parallel <= 1):
            required = turn.book.delay_of(host) if lease is None else lease.delay
            tally, seconds = turn.tally, sent_at - host.last_sent
            margin = seconds - required
            early = sent_at < host.last_ended - _CLOCK_GRAIN
            tally.gaps += 1
            if early or margin < -_CLOCK_GRAIN:
                tally.violations += 1
            if host.tightest is None or margin < host.tightest.margin():
                host.tightest = Gap(seconds, required)
            if tally.tightest is None or margin < tally.tightest.margin():
                tally.tightest, tally.tightest_host = Gap(seconds, required), host.host
        host.last_sent = sent_at
        if outcome.ended_at > host.last_ended:
            host.last_ended = outcome.ended_at

    def _stale(self, turn: Turn) -> Settlement:
        turn.tally.stale_outcomes += 1
        return _STALE

    # -- pages

    def _settle_page(self, turn: Turn, host: HostRow, slot: bytes, outcome: Outcome) -> Settlement:
        row = turn.url(outcome.key)
        if row is None or row.slot != slot or host.lease is None:
            return self._stale(turn)
        host.lease.pages[lane_of(slot) - 1] -= 1
        turn.count(_IN_PROGRESS, -1)
        return self._apply(turn, host, row, outcome, _ACCEPTED)

    def _settle_late(self, turn: Turn, ident: bytes, host: HostRow, outcome: Outcome) -> Settlement:
        row = turn.url(outcome.key) if outcome.kind is TaskKind.PAGE else None
        # a place that this batch has given it is for a request that is yet to be made
        if outcome.key in turn.led_on:
            return self._stale(turn)
        if row is None or row.slot[:8] != ident or isinstance(outcome.result, Failed):
            return self._stale(turn)
        if host.lease is not None and outcome.key in turn.book.lease_slots(ident, host.lease.token):
            return self._stale(turn)
        if not row.requisite and self._late_room <= 0:
            return self._stale(turn)
        self._late_room -= 1
        tier = lane_of(row.slot) - 1
        host.queued[tier] -= 1
        turn.tally.tiers[tier] -= 1
        turn.count(UrlState.QUEUED, -1)
        return self._apply(turn, host, row, outcome, Settled.LATE)

    def _apply(
        self, turn: Turn, host: HostRow, row: UrlRow, outcome: Outcome, settled: Settled
    ) -> Settlement:
        turn.dequeue(row)
        if isinstance(outcome.result, Redirected):
            outcome = self._bounded(turn, row, outcome, outcome.result)
        result = outcome.result
        is_first = not row.status
        enter_in_ledger(turn, host, outcome, bool(row.body_status) and is_unchanged(row, result))
        row.fetched_at = turn.book.by_the_clock(outcome.ended_at)
        self._turns_out(turn, host, row, outcome)
        if self._holds:
            is_page = not row.requisite and row.state == _COMPLETED and 200 <= row.status < 300
            hold(turn, outcome, row, is_page=is_page)
        bundles, told_before = _brought(row, result)
        state = _STATES[row.state]
        if isinstance(result, Redirected) and self._asked_there(turn, outcome.key, row, result.target):
            bundles, state = (), _STATES[row.state]
        else:
            turn.put_url(outcome.key, row)
            turn.count(state, 1)
        admitted = _NONE_ADMITTED
        if bundles:
            admitted = admit_links(turn, self._admission, outcome.key[:8], bundles)
        added, known, refused, fresh = admitted
        known += told_before
        if is_first and self._traps.enabled:
            match result:
                case Fetched() if growth.is_looked_at(host, row):
                    growth.learn(turn, host, outcome.key, row, bundles, fresh, result.told_inside)
                case Redirected() if known:
                    self._traps.learn_redirect(turn, host, outcome.key, row)
        near = row.distance if row.near_of and isinstance(result, Fetched) else None
        return Settlement(settled, state, added, known, refused, near=near)

    def _turns_out(self, turn: Turn, host: HostRow, row: UrlRow, outcome: Outcome) -> None:
        """What the URL's row says of it from now on."""
        result = outcome.result
        match result:
            case Fetched():
                self._fetched(turn, host, row, result, outcome)
            case Redirected():
                row.status = result.status
                row.rule = REDIRECTS_TO + result.location
                _drop_validators(row)
                remember(turn, outcome.key, row, None)
                name_canonical(turn, row, "")
                self._complete(turn, host, row, outcome)
            case NotModified():
                row.status = row.body_status or 304
                self._complete(turn, host, row, outcome)
            case Failed():
                self._failed(turn, host, row, result, outcome)
            case RobotsRead():
                raise TypeError("a page task cannot be settled with a robots answer")

    def _asked_there(self, turn: Turn, key: bytes, row: UrlRow, target: Discovered) -> bool:
        """Whether this URL itself goes back to a queue, because it leads to one with its own key. One that led
        here may go back as well: from a page to a gate and back to the page with a ticket."""
        if target.key == key:
            return self._admission.ask_there(turn, target, row)
        before = turn.url(target.key)
        if before is not None and before.url != target.url and leads_to(before):
            turn.count(UrlState.COMPLETED, -1)
            if not self._admission.ask_there(turn, target, before):
                turn.count(UrlState.COMPLETED, 1)
        return False

    def _bounded(self, turn: Turn, row: UrlRow, outcome: Outcome, result: Redirected) -> Outcome:
        """A redirect that leads nowhere in the end is a failure; what crossed the wire is in the archive."""
        why = why_endless(turn, outcome.key, row, result.target, self._max_redirects)
        if not why:
            return outcome
        failed = Failed(
            kind=FailureKind.ENDLESS_REDIRECT, detail=why, status=599, size=result.size, record=result.record
        )
        return msgspec.structs.replace(outcome, result=failed)

    def _fetched(self, turn: Turn, host: HostRow, row: UrlRow, result: Fetched, outcome: Outcome) -> None:
        is_first = not row.body_status
        if is_first or not is_unchanged(row, result):
            row.record = place_of(result.record)
        row.status = row.body_status = result.status
        row.digest, row.size, row.truncated = result.digest, result.size, result.truncated
        row.etag, row.last_modified = result.etag, result.last_modified
        row.content_type, row.title, row.directives = result.content_type, result.title, result.directives
        if result.copy is not None:
            turn.put("copies", result.digest, encode(result.copy))
        remember(turn, outcome.key, row, result.simhash)
        if result.canonical or row.canonical:
            name_canonical(turn, row, result.canonical)
        self._complete(turn, host, row, outcome)
        if is_first and 200 <= result.status < 300 and not row.requisite and self._traps.enabled:
            self._traps.learn(turn, host, outcome.key, row, result)

    def _complete(self, turn: Turn, host: HostRow, row: UrlRow, outcome: Outcome) -> None:
        row.state = UrlState.GONE if row.status in _GONE else _COMPLETED
        if 200 <= row.status < 300:
            turn.count_answer(row, 1)
        row.attempts += 1
        row.failure = ""
        host.fetched += 1
        self._health.is_well(host, outcome)

    def _failed(self, turn: Turn, host: HostRow, row: UrlRow, result: Failed, outcome: Outcome) -> None:
        row.attempts += 1
        row.status = result.status
        row.failure = result.kind
        row.rule = result.detail
        host.failed += 1
        rule = RULES[result.kind]
        self._health.blame(turn, host, result, outcome.ended_at)
        if row.attempts >= attempts_allowed(result.kind, self._retry.attempts):
            row.state = rule.ends_as
            row.reason = result.kind
            if rule.ends_as is UrlState.DEAD_LETTER:
                turn.put("dead", outcome.key, b"")
            elif rule.ends_as is UrlState.REFUSED:
                turn.tally.refusals[result.kind] = turn.tally.refusals.get(result.kind, 0) + 1
                _drop_validators(row)
            return
        row.state = UrlState.FAILED
        wait = max(wait_after(result.kind, row.attempts, self._retry.backoff), asked_wait(result))
        row.due = outcome.ended_at + wait
        turn.put("due", micros(row.due) + outcome.key, b"")
        turn.book.due_low = min(turn.book.due_low, micros(row.due) + outcome.key)


def _in_our_time(outcome: Outcome, skew: float) -> Outcome:
    return msgspec.structs.replace(outcome, sent_at=outcome.sent_at + skew, ended_at=outcome.ended_at + skew)


def _brought(row: UrlRow, result: Result) -> tuple[tuple[Bundle, ...], int]:
    """The links of a page, and how many were told before; of a probe, none."""
    match result:
        case Fetched() if row.via is not _PROBE:
            return result.bundles, result.told_before
        case Redirected():
            return bundled([result.target]), 0
        case _:
            return (), 0


def _drop_validators(row: UrlRow) -> None:
    """They spoke of a body that the URL no longer leads to: a 304 for them would say nothing."""
    row.etag = row.last_modified = ""
