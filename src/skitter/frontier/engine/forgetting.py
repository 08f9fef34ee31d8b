"""Forgetting a host or a URL: every row of it goes, and it is refused from now on by its hash alone.

For a frontier that nobody else uses: the command that forgets holds the crawl's folder. Every step is a
transaction of its own and may be made twice, so a kill in between loses nothing: the command is run again. What
is left of the bytes on the disk is the store's business (`compact`). Never touches a row of another host,
except to take the name out of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from skitter.clock import Clock
from skitter.frontier.base import MovedRecord
from skitter.frontier.engine.admission import count_refusal
from skitter.frontier.engine.answers.aliases import name_canonical
from skitter.frontier.engine.answers.near_duplicates import remember
from skitter.frontier.engine.renders import forget_rendering
from skitter.frontier.engine.traps.verdicts import UNDONE, end, release_url
from skitter.frontier.rows import FetchRow, HostRow, RenderRow, Tally, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.forgotten import Mention, mentions
from skitter.frontier.tables.render_tables import put_rendering, stored_rendering
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.slots import tier_of_slot
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import trap_row, write_evidence, write_trap
from skitter.model import Copy, Host, RecordAt, SegmentMark, UrlKey, UrlState
from skitter.schedule.kinds import KINDS
from skitter.schedule.traps import Evidence
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import robots_key

_MOST = 1_000
_GONE = "(forgotten)"


class Forgetting:
    """`hosts` are forgotten whole; or, where `url` is given, that URL alone."""

    def __init__(self, cache: RowCache, clock: Clock, hosts: Sequence[Host], url: str = "") -> None:
        self._cache, self._clock = cache, clock
        self._hosts, self._url = tuple(hosts), url
        self._names = [url] if url else [str(host) for host in hosts]
        ends = "" if url else r"(?![\w.-]|:\d)"
        self._pattern = re.compile("|".join(re.escape(name) + ends for name in self._names))

    def _tx(self) -> Transaction:
        return Transaction.begin(self._cache, self._clock.now())

    def is_of(self, url: str) -> bool:
        if self._url:
            return url == self._url
        return bool(url) and host_of(url) in self._hosts

    def begin(self) -> None:
        """From now on nothing of it is let in, and what is queued is not leased: it is about to go."""
        with self._tx() as tx:
            for ident in self._marks():
                tx.add_forgotten(ident)

    def _marks(self) -> Iterator[bytes]:
        if self._url:
            yield self._cache.keys.key_of(self._url)
        else:
            yield from map(host_id, self._hosts)

    # -- the archive's part

    def key_of_fetch(self, url: str, sent_at: float) -> UrlKey:
        """A robots.txt is asked for under a key of its own."""
        robots = robots_key(host_of(url))
        return robots if self._fetch_at(robots, sent_at) is not None else self._cache.keys.key_of(url)

    def is_named(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def has_moved(self, key: UrlKey, sent_at: float, segment: str) -> bool:
        """Whether the record of this fetch is known to lie in another segment than this one."""
        found = self._fetch_at(key, sent_at)
        if found is None:
            made = self._rendering_at(key, sent_at)
            return made is not None and made.record is not None and made.record[0] != segment
        return found.row.record is not None and found.row.record[0] != segment

    def _rendering_at(self, key: UrlKey, sent_at: float) -> RenderRow | None:
        row = stored_rendering(self._cache, key)
        return row if row is not None and abs(row.at - sent_at) < 0.000_002 else None

    def _fetch_at(self, key: UrlKey, sent_at: float) -> queries.LedgerEntry | None:
        at = [one for one in queries.fetches_of(self._cache, key) if abs(one.at - sent_at) < 0.000_002]
        return at[0] if at else None

    def move(self, moves: Sequence[MovedRecord], marks: Sequence[SegmentMark]) -> None:
        """In one transaction: the records lie there, and that much of the new segment counts."""
        with self._tx() as tx:
            for moved in moves:
                self._move(tx, moved)
            for mark in marks:
                tx.put_mark(mark)

    def _move(self, tx: Transaction, moved: MovedRecord) -> None:
        old, new = _place(moved.old), _place(moved.new)
        row = tx.url(moved.key)
        if row is not None and row.answer.record == old:
            row.answer.record = new
            tx.put_url(moved.key, row)
        entry = self._fetch_at(moved.key, moved.sent_at)
        if entry is not None:
            entry.row.record = new
            tx.replace_fetch_at(moved.key, entry.at, entry.row)
        elif (made := self._rendering_at(moved.key, moved.sent_at)) is not None and made.record == old:
            made.record = new
            put_rendering(tx, moved.key, made)
        if moved.copy is not None:
            tx.put_copy(moved.digest, moved.copy)

    def drop_segment(self, segment: str) -> None:
        """All that was kept of it lies elsewhere. Its files are to go: noted until they are."""
        with self._tx() as tx:
            tx.drop_mark(segment)
            tx.note_spent(segment)

    def spent_segments(self) -> list[str]:
        return queries.spent_segments(self._cache)

    def segment_is_gone(self, segment: str) -> None:
        with self._tx() as tx:
            tx.clear_spent(segment)

    # -- rows

    def forget_rows(self) -> int:
        """All URLs, with their places, dates, fetches and fingerprints; then the hosts. How many URLs it were."""
        forgotten = 0
        if self._url:
            with self._tx() as tx:
                key = self._cache.keys.key_of(self._url)
                row = tx.url(key)
                return self._forget_url(tx, key, row) if row is not None and row.url == self._url else 0
        for host in self._hosts:
            self._end_verdicts(host)
            forgotten += self._forget_urls(host)
            self._forget_host(host)
        return forgotten

    def _forget_urls(self, host: Host) -> int:
        count = 0
        while True:
            with self._tx() as tx:
                some = 0
                for key in queries.urls(self._cache, host):
                    row = tx.url(key)
                    if row is None or host_of(row.url) != host:
                        continue
                    some += self._forget_url(tx, key, row)
                    if some >= _MOST:
                        break
            count += some
            if some < _MOST:
                return count

    def _forget_url(self, tx: Transaction, key: UrlKey, row: UrlRow) -> int:
        _, host = tx.host(host_of(row.url))
        remember(tx, key, row, None)
        name_canonical(tx, row, "")
        state = UrlState(row.state)
        if row.slot:
            tier = tier_of_slot(row.slot)
            host.queue.lengths[tier] -= 1
            tx.tally.tiers[tier] -= 1
            tx.dequeue(row)
        elif state is UrlState.COMPLETED and row.answer.status // 100 == 2:
            tx.count_answer(row, -1)
        self._leave_place(tx, key, row, host, state)
        tx.count(state, -1)
        host.queue.admitted = max(0, host.queue.admitted - 1)
        if KINDS[row.found.kind].lists_urls:
            host.counts.sitemaps = max(0, host.counts.sitemaps - 1)
        for entry in queries.fetches_of(self._cache, key):
            _uncount(tx, host, entry.row)
        forget_rendering(tx, key)
        tx.drop_url(key)
        return 1

    def _leave_place(self, tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, state: UrlState) -> None:
        match state:
            case UrlState.REFUSED:
                count_refusal(tx, row.reason, -1)
                release_url(tx, key, row)
            case UrlState.DEAD_LETTER:
                tx.drop_dead(key)
            case UrlState.DENIED:
                tx.drop_denied(key)
                host.counts.denied -= 1
            case UrlState.FAILED:
                tx.drop_due(queries.due_of(key, row))
            case UrlState.COMPLETED | UrlState.GONE if row.due:
                tx.cancel_visit(key, row)
            case _:
                pass

    def _end_verdicts(self, host: Host) -> None:
        """Verdicts are numbered and stay; what they say does not."""
        for number in range(1, self._cache.tally.traps + 1):
            row = trap_row(self._cache, number)
            if row is None or row.host != host:
                continue
            with self._tx() as tx:
                end(tx, number, UNDONE)
            with self._tx() as tx:
                row = trap_row(self._cache, number)
                if row is not None:
                    row.host = row.name = row.why = ""
                    row.examples = []
                    write_trap(tx, number, row)
                    write_evidence(tx, row.subject, Evidence(name="", level=row.level))
                tx.drop_ended_verdict(number)

    def _forget_host(self, host: Host) -> None:
        ident = host_id(host)
        with self._tx() as tx:
            row = tx.touch(ident)
            # what is left of its fetches are those for robots.txt, its own and on behalf of others
            for entry in queries.fetches_under(self._cache, ident):
                _uncount(tx, row, entry.row)
                tx.tally.robots_fetches -= 1
            if row is not None:
                tx.tally.hosts[row.standing] = tx.tally.hosts.get(row.standing, 0) - 1
                tx.tally.received -= row.counts.received
            for waiting in queries.errands_for(self._cache, host):
                tx.drop_errand(waiting)
            if tx.tally.tightest_host == host:
                tx.tally.tightest, tx.tally.tightest_host = None, ""
            tx.drop_host(ident, host)

    # -- what others say of it

    def scrub(self) -> int:
        """Rows of others that name it lose the name. How many they were."""
        scrubbed = 0
        names = [name.encode() for name in self._names]
        for mention in mentions(self._cache.store, names):
            with self._tx() as tx:
                scrubbed += self._scrub(tx, mention)
        return scrubbed

    def _scrub(self, tx: Transaction, mention: Mention) -> bool:
        row = mention.row
        if isinstance(row, Copy):
            if self.is_of(row.url):
                tx.drop_copy(mention.key)
                return True
            return False
        before = msgspec.msgpack.encode(row)
        if isinstance(row, UrlRow):
            row.rule = self._without(row.rule)
            row.reason = self._without(row.reason)
            if self._pattern.search(row.answer.canonical):
                name_canonical(tx, row, "")
        elif isinstance(row, FetchRow):
            row.detail = self._without(row.detail)
        elif isinstance(row, HostRow):
            row.health.last_failure = self._without(row.health.last_failure)
            row.health.address_refused = self._without(row.health.address_refused)
        if msgspec.msgpack.encode(row) == before:
            return False
        tx.put_scrubbed(mention)
        return True

    def _without(self, text: str) -> str:
        return self._pattern.sub(_GONE, text)

    # -- bytes

    def compact(self) -> None:
        """Nothing that was deleted is left in the store's files."""
        self._cache.forget()
        self._cache.store.compact()

    def left(self) -> int:
        """Rows that still name it, of all tables, uncompressed: 0 when all is done."""
        found = (self._pattern.search(text) for text in _texts(self._cache, self._names))
        return sum(one is not None for one in found)


def _texts(cache: RowCache, names: Sequence[str]) -> Iterator[str]:
    wanted = [name.encode() for name in names]
    for raw in queries.everything(cache):
        if any(name in raw for name in wanted):
            yield raw.decode("latin-1")


def _uncount(tx: Transaction, host: HostRow | None, fetch: FetchRow) -> None:
    """One fetch of the ledger less."""
    tally: Tally = tx.tally
    tally.fetches -= 1
    tally.lost -= fetch.result == "lost"
    if host is not None:
        host.counts.received -= fetch.size
        tally.received -= fetch.size
    if fetch.status:
        name = f"{fetch.status // 100}xx"
        tally.statuses[name] = tally.statuses.get(name, 0) - 1
    if fetch.result == "failed":
        kind = fetch.detail.partition(":")[0]
        tally.failures[kind] = tally.failures.get(kind, 0) - 1


def _place(record: RecordAt) -> tuple[str, int, int]:
    return record.segment, record.offset, record.length
