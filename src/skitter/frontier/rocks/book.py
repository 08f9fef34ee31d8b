"""The book a RocksDB frontier keeps: cached rows and running totals. They change in turns (`turn.py`).

If anything goes wrong in one, all that is cached here is forgotten, so memory never disagrees with the disk.
RAM here is bounded: host rows, parsed robots rules, leases and recent keys each have a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal

from skitter.frontier.blocklists import Blocklists
from skitter.frontier.keyset import CertainKeys
from skitter.frontier.rocks.caches import Brimful, Generations, Lasting, RecentKeys
from skitter.frontier.rocks.kinds import Kin
from skitter.frontier.rocks.memory import MemoryPlan
from skitter.frontier.rocks.near_index import NearIndex
from skitter.frontier.rocks.ready import ReadyMarks
from skitter.frontier.rocks.rows import (
    HostRow,
    LeasedTask,
    Tally,
    UrlRow,
    decode_host,
    decode_tally,
    decode_tasks,
    decode_url,
)
from skitter.frontier.rocks.seen import SeenFilter
from skitter.frontier.rocks.store import Store
from skitter.model import Host, UrlState
from skitter.robots.rules import ALLOW_ALL, Rules, parse_robots
from skitter.schedule.politeness import delay_for
from skitter.schedule.traps import Evidence
from skitter.settings import Settings
from skitter.urls.keys import Keys

TALLY = b"tally"
NO_ROBOTS = b"-"
_CACHED_RULES = 4096
_CACHED_LEASES = 16_384
_CACHED_ANCHORS = 65_536
# As many as a worker may have out: 4,096 hosts with eight URLs each; 250 bytes a row.
_HELD_ROWS = 32_768
# What is known of kinds of pages, 800 bytes each, or that nothing is; of which kind a URL is, 600 at most.
_CACHED_EVIDENCE = 16_384
# Of the JDK's documentation one page in three credits a parent of thousands of pages ago, whose row is read when
# its kind was forgotten: 20 us, 6 a page with half as many.
_CACHED_KINDS = 16_384
# Of 100 to 600 bytes: pages of 3,000 hosts of one make ask for some ten thousand of them.
_CACHED_NEAR = 16_384
# Longer ones are some site's own.
_COMMON_ROBOTS = 4_096


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
        self._hosts: Lasting[bytes, HostRow] = Lasting(memory.hosts)
        # many more hosts as they are stored: a tenth of the RAM, and 2 us to decode instead of a read of 7 to 20
        self._dormant: Brimful[bytes, bytes] = Brimful(memory.dormant_hosts)
        self._rules: Lasting[bytes, Rules] = Lasting(_CACHED_RULES)
        self._leases: Lasting[int, dict[bytes, bytes]] = Lasting(_CACHED_LEASES)
        self._anchors: Lasting[str, bool] = Lasting(_CACHED_ANCHORS)
        self.recent = RecentKeys(memory.recent_keys)
        self.certain = CertainKeys(memory.certain_keys)
        # rows that were just judged, and are about to be settled: until the next commit
        self.judged: dict[bytes, UrlRow] = {}
        # rows of URLs that are out, as they are stored: each is wanted again when it is settled
        self._held: Lasting[bytes, bytes] = Lasting(2 * _HELD_ROWS)
        # by subject; False where nothing is known, which each page of that kind asks again
        self.evidence: Lasting[bytes, Evidence | Literal[False]] = Lasting(_CACHED_EVIDENCE)
        # by the URL's key, on hosts that repeat themselves: what is passed over at each lease, and parents
        self.kinds: Generations[bytes, Kin] = Generations(_CACHED_KINDS)
        self._parsed: Lasting[bytes, Rules] = Lasting(_CACHED_RULES // 8)
        # Where the first live entry of the due index and of the timers can be at the earliest: seeking from there
        # skips the tombstones of what was taken before.
        self.ready = ReadyMarks()
        self.due_low = b""
        self.timers_low = b""
        self.near = NearIndex(store, memory.near_filter, store.folder / "near.filter")
        # rows of its index, empty where there is none: pages of one template ask for the same ten again and again
        self.near_rows: Lasting[bytes, bytes] = Lasting(_CACHED_NEAR)
        self.tally = self._load_tally()
        # A clock that was set back since the last commit is caught up with: appointments keep their distance.
        self.skew = max(self.tally.skew, self.tally.now - now)
        known = self.tally.token or any(self.tally.urls.values())
        self._opened_at = now + self.skew if known else float("-inf")
        self.seen = SeenFilter(memory.seen_filter, empty=not any(self.tally.urls.values()))

    def _load_tally(self) -> Tally:
        raw = self.store.get("meta", TALLY)
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
        self.kinds.clear()
        self.near_rows.clear()
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
            self.near_rows,
        ):
            cache.trim()
        self.certain.make_room(sum(self.tally.urls.values()))

    def host(self, ident: bytes) -> HostRow | None:
        row = self._hosts.get(ident)
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

    def keep(self, raws: Mapping[bytes, bytes]) -> None:
        """Of URLs that a lease will want, as long as there is room beside those that are out: of a crawl of
        thousands each is leased from here."""
        if len(self._held) < _HELD_ROWS // 2:
            self._held.update(raws)

    def let_go(self, key: bytes) -> None:
        self._held.drop(key)

    def rules(self, ident: bytes, mark: bytes = b"") -> Rules:
        """With the mark of its host's row what many hosts say needs no read: a quarter of one a page."""
        if mark == NO_ROBOTS:
            return ALLOW_ALL
        rules = self._rules.get(ident)
        if rules is None and mark:
            rules = self._parsed.get(mark)
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
        rules = self._parsed.get(mark)
        if rules is None:
            rules = self._parsed[mark] = parse_robots(body, self._product)
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


def mark_of_robots(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest() if body else NO_ROBOTS
