"""The book a RocksDB frontier keeps: cached rows, running totals, and the turns in which they change.

Every call of the contract that changes something is one `Turn`: rows are read through the book, changed in
memory, and committed as one batch together with the indexes that follow from them. If anything goes wrong on
the way the cached rows are forgotten, so memory never disagrees with the disk.

RAM here is bounded: host rows, parsed robots rules, leases and recent keys each have a limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import TracebackType
from typing import Self

from skitter.frontier.base import HostStanding
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.rocks.caches import Generations, Lru, RecentKeys
from skitter.frontier.rocks.keyset import CertainKeys
from skitter.frontier.rocks.kinds import Kin
from skitter.frontier.rocks.memory import MemoryPlan
from skitter.frontier.rocks.near_index import NearIndex
from skitter.frontier.rocks.ready import ReadyMarks
from skitter.frontier.rocks.rows import (
    ABANDON,
    ERRAND_LANE,
    Errand,
    Fresh,
    HostRow,
    LeasedTask,
    LeaseRow,
    Tally,
    UrlRow,
    decode_host,
    decode_place,
    decode_tally,
    decode_tasks,
    decode_url,
    encode,
    lane_of,
    micros,
    placed,
    slot_of,
)
from skitter.frontier.rocks.seen import SeenFilter
from skitter.frontier.rocks.store import Batch, Store
from skitter.model import Discovered, Host, UrlKey, UrlState
from skitter.robots.rules import ALLOW_ALL, Rules, parse_robots
from skitter.schedule.politeness import delay_for
from skitter.schedule.priority import TIERS, tier_of
from skitter.schedule.traps import Evidence
from skitter.settings import Settings
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import Keys

_TALLY = b"tally"
# an enum's own attribute takes 0.1 us, eight times as long
_QUEUED, _IN_PROGRESS = UrlState.QUEUED, UrlState.IN_PROGRESS
_ACTIVE, _IDLE, _WAITING = HostStanding.ACTIVE, HostStanding.IDLE, HostStanding.WAITING
NO_ROBOTS = b"-"
_CACHED_RULES = 4096
_CACHED_LEASES = 16_384
_CACHED_ANCHORS = 65_536
# As many as a worker may have out: 4,096 hosts with five URLs each; 250 bytes a row.
_HELD_ROWS = 20_480
# What is known of kinds of pages, 800 bytes each; of which kind a URL is, 600 at most.
_CACHED_EVIDENCE = 8_192
_CACHED_KINDS = 8_192
# Longer ones are some site's own.
_COMMON_ROBOTS = 4_096
# The rows of a host that has no more than so many are read in one go when it is leased.
_SMALL_HOST = 64

Waiting = dict[int, list[tuple[bytes, bytes]]]
"""Slots in their order and the keys that wait there, by lane."""


class Book:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        memory: MemoryPlan,
        now: float,
        keys: Keys | None = None,
        blocklists: Blocklists | None = None,
    ) -> None:
        self.store = store
        self.keys = keys or Keys(settings.keys)
        self.blocklists = blocklists or Blocklists(settings.crawl.blocklists)
        self.read_only = store.read_only
        self._product = settings.identity.product
        self._politeness = settings.politeness
        self._hosts: Lru[bytes, HostRow] = Lru(memory.hosts)
        # many more hosts as they are stored: a tenth of the RAM, and 2 us to decode instead of a read of 7 to 20
        self._dormant: Generations[bytes, bytes] = Generations(memory.dormant_hosts)
        self._rules: Lru[bytes, Rules] = Lru(_CACHED_RULES)
        self._leases: Lru[int, dict[bytes, bytes]] = Lru(_CACHED_LEASES)
        self._anchors: Lru[str, bool] = Lru(_CACHED_ANCHORS)
        self.recent = RecentKeys(memory.recent_keys)
        self.certain = CertainKeys(memory.certain_keys)
        # rows that were just judged, and are about to be settled: until the next commit
        self.judged: dict[bytes, UrlRow] = {}
        # rows of URLs that are out, as they are stored: each is wanted again when it is settled
        self._held: Lru[bytes, bytes] = Lru(_HELD_ROWS)
        self.evidence: Lru[bytes, Evidence] = Lru(_CACHED_EVIDENCE)
        # subjects of which nothing is known: asked for again and again, by each page of their kind
        self.unheard_of: Lru[bytes, bool] = Lru(_CACHED_EVIDENCE)
        # by the URL's key, on hosts that repeat themselves: what is passed over at each lease, and parents
        self.kinds: Generations[bytes, Kin] = Generations(_CACHED_KINDS)
        self._parsed: Lru[bytes, Rules] = Lru(_CACHED_RULES // 8)
        # Where the first live entry of the due index and of the timers can be at the earliest: seeking from there
        # skips the tombstones of what was taken before.
        self.ready = ReadyMarks()
        self.due_low = b""
        self.timers_low = b""
        self.near = NearIndex(store, memory.near_filter, store.folder / "near.filter")
        self.tally = self._load_tally()
        # A clock that was set back since the last commit is caught up with: appointments keep their distance.
        self.skew = max(self.tally.skew, self.tally.now - now)
        known = self.tally.token or any(self.tally.urls.values())
        self._opened_at = now + self.skew if known else float("-inf")
        self.seen = SeenFilter(memory.seen_filter, empty=not any(self.tally.urls.values()))

    def _load_tally(self) -> Tally:
        raw = self.store.get("meta", _TALLY)
        return decode_tally(raw) if raw else Tally()

    def delay_of(self, host: HostRow) -> float:
        return delay_for(self._politeness, host.policy, host.crawl_delay, host.response_time, host.penalty)

    def earliest_start(self, host: HostRow) -> float:
        """When the host may be asked next. Derived, not stored: a changed delay counts at once."""
        return max(host.not_before, host.last_start + self.delay_of(host))

    def rested_at(self, delay: float) -> float:
        """When a host with that delay has rested since this process began. Stored times alone do not tell: the
        clock may have been set ahead since, or a power loss have taken the last lease along."""
        return self._opened_at + delay

    def turn(self, now: float) -> Turn:
        """`now` is the clock's; everything inside a turn is in the frontier's own time."""
        return Turn(self, now + self.skew)

    def by_the_clock(self, at: float) -> float:
        return at - self.skew

    def forget(self) -> None:
        """Drop every cached row; the disk is the truth."""
        self._hosts.clear()
        self._dormant.clear()
        self._rules.clear()
        self._leases.clear()
        self._anchors.clear()
        self.recent.clear()
        self.certain.clear()
        self._held.clear()
        self.judged.clear()
        self.evidence.clear()
        self.unheard_of.clear()
        self.kinds.clear()
        self.ready = ReadyMarks()
        self.due_low = b""
        self.timers_low = b""
        self.tally = self._load_tally()

    def room(self, max_pages: int) -> int:
        """How many more pages may come before `max_pages` could be passed; 0 means no limit."""
        if not max_pages:
            return 1 << 30
        return max_pages - self.tally.pages - self.tally.urls.get(UrlState.IN_PROGRESS, 0)

    def trim(self) -> None:
        for cache in (
            self._hosts,
            self._rules,
            self._parsed,
            self._leases,
            self._anchors,
            self._held,
            self.evidence,
            self.unheard_of,
        ):
            cache.trim()

    def host(self, ident: bytes) -> HostRow | None:
        row = self._hosts.recall(ident)
        if row is None and (raw := self._dormant.get(ident) or self.store.get("hosts", ident)):
            row = self._hosts[ident] = decode_host(raw)
        return row

    def keep_host(self, ident: bytes, raw: bytes) -> None:
        """As it is stored from now on."""
        self._dormant[ident] = raw

    def new_host(self, ident: bytes, host: Host) -> HostRow:
        row = self._hosts[ident] = HostRow(host=host)
        return row

    def url(self, key: bytes) -> UrlRow | None:
        raw = self.raw_url(key)
        return decode_url(raw) if raw else None

    def raw_url(self, key: bytes) -> bytes | None:
        return self._held.get(key) or self.store.get("urls", key)

    def hold(self, key: bytes, raw: bytes) -> None:
        self._held[key] = raw

    def hold_all(self, raws: Mapping[bytes, bytes]) -> None:
        """New URLs of a host that is not read in one go: of a crawl of thousands each is leased from here."""
        self._held.update(raws)

    def let_go(self, key: bytes) -> None:
        self._held.pop(key, None)

    def rules(self, ident: bytes, mark: bytes = b"") -> Rules:
        """With the mark of its host's row what many hosts say needs no read: a quarter of one a page."""
        if mark == NO_ROBOTS:
            return ALLOW_ALL
        rules = self._rules.recall(ident)
        if rules is None and mark:
            rules = self._parsed.recall(mark)
        if rules is None:
            rules = self.learn_rules(ident, self.store.get("robots", ident) or b"")
        return rules

    def learn_rules(self, ident: bytes, body: bytes) -> Rules:
        rules = self._rules[ident] = self._read_rules(body) if body else ALLOW_ALL
        return rules

    def _read_rules(self, body: bytes) -> Rules:
        """Many hosts have the same file, word for word, from the same software."""
        if len(body) > _COMMON_ROBOTS:
            return parse_robots(body, self._product)
        mark = mark_of_robots(body)
        rules = self._parsed.recall(mark)
        if rules is None:
            rules = self._parsed[mark] = parse_robots(body, self._product)
        return rules

    def lease_slots(self, ident: bytes, token: int) -> dict[bytes, bytes]:
        """The tasks of a live lease: key -> slot."""
        slots = self._leases.recall(token)
        if slots is None:
            raw = self.store.get("leases", ident)
            slots = {task.key: task.slot for task in decode_tasks(raw)} if raw else {}
            self._leases[token] = slots
        return slots

    def has_anchor(self, anchor: str) -> bool:
        found = self._anchors.get(anchor)
        if found is None:
            found = self._anchors[anchor] = self.store.get("anchors", anchor.encode()) is not None
        return found

    def remember_anchor(self, anchor: str) -> None:
        self._anchors[anchor] = True

    def remember_lease(self, token: int, tasks: list[LeasedTask]) -> None:
        self._leases[token] = {task.key: task.slot for task in tasks}


class Turn:
    """One atomic change. `host` and `url` see what this turn has already done."""

    def __init__(self, book: Book, now: float) -> None:
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
        self.near: dict[bytes, bytes] = {}
        self.originals: list[int] = []
        self.led_on: set[bytes] = set()
        self.suspects: dict[int, tuple[bytes, ...]] = {}
        self.claims: dict[bytes, bytes] = {}
        # written once when the turn is committed: pages of one host are mostly of a few kinds
        self.learnt: dict[bytes, Evidence] = {}

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
        if self.book.seen.is_new(key):
            return None
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
        found = list(itertools.islice(self.book.store.scan("urls", ident, _after(ident)), 2 * _SMALL_HOST))
        raws, add = self._raw, self.book.certain.add
        for key, raw in found:
            raws.setdefault(key, raw)
            add(key)
        return None if len(found) == 2 * _SMALL_HOST else self._waiting([key for key, _ in found])

    def _waiting(self, keys: list[bytes]) -> Waiting:
        """A row that is queued names its slot, so the queue itself need not be read."""
        waiting: Waiting = {}
        for key in keys:
            if slot := (self._urls.get(key) or decode_place(self._raw[key])).slot:
                waiting.setdefault(lane_of(slot), []).append((slot, key))
        for lane in waiting.values():
            lane.sort()
        return waiting

    def out(self, key: bytes) -> None:
        """This URL is leased: its row will be wanted again."""
        if raw := self._raw.get(key):
            self.book.hold(key, raw)

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
        self.tally.seq += 1
        tier = tier_of(row.priority)
        row.slot = slot_of(ident, tier + 1, row.priority, self.tally.seq)
        row.state = _QUEUED
        row.due = 0.0
        self.put("queue", row.slot, key)
        self.put_url(key, row)
        self._lengthen(host, tier, row.slot)
        self.count(_QUEUED, 1)

    def enqueue_fresh(self, links: Sequence[Discovered], fresh: Fresh, ident: bytes, host: HostRow) -> None:
        """Admit new URLs that are alike, as `enqueue` does one: their rows are written without being made."""
        tally, tier, count = self.tally, fresh[0] - 1, len(links)
        slots, rows = placed(links, fresh, ident, tally.seq + 1)
        self.put_all("queue", zip(slots, rows, strict=True))
        self.put_all("urls", rows.items())
        self._raw |= rows
        if host.admitted > _SMALL_HOST:
            self.book.hold_all(rows)
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
        ident, host = self.host(host_of(row.url))
        if host.lease is not None and key in self.book.lease_slots(ident, host.lease.token):
            self.put_url(key, row)
            return
        tier = tier_of(row.priority)
        host.queued[tier] -= 1
        self.tally.tiers[tier] -= 1
        self.count(UrlState.QUEUED, -1)
        self.dequeue(row)
        row.priority = priority
        self.enqueue(key, row, ident, host)

    def _lengthen(self, host: HostRow, tier: int, slot: bytes) -> None:
        host.queued[tier] += 1
        self.tally.tiers[tier] += 1
        self._lower(host, tier, slot)

    def _lower(self, host: HostRow, tier: int, slot: bytes) -> None:
        if host.lows[tier] and slot[9:] < host.lows[tier]:
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
            self.put("meta", _TALLY, encode(self.tally))
            self.book.judged.clear()
            self.book.store.write(self._batch)
        except BaseException:
            self.book.forget()
            raise
        self.book.trim()

    def _follow(self, ident: bytes, row: HostRow) -> None:
        """The ready index and the count of hosts follow from the row."""
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
        marks = self.book.ready
        for tier in range(TIERS):
            prefix = bytes((tier,))
            if row.ready_tiers >> tier & 1:
                self.delete("ready", prefix + old)
                marks.gone(tier, prefix + old)
            if tiers >> tier & 1:
                self.put("ready", prefix + new, b"")
                marks.put(tier, prefix + new)
        row.ready_at, row.ready_tiers = at, tiers


def mark_of_robots(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest() if body else NO_ROBOTS


def _after(ident: bytes) -> bytes:
    """The end of a host's range in the tables that are keyed by it."""
    return ident + b"\xff" * 9


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
