"""Settling: what one outcome changes, in one transaction: the URL, its host's health, the ledger, and the links
it brought, which go through admission.

An outcome counts only if its lease is live and its URL is still out under it. A late page (its lease expired)
is kept when nobody has fetched or is fetching that URL, and leases out leave room for it under the page limit;
everything else that is stale changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skitter.frontier.base import Admitted as Told
from skitter.frontier.base import LookedAgain, Settled, Settlement
from skitter.frontier.engine.addresses import Addresses
from skitter.frontier.engine.admission import Admission
from skitter.frontier.engine.answers.aliases import name_canonical
from skitter.frontier.engine.answers.declarations import Declarations, note_declared
from skitter.frontier.engine.answers.ledger import enter_in_ledger, is_unchanged, place_of
from skitter.frontier.engine.answers.looked_again import looked_again
from skitter.frontier.engine.answers.near_duplicates import remember
from skitter.frontier.engine.answers.redirects import REDIRECTS_TO, leads_to, why_endless
from skitter.frontier.engine.answers.robots import RobotsAnswers
from skitter.frontier.engine.answers.sitemaps import LISTED, Sitemaps
from skitter.frontier.engine.bare_seeds import seed_over_http, take_bare_seeds
from skitter.frontier.engine.health import Health, asked_wait
from skitter.frontier.engine.importance import Importance
from skitter.frontier.engine.load_limits import count_request
from skitter.frontier.engine.outlinks import Admitted, admit_links
from skitter.frontier.engine.regions import Regions
from skitter.frontier.engine.renders import Renders
from skitter.frontier.engine.revisiting.revisits import Revisits
from skitter.frontier.engine.traps import endless_sections, listings
from skitter.frontier.engine.traps.rules import Traps
from skitter.frontier.engine.uploads.lost_segments import read_robots_again
from skitter.frontier.engine.uploads.not_uploaded import hold
from skitter.frontier.link_batches import pack, unpack
from skitter.frontier.posts import (
    Post,
    PostedAnswer,
    PostedErrand,
    PostedLinks,
    PostedListing,
    PostedLoss,
)
from skitter.frontier.rows import Errand, Gap, HostGrowth, HostRow, UrlRow
from skitter.frontier.tables.slots import host_of_slot, tier_of_slot
from skitter.frontier.tables.transaction import Transaction
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    LinkBatch,
    NotModified,
    Outcome,
    Redirected,
    Rendered,
    Result,
    RobotsRead,
    TaskKind,
    UrlKey,
    UrlState,
    Via,
)
from skitter.plan.growth import smoothed_in
from skitter.schedule.kinds import KINDS
from skitter.schedule.politeness import smoothed
from skitter.schedule.priority import REVISITS
from skitter.schedule.retry import RULES, attempts_allowed, wait_after
from skitter.settings import Settings
from skitter.urls.canonical import host_id
from skitter.urls.keys import host_part

_GONE = (404, 410)
# Times are floats since the epoch: differences below this are rounding.
_CLOCK_GRAIN = 0.000_01
# A pause that is longer (s) is one of the crawl, not of its pace.
_LONG_GAP = 60.0
_STALE = Settlement(Settled.STALE)
_ROBOTS_SETTLED = Settlement(Settled.ACCEPTED)
_NONE_ADMITTED = Admitted(0, 0, 0, [])
_STATES = {int(state): state for state in UrlState}
# bound once: looked up for every page
_ACCEPTED = Settled.ACCEPTED
_IN_PROGRESS, _COMPLETED = UrlState.IN_PROGRESS, UrlState.COMPLETED


class Settling:
    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        health: Health,
        addresses: Addresses,
        traps: Traps,
        revisits: Revisits,
        renders: Renders,
        importance: Importance,
        regions: Regions,
    ) -> None:
        self._regions = regions
        self._importance = importance
        self._traps = traps
        self._renders = renders
        self._retry = settings.retry
        self._floor = settings.focus.floor
        self._max_pages = settings.crawl.max_pages
        self._max_redirects = settings.fetch.max_redirects
        self._holds = bool(settings.archive.url)
        self._admission = admission
        self._health = health
        self._addresses = addresses
        self._sitemaps = Sitemaps(settings, admission)
        self._robots = RobotsAnswers(settings, health, self._sitemaps, Declarations(settings, admission))
        self._revisits = revisits
        self._late_room = 0

    def change_settings(self, settings: Settings) -> None:
        self._max_pages = settings.crawl.max_pages

    def settle_all(self, tx: Transaction, outcomes: Sequence[Outcome]) -> list[Settlement]:
        # by the room there was before the batch, as `judging` has it
        self._late_room = tx.room(self._max_pages)
        if skew := tx.cache.skew:
            outcomes = [_in_our_time(outcome, skew) for outcome in outcomes]
        settle = self._settle
        return [settle(tx, outcome) for outcome in outcomes]

    def _settle(self, tx: Transaction, outcome: Outcome) -> Settlement:
        if not KINDS[outcome.kind].asks_host:
            return self._renders.settle(tx, outcome)
        ident = host_id(outcome.host)
        host = tx.touch(ident)
        if host is None:
            return _STALE
        prefix = host_part(outcome.key)
        if prefix != ident and prefix != tx.cache.keys.prefix(outcome.host):
            return self._stale(tx)
        lease = host.lease
        # whatever the outcome is worth, its request was made: the host's spacing counts from it
        if outcome.sent_at > host.pace.last_sent:
            self._account_gap(tx, host, outcome)
        if outcome.sent_at > host.pace.last_start:
            host.pace.last_start = outcome.sent_at
        if host.load is not None:
            size = 0 if isinstance(outcome.result, NotModified) else outcome.result.size
            count_request(tx, host, size, outcome.sent_at)
        if lease is None or lease.token != outcome.token:
            self._addresses.heard(tx, ident, host)
            return self._settle_late(tx, ident, host, outcome)
        if outcome.session is not None:
            host.session = outcome.session
        if "@" in lease.worker:
            self._regions.heard(tx, host, outcome)
        slot = tx.cache.lease_slots(ident, lease.token).get(outcome.key)
        if slot is None:
            return self._stale(tx)
        hopeful = not host.health.given_up
        if KINDS[outcome.kind].is_url:
            settlement = self._settle_url(tx, host, slot, outcome)
        else:
            is_awaited = self._robots.settle(tx, ident, host, slot, outcome)
            settlement = _ROBOTS_SETTLED if is_awaited else self._stale(tx)
            if host.health.has_bare_seeds and isinstance(outcome.result, Failed) and not slot:
                for _, row in take_bare_seeds(tx, ident, host, outcome.result):
                    self._admission.admit(tx, seed_over_http(tx, row))
        if lease.outstanding() == 0:
            tx.end_lease(ident, host)
            if host.queue.is_over_budget:
                self._admission.recall_if_earned(tx, host)
            if tx.tally.renders is not None and not any(host.queue.lengths):
                self._renders.sound(tx, ident, host)
        if hopeful and host.health.given_up:
            return msgspec.structs.replace(settlement, gave_up=True)
        return settlement

    def _account_gap(self, tx: Transaction, host: HostRow, outcome: Outcome) -> None:
        """The politeness ledger: what was asked of workers against what they did, from their own times.
        Hosts that the operator lets be asked in parallel are out of it, and so is what is told a second time."""
        lease, sent_at = host.lease, outcome.sent_at
        if lease is not None and lease.token != outcome.token:
            lease = None
        if host.pace.last_sent and (lease is None or lease.parallel <= 1):
            required = tx.cache.delay_of(host) if lease is None else lease.delay
            tally, seconds = tx.tally, sent_at - host.pace.last_sent
            margin = seconds - required
            early = sent_at < host.pace.last_ended - _CLOCK_GRAIN
            tally.gaps += 1
            if host.growth is not None and seconds < _LONG_GAP + 2 * required:
                host.growth.gap = smoothed(host.growth.gap, seconds)
            if early or margin < -_CLOCK_GRAIN:
                tally.violations += 1
            if host.pace.tightest is None or margin < host.pace.tightest.margin():
                host.pace.tightest = Gap(seconds, required)
            if tally.tightest is None or margin < tally.tightest.margin():
                tally.tightest, tally.tightest_host = Gap(seconds, required), host.host
        host.pace.last_sent = sent_at
        if outcome.ended_at > host.pace.last_ended:
            host.pace.last_ended = outcome.ended_at

    def _stale(self, tx: Transaction) -> Settlement:
        tx.tally.stale_outcomes += 1
        return _STALE

    # -- URLs

    def _settle_url(self, tx: Transaction, host: HostRow, slot: bytes, outcome: Outcome) -> Settlement:
        row = tx.url(outcome.key)
        if row is None or row.slot != slot or host.lease is None:
            return self._stale(tx)
        tier = tier_of_slot(slot)
        host.lease.pages[tier] -= 1
        if tier == REVISITS:
            tx.tally.revisits.leased -= 1
        tx.count(_IN_PROGRESS, -1)
        return self._apply(tx, host, row, outcome, _ACCEPTED)

    def _settle_late(self, tx: Transaction, ident: bytes, host: HostRow, outcome: Outcome) -> Settlement:
        row = tx.url(outcome.key) if KINDS[outcome.kind].is_url else None
        # a place that this batch has given it is for a request that is yet to be made
        if outcome.key in tx.led_on:
            return self._stale(tx)
        if row is None or host_of_slot(row.slot) != ident or isinstance(outcome.result, Failed):
            return self._stale(tx)
        if host.lease is not None and outcome.key in tx.cache.lease_slots(ident, host.lease.token):
            return self._stale(tx)
        if KINDS[row.found.kind].is_page and self._late_room <= 0:
            return self._stale(tx)
        self._late_room -= 1
        tier = tier_of_slot(row.slot)
        host.queue.lengths[tier] -= 1
        tx.tally.tiers[tier] -= 1
        tx.count(UrlState.QUEUED, -1)
        return self._apply(tx, host, row, outcome, Settled.LATE)

    def _apply(
        self, tx: Transaction, host: HostRow, row: UrlRow, outcome: Outcome, settled: Settled
    ) -> Settlement:
        tx.dequeue(row)
        if tx.tally.renders is not None:
            self._renders.answered(tx, outcome.key)
        row.found.is_out = False
        if isinstance(outcome.result, Redirected):
            outcome = self._bounded(tx, row, outcome, outcome.result)
        result = outcome.result
        is_first, is_first_body = not row.answer.status, not row.answer.body_status
        again = None if is_first else looked_again(row, result)
        enter_in_ledger(tx, host, outcome, bool(row.answer.body_status) and is_unchanged(row, result))
        row.answer.at = tx.cache.by_the_clock(outcome.ended_at)
        copy = self._revisits.copy_before(row) if self._revisits.enabled else None
        self._turns_out(tx, host, row, outcome)
        if self._holds:
            is_good = row.state == _COMPLETED and 200 <= row.answer.status < 300
            is_page = is_good and KINDS[row.found.kind].is_page
            hold(tx, outcome, row, is_page=is_page)
        link_batches, already_sent = _brought(row, result)
        state = _STATES[row.state]
        if isinstance(result, Redirected) and self._ask_there_instead(tx, outcome.key, row, result.target):
            link_batches, state = (), _STATES[row.state]
        else:
            if copy is not None:
                self._revisits.settled(tx, host, row, outcome, copy)
            tx.put_url(outcome.key, row)
            tx.count(state, 1)
        admitted, left_out, known_before = _NONE_ADMITTED, 0, host.queue.admitted
        if link_batches:
            if link_batches[0].via in LISTED:
                link_batches, left_out = self._listed(tx, link_batches)
            admitted = admit_links(tx, self._admission, host_part(outcome.key), link_batches)
        added, known, refused, fresh = admitted
        if is_first:
            _note_growth(host, host.queue.admitted - known_before)
            if self._importance.enabled and link_batches:
                self._importance.vote(tx, host_part(outcome.key), host, link_batches)
        if copy is not None and KINDS[row.found.kind].lists_urls:
            self._revisits.read_file(tx, host, row, outcome, added)
        known += already_sent
        refused += left_out
        is_rendered = False
        if isinstance(result, Fetched) and result.looks:
            # Alike without their scripts: they are judged, and compared, when these have run.
            is_new = again is not LookedAgain.UNCHANGED
            is_rendered = self._renders.consider(tx, host, outcome.key, row, result, is_new=is_new)
        if self._traps.enabled and not is_rendered:
            if isinstance(result, Fetched):
                ends_here = is_first_body and self._learn(tx, host, outcome.key, row, result, fresh)
                if is_first and not ends_here and endless_sections.is_looked_at(host, row):
                    endless_sections.learn(
                        tx, host, outcome.key, row, link_batches, fresh, result.already_sent_here
                    )
            elif is_first and known and isinstance(result, Redirected):
                self._traps.learn_redirect(tx, host, outcome.key, row)
        if isinstance(result, Fetched):
            near = row.near.distance if row.near.of else None
            url = row.url if result.note else ""
            return Settlement(settled, state, added, known, refused, near=near, url=url, again=again)
        url = row.url if isinstance(result, Failed) else ""
        return Settlement(settled, state, added, known, refused, url=url, again=again)

    def _learn(
        self, tx: Transaction, host: HostRow, key: bytes, row: UrlRow, page: Fetched, fresh: list[Discovered]
    ) -> bool:
        """What a first page tells about traps. Whether it is an entry that leads to nothing new."""
        if not (200 <= page.status < 300 and KINDS[row.found.kind].is_page):
            return False
        ends_here = self._traps.learn(tx, host, key, row, page, fresh)
        if fresh and host.novelty.entries >= listings.FEWEST_ENTRIES:
            listings.learn(tx, host, key, row, fresh)
        return ends_here

    def admit_listed(self, tx: Transaction, link_batch: LinkBatch) -> Told:
        """Part of what a sitemap or feed names, ahead of its outcome."""
        link_batches, left_out = self._listed(tx, (link_batch,))
        file = UrlKey(link_batch.parent or b"")
        added, known, refused, _ = admit_links(tx, self._admission, host_part(file), link_batches)
        if self._revisits.enabled:
            self._revisits.heard_ahead(tx, file, added)
        return Told(added, known, refused + left_out)

    def take_post(self, tx: Transaction, post: Post) -> None:
        """What another partition tells this one."""
        match post:
            case PostedLinks():
                for link in unpack(post.link_batches):
                    if link.via is Via.ROBOTS:
                        self._sitemaps.admit_posted(tx, link)
                    else:
                        self._admission.admit(tx, link)
            case PostedListing():
                allowed = self._sitemaps.allowed_of(tx, post)
                if self._revisits.enabled:
                    for link_batch in allowed:
                        self._revisits.hear(tx, link_batch)
                admit_links(tx, self._admission, host_part(post.link_batch.parent or b""), allowed)
            case PostedErrand():
                tx.send_errand(Errand(behalf=post.behalf, url=post.url, hops=post.hops), post.to)
            case PostedAnswer():
                self._robots.take_answer(tx, post)
            case PostedLoss():
                read_robots_again(tx, post.behalf)

    def _listed(
        self, tx: Transaction, link_batches: Sequence[LinkBatch]
    ) -> tuple[tuple[LinkBatch, ...], int]:
        """What a sitemap or feed may name, and how many links are left out. Its dates are heard."""
        allowed, left_out = self._sitemaps.allowed(tx, link_batches)
        if self._revisits.enabled:
            for link_batch in allowed:
                self._revisits.hear(tx, link_batch)
        return allowed, left_out

    def _turns_out(self, tx: Transaction, host: HostRow, row: UrlRow, outcome: Outcome) -> None:
        """What the URL's row says of it from now on."""
        result = outcome.result
        match result:
            case Fetched():
                self._fetched(tx, host, row, result, outcome)
            case Redirected():
                row.answer.status = result.status
                row.rule = REDIRECTS_TO + result.location
                _drop_validators(row)
                remember(tx, outcome.key, row, None)
                name_canonical(tx, row, "")
                self._complete(tx, host, row, outcome)
            case NotModified():
                row.answer.status = row.answer.body_status or 304
                self._complete(tx, host, row, outcome)
            case Failed():
                self._failed(tx, host, row, result, outcome)
            case RobotsRead() | Rendered():
                raise TypeError("a page task cannot be settled with the result of another kind of task")

    def _ask_there_instead(self, tx: Transaction, key: bytes, row: UrlRow, target: Discovered) -> bool:
        """Whether this URL itself goes back to a queue, because it leads to one with its own key. One that led
        here may go back as well: from a page to a gate and back to the page with a ticket."""
        if target.key == key:
            return self._admission.ask_there(tx, target, row)
        before = tx.url(target.key)
        if before is not None and before.url != target.url and leads_to(before):
            tx.count(UrlState.COMPLETED, -1)
            if not self._admission.ask_there(tx, target, before):
                tx.count(UrlState.COMPLETED, 1)
        return False

    def _bounded(self, tx: Transaction, row: UrlRow, outcome: Outcome, result: Redirected) -> Outcome:
        """A redirect that leads nowhere in the end is a failure; what crossed the wire is in the archive."""
        why = why_endless(tx, outcome.key, row, result.target, self._max_redirects)
        if not why:
            return outcome
        failed = Failed(
            kind=FailureKind.ENDLESS_REDIRECT, detail=why, status=599, size=result.size, record=result.record
        )
        return msgspec.structs.replace(outcome, result=failed)

    def _fetched(
        self, tx: Transaction, host: HostRow, row: UrlRow, result: Fetched, outcome: Outcome
    ) -> None:
        is_first = not row.answer.body_status
        if result.score is not None and is_first:
            tx.tally.scored += 1
            tx.tally.on_topic += result.score >= self._floor
        if is_first or not is_unchanged(row, result):
            row.answer.record = place_of(result.record)
        row.answer.status = row.answer.body_status = result.status
        row.answer.digest, row.answer.size, row.answer.truncated = (
            result.digest,
            result.size,
            result.truncated,
        )
        row.answer.etag, row.answer.last_modified = result.etag, result.last_modified
        row.answer.content_type, row.answer.title, row.answer.directives = (
            result.content_type,
            result.title,
            result.directives,
        )
        if row.found.kind is TaskKind.DECLARATION:
            note_declared(host, row, result)
        if result.copy is not None:
            tx.put_copy(result.digest, result.copy)
        remember(tx, outcome.key, row, result.simhash)
        if result.canonical or row.answer.canonical:
            name_canonical(tx, row, result.canonical)
        self._complete(tx, host, row, outcome)

    def _complete(self, tx: Transaction, host: HostRow, row: UrlRow, outcome: Outcome) -> None:
        row.state = UrlState.GONE if row.answer.status in _GONE else _COMPLETED
        if 200 <= row.answer.status < 300:
            tx.count_answer(row, 1)
        row.attempts += 1
        row.answer.failure = ""
        host.counts.fetched += 1
        self._health.is_well(host, outcome)

    def _failed(self, tx: Transaction, host: HostRow, row: UrlRow, result: Failed, outcome: Outcome) -> None:
        row.attempts += 1
        row.answer.status = result.status
        row.answer.failure = result.kind
        row.rule = result.detail
        host.counts.failed += 1
        rule = RULES[result.kind]
        self._health.blame(tx, host, result, outcome.ended_at)
        is_over = KINDS[row.found.kind].is_sent_once and not rule.is_unsent
        if is_over or row.attempts >= attempts_allowed(result.kind, self._retry.attempts):
            row.state = rule.ends_as
            row.reason = result.kind
            if rule.ends_as is UrlState.DEAD_LETTER:
                tx.add_dead(outcome.key)
            elif rule.ends_as is UrlState.REFUSED:
                tx.tally.refusals[result.kind] = tx.tally.refusals.get(result.kind, 0) + 1
                _drop_validators(row)
            return
        row.state = UrlState.FAILED
        wait = max(wait_after(result.kind, row.attempts, self._retry.backoff), asked_wait(result))
        row.due = outcome.ended_at + wait
        tx.add_due(outcome.key, row.due)


def _note_growth(host: HostRow, brought: int) -> None:
    """For estimates: a URL had its first answer, which brought so many new URLs of its host."""
    growth = host.growth
    if growth is None:
        growth = host.growth = HostGrowth()
    growth.answers += 1
    growth.brought += brought
    growth.recent = smoothed_in(growth.recent, growth.answers, brought)


def _in_our_time(outcome: Outcome, skew: float) -> Outcome:
    return msgspec.structs.replace(outcome, sent_at=outcome.sent_at + skew, ended_at=outcome.ended_at + skew)


def _brought(row: UrlRow, result: Result) -> tuple[tuple[LinkBatch, ...], int]:
    """The links of an answer, and how many of its links its worker left out because they were sent before."""
    match result:
        case Fetched() if KINDS[row.found.kind].brings_links:
            return result.link_batches, result.already_sent
        case Redirected():
            return pack([result.target]), 0
        case _:
            return (), 0


def _drop_validators(row: UrlRow) -> None:
    """They spoke of a body that the URL no longer leads to: a 304 for them would say nothing."""
    row.answer.etag = row.answer.last_modified = ""
