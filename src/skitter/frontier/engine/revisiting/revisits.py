"""Revisits: what a visit teaches of a page, when it is due again, and its way back to its queue.

Where a crawl is kept fresh (`revisit.keep_fresh`). Settling asks for the date of a page's next visit. Promotion
moves pages that are due into their host's lane of revisits, as many as the budget has, and looks once more at
each with today's price. Formulas are in `schedule/`. Never feeds an error or a redirect as a visit, and never
asks a host by itself: politeness is leasing's.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from skitter.frontier.engine.answers.told_changes import ToldChanges
from skitter.frontier.engine.revisiting.revisit_budget import RevisitBudget
from skitter.frontier.engine.revisiting.revisit_dates import (
    Groups,
    RevisitDates,
    groups_of,
    prior_of,
)
from skitter.frontier.engine.revisiting.visit_lessons import (
    count_audit,
    count_forecast,
    learn_first,
    learn_trust,
    promised_days,
)
from skitter.frontier.engine.uploads.not_uploaded import stop_counting
from skitter.frontier.rows import HostRow, Note, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import Revisit
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Fetched, LinkBatch, Outcome, Result, UrlKey, UrlState
from skitter.schedule.change_rate import learn, learn_dated, rate_of
from skitter.schedule.kinds import KINDS
from skitter.schedule.noise import is_noisy, needs_check
from skitter.schedule.price import lateness, moved_price
from skitter.schedule.priority import REVISITS
from skitter.schedule.revisit import (
    DATED,
    DAY,
    NEVER_DATED,
    Purpose,
    RevisitRule,
    Visits,
    days_until_asked_if_back,
    pack_visits,
    unpack_visits,
)
from skitter.settings import Settings
from skitter.urls.canonical import host_of

# One transaction moves at most so many, and looks at so many that turn out not to be worth it yet.
_MOST, _MOST_LOOKED_AT = 2_000, 4_000
# More revisits of one host do not wait in its queue: the host could not serve them soon.
_MOST_OF_HOST = 16
# A page whose bytes differed is looked at once more after this long (days).
_NOISE_CHECK = 60.0 / DAY
# What is no page (a redirect, a 403) is looked at again after this long (days): it may become one.
_OTHER_ANSWERS = 30.0
# A page goes back to the index if today's price puts it off by more than this share of its interval.
_WORTH_PUTTING_OFF = 0.05
# First visits again come at random times from this share of their interval on. All pages have much the same one
# then: without that, what is fetched first (front pages) would teach alone for long what all pages do.
_SOONEST_FIRST = 0.5
_DONE = b"done"
_START = b"\0"


class CopyBefore(NamedTuple):
    """What was known of a page before a visit."""

    digest: bytes
    simhash: int | None
    body_status: int


class Revisits:
    def __init__(self, settings: Settings) -> None:
        chosen = settings.revisit
        self.enabled = chosen.keep_fresh
        self._dates = RevisitDates(settings)
        self._told_changes = ToldChanges(self._dates)
        self._audit = chosen.audit
        self._budget = RevisitBudget(chosen.per_second)
        # in one step of promotion, by host
        self._put_off_of: dict[bytes, int] = {}

    # -- a visit is settled

    def copy_before(self, row: UrlRow) -> CopyBefore:
        return CopyBefore(row.answer.digest, row.near.simhash, row.answer.body_status)

    def settled(
        self, tx: Transaction, host: HostRow, row: UrlRow, outcome: Outcome, before: CopyBefore
    ) -> None:
        """Learns from the visit, and gives the page a date for the next one. The caller writes the row."""
        kind = KINDS[row.found.kind]
        if not kind.is_revisited:
            return
        if row.state == UrlState.COMPLETED and 200 <= row.answer.status < 300:
            if kind.lists_urls:
                # when what it names has been admitted
                return
            visits = self._seen(tx, host, outcome, row, before)
        elif row.state == UrlState.GONE:
            gone = unpack_visits(row.visits)
            visits = gone._replace(times_gone=min(gone.times_gone + 1, 255), purpose=Purpose.ROUTINE)
        elif row.state == UrlState.COMPLETED:
            visits = unpack_visits(row.visits)._replace(interval=_OTHER_ANSWERS, purpose=Purpose.ROUTINE)
        else:
            return
        self._plan(tx, host, outcome.key, row, visits, outcome.ended_at)

    def _seen(
        self, tx: Transaction, host: HostRow, outcome: Outcome, row: UrlRow, before: CopyBefore
    ) -> Visits:
        """What is kept of the page's visits after one that brought the page, or said that it is as it was."""
        visits = unpack_visits(row.visits)
        groups = groups_of(tx.cache, outcome.key, row.url)
        differs = _differs(outcome.result, before)
        changed = differs
        is_first = not visits.seen_at
        if is_first:
            visits = learn_first(tx, groups, outcome, row, visits)
        elif before.body_status and visits.purpose == Purpose.NOISE_CHECK:
            pattern = tx.learn_habits(groups[0])
            pattern.checked += 1
            pattern.noisy += differs
        elif before.body_status:
            changed, visits = self._learn(tx, groups, outcome, row, before, visits, differs)
        told_at = DATED if visits.told_at else NEVER_DATED
        visits = visits._replace(seen_at=int(outcome.ended_at), told_at=told_at, times_gone=0)
        is_checked = (
            differs and bool(before.body_status) and needs_check(tx.cache.habits_of(groups[0]).checked)
        )
        if is_checked and visits.purpose != Purpose.NOISE_CHECK:
            return visits._replace(purpose=Purpose.NOISE_CHECK)
        days = self._dates.days(tx, host, row, visits, groups, changed, promised_days(outcome.result))
        purpose = self._next_purpose(host, row, outcome)
        if is_first and purpose == Purpose.ROUTINE and self._dates.rule is RevisitRule.VALUE:
            share = _SOONEST_FIRST + (1 - _SOONEST_FIRST) * _drawn(outcome.key, outcome.ended_at + 2)
            days = max(days * share, min(days, self._dates.least(row)))
        return visits._replace(interval=days, purpose=purpose)

    def _learn(
        self,
        tx: Transaction,
        groups: Groups,
        outcome: Outcome,
        row: UrlRow,
        before: CopyBefore,
        visits: Visits,
        differs: bool,
    ) -> tuple[bool, Visits]:
        habits = tx.cache.habits_of(groups[0])
        changed = differs
        if differs and is_noisy(habits.checked, habits.noisy):
            changed = row.near.simhash is None or row.near.simhash != before.simhash
        days = max(0.0, (outcome.ended_at - visits.seen_at) / DAY)
        rate = rate_of(visits.changes, visits.days, prior_of(tx.cache, groups))
        unchanged = learn_trust(tx, groups, outcome, row, visits, rate, changed=changed)
        if changed and unchanged is not None:
            changes, watched, counted = learn_dated(visits.changes, visits.days, rate, days, unchanged)
        else:
            changes, watched, counted = learn(visits.changes, visits.days, rate, days, float(changed))
        count_forecast(tx, groups, visits, days, changed=changed)
        found = tx.tally.revisits
        pattern, others = tx.learn_habits(groups[0]), (tx.learn_habits(groups[1]), found.habits)
        # pages that were promised are those that change most, and are visited most: they say nothing of others
        for group in (pattern,) if visits.purpose == Purpose.PROMISE else (pattern, *others):
            group.changes += counted
            group.days += days
        found.visits += 1
        found.changed += changed
        if visits.purpose == Purpose.ROUTINE:
            found.lateness.add(visits.interval, days)
        if visits.purpose == Purpose.AUDIT:
            count_audit(tx, groups, row, visits.interval * self._dates.weight(row), is_fresh=not changed)
        return changed, visits._replace(changes=changes, days=watched)

    def _next_purpose(self, host: HostRow, row: UrlRow, outcome: Outcome) -> Purpose:
        if _drawn(outcome.key, outcome.ended_at) < self._audit:
            return Purpose.AUDIT
        return Purpose.PROMISE if self._dates.is_promised(host, row.url) else Purpose.ROUTINE

    # -- a sitemap or feed is read

    def hear(self, tx: Transaction, link_batch: LinkBatch) -> None:
        """What a sitemap or feed says of pages that are known, before its links are admitted."""
        self._told_changes.hear(tx, link_batch)

    def heard_ahead(self, tx: Transaction, file: UrlKey, added: int) -> None:
        """So many of its URLs were new, in a part that went ahead of its outcome."""
        self._told_changes.count_news(tx, file, added)

    def read_file(self, tx: Transaction, host: HostRow, row: UrlRow, outcome: Outcome, added: int) -> None:
        """A sitemap or feed was read, or is as it was: it gets a date for its next reading."""
        if row.state != UrlState.COMPLETED or not 200 <= row.answer.status < 300:
            return
        self._told_changes.count_news(tx, outcome.key, added)
        visits = self._told_changes.read(tx, outcome, row, unpack_visits(row.visits))
        self._plan(tx, host, outcome.key, row, visits, outcome.ended_at)
        tx.put_url(outcome.key, row)

    # -- dates

    def _plan(
        self, tx: Transaction, host: HostRow, key: UrlKey, row: UrlRow, visits: Visits, seen_at: float
    ) -> None:
        row.visits = pack_visits(visits)
        if self._dates.is_never_visited(host, row.url):
            return
        days: float | None = visits.interval
        if row.state == UrlState.GONE:
            days = days_until_asked_if_back(visits.times_gone)
        elif visits.purpose == Purpose.NOISE_CHECK:
            days = min(_NOISE_CHECK, self._dates.bounds_of(host, row.url).most)
        elif visits.purpose == Purpose.AUDIT:
            # as long as intervals are in truth: what is late is the stalest
            days = visits.interval * tx.tally.revisits.lateness.stretch * _drawn(key, seen_at + 1)
        if days is not None:
            tx.plan_visit(key, row, seen_at + days * DAY)

    # -- pages go back to their queues

    def begin(self, tx: Transaction) -> None:
        """A crawl that was not kept fresh until now has pages without a date: `promote` walks over them."""
        known = tx.cache.note(Note.REVISIT_WALK)
        if self.enabled and known is None:
            tx.set_note(Note.REVISIT_WALK, _START)
        elif not self.enabled and known is not None:
            tx.clear_note(Note.REVISIT_WALK)

    def promote(self, tx: Transaction) -> int:
        """Up to a slice of the pages that are due, as many as the budget has; how many went to their queues or
        got their first date."""
        found = tx.tally.revisits
        self._budget.earn(tx.now, found.watched)
        self._put_off_of.clear()
        moved = self._walk(tx)
        # what must be on time takes its part of the budget, but does not wait for it
        for revisit in queries.revisits(tx.cache, True, _MOST_LOOKED_AT):
            if revisit.at > tx.now or moved >= _MOST:
                break
            if not self._waits_for_promise(tx, revisit):
                moved += self._look_again(tx, revisit, is_early=False)
        for revisit in queries.revisits(tx.cache, False, _MOST_LOOKED_AT):
            if moved >= _MOST or tx.tally.tiers[REVISITS] >= self._budget.most_waiting:
                break
            is_early = revisit.at > tx.now
            if is_early and (self._dates.rule is not RevisitRule.VALUE or not self._budget.has_spare()):
                break
            if not is_early and not self._budget.has_one():
                break
            moved += self._look_again(tx, revisit, is_early)
        return moved

    def _waits_for_promise(self, tx: Transaction, revisit: Revisit) -> bool:
        """A visit that is worth it before its page's promise ends is one of the budget's. Where nothing is left
        of that, the page waits until it must be on time."""
        if self._dates.rule is not RevisitRule.VALUE or self._budget.has_one():
            return False
        row = tx.url(revisit.key)
        if row is None or not revisit.is_of(row):
            return False
        _, host = tx.look(host_of(row.url))
        if host is None or tx.now >= (until := self._promised_at(host, row)):
            return False
        self._put_off(tx, revisit.key, row, until)
        return True

    def _promised_at(self, host: HostRow, row: UrlRow) -> float:
        """When a page must be visited by its promise at the latest; 0 where its next visit has another reason."""
        visits = unpack_visits(row.visits)
        if visits.purpose != Purpose.PROMISE or not _is_page(row):
            return 0.0
        return visits.seen_at + self._dates.bounds_of(host, row.url).most * DAY

    def _look_again(self, tx: Transaction, revisit: Revisit, is_early: bool) -> int:
        """Whether the page went to its queue."""
        row = tx.url(revisit.key)
        if row is None or not revisit.is_of(row):
            tx.drop_revisit(revisit)
            return 0
        ident, host = tx.look(host_of(row.url))
        if host is None:
            return 0
        if host.is_out_of_reach():
            return self._put_off(tx, revisit.key, row, tx.now + DAY)
        if _revisits_of(host) >= _MOST_OF_HOST:
            return self._put_off(tx, revisit.key, row, self._free_at(tx, ident, host))
        is_by_value = self._dates.rule is RevisitRule.VALUE and (
            _is_by_value(row) or tx.now < self._promised_at(host, row)
        )
        if is_early and not is_by_value:
            return 0
        if is_by_value:
            today = self._dates.today(tx, host, revisit.key, row)
            if is_early and tx.now - unpack_visits(row.visits).seen_at < self._dates.least(row) * DAY:
                return 0
            if not is_early and self._is_worth_putting_off(tx, row, today):
                return self._put_off(tx, revisit.key, row, today)
            if host.lease is None and tx.cache.earliest_start(host) <= tx.now:
                found = tx.tally.revisits
                late = lateness(tx.now, revisit.at, today) / DAY
                found.price = moved_price(found.price, late, found.watched)
        self._budget.spend(is_early)
        self._send(tx, revisit.key, row, tx.take(ident, host, host_of(row.url)), ident)
        return 1

    def _is_worth_putting_off(self, tx: Transaction, row: UrlRow, today: float) -> bool:
        """Not a first visit again, whose time was drawn: nothing is known of the page yet."""
        visits = unpack_visits(row.visits)
        if KINDS[row.found.kind].is_page and not visits.days and visits.purpose == Purpose.ROUTINE:
            return False
        return today - tx.now > _WORTH_PUTTING_OFF * (tx.now - visits.seen_at)

    def _free_at(self, tx: Transaction, ident: bytes, host: HostRow) -> float:
        """When the host may have time for one more. What is put off in one step is spread at the host's pace."""
        place = self._put_off_of[ident] = self._put_off_of.get(ident, _MOST_OF_HOST) + 1
        return tx.now + place * max(1.0, tx.cache.delay_of(host))

    def _put_off(self, tx: Transaction, key: UrlKey, row: UrlRow, until: float) -> int:
        tx.cancel_visit(key, row)
        tx.plan_visit(key, row, until)
        tx.put_url(key, row)
        return 0

    def _send(self, tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, ident: bytes) -> None:
        if row.waiting:
            stop_counting(tx, key, row)
        row.attempts = 0
        row.reason = row.rule = ""
        tx.enqueue_revisit(key, row, ident, host)

    def _walk(self, tx: Transaction) -> int:
        """Gives a first date to a slice of the pages that were fetched before the crawl was kept fresh."""
        cursor = tx.cache.note(Note.REVISIT_WALK)
        if cursor is None or cursor == _DONE:
            return 0
        planned = 0
        for looked, key in enumerate(queries.urls(tx.cache, None, b"" if cursor == _START else cursor)):
            if looked >= _MOST:
                tx.set_note(Note.REVISIT_WALK, key)
                return max(planned, 1)
            row = tx.url(key)
            if row is not None and self._plan_first(tx, key, row):
                planned += 1
        tx.set_note(Note.REVISIT_WALK, _DONE)
        return planned

    def _plan_first(self, tx: Transaction, key: UrlKey, row: UrlRow) -> bool:
        is_page = KINDS[row.found.kind].is_revisited and row.state in (UrlState.COMPLETED, UrlState.GONE)
        _, host = tx.look(host_of(row.url))
        if not is_page or row.due or host is None:
            return False
        seen_at = row.answer.at + tx.cache.skew
        visits = unpack_visits(row.visits)
        if row.state == UrlState.GONE:
            visits = visits._replace(times_gone=max(1, visits.times_gone))
        elif 200 <= row.answer.status < 300:
            purpose = Purpose.PROMISE if self._dates.is_promised(host, row.url) else Purpose.ROUTINE
            visits = visits._replace(seen_at=visits.seen_at or int(seen_at), purpose=purpose)
            row.visits = pack_visits(visits)
            days = (self._dates.today(tx, host, key, row) - visits.seen_at) / DAY
            visits = visits._replace(interval=days)
        else:
            visits = visits._replace(interval=_OTHER_ANSWERS)
        self._plan(tx, host, key, row, visits, seen_at)
        tx.put_url(key, row)
        return bool(row.due)


def _differs(result: Result, before: CopyBefore) -> bool:
    """Whether other bytes came than those we have; a 304 says that they are the same."""
    return isinstance(result, Fetched) and result.digest != before.digest


def _drawn(key: bytes, at: float) -> float:
    """A number from 0 to 1 that looks random, and is the same whenever it is asked for."""
    return crc32(key + int(at * 1_000_000).to_bytes(8, "big", signed=True)) / 0x1_0000_0000


def _revisits_of(host: HostRow) -> int:
    return host.queue.lengths[REVISITS] + (host.lease.pages[REVISITS] if host.lease is not None else 0)


def _is_by_value(row: UrlRow) -> bool:
    """A page whose next visit has no other reason than its worth."""
    return _is_page(row) and unpack_visits(row.visits).purpose == Purpose.ROUTINE


def _is_page(row: UrlRow) -> bool:
    return row.state == UrlState.COMPLETED and 200 <= row.answer.status < 300
