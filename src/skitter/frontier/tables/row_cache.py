"""The frontier's cache: rows, filters and running totals. They change in transactions (`transaction.py`).

When a transaction fails, everything cached here is dropped, so that memory never disagrees with the disk. RAM is
bounded: host rows, parsed robots rules, leases and recent keys each have a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from skitter.errors import StoreFailed
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.keyset import KnownKeys
from skitter.frontier.rows import Habits, HostRow, LeasedTask, Note, Tally, UrlRow
from skitter.frontier.stores.base import Store
from skitter.frontier.tables.caches import ClockCache, RecentKeys, TrimmedCache, TwoGenerationCache
from skitter.frontier.tables.layout import (
    END_OF_KEYS,
    FORGOTTEN,
    FORMAT,
    HABITS,
    MARK,
    decode_copy,
    decode_habits,
    decode_host,
    decode_mark,
    decode_tally,
    decode_tasks,
    decode_url,
)
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.frontier.tables.near_index import NearIndex
from skitter.frontier.tables.ready_index import ReadyIndex
from skitter.frontier.tables.seen_filter import SeenFilter
from skitter.frontier.tables.url_patterns import Pattern
from skitter.model import Copy, Host, Refusal, SegmentMark, UrlState
from skitter.robots.rules import ALLOW_ALL, Rules, parse_robots
from skitter.schedule.politeness import delay_for
from skitter.schedule.traps import Evidence
from skitter.settings import Settings
from skitter.urls.keys import Keys
from skitter.urls.partitions import Partition

TALLY = b"tally"
NO_ROBOTS = b"-"
_CACHED_RULES = 4096
_CACHED_LEASES = 16_384
_CACHED_ANCHORS = 65_536
# As many as a worker may have leased: 4,096 hosts with eight URLs each; 250 bytes a row.
_HELD_ROWS = 32_768
# Evidence on URL patterns, 800 bytes each, or that there is none.
_CACHED_EVIDENCE = 16_384
# How often pages of a pattern or host change, 200 bytes each.
_CACHED_HABITS = 16_384
# Patterns of URLs, up to 600 bytes each. In the JDK's documentation one page in three credits a parent that was
# settled thousands of pages ago, whose row must be read when its pattern is not here.
_CACHED_PATTERNS = 16_384
# Rows of 100 to 600 bytes: pages of 3,000 hosts with the same software need some ten thousand of them.
_CACHED_NEAR = 16_384
# A longer robots.txt is hardly ever shared by hosts.
_COMMON_ROBOTS = 4_096
# Keys that a filter learns again at a time, in some 8 ms.
_RELEARN = 10_000


class RowCache:
    format = FORMAT
    """The format of the rows that it reads and writes."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        settings: Settings,
        memory: MemoryPlan,
        now: float,
        keys: Keys | None = None,
        blocklists: Blocklists | None = None,
        partition: Partition | None = None,
    ) -> None:
        self.store = store
        self.partition = partition
        """Of which hosts it knows; None where it knows all."""
        self.may_have_posts = partition is not None
        """Whether something may wait in the outbox."""
        self.folder = folder
        """Where filters are kept between a clean close and the next opening."""
        self._seen_file, self._known_file = folder / "seen.filter", folder / "known.keys"
        self.keys = keys or Keys(settings.keys)
        self.blocklists = blocklists or Blocklists(settings.crawl.blocklists)
        self.read_only = store.read_only
        self.keeps_every_commit, self.has_moved = store.keeps_every_commit, store.has_moved
        self._under_way: asyncio.Future[None] | None = None
        self._product = settings.identity.product
        self._politeness = settings.politeness
        self._hosts: TrimmedCache[bytes, HostRow] = TrimmedCache(memory.hosts)
        # many more hosts, still encoded: a tenth of the RAM, and decoding is faster than a read
        self._dormant: ClockCache[bytes, bytes] = ClockCache(memory.dormant_hosts)
        self._rules: TrimmedCache[bytes, Rules] = TrimmedCache(_CACHED_RULES)
        self._leases: TrimmedCache[int, dict[bytes, bytes]] = TrimmedCache(_CACHED_LEASES)
        self._anchors: TrimmedCache[str, bool] = TrimmedCache(_CACHED_ANCHORS)
        self.recent = RecentKeys(memory.recent_keys)
        self.known_keys = KnownKeys(memory.known_keys)
        # rows that were just judged and are about to be settled; cleared by the next commit
        self.judged: dict[bytes, UrlRow] = {}
        # encoded rows of leased URLs: each is needed again when it is settled
        self._held: TrimmedCache[bytes, bytes] = TrimmedCache(2 * _HELD_ROWS)
        # by subject; False where there is no evidence, so that the store is not asked again
        self.evidence: TrimmedCache[bytes, Evidence | Literal[False]] = TrimmedCache(_CACHED_EVIDENCE)
        # by the URL's key, on hosts that repeat themselves: for URLs that a lease passes over, and for parents
        # by the key of a pattern or host
        self.habits: TrimmedCache[bytes, Habits] = TrimmedCache(_CACHED_HABITS)
        self.patterns: TwoGenerationCache[bytes, Pattern] = TwoGenerationCache(_CACHED_PATTERNS)
        self._parsed: TrimmedCache[bytes, Rules] = TrimmedCache(_CACHED_RULES // 8)
        self.ready = ReadyIndex()
        # low-water marks: nothing alive is below them, so a scan from there skips tombstones
        self.due_low = b""
        self.revisit_lows = {True: b"", False: b""}
        self.timers_low = b""
        self.near = NearIndex(store, memory.near_filter, folder / "near.filter")
        # rows of that index, empty where there is none: pages of one template need the same rows again and again
        self.near_rows: TrimmedCache[bytes, bytes] = TrimmedCache(_CACHED_NEAR)
        self._check_format()
        self.tally = self._load_tally()
        # When the clock was set back since the last commit, this is added to it: time never goes back here.
        self.forgotten = {
            key[len(FORGOTTEN) :] for key, _ in store.scan("meta", FORGOTTEN, FORGOTTEN + END_OF_KEYS)
        }
        """Hosts and URLs that were forgotten, by their hashes."""
        self.skew = max(self.tally.skew, self.tally.now - now)
        known = self.tally.token or any(self.tally.urls.values())
        self._opened_at = now + self.skew if known else float("-inf")
        self.seen = SeenFilter(memory.seen_filter, empty=not any(self.tally.urls.values()))

    def _check_format(self) -> None:
        made_with = self.note(Note.FORMAT)
        if self.store.get("meta", TALLY) is None or made_with == FORMAT:
            return
        self.store.close()
        which = f"a later version (format {made_with.decode()})" if made_with else "skitter 0.1"
        raise StoreFailed(
            f"the frontier in {self.folder} was made by {which}, and this one cannot go on with it: finish the "
            "crawl with the version that began it, or begin another in a new folder; its archive stays readable"
        )

    def _load_tally(self) -> Tally:
        raw = self.store.get("meta", TALLY)
        return decode_tally(raw) if raw else Tally()

    def change_settings(self, settings: Settings) -> None:
        self._politeness = settings.politeness

    def delay_of(self, host: HostRow) -> float:
        return delay_for(
            self._politeness, host.policy, host.pace.crawl_delay, host.pace.response_time, host.pace.penalty
        )

    def earliest_start(self, host: HostRow) -> float:
        """When the host may be asked next. Computed, not stored, so that a changed delay counts at once."""
        return max(host.pace.not_before, host.pace.last_start + self.delay_of(host))

    def rested_at(self, delay: float) -> float:
        """When a host with that delay has rested since this process began. Stored times are not enough: the clock
        may have been set ahead, or a power loss may have undone the last lease."""
        return self._opened_at + delay

    def by_the_clock(self, at: float) -> float:
        return at - self.skew

    # -- opening and closing

    def restore_filters(self, stamp: bytes) -> None:
        """Load the filters that a clean close saved with this stamp."""
        self.seen.restore(self._seen_file, stamp)
        self.near.trust_file(stamp)
        self.known_keys.restore(self._known_file, stamp)

    def save_filters(self, stamp: bytes) -> None:
        self.seen.save(self._seen_file, stamp)
        self.near.save(stamp)
        self.known_keys.save(self._known_file, stamp)

    def discard_filters(self) -> None:
        self._seen_file.unlink(missing_ok=True)

    def relearn_some(self) -> bool:
        """After a crash the seen filter and the table of known keys learn the stored keys again, some at a
        time. False when there is nothing to learn."""
        start = self.seen.relearn_from
        if start is None:
            return False
        keys = self.store.first_keys("urls", start, END_OF_KEYS, _RELEARN + 1)
        self.seen.relearn(keys[:_RELEARN], keys[-1] if len(keys) > _RELEARN else None)
        if not self.tally.refusals.get(Refusal.DEPTH):
            self.known_keys.add_all(keys)
        return True

    # -- commits that take their time

    async def wait_for(self, under_way: Awaitable[None]) -> None:
        """Until this commit is done. Memory is ahead of the store until then."""
        done = self._under_way = asyncio.get_running_loop().create_future()
        try:
            await under_way
        finally:
            self._under_way = None
            done.set_result(None)

    async def quiet(self) -> None:
        """Until no commit is under way: a question that reads the store meanwhile, and keeps what it found, would
        keep what is about to change."""
        while self._under_way is not None:
            await asyncio.shield(self._under_way)

    def sync(self) -> None:
        self.store.sync()

    def close(self) -> None:
        self.store.close()

    # -- single values and rows that are not cached

    def note(self, name: Note) -> bytes | None:
        return self.store.get("meta", name.encode())

    def copy_of(self, digest: bytes) -> Copy | None:
        """The first archived copy of a body."""
        raw = self.store.get("copies", digest)
        return None if raw is None else decode_copy(raw)

    def robots_body(self, ident: bytes) -> bytes:
        """The robots.txt of a host; empty when there is none."""
        return self.store.get("robots", ident) or b""

    def mark_of(self, segment: str) -> SegmentMark | None:
        raw = self.store.get("meta", MARK + segment.encode())
        return None if raw is None else decode_mark(raw)

    # -- cached rows

    def forget(self) -> None:
        """Drop every cached row; the disk is the truth."""
        self._hosts.clear()
        self._dormant.clear()
        self._rules.clear()
        self._leases.clear()
        self._anchors.clear()
        self.recent.clear()
        self.known_keys.clear()
        self._held.clear()
        self.judged.clear()
        self.evidence.clear()
        self.habits.clear()
        self.patterns.clear()
        self.near_rows.clear()
        self.ready = ReadyIndex()
        self.due_low = b""
        self.revisit_lows = {True: b"", False: b""}
        self.timers_low = b""
        self.tally = self._load_tally()

    def room(self, max_pages: int) -> int:
        """How many more pages may come before `max_pages` could be passed; 0 means no limit."""
        if not max_pages:
            return 1 << 30
        # pages that are visited again have been counted
        in_progress = self.tally.urls.get(UrlState.IN_PROGRESS, 0) - self.tally.revisits.leased
        return max_pages - self.tally.pages - in_progress

    def trim(self) -> None:
        for cache in (
            self._hosts,
            self._rules,
            self._parsed,
            self._leases,
            self._anchors,
            self._held,
            self.evidence,
            self.habits,
            self.near_rows,
        ):
            cache.trim()
        self.known_keys.make_room(sum(self.tally.urls.values()))

    def host(self, ident: bytes) -> HostRow | None:
        row = self._hosts.get(ident)
        if row is None and (raw := self._dormant.get(ident) or self.store.get("hosts", ident)):
            row = self._hosts[ident] = decode_host(raw)
        return row

    def drop_host(self, ident: bytes) -> None:
        self._hosts.drop(ident)
        self._dormant.drop(ident)
        self._rules.drop(ident)

    def drop_anchor(self, anchor: str) -> None:
        self._anchors.drop(anchor)

    def keep_host(self, ident: bytes, raw: bytes) -> None:
        """Cache a host's row as the commit stores it."""
        self._dormant[ident] = raw

    def new_host(self, ident: bytes, host: Host) -> HostRow:
        row = self._hosts[ident] = HostRow(host=host)
        return row

    def url(self, key: bytes) -> UrlRow | None:
        raw = self.raw_url(key)
        return decode_url(raw) if raw else None

    def raw_url(self, key: bytes) -> bytes | None:
        return self._held.get(key) or self.store.get("urls", key)

    def habits_of(self, key: bytes) -> Habits:
        """Of a pattern or host. To be changed only by who has `Transaction.learn_habits` write it."""
        habits = self.habits.get(key)
        if habits is None:
            raw = self.store.get("skeletons", key + HABITS)
            habits = self.habits[key] = decode_habits(raw) if raw else Habits()
        return habits

    def hold_row(self, key: bytes, raw: bytes) -> None:
        self._held[key] = raw

    def keep_rows(self, raws: Mapping[bytes, bytes]) -> None:
        """Cache rows of queued URLs that a lease will need, as long as leased ones leave room: a crawl of a few
        thousand URLs is leased from here."""
        if len(self._held) < _HELD_ROWS // 2:
            self._held.update(raws)

    def drop_row(self, key: bytes) -> None:
        self._held.drop(key)

    def rules(self, ident: bytes, rules_key: bytes = b"") -> Rules:
        """The robots rules of a host. With the `rules_key` of its row, a file that many hosts share is not
        read."""
        if rules_key == NO_ROBOTS:
            return ALLOW_ALL
        rules = self._rules.get(ident)
        if rules is None and rules_key:
            rules = self._parsed.get(rules_key)
        if rules is None:
            rules = self.learn_rules(ident, self.robots_body(ident))
        return rules

    def learn_rules(self, ident: bytes, body: bytes) -> Rules:
        rules = self._rules[ident] = self._read_rules(body) if body else ALLOW_ALL
        return rules

    def _read_rules(self, body: bytes) -> Rules:
        """Many hosts have the same file from the same software: it is parsed once."""
        if len(body) > _COMMON_ROBOTS:
            return parse_robots(body, self._product)
        rules_key = rules_key_of(body)
        rules = self._parsed.get(rules_key)
        if rules is None:
            rules = self._parsed[rules_key] = parse_robots(body, self._product)
        return rules

    def lease_slots(self, ident: bytes, token: int) -> dict[bytes, bytes]:
        """The tasks of a live lease: key -> slot."""
        slots = self._leases.get(token)
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

    def forget_lease(self, token: int) -> None:
        self._leases.drop(token)

    def remember_lease(self, token: int, tasks: list[LeasedTask]) -> None:
        self._leases[token] = {task.key: task.slot for task in tasks}


def rules_key_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest() if body else NO_ROBOTS
