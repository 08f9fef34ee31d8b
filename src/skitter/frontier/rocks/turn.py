"""Turns: every call of the contract that changes something is one.

Rows are read through the book, changed in memory, and committed as one batch together with the indexes that
follow from them: a host's places among those that are ready, and how many there are of each standing. A turn that
fails leaves nothing behind, on disk or in the book.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from skitter.frontier.base import HostStanding
from skitter.frontier.rocks.book import TALLY, Book
from skitter.frontier.rocks.rows import (
    ABANDON,
    ERRAND_LANE,
    Errand,
    Fresh,
    HostRow,
    LeasedTask,
    LeaseRow,
    UrlRow,
    decode_url,
    encode,
    lane_of,
    micros,
    placed,
    slot_of,
    slots_of,
)
from skitter.frontier.rocks.store import Batch
from skitter.model import Discovered, Host, UrlKey, UrlState
from skitter.schedule.priority import TIERS, tier_of
from skitter.schedule.traps import Evidence
from skitter.urls.canonical import host_id, host_of

# an enum's own attribute takes 0.1 us, eight times as long
_QUEUED, _IN_PROGRESS = UrlState.QUEUED, UrlState.IN_PROGRESS
_ACTIVE, _IDLE, _WAITING = HostStanding.ACTIVE, HostStanding.IDLE, HostStanding.WAITING
# The rows of a host that has no more than so many are read in one go when it is leased.
_SMALL_HOST = 64


Waiting = dict[int, list[tuple[bytes, bytes]]]
"""Slots in their order and the keys that wait there, by lane."""


KindOfLink = tuple[str, int, int | None, bytes]
"""What decides how a new URL goes to its queue: host, depth, a priority it was given, the mark of its linker."""
Way = tuple[bytes, HostRow, int, int, bytes]
"""How new URLs of one host that are alike go to their queue: the host's id and row, their priority and lane, the
mark of who links them."""


class Turn:
    """One atomic change. `host` and `url` see what this turn has already done."""

    def __init__(self, book: Book, now: float) -> None:
        """`now` is in the frontier's own time, as everything inside a turn is."""
        self.book = book
        self.now = now
        self.tally = book.tally
        self._batch = batch = Batch(book.store)
        # the batch's own: 18 rows a page change, and a call between costs as much as the put
        self.put = batch.put
        self.put_all = batch.put_all
        self.delete = batch.delete
        self.delete_range = batch.delete_range
        self._urls: dict[bytes, UrlRow] = {}
        self._raw: dict[bytes, bytes] = {}
        self._touched: dict[bytes, HostRow] = {}
        # hosts that were looked for in vain: until one is taken, which is then touched
        self._unknown: set[bytes] = set()
        self.ways: dict[KindOfLink, Way] = {}
        self.near = book.near_rows
        self.originals: list[int] = []
        self.led_on: set[bytes] = set()
        self.suspects: dict[int, tuple[bytes, ...]] = {}
        self.claims: dict[bytes, bytes] = {}
        # written once when the turn is committed: pages of one host are mostly of a few kinds
        self.learnt: dict[bytes, Evidence] = {}

    @classmethod
    def begin(cls, book: Book, now: float) -> Self:
        """`now` is the clock's."""
        return cls(book, now + book.skew)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.book.forget()
            return
        self._commit()

    # -- rows

    def host(self, host: Host) -> tuple[bytes, HostRow]:
        """The row of a host, made if it is new; it is written when the turn is committed."""
        ident, row = self.look(host)
        return ident, self.take(ident, row, host)

    def look(self, host: Host) -> tuple[bytes, HostRow | None]:
        """The row of a host if it has one, for looking only."""
        ident = host_id(host)
        row = self._touched.get(ident)
        if row is None and ident not in self._unknown:
            row = self.book.host(ident)
            if row is None:
                self._unknown.add(ident)
        return ident, row

    def take(self, ident: bytes, row: HostRow | None, host: Host) -> HostRow:
        """What `look` found, to be changed: a new host costs one read of the store, not two."""
        if row is None:
            row = self.book.new_host(ident, host)
            self.tally.hosts[row.standing] = self.tally.hosts.get(row.standing, 0) + 1
        self._touched[ident] = row
        return row

    def touch(self, ident: bytes) -> HostRow | None:
        row = self._touched.get(ident) or self.book.host(ident)
        if row is not None:
            self._touched[ident] = row
        return row

    def url(self, key: bytes) -> UrlRow | None:
        if (row := self._urls.get(key) or self.book.judged.pop(key, None)) is not None:
            return row
        raw = self._raw.get(key) or self.book.raw_url(key)
        if raw is None:
            return None
        self._raw[key] = raw
        return decode_url(raw)

    def known_url(self, key: bytes) -> UrlRow | None:
        """Like `url`, for a key that may well be new: the filter saves most of those a read."""
        if (row := self._urls.get(key)) is not None:
            return row
        if (raw := self._raw.get(key)) is not None:
            return decode_url(raw)
        return None if self.book.seen.is_new(key) else self._stored(key)

    def is_new(self, key: bytes) -> bool:
        """Whether nobody knows this key yet; the filter does from now on."""
        seen = self.book.seen
        if seen.meets(key):
            return True
        if key in self._urls or key in self._raw or self._stored(key) is not None:
            return False
        seen.add(key)
        return True

    def _stored(self, key: bytes) -> UrlRow | None:
        row = self.book.url(key)
        if row is None:
            self.book.seen.was_mistaken(key)
        else:
            self.book.certain.add(key)
        return row

    def small_host(self, ident: bytes, host: HostRow) -> Waiting | None:
        """What waits in a small host, which is read in one go, None of a larger one: its pages are about to
        be leased, and nine of ten links of a page lead to its own host. One scan costs as much as three to six
        single reads."""
        if host.admitted > _SMALL_HOST or self.book.keys.folds_hosts:
            return None
        found = self.book.store.first("urls", ident, _after(ident), 2 * _SMALL_HOST)
        # what this turn has made of a row lies in front of it, and what is new is not on disk
        self._raw.update(found)
        self.book.certain.add_all([key for key, _ in found])
        return None if len(found) == 2 * _SMALL_HOST else self._waiting(found)

    def _waiting(self, found: list[tuple[bytes, bytes]]) -> Waiting:
        """A row that is queued names its slot, so the queue itself need not be read."""
        waiting: Waiting = {}
        changed = self._urls
        for (key, _), stored in zip(found, slots_of(found), strict=True):
            slot = changed[key].slot if key in changed else stored
            if slot:
                waiting.setdefault(lane_of(slot), []).append((slot, key))
        for lane in waiting.values():
            lane.sort()
        return waiting

    def out(self, key: bytes) -> None:
        """This URL is leased: its row will be wanted again."""
        if raw := self._raw.get(key):
            self.book.hold(key, raw)

    def passed_over(self, key: bytes) -> None:
        """This URL waits on: the next lease looks at it again."""
        if raw := self._raw.get(key):
            self.book.keep({key: raw})

    def put_url(self, key: bytes, row: UrlRow) -> None:
        self.book.let_go(key)
        self._raw.pop(key, None)
        self._urls[key] = row
        self.put("urls", key, encode(row))

    def room(self, max_pages: int) -> int:
        return self.book.room(max_pages)

    # -- moves

    def count(self, state: UrlState, change: int) -> None:
        self.tally.urls[state] = self.tally.urls.get(state, 0) + change

    def count_answer(self, row: UrlRow, change: int) -> None:
        """A good answer came, or is to be asked for again: to a page, or to what a page needs."""
        if row.requisite:
            self.tally.requisites += change
        else:
            self.tally.pages += change

    def enqueue(self, key: UrlKey, row: UrlRow, ident: bytes, host: HostRow) -> None:
        """Give a URL a place in its host's queue; its former state must already be taken off the count."""
        tier = tier_of(row.priority)
        self._place(key, row, ident, tier)
        host.queued[tier] += 1
        self.tally.tiers[tier] += 1
        self._lower(host, tier, row.slot)
        self.count(_QUEUED, 1)

    def _place(self, key: UrlKey, row: UrlRow, ident: bytes, tier: int) -> None:
        self.tally.seq += 1
        row.slot = slot_of(ident, tier + 1, row.priority, self.tally.seq)
        row.state = _QUEUED
        row.due = 0.0
        self.put("queue", row.slot, key)
        self.put_url(key, row)

    def enqueue_fresh(self, links: Sequence[Discovered], fresh: Fresh, ident: bytes, host: HostRow) -> None:
        """Admit new URLs that are alike, as `enqueue` does one: their rows are written without being made."""
        tally, tier, count = self.tally, fresh[0] - 1, len(links)
        slots, rows = placed(links, fresh, ident, tally.seq + 1)
        self.put_all("queue", zip(slots, rows, strict=True))
        self.put_all("urls", rows.items())
        self._raw.update(rows)
        if host.admitted > _SMALL_HOST:
            # a host that is not read in one go
            self.book.keep(rows)
        tally.seq += count
        host.admitted += count
        host.queued[tier] += count
        tally.tiers[tier] += count
        self._lower(host, tier, slots[0])
        self.count(_QUEUED, count)

    def reprioritise(self, key: UrlKey, row: UrlRow, priority: int) -> None:
        """Move a queued URL to where its new priority puts it; one that is leased stays where it is."""
        if priority == row.priority:
            # its host has nothing to write: three of five links from elsewhere end here
            self.put_url(key, row)
            return
        ident, host = self.look(host_of(row.url))
        if host is None or (host.lease and key in self.book.lease_slots(ident, host.lease.token)):
            self.put_url(key, row)
            return
        former = tier_of(row.priority)
        self.dequeue(row)
        row.priority = priority
        if tier_of(priority) == former:
            self._move(key, row, ident, host)
            return
        self.take(ident, host, Host(host.host))
        host.queued[former] -= 1
        self.tally.tiers[former] -= 1
        self.count(_QUEUED, -1)
        self.enqueue(key, row, ident, host)

    def _move(self, key: UrlKey, row: UrlRow, ident: bytes, host: HostRow) -> None:
        """To another place of its tier: its host has nothing to write, unless the place is the first. Seven of
        ten new priorities end here."""
        tier = tier_of(row.priority)
        self._place(key, row, ident, tier)
        if _is_lower(host, tier, row.slot):
            self._lower(self.take(ident, host, Host(host.host)), tier, row.slot)

    def _lower(self, host: HostRow, tier: int, slot: bytes) -> None:
        if _is_lower(host, tier, slot):
            host.lows[tier] = slot[9:]

    def dequeue(self, row: UrlRow) -> None:
        """Take a URL's place in the queue away; what counted it (the queue or a lease) is the caller's."""
        self.delete("queue", row.slot)
        row.slot = b""

    def send_errand(self, errand: Errand, to: Host) -> None:
        ident, host = self.host(to)
        self.tally.seq += 1
        self.put("queue", slot_of(ident, ERRAND_LANE, 255, self.tally.seq), encode(errand))
        host.errands += 1

    def begin_lease(self, ident: bytes, host: HostRow, lease: LeaseRow, tasks: list[LeasedTask]) -> None:
        host.lease = lease
        self.put("leases", ident, encode(tasks))
        self.set_timer(ident, lease)
        self.book.remember_lease(lease.token, tasks)

    def set_timer(self, ident: bytes, lease: LeaseRow) -> None:
        timer = micros(lease.deadline) + ident
        self.put("timers", timer, b"")
        self.book.timers_low = min(self.book.timers_low, timer)

    def end_lease(self, ident: bytes, host: HostRow) -> None:
        """Whatever is still out goes back to waiting: it never lost its place."""
        lease = host.lease
        if lease is None:
            return
        for tier, out in enumerate(lease.pages):
            if out:
                host.queued[tier] += out
                self.tally.tiers[tier] += out
                self.count(_QUEUED, out)
                self.count(_IN_PROGRESS, -out)
        self.delete("leases", ident)
        self.delete("timers", micros(lease.deadline) + ident)
        self.book.forget_lease(lease.token)
        host.errands += lease.errands
        host.lease = None

    # -- commit

    def _commit(self) -> None:
        if not self._touched and not self.learnt and self._batch.is_empty():
            return
        if self.originals:
            # before the write: what the filter holds too much costs a read, what it lacked would be a page missed
            self.book.near.add(self.originals)
        try:
            for ident, row in self._touched.items():
                self._follow(ident, row)
                raw = encode(row)
                self.put("hosts", ident, raw)
                self.book.keep_host(ident, raw)
            for subject, seen in self.learnt.items():
                self.put("skeletons", subject, encode(seen))
            self.tally.now = max(self.tally.now, self.now)
            self.tally.skew = self.book.skew
            self.put("meta", TALLY, encode(self.tally))
            self.book.judged.clear()
            self.book.store.write(self._batch)
        except BaseException:
            self.book.forget()
            raise
        self.book.trim()

    def _follow(self, ident: bytes, row: HostRow) -> None:
        """The ready index and the count of hosts follow from the row."""
        if _is_still_out(row):
            return
        tiers = _ready_tiers(row)
        at = int(self.book.earliest_start(row) * 1_000_000) if tiers else 0
        if at != row.ready_at or tiers != row.ready_tiers:
            self._index(ident, row, at, tiers)
        standing = _standing(row, tiers)
        if standing != row.standing:
            hosts = self.tally.hosts
            hosts[row.standing] = hosts.get(row.standing, 0) - 1
            hosts[standing] = hosts.get(standing, 0) + 1
            row.standing = standing
        if (row.given_up or row.policy is not None) and row.is_to_be_emptied():
            self.put("meta", ABANDON + ident, b"")

    def _index(self, ident: bytes, row: HostRow, at: int, tiers: int) -> None:
        old, new = row.ready_at.to_bytes(8, "big") + ident, at.to_bytes(8, "big") + ident
        # what stays where it is need not be written: it is for most hosts that a link from elsewhere lengthens
        stays = row.ready_tiers & tiers if at == row.ready_at else 0
        gone, come = row.ready_tiers & ~stays, tiers & ~stays
        marks = self.book.ready
        for tier in range(TIERS):
            prefix = bytes((tier,))
            if gone >> tier & 1:
                self.delete("ready", prefix + old)
                marks.gone(tier, prefix + old)
            if come >> tier & 1:
                self.put("ready", prefix + new, b"")
                marks.put(tier, prefix + new)
        row.ready_at, row.ready_tiers = at, tiers


def _after(ident: bytes) -> bytes:
    """The end of a host's range in the tables that are keyed by it."""
    return ident + b"\xff" * 9


def _is_lower(host: HostRow, tier: int, slot: bytes) -> bool:
    low = host.lows[tier]
    return bool(low) and slot[9:] < low


def _is_still_out(row: HostRow) -> bool:
    """Leased, and so it was before this turn: two of three hosts that a page is settled for."""
    return row.lease is not None and not row.ready_tiers and not row.is_out_of_reach()


def _ready_tiers(row: HostRow) -> int:
    """The tiers this host can be asked for, as bits; 0 when it may not be asked at all now."""
    if row.lease is not None or row.is_out_of_reach():
        return 0
    bits = 1 if row.errands else 0
    if row.robots_elsewhere:
        return bits
    for tier, waiting in enumerate(row.queued):
        if waiting:
            bits |= 1 << tier
    return bits


def _standing(row: HostRow, tiers: int) -> HostStanding:
    if row.lease is not None:
        return _ACTIVE
    if row.policy is not None and row.policy.blocked:
        return HostStanding.BLOCKED
    if row.given_up:
        return HostStanding.GIVEN_UP
    if not any(row.queued) and not tiers:
        return _IDLE
    return HostStanding.BACKING_OFF if row.failures else _WAITING
