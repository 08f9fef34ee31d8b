"""Renderings: which pages are shown in a browser, who does it when, and what came of it.

Beside leasing and settling, by the same fence: an outcome counts if its token is the live lease's. A rendering
asks no host. What its page asks for and has no answer is admitted like any other URL, and the rendering waits
until all of it is settled, or for `render.longest_wait`. It is no visit: it changes no pace, no budget, no date.

    queued    it may be leased; while a tab of it lives, by who has the tab
    leased    a worker shows the page until the deadline
    awaiting  so many URLs are not settled yet
    done      with an ending; the links it brought were admitted
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from skitter.frontier.base import Settled, Settlement
from skitter.frontier.engine.admission import Admission
from skitter.frontier.engine.answers.ledger import place_of
from skitter.frontier.engine.answers.near_duplicates import remember
from skitter.frontier.engine.answers.redirects import leads_to
from skitter.frontier.engine.outlinks import admit_links
from skitter.frontier.engine.traps.rules import Traps
from skitter.frontier.link_batches import keys_of, urls_of
from skitter.frontier.rows import HostRow, RenderRow, RenderState, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables import render_tables as tables
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.url_patterns import pattern_of, pattern_of_known
from skitter.model import (
    AnswerAt,
    Discovered,
    Fetched,
    Outcome,
    RecordAt,
    Rendered,
    RenderTask,
    Standby,
    TaskKind,
    Token,
    UrlKey,
    UrlState,
    Via,
)
from skitter.schedule import rendering as rules
from skitter.schedule.kinds import KINDS
from skitter.settings import Settings
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import host_part

_STALE = Settlement(Settled.STALE)
# Seconds: for whom a tab waits has so long to take its rendering; then anybody may.
_FOR_ITS_TAB = 5.0
# A rendering that was lost with its worker so often is given up: it may be what kills them.
_MOST_TRIES = 3
_MOST_LOOKED_AT = 500
_MOST_TIMERS = 500
_MOST_URGENT = 100
# URLs of a host that are looked at for pages of a kind that turned out to need rendering: some 20 ms.
_MOST_CAUGHT_UP = 2_000
_ENDED = frozenset(
    (UrlState.COMPLETED, UrlState.GONE, UrlState.DENIED, UrlState.REFUSED, UrlState.DEAD_LETTER)
)
SKIPPED, LOST = "skipped", "lost"
# Endings that may be no fault of the page: its browser was killed, or ran out of memory for others.
_ACCIDENTS = frozenset(("crashed", "died"))


class Renders:
    def __init__(self, settings: Settings, admission: Admission, traps: Traps) -> None:
        self._mode = settings.crawl.render
        self._limits = settings.render
        self._admission = admission
        self._traps = traps

    def mode_of(self, host: HostRow) -> str:
        own = host.policy.render if host.policy is not None else None
        return own or self._mode

    # -- pages that were fetched

    def consider(
        self, tx: Transaction, host: HostRow, key: UrlKey, row: UrlRow, page: Fetched, *, is_new: bool
    ) -> bool:
        """A page was fetched; it `is_new` if it differs from the copy before. Whether it is to be rendered."""
        mode = self.mode_of(host)
        if mode == rules.NEVER or not page.looks or not _is_good(row):
            return False
        if not is_new and tables.rendering(tx, key) is not None:
            return False
        kind = tables.evidence_on(tx, self._kind_of(tx, key, row))
        choice = rules.choose(mode, page.looks, kind)
        if rules.is_shell(page.looks) and kind.verdict != rules.Verdict.UNKNOWN:
            kind.seen += 1
            tables.put_evidence(tx, self._kind_of(tx, key, row), kind)
        if choice.is_rendered:
            self._want(tx, key, row, choice.why)
        elif choice.why:
            self._note_skipped(tx, key, row, choice.why)
        elif mode == rules.AUTO and page.looks == rules.SCRIPTED:
            self._note_candidate(tx, key, row)
        return choice.is_rendered

    # -- soundings

    def _note_candidate(self, tx: Transaction, key: UrlKey, row: UrlRow) -> None:
        """A page that looks whole and has scripts may be tried when its host has nothing else to ask for."""
        ident = host_id(host_of(row.url))
        host = tables.evidence_on(tx, _of_host(ident))
        if host.sounded or len(host.candidates) >= rules.SOUNDINGS:
            return
        kinds = {pattern_of_known(tx, each) for each in host.candidates}
        if pattern_of(tx.cache, ident, key, row.url) in kinds:
            return
        host.candidates.append(key)
        tables.put_evidence(tx, _of_host(ident), host)
        tally = tables.tally_of(tx)
        tally.since = tally.since or tx.now

    def sound(self, tx: Transaction, ident: bytes, host: HostRow) -> None:
        """The host has nothing left to ask for: is what looks whole really whole? Once, and as long as soundings
        take no more of the time than their share."""
        if self.mode_of(host) != rules.AUTO:
            return
        known = tables.evidence_on(tx, _of_host(ident))
        tally = tables.tally_of(tx)
        if known.sounded or not known.candidates:
            return
        if tally.sounded >= self._limits.share * (tx.now - tally.since):
            return
        known.sounded = len(known.candidates)
        for key in known.candidates:
            row = tx.url(key)
            if row is not None and tables.rendering(tx, UrlKey(key)) is None:
                self._want(tx, UrlKey(key), row, "its host's queue ran dry, and it has scripts: a sounding")
                found = tables.rendering(tx, UrlKey(key))
                if found is not None:
                    found.is_sounding = True
                    tables.put_rendering(tx, key, found)
        known.candidates = []
        tables.put_evidence(tx, _of_host(ident), known)

    def _catch_up(self, tx: Transaction, key: UrlKey, page: UrlRow) -> None:
        """A sounding brought more: the pages of its kind that were taken for whole are rendered too."""
        host = host_of(page.url)
        ident = host_id(host)
        kind = pattern_of(tx.cache, ident, key, page.url).own
        for each, _ in queries.url_rows(tx.cache, host, _MOST_CAUGHT_UP):
            row = tx.url(each)
            is_alike = row is not None and pattern_of(tx.cache, ident, each, row.url).own == kind
            if row is None or not is_alike or not _is_good(row) or not _is_html(row):
                continue
            if tables.rendering(tx, each) is None:
                self._want(tx, each, row, "a sounding of its kind brought more")

    # -- wanted

    def _kind_of(self, tx: Transaction, key: UrlKey, row: UrlRow) -> bytes:
        return pattern_of(tx.cache, host_id(host_of(row.url)), key, row.url).own

    def _want(self, tx: Transaction, key: UrlKey, row: UrlRow, why: str) -> None:
        found = tables.rendering(tx, key)
        if found is not None:
            _leave(tx, key, found)
            self._end_out(tx, key, row, found)
        rendering = RenderRow(state=RenderState.QUEUED, why=why, priority=row.priority)
        if found is not None:
            # of the last one that ended, which may turn out the same
            rendering.at, rendering.record, rendering.digest = found.at, found.record, found.digest
        self._enqueue(tx, key, rendering)

    def _note_skipped(self, tx: Transaction, key: UrlKey, row: UrlRow, why: str) -> None:
        found = tables.rendering(tx, key)
        if found is None:
            tables.put_rendering(tx, key, RenderRow(state=RenderState.DONE, why=why, ending=SKIPPED))
            tables.tally_of(tx).skipped += 1

    def _enqueue(self, tx: Transaction, key: UrlKey, row: RenderRow, until: float = 0.0) -> None:
        row.state, row.until, row.awaited = RenderState.QUEUED, until, 0
        row.slot = row.slot or tables.new_slot(tx, row.priority)
        tables.put_slot(tx, row.slot, key)
        tables.put_rendering(tx, key, row)
        tables.tally_of(tx).queued += 1

    # -- leases

    def lease(self, tx: Transaction, worker: str, capacity: int, duration: float) -> list[RenderTask]:
        if tx.tally.renders is None:
            return []
        granted: list[RenderTask] = []
        for slot, key in tables.queued(tx.cache, _MOST_LOOKED_AT):
            if len(granted) >= capacity:
                break
            row, page = tables.rendering(tx, key), tx.url(key)
            if row is None or row.slot != slot or row.state != RenderState.QUEUED:
                tables.drop_slot(tx, slot)
            elif page is None or page.answer.record is None:
                self._end(tx, key, row, LOST)
            elif not (row.worker and row.worker != worker and tx.now < row.until):
                granted += self._grant(tx, key, row, page, worker, duration)
        return granted

    def _grant(
        self, tx: Transaction, key: UrlKey, row: RenderRow, page: UrlRow, worker: str, duration: float
    ) -> list[RenderTask]:
        ident, host = tx.look(host_of(page.url))
        subject = pattern_of(tx.cache, ident, key, page.url).own
        kind = tables.evidence_on(tx, subject)
        is_new = not row.is_out and not row.is_sounding
        if is_new and host is not None and self.mode_of(host) == rules.AUTO:
            may_begin = rules.may_begin(kind)
            if may_begin is None:
                row.why = f"renderings of its kind bring nothing ({kind.rendered} did not)"
                self._end(tx, key, row, SKIPPED)
            if not may_begin:
                return []
        if not row.is_out:
            row.is_out = True
            kind.out += 1
            tables.put_evidence(tx, subject, kind)
        _leave(tx, key, row)
        tx.tally.token += 1
        row.state, row.token, row.worker = RenderState.LEASED, tx.tally.token, worker
        row.until = tx.now + duration
        row.tries += 1
        tables.set_timer(tx, row.until, key)
        tables.put_rendering(tx, key, row)
        tables.tally_of(tx).leased += 1
        return [
            RenderTask(
                key=key,
                url=page.url,
                token=Token(row.token),
                deadline=tx.cache.by_the_clock(row.until),
                depth=page.found.depth,
                nesting=page.found.nesting,
                round=row.rounds,
                digest=row.digest,
            )
        ]

    def end_overdue(self, tx: Transaction, *, all_leases: bool = False) -> int:
        """Leases and waits that are over: their pages go back to the queue. All leases, where their workers are
        known to be dead."""
        ended = 0
        for at, key in tables.timers(tx.cache, None if all_leases else tx.now, _MOST_TIMERS):
            row = tables.rendering(tx, key)
            if row is None or (row.until != at and abs(row.until - at) > 0.000_01):
                tables.drop_timer(tx, at, key)
            elif row.state == RenderState.LEASED:
                # that a crawl was killed is no fault of its pages
                row.tries -= all_leases
                self.give_back(tx, key, row)
                ended += 1
            elif row.state == RenderState.AWAITING and at <= tx.now:
                self._go_on(tx, key, row)
                ended += 1
        return ended

    def give_back(self, tx: Transaction, key: UrlKey, row: RenderRow) -> None:
        """What a worker did not finish."""
        if row.tries - row.rounds >= _MOST_TRIES:
            self._end(tx, key, row, LOST)
            return
        _leave(tx, key, row)
        row.worker = ""
        self._enqueue(tx, key, row)

    def release(self, tx: Transaction, leases: Sequence[tuple[UrlKey, Token]]) -> None:
        for key, token in leases:
            row = tables.rendering(tx, key)
            if row is not None and row.state == RenderState.LEASED and row.token == token:
                row.tries -= 1
                self.give_back(tx, key, row)

    # -- outcomes

    def settle(self, tx: Transaction, outcome: Outcome) -> Settlement:
        row, page, result = tables.rendering(tx, outcome.key), tx.url(outcome.key), outcome.result
        if row is None or page is None or not _is_of(outcome, row) or not isinstance(result, Rendered):
            if tx.touch(host_id(outcome.host)) is not None:  # or nothing would be committed
                tx.tally.stale_outcomes += 1
            return _STALE
        tables.tally_of(tx).seconds += result.seconds
        row.seconds += result.seconds
        if result.awaited and row.rounds < self._limits.max_rounds:
            self._await(tx, outcome.key, row, page, result)
            return Settlement(Settled.ACCEPTED, url=page.url)
        if result.ending in _ACCIDENTS and row.tries - row.rounds < _MOST_TRIES:
            self.give_back(tx, outcome.key, row)
            return Settlement(Settled.ACCEPTED, url=page.url)
        return self._done(tx, outcome, row, page, result)

    def _await(self, tx: Transaction, key: UrlKey, row: RenderRow, page: UrlRow, result: Rendered) -> None:
        _leave(tx, key, row)
        row.rounds += 1
        row.worker = row.worker if result.keeps_tab else ""
        tables.tally_of(tx).rounds += 1
        asked = {
            each: url
            for batch in result.awaited
            for each, url in zip(keys_of(batch), urls_of(batch), strict=True)
        }
        for each, url in itertools.islice(asked.items(), self._limits.max_requests - row.asked):
            row.asked += 1
            if self._ask_for(tx, each, url, key, page):
                tables.await_answer(tx, each, key, row.rounds)
                row.awaited += 1
        if not row.awaited:
            self._enqueue(tx, key, row, tx.now + _FOR_ITS_TAB if row.worker else 0.0)
            return
        row.state, row.until = RenderState.AWAITING, tx.now + self._limits.longest_wait
        tables.set_timer(tx, row.until, key)
        tables.put_rendering(tx, key, row)
        tables.tally_of(tx).awaiting += 1

    def _ask_for(self, tx: Transaction, asked: UrlKey, url: str, page: UrlKey, row: UrlRow) -> bool:
        """Whether the answer of this URL is yet to come. Before the pages that are as urgent as this one."""
        urgency = min(_MOST_URGENT, row.priority + 1)
        found = Discovered(
            url=url,
            key=asked,
            host=host_of(url),
            depth=row.found.depth,
            via=Via.RENDER,
            parent=page,
            priority=urgency,
            kind=TaskKind.REQUISITE,
            nesting=1,
        )
        self._admission.admit(tx, found)
        known = tx.url(asked)
        if known is None or known.state != UrlState.QUEUED or known.answer.body_status:
            return False
        if known.priority < urgency:
            tx.reprioritise(asked, known, urgency)
        return True

    def answered(self, tx: Transaction, asked: UrlKey) -> None:
        """A URL came to an end, whichever: renderings that waited for nothing else go on."""
        if tx.tally.renders is None:
            return
        for page, number in tables.who_awaits(tx, asked):
            tables.await_no_more(tx, asked, page)
            row = tables.rendering(tx, page)
            if row is None or row.state != RenderState.AWAITING or row.rounds != number:
                continue
            row.awaited -= 1
            if row.awaited > 0:
                tables.put_rendering(tx, page, row)
            else:
                self._go_on(tx, page, row)

    def _go_on(self, tx: Transaction, key: UrlKey, row: RenderRow) -> None:
        _leave(tx, key, row)
        self._enqueue(tx, key, row, tx.now + _FOR_ITS_TAB if row.worker else 0.0)

    def _done(
        self, tx: Transaction, outcome: Outcome, row: RenderRow, page: UrlRow, result: Rendered
    ) -> Settlement:
        key, ident = outcome.key, host_part(outcome.key)
        is_first = row.record is None and not row.at
        admitted = admit_links(tx, self._admission, ident, result.link_batches)
        row.digest, row.gained = result.digest, admitted.added
        row.text, row.plain_text = result.text, result.plain_text
        row.requests, row.lacking = result.requests, result.lacking
        row.at = tx.cache.by_the_clock(outcome.ended_at)
        if result.record is not None:
            row.record = place_of(result.record)
        is_good = result.size > 0
        gained = is_good and rules.has_gained(admitted.added, result.text, result.plain_text)
        tally = tables.tally_of(tx)
        tally.gained += admitted.added
        tally.changed += gained
        tally.failed += not is_good
        if row.is_sounding:
            tally.sounded += row.seconds
            if gained:
                self._catch_up(tx, key, page)
        self._learn_kind(tx, key, page, row, gained=gained)
        self._end(tx, key, row, result.ending, note=result.note)
        if is_good:
            remember(tx, key, page, result.simhash)
            tx.put_url(key, page)
            if is_first and self._traps.enabled:
                host = tx.touch(host_id(host_of(page.url)))
                if host is not None:
                    self._traps.learn(tx, host, key, page, _as_fetched(page, result), admitted.fresh)
        return Settlement(
            Settled.ACCEPTED,
            None,
            admitted.added,
            admitted.known,
            admitted.refused,
            url=page.url,
        )

    def _end(self, tx: Transaction, key: UrlKey, row: RenderRow, ending: str, note: str = "") -> None:
        _leave(tx, key, row)
        page = tx.url(key)
        if page is not None:
            self._end_out(tx, key, page, row)
        row.state, row.ending, row.slot, row.worker = RenderState.DONE, ending, b"", ""
        row.until, row.awaited = 0.0, 0
        if note:
            row.why = f"{row.why}; {note}" if row.why else note
        tables.put_rendering(tx, key, row)
        tally = tables.tally_of(tx)
        tally.done += ending != SKIPPED
        tally.skipped += ending == SKIPPED
        tally.failed += ending == LOST

    def _learn_kind(
        self, tx: Transaction, key: UrlKey, page: UrlRow, row: RenderRow, *, gained: bool
    ) -> None:
        subject = self._kind_of(tx, key, page)
        kind = tables.evidence_on(tx, subject)
        rules.note_rendered(kind, gained=gained)
        tables.put_evidence(tx, subject, kind)
        row.is_out = False

    def _end_out(self, tx: Transaction, key: UrlKey, page: UrlRow, row: RenderRow) -> None:
        """It counts no longer as one that was begun."""
        if row.is_out:
            row.is_out = False
            subject = self._kind_of(tx, key, page)
            kind = tables.evidence_on(tx, subject)
            kind.out = max(0, kind.out - 1)
            tables.put_evidence(tx, subject, kind)

    # -- accidents

    def give_back_lost(self, tx: Transaction, segment: str) -> int:
        """The records of these renderings were lost with their segment: they are made again."""
        given_back = 0
        for key, row in tables.all_renderings(tx.cache):
            page = tx.url(key)
            if row.state == RenderState.DONE and row.record and row.record[0] == segment and page is not None:
                _leave(tx, key, row)
                again = RenderRow(state=RenderState.QUEUED, why=row.why, priority=page.priority, at=row.at)
                again.is_out, again.is_sounding = False, True  # its kind was decided on
                self._enqueue(tx, key, again)
                given_back += 1
        return given_back

    # -- questions

    def awaited_hosts(self, tx: Transaction) -> set[bytes]:
        """Ids of hosts that have something that a rendering waits for; some of them, where there are many."""
        tally = tx.tally.renders
        if tally is None or not tally.awaiting:
            return set()
        return tables.awaited_hosts(tx.cache, _MOST_LOOKED_AT)

    def answers(self, cache: RowCache, urls: Sequence[str]) -> list[AnswerAt]:
        return [_answer_at(cache, url) for url in urls]


def forget_rendering(tx: Transaction, key: UrlKey) -> None:
    """A page is forgotten: so is its rendering, and who waits for it waits for nothing."""
    row = tables.rendering(tx, key)
    if row is not None:
        _leave(tx, key, row)
        tables.drop_rendering(tx, key)
    if tx.tally.renders is not None:
        tables.drop_awaited(tx, key)


def _leave(tx: Transaction, key: UrlKey, row: RenderRow) -> None:
    """It is not where it stands any more; the caller says where it goes."""
    tally = tables.tally_of(tx)
    match row.state:
        case RenderState.QUEUED:
            tally.queued -= 1
            tables.drop_slot(tx, row.slot)
        case RenderState.LEASED:
            tally.leased -= 1
            tables.drop_timer(tx, row.until, key)
        case RenderState.AWAITING:
            tally.awaiting -= 1
            tables.drop_timer(tx, row.until, key)
        case _:
            tally.done -= row.ending != SKIPPED
            tally.skipped -= row.ending == SKIPPED


def is_live(cache: RowCache, outcome: Outcome) -> bool:
    """Whether the outcome of a rendering counts."""
    row = tables.stored_rendering(cache, outcome.key)
    return row is not None and _is_of(outcome, row) and cache.url(outcome.key) is not None


def _is_of(outcome: Outcome, row: RenderRow) -> bool:
    return row.state == RenderState.LEASED and row.token == outcome.token


def _of_host(ident: bytes) -> bytes:
    """The subject of what is known of a host's renderings."""
    return ident + bytes(8)


def _is_html(row: UrlRow) -> bool:
    return "html" in row.answer.content_type.lower()


def _is_good(row: UrlRow) -> bool:
    is_page = KINDS[row.found.kind].is_page and row.found.kind is not TaskKind.PROBE
    return is_page and row.state == UrlState.COMPLETED and 200 <= row.answer.status < 300


def _as_fetched(page: UrlRow, result: Rendered) -> Fetched:
    """What the rules on traps need of a page: that of the rendered one, since all shells of an app are alike."""
    return Fetched(
        status=page.answer.body_status,
        content_type=page.answer.content_type,
        digest=result.digest,
        size=result.size,
        title=result.title,
        simhash=result.simhash,
        figures=result.figures,
        link_batches=result.link_batches,
        canonical=page.answer.canonical,
    )


def _answer_at(cache: RowCache, url: str) -> AnswerAt:
    row = cache.url(cache.keys.key_of(url))
    if row is None:
        return AnswerAt(Standby.UNKNOWN)
    answer = row.answer
    if leads := leads_to(row):
        return AnswerAt(Standby.HELD, status=answer.status, leads=leads)
    if answer.body_status and answer.record is not None:
        return AnswerAt(Standby.HELD, "", answer.digest, RecordAt(*answer.record), answer.body_status)
    if row.state == UrlState.QUEUED:
        return AnswerAt(Standby.WAITING)
    if row.state == UrlState.REFUSED and row.found.kind is TaskKind.PAGE:
        # refused as a link; as part of a page it may be let in, once
        return AnswerAt(Standby.UNKNOWN)
    return AnswerAt(Standby.REFUSED, row.reason or row.answer.failure or row.rule or "it has no body")
