"""Transactions: every call of the contract that changes something is one.

Rows are read through the cache, changed in memory, and committed at once together with the indexes that follow
from them: a host's places in the ready index, and how many hosts there are of each standing. A transaction that
fails leaves nothing behind, on disk or in the cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from skitter.frontier.base import HostStanding
from skitter.frontier.link_batches import pack
from skitter.frontier.posts import Post, PostedErrand, PostedLinks, encode_post
from skitter.frontier.rows import (
    Errand,
    Habits,
    HostRow,
    LeasedTask,
    LeaseRow,
    RenderRow,
    UrlRow,
)
from skitter.frontier.stores.base import Changes
from skitter.frontier.tables.layout import (
    ABANDON,
    REJUDGE,
    RENDER_KIND,
    WALK,
    after_host,
    decode_url,
    encode,
    encode_new_rows,
    encode_shared_fields,
    micros,
    post_key,
    slots_of,
)
from skitter.frontier.tables.queries import LeaseEnd, WaitingErrand
from skitter.frontier.tables.row_cache import TALLY, RowCache
from skitter.frontier.tables.slots import ERRAND_LANE, REVISIT_LANE, lane_of, slot_of, within_lane
from skitter.frontier.tables.table_writes import TableWrites
from skitter.model import Discovered, Host, Refusal, UrlKey, UrlState
from skitter.schedule.priority import LANES, REVISITS, tier_of
from skitter.schedule.rendering import Evidence as RenderEvidence
from skitter.schedule.revisit import is_prompt
from skitter.schedule.traps import Evidence
from skitter.urls.canonical import host_id, host_of
from skitter.urls.partitions import part_of

# bound once: looked up for every page
_QUEUED, _IN_PROGRESS, _FAILED = UrlState.QUEUED, UrlState.IN_PROGRESS, UrlState.FAILED
_ACTIVE, _IDLE, _WAITING = HostStanding.ACTIVE, HostStanding.IDLE, HostStanding.WAITING
# When a host has at most so many URLs, a lease reads all their rows in one scan.
_SMALL_HOST = 64


QueueOfHost = dict[int, list[tuple[bytes, bytes]]]
"""Slots in their order and the keys that wait there, by tier."""


KindOfLink = tuple[str, int, int | None, bytes]
"""What decides how a new URL is queued: host, depth, a given priority, the mark of the linking host."""
Way = tuple[bytes, HostRow, int, bytes]
"""How new URLs of one `KindOfLink` are queued: the host's id and row, their priority, the linking host's mark."""


class Transaction(TableWrites):
    """One atomic change. `host` and `url` see what it has already done."""

    def __init__(self, cache: RowCache, now: float) -> None:
        """`now` is in the frontier's own time, as everything inside a transaction is."""
        self._changes = cache.store.changes()
        super().__init__(cache, self._changes)
        self.now = now
        self.tally = cache.tally
        self._urls: dict[bytes, UrlRow] = {}
        self._raw: dict[bytes, bytes] = {}
        self._touched: dict[bytes, HostRow] = {}
        # hosts that were looked up and do not exist; one that is taken goes to `_touched`
        self._unknown: set[bytes] = set()
        self.ways: dict[KindOfLink, Way] = {}
        self.near = cache.near_rows
        self.originals: list[int] = []
        self.led_on: set[bytes] = set()
        self.suspects: dict[int, tuple[bytes, ...]] = {}
        self.claims: dict[bytes, bytes] = {}
        # evidence, written once by the commit: pages of one host share a few patterns
        self.learnt: dict[bytes, Evidence] = {}
        self.habits: dict[bytes, Habits] = {}
        # renderings that it changed, and by URL which of them wait for it in which round (0: no longer)
        self.renderings: dict[bytes, RenderRow] = {}
        self.awaiting: dict[bytes, dict[bytes, int]] = {}
        self.render_evidence: dict[bytes, RenderEvidence] = {}
        # links for other partitions: one post each, written by the commit
        self._links_away: dict[int, list[Discovered]] = {}

    @classmethod
    def begin(cls, cache: RowCache, now: float) -> Self:
        """`now` is the clock's."""
        return cls(cache, now + cache.skew)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.cache.forget()
            return
        if self._is_to_be_committed():
            with self._forgetting():
                self.cache.store.commit(self._complete())
            self.cache.trim()

    # On the event loop, where a store may be slow: others run meanwhile, and the frontier's lock keeps out those
    # that write.

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.cache.forget()
            return
        if self._is_to_be_committed():
            with self._forgetting():
                under_way = self.cache.store.commit_soon(self._complete())
                if under_way is not None:
                    await self.cache.wait_for(under_way)
            self.cache.trim()

    # -- rows

    def host(self, host: Host) -> tuple[bytes, HostRow]:
        """The row of a host, to be changed; made if it is new, and written by the commit."""
        ident, row = self.look(host)
        return ident, self.take(ident, row, host)

    def look(self, host: Host) -> tuple[bytes, HostRow | None]:
        """The row of a host, if it has one, for reading only."""
        ident = host_id(host)
        row = self._touched.get(ident)
        if row is None and ident not in self._unknown:
            row = self.cache.host(ident)
            if row is None:
                self._unknown.add(ident)
        return ident, row

    def take(self, ident: bytes, row: HostRow | None, host: Host) -> HostRow:
        """The row that `look` found, to be changed; made if there is none. The store is read once, by `look`."""
        if row is None:
            row = self.cache.new_host(ident, host)
            self.tally.hosts[row.standing] = self.tally.hosts.get(row.standing, 0) + 1
        self._touched[ident] = row
        return row

    def touch(self, ident: bytes) -> HostRow | None:
        row = self._touched.get(ident) or self.cache.host(ident)
        if row is not None:
            self._touched[ident] = row
        return row

    def url(self, key: bytes) -> UrlRow | None:
        if (row := self._urls.get(key) or self.cache.judged.pop(key, None)) is not None:
            return row
        raw = self._raw.get(key) or self.cache.raw_url(key)
        if raw is None:
            return None
        self._raw[key] = raw
        return decode_url(raw)

    def known_url(self, key: bytes) -> UrlRow | None:
        """Like `url`, for a key that is probably new: the seen filter saves the read."""
        if (row := self._urls.get(key)) is not None:
            return row
        if (raw := self._raw.get(key)) is not None:
            return decode_url(raw)
        return None if self.cache.seen.is_new(key) else self._stored(key)

    def add_if_new(self, key: bytes) -> bool:
        """Add a key to the seen filter if it is unknown; returns whether it was."""
        seen = self.cache.seen
        if seen.add_if_new(key):
            return True
        if key in self._urls or key in self._raw or self._stored(key) is not None:
            return False
        seen.add(key)
        return True

    def _stored(self, key: bytes) -> UrlRow | None:
        row = self.cache.url(key)
        if row is None:
            self.cache.seen.count_mistake(key)
        elif row.reason != Refusal.DEPTH:
            # by a shorter way it may come in
            self.cache.known_keys.add(key)
        return row

    def read_small_host(self, ident: bytes, host: HostRow) -> QueueOfHost | None:
        """Read all URLs of a small host, and return its queue; None for a larger host. Its pages are about to be
        leased, and nine of ten links of a page lead to its own host. One scan costs as much as three to six
        single reads."""
        if host.queue.admitted > _SMALL_HOST or self.cache.keys.folds_hosts:
            return None
        found = self.cache.store.first("urls", ident, after_host(ident), 2 * _SMALL_HOST)
        # rows that this transaction changed are in `_urls`, which is read first
        self._raw.update(found)
        if not self.tally.refusals.get(Refusal.DEPTH):
            self.cache.known_keys.add_all([key for key, _ in found])
        return None if len(found) == 2 * _SMALL_HOST else self._waiting(found)

    def _waiting(self, found: list[tuple[bytes, bytes]]) -> QueueOfHost:
        """The queue of the host. A queued row names its slot, so that the queue table need not be read."""
        waiting: QueueOfHost = {}
        changed = self._urls
        for (key, _), stored in zip(found, slots_of(found), strict=True):
            slot = changed[key].slot if key in changed else stored
            if slot:
                waiting.setdefault(lane_of(slot) - 1, []).append((slot, key))
        for lane in waiting.values():
            lane.sort()
        return waiting

    def keep_read(self, rows: Mapping[bytes, bytes]) -> None:
        """Rows as they are stored, which are about to be asked for: they need not be read once more."""
        self._raw.update(rows)

    def keep_leased(self, key: bytes) -> None:
        """This URL is leased: keep its row in memory, for its settling."""
        if raw := self._raw.get(key):
            self.cache.hold_row(key, raw)

    def keep_waiting(self, key: bytes) -> None:
        """A lease passed over this URL: keep its row in memory, for the next lease."""
        if raw := self._raw.get(key):
            self.cache.keep_rows({key: raw})

    def put_url(self, key: bytes, row: UrlRow) -> None:
        self.cache.drop_row(key)
        self._raw.pop(key, None)
        self._urls[key] = row
        self.put("urls", key, encode(row))

    def drop_url(self, key: bytes) -> None:
        """All that is known of a URL but its place and dates, which the caller has taken away."""
        self.cache.drop_row(key)
        self.cache.patterns.drop(key)
        self._raw.pop(key, None)
        self._urls.pop(key, None)
        self.delete("urls", key)
        self.delete_range("ledger", key, key + b"\xff" * 9)

    def drop_errand(self, errand: WaitingErrand) -> None:
        """Nobody waits for this robots.txt any more."""
        self.delete("queue", errand.slot)
        host = self.touch(errand.slot[:8])
        if host is not None:
            host.queue.errands -= 1

    def drop_host(self, ident: bytes, host: Host) -> None:
        """A host without URLs, leases or errands: its row and all that is kept by its id."""
        row = self._touched.pop(ident, None) or self.cache.host(ident)
        if row is not None:
            self._move_in_ready_index(ident, row, 0, 0)
        self.cache.drop_host(ident)
        for table in ("hosts", "robots"):
            self.delete(table, ident)
        for table in ("skeletons", "ledger", "queue"):
            self.delete_range(table, ident, after_host(ident) + b"\xff" * 9)
        self.delete_range("traps", b"\2" + ident, b"\2" + after_host(ident))
        for mark in (REJUDGE, WALK, ABANDON):
            self.delete("meta", mark + ident)
        self.delete_range("meta", RENDER_KIND + ident, RENDER_KIND + after_host(ident))
        name = host.partition("://")[2]
        for anchor in (f"host {name}", f"domain {name}"):
            self.delete("anchors", anchor.encode())
            self.cache.drop_anchor(anchor)
        self.delete_range("anchors", f"prefix {name}/".encode(), f"prefix {name}0".encode())

    def room(self, max_pages: int) -> int:
        return self.cache.room(max_pages)

    # -- moves

    def count(self, state: UrlState, change: int) -> None:
        self.tally.urls[state] = self.tally.urls.get(state, 0) + change

    def count_answer(self, row: UrlRow, change: int) -> None:
        """A good answer came, or is to be asked for again."""
        answers, kind = self.tally.answers, row.found.kind
        answers[kind] = answers.get(kind, 0) + change

    def enqueue(self, key: UrlKey, row: UrlRow, ident: bytes, host: HostRow) -> None:
        """Put a URL into the queue of its host. The caller has already taken its former state off the count."""
        tier = tier_of(row.priority)
        self._place(key, row, ident, tier)
        host.queue.lengths[tier] += 1
        self.tally.tiers[tier] += 1
        self._lower_start(host, tier, row.slot)
        self.count(_QUEUED, 1)

    def enqueue_revisit(self, key: UrlKey, row: UrlRow, ident: bytes, host: HostRow) -> None:
        """Put a page into its host's lane of revisits, where all are served in the order of their dates. It
        still counts as the page that we have."""
        self.count(UrlState(row.state), -1)
        self._place(key, row, ident, REVISITS)
        host.queue.lengths[REVISITS] += 1
        self.tally.tiers[REVISITS] += 1
        self._lower_start(host, REVISITS, row.slot)
        self.count(_QUEUED, 1)

    def plan_visit(self, key: UrlKey, row: UrlRow, at: float) -> None:
        """A page with its final answer is visited again then; its `visits` say what for. The caller writes the
        row."""
        row.due = at
        self.add_revisit(key, at, is_prompt(row.visits))
        self.tally.revisits.watched += 1

    def cancel_visit(self, key: UrlKey, row: UrlRow) -> None:
        self.drop_revisit_of(key, row.due, is_prompt(row.visits))
        row.due = 0.0
        self.tally.revisits.watched -= 1

    def _place(self, key: UrlKey, row: UrlRow, ident: bytes, tier: int) -> None:
        if row.due and row.state != _FAILED:
            self.cancel_visit(key, row)
        self.tally.seq += 1
        priority = row.priority if tier < REVISITS else 0
        row.slot = slot_of(ident, tier + 1, priority, self.tally.seq)
        row.state = _QUEUED
        row.due = 0.0
        self.put("queue", row.slot, key)
        self.put_url(key, row)

    def enqueue_new(
        self, links: Sequence[Discovered], priority: int, linkers: bytes, ident: bytes, host: HostRow
    ) -> None:
        """`enqueue` for many new URLs of one host that differ only in URL and key. No `UrlRow` is made for
        them."""
        tally, tier, count = self.tally, tier_of(priority), len(links)
        alike = encode_shared_fields(links[0], priority, tier + 1, linkers)
        slots, rows = encode_new_rows(links, alike, ident, tally.seq + 1)
        self.put_all("queue", zip(slots, rows, strict=True))
        self.put_all("urls", rows.items())
        self._raw.update(rows)
        if host.queue.admitted > _SMALL_HOST:
            # a host that `read_small_host` does not read
            self.cache.keep_rows(rows)
        tally.seq += count
        host.queue.admitted += count
        host.queue.lengths[tier] += count
        tally.tiers[tier] += count
        self._lower_start(host, tier, slots[0])
        self.count(_QUEUED, count)

    def reprioritise(self, key: UrlKey, row: UrlRow, priority: int) -> None:
        """Move a queued URL to the slot of its new priority. A leased one stays where it is."""
        if priority == row.priority or lane_of(row.slot) == REVISIT_LANE:
            # nothing of the host changes: three of five links from other hosts end here
            self.put_url(key, row)
            return
        ident, host = self.look(host_of(row.url))
        if host is None or (host.lease and key in self.cache.lease_slots(ident, host.lease.token)):
            self.put_url(key, row)
            return
        former = tier_of(row.priority)
        self.dequeue(row)
        row.priority = priority
        if tier_of(priority) == former:
            self._move(key, row, ident, host)
            return
        self.take(ident, host, Host(host.host))
        host.queue.lengths[former] -= 1
        self.tally.tiers[former] -= 1
        self.count(_QUEUED, -1)
        self.enqueue(key, row, ident, host)

    def _move(self, key: UrlKey, row: UrlRow, ident: bytes, host: HostRow) -> None:
        """Move a URL within its tier. The host's row changes only if the slot is the first. Seven of ten new
        priorities end here."""
        tier = tier_of(row.priority)
        self._place(key, row, ident, tier)
        if _is_lower(host, tier, row.slot):
            self._lower_start(self.take(ident, host, Host(host.host)), tier, row.slot)

    def _lower_start(self, host: HostRow, tier: int, slot: bytes) -> None:
        if _is_lower(host, tier, slot):
            host.queue.lows[tier] = within_lane(slot)

    def learn_habits(self, key: bytes) -> Habits:
        """Of a pattern or host, to be changed; written by the commit."""
        habits = self.habits.get(key)
        if habits is None:
            habits = self.habits[key] = self.cache.habits_of(key)
        return habits

    def raise_low(self, host: HostRow, tier: int, slot: bytes) -> None:
        """Nothing alive is before this slot: the next scan starts here."""
        host.queue.lows[tier] = within_lane(slot)

    def dequeue(self, row: UrlRow) -> None:
        """Remove a URL's slot. The caller takes it off the count of the queue or the lease."""
        self.delete("queue", row.slot)
        if lane_of(row.slot) == REVISIT_LANE and 200 <= row.answer.status < 300:
            # it counted as a page until now
            self.count_answer(row, -1)
        row.slot = b""

    def send_errand(self, errand: Errand, to: Host) -> None:
        if self.is_elsewhere(to):
            self.post(to, PostedErrand(to, Host(errand.behalf), errand.url, errand.hops))
            return
        ident, host = self.host(to)
        self.tally.seq += 1
        self.put("queue", slot_of(ident, ERRAND_LANE, 255, self.tally.seq), encode(errand))
        host.queue.errands += 1

    def begin_lease(self, ident: bytes, host: HostRow, lease: LeaseRow, tasks: list[LeasedTask]) -> None:
        host.lease = lease
        self.put("leases", ident, encode(tasks))
        self.set_timer(ident, lease)
        self.cache.remember_lease(lease.token, tasks)

    def set_timer(self, ident: bytes, lease: LeaseRow) -> None:
        timer = micros(lease.deadline) + ident
        self.put("timers", timer, b"")
        self.cache.timers_low = min(self.cache.timers_low, timer)

    def extend_lease(self, ident: bytes, lease: LeaseRow, duration: float) -> None:
        self.delete("timers", micros(lease.deadline) + ident)
        lease.deadline, lease.duration = self.now + duration, duration
        self.set_timer(ident, lease)

    def drop_lease_end(self, ending: LeaseEnd) -> None:
        """Remove the timer of a lease that has already ended."""
        self.delete("timers", ending.entry)

    def end_lease(self, ident: bytes, host: HostRow) -> None:
        """URLs that are still leased count as queued again: they have kept their slots."""
        lease = host.lease
        if lease is None:
            return
        self.tally.revisits.leased -= lease.pages[REVISITS]
        for tier, out in enumerate(lease.pages):
            if out:
                host.queue.lengths[tier] += out
                self.tally.tiers[tier] += out
                self.count(_QUEUED, out)
                self.count(_IN_PROGRESS, -out)
        self.delete("leases", ident)
        self.delete("timers", micros(lease.deadline) + ident)
        self.cache.forget_lease(lease.token)
        host.queue.errands += lease.errands
        host.lease = None

    # -- other partitions

    def is_elsewhere(self, host: Host) -> bool:
        """Whether another partition has this host."""
        partition = self.cache.partition
        return partition is not None and not partition.has(host)

    def post(self, host: Host, post: Post) -> None:
        """Into the outbox, for the partition that has this host."""
        partition = self.cache.partition
        assert partition is not None
        self._put_post(part_of(host, partition.parts), post)

    def post_link(self, found: Discovered) -> None:
        partition = self.cache.partition
        assert partition is not None
        self._links_away.setdefault(part_of(found.host, partition.parts), []).append(found)

    def _put_post(self, part: int, post: Post) -> None:
        self.tally.seq += 1
        self.put("meta", post_key(part, self.tally.seq), encode_post(post))
        self.cache.may_have_posts = True

    # -- commit

    def _is_to_be_committed(self) -> bool:
        is_changed = self._touched or self.learnt or self.habits or self._links_away
        return bool(is_changed) or not self._changes.is_empty()

    @contextlib.contextmanager
    def _forgetting(self) -> Iterator[None]:
        """What is not committed is not remembered either."""
        try:
            yield
        except BaseException:
            self.cache.forget()
            raise

    def _complete(self) -> Changes:
        """All changes, with the rows and indexes that follow from what was done."""
        if self.originals:
            # before the commit: one too many in the filter costs a read, one too few would miss a near page
            self.cache.near.add(self.originals)
        for part, links in self._links_away.items():
            self._put_post(part, PostedLinks(pack(links)))
        for ident, row in self._touched.items():
            self._update_indexes(ident, row)
            raw = encode(row)
            self.put("hosts", ident, raw)
            self.cache.keep_host(ident, raw)
        for subject, seen in self.learnt.items():
            self.put("skeletons", subject, encode(seen))
        for group, habits in self.habits.items():
            self.put_habits(group, habits)
        self.tally.now = max(self.tally.now, self.now)
        self.tally.skew = self.cache.skew
        self.put("meta", TALLY, encode(self.tally))
        self.cache.judged.clear()
        return self._changes

    def _update_indexes(self, ident: bytes, row: HostRow) -> None:
        """Bring the ready index and the counts of hosts in line with the host's row."""
        if _stays_leased(row):
            return
        tiers = _ready_tiers(row)
        at = int(self.cache.earliest_start(row) * 1_000_000) if tiers else 0
        if at != row.queue.ready_at or tiers != row.queue.ready_tiers:
            self._move_in_ready_index(ident, row, at, tiers)
        standing = _standing(row, tiers)
        if standing != row.standing:
            hosts = self.tally.hosts
            hosts[row.standing] = hosts.get(row.standing, 0) - 1
            hosts[standing] = hosts.get(standing, 0) + 1
            row.standing = standing
        if (row.health.given_up or row.policy is not None) and row.is_to_be_emptied():
            self.mark_to_empty(ident)

    def _move_in_ready_index(self, ident: bytes, row: HostRow, at: int, tiers: int) -> None:
        old, new = row.queue.ready_at.to_bytes(8, "big") + ident, at.to_bytes(8, "big") + ident
        # an entry that stays is not written again: most hosts that get one more link have one
        stays = row.queue.ready_tiers & tiers if at == row.queue.ready_at else 0
        gone, come = row.queue.ready_tiers & ~stays, tiers & ~stays
        index = self.cache.ready
        for tier in range(LANES):
            prefix = bytes((tier,))
            if gone >> tier & 1:
                self.delete("ready", prefix + old)
                index.remove(tier, prefix + old)
            if come >> tier & 1:
                self.put("ready", prefix + new, b"")
                index.add(tier, prefix + new)
        row.queue.ready_at, row.queue.ready_tiers = at, tiers


def _is_lower(host: HostRow, tier: int, slot: bytes) -> bool:
    low = host.queue.lows[tier]
    return bool(low) and within_lane(slot) < low


def _stays_leased(row: HostRow) -> bool:
    """Leased before and after this transaction: true of two of three hosts when a page is settled."""
    return row.lease is not None and not row.queue.ready_tiers and not row.is_out_of_reach()


def _ready_tiers(row: HostRow) -> int:
    """The tiers this host can be asked for, as bits; 0 when it may not be asked at all now."""
    if row.lease is not None or row.is_out_of_reach():
        return 0
    bits = 1 if row.queue.errands else 0
    if row.robots.is_elsewhere:
        return bits
    for tier, waiting in enumerate(row.queue.lengths):
        if waiting:
            bits |= 1 << tier
    return bits


def _standing(row: HostRow, tiers: int) -> HostStanding:
    if row.lease is not None:
        return _ACTIVE
    if row.policy is not None and row.policy.blocked:
        return HostStanding.BLOCKED
    if row.health.given_up:
        return HostStanding.GIVEN_UP
    if not any(row.queue.lengths) and not tiers:
        return _IDLE
    return HostStanding.BACKING_OFF if row.health.failures else _WAITING
