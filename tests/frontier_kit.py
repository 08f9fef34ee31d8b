"""Building blocks for tests of a frontier: URLs, results, a synchronous driver, and `audit`.

`audit` compares every table of a RocksDB frontier with every other and with what is cached in memory. The
driver calls it after each call that may write, so that every test is also a test of the bookkeeping.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from skitter.clock import Clock
from skitter.frontier.base import (
    Explanation,
    HostExplanation,
    HostStanding,
    HostView,
    LeaseView,
    Settlement,
    Stats,
)
from skitter.frontier.rocks.book import Book, mark_of_robots
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.frontier.rocks.near_index import MOST_ALIKE, rows_of
from skitter.frontier.rocks.rows import (
    ABANDON,
    ERRAND_LANE,
    TABLES,
    HostRow,
    decode_errand,
    decode_fetch,
    decode_held,
    decode_host,
    decode_tally,
    decode_tasks,
    decode_url,
    encode,
    lane_of,
    micros,
)
from skitter.frontier.rocks.subjects import REFUSED, evidence, refused_by, trap_row
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    Host,
    HostLease,
    HostPolicy,
    Outcome,
    Redirected,
    Refusal,
    Result,
    RobotsRead,
    SegmentMark,
    Task,
    TaskKind,
    Token,
    UrlKey,
    UrlState,
    Verdict,
    Via,
)
from skitter.robots.rules import parse_robots
from skitter.schedule.near import NEAR
from skitter.schedule.priority import TIERS, tier_of
from skitter.settings import Settings
from skitter.testing.clock import FakeClock
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import Keys
from skitter.urls.skeleton import skeleton
from tests.keys import key_of

T = TypeVar("T")
_END = b"\xff" * 40
_PROBES = ("/", "/private/1", "/private", "/deny")


# -- values


def discovered(
    url: str,
    *,
    via: Via = Via.LINK,
    depth: int = 1,
    priority: int | None = 50,
    hops: int = 0,
    parent: UrlKey | None = None,
) -> Discovered:
    return Discovered(
        url=url,
        key=key_of(url),
        host=host_of(url),
        depth=depth,
        via=via,
        parent=parent,
        hops=hops,
        priority=priority,
    )


def seed(url: str, *, priority: int = 80) -> Discovered:
    return discovered(url, via=Via.SEED, depth=0, priority=priority)


def redirected(to: str, *, depth: int = 1, hops: int = 1, status: int = 301) -> Redirected:
    target = discovered(to, via=Via.REDIRECT, depth=depth, hops=hops)
    return Redirected(status=status, location=to, target=target)


def failed(kind: FailureKind = FailureKind.CONNECT_REFUSED, *, retry_after: float | None = None) -> Failed:
    return Failed(kind=kind, detail="as the test says", retry_after=retry_after)


OK = Fetched(status=200, content_type="text/html", size=10)
NO_RULES = RobotsRead(status=404)


def robots(*lines: str, status: int = 200) -> RobotsRead:
    return RobotsRead(status=status, body="\n".join(("User-agent: *", *lines)).encode())


# -- the driver

Opener = Callable[[Settings, Clock], RocksFrontier]


class Driver:
    """A frontier and its clock, called synchronously. `audited` is off only where a test has many URLs."""

    def __init__(self, opener: Opener, settings: Settings, *, audited: bool = True) -> None:
        self.clock = FakeClock()
        self.settings = settings
        self.audited = audited
        self.addresses: dict[str, str] = {}
        self._opener = opener
        self._runner = asyncio.Runner()
        self.frontier = opener(settings, self.clock)

    def ask(self, call: Coroutine[Any, Any, T]) -> T:
        """A question does not write, so there is nothing to audit."""
        return self._runner.run(call)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        answer = self._runner.run(call)
        if self.audited:
            audit(self.frontier)
        return answer

    # the calls of the contract

    def admit(self, *found: Discovered) -> list[Verdict]:
        return self.run(self.frontier.admit(found))

    def lease(self, capacity: int = 100, duration: float = 60.0, worker: str = "w1") -> list[HostLease]:
        return self.run(self.frontier.lease(worker, capacity, duration))

    def settle(self, *outcomes: Outcome, marks: Sequence[SegmentMark] = ()) -> list[Settlement]:
        """Every settle of every test is judged first, and the judgement must be what settling then does."""
        judged = self.ask(self.frontier.judge(outcomes))
        settlements = self.run(self.frontier.settle(outcomes, marks))
        assert [settlement.settled for settlement in settlements] == judged
        return settlements

    def release(self, *leases: HostLease) -> None:
        self.run(self.frontier.release([(lease.host, lease.token) for lease in leases]))

    def renew(self, lease: HostLease, duration: float = 60.0) -> float | None:
        return self.run(self.frontier.renew([(lease.host, lease.token)], duration))[0]

    def reap(self) -> int:
        return self.run(self.frontier.reap(self.clock.now()))

    def promote(self) -> int:
        return self.run(self.frontier.promote(self.clock.now()))

    def set_policy(self, host: str, policy: HostPolicy) -> None:
        self.run(self.frontier.set_policy(Host(host), policy))

    def requeue(self, *, host: str | None = None, url: str | None = None) -> int:
        return self.run(self.frontier.requeue(host=Host(host) if host else None, url=url))

    def refresh(self, *, host: str | None = None, url: str | None = None) -> int:
        return self.run(self.frontier.refresh(host=Host(host) if host else None, url=url))

    def stored(self, segment: str) -> None:
        self.run(self.frontier.stored(segment))

    def lost(self, segment: str) -> int:
        return self.run(self.frontier.lost(segment))

    def stats(self) -> Stats:
        """Without the seen filter's figures, which are of this process and not of the crawl."""
        return msgspec.structs.replace(self.ask(self.frontier.stats()), seen_filter=None)

    def explain(self, url: str) -> Explanation:
        return self.ask(self.frontier.explain(url))

    def host(self, host: str) -> HostView:
        return next(view for view in self.ask(self.frontier.hosts(limit=10_000)) if view.host == host)

    def explain_host(self, host: str, *, fetches: int) -> HostExplanation | None:
        return self.ask(self.frontier.explain_host(Host(host), fetches=fetches))

    def leases(self) -> list[LeaseView]:
        return self.ask(self.frontier.leases(limit=100))

    # moves that tests share

    def lease_one(self, **asked: Any) -> HostLease:
        leases = self.lease(**asked)
        assert len(leases) == 1, leases
        return leases[0]

    def outcome(
        self, lease: HostLease, result: Result, task: Task | None = None, *, took: float = 0.0
    ) -> Outcome:
        """An answer that arrives now to a request sent `took` seconds ago."""
        task = task or lease.tasks[0]
        now = self.clock.now()
        return Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=now - took,
            ended_at=now,
            result=result,
            address=self.addresses.get(lease.host, ""),
        )

    def answer(self, lease: HostLease, *results: Result) -> list[Settlement]:
        """Settle the lease's tasks in order, the last result repeated for those that have none."""
        padded = [*results, *[results[-1]] * (len(lease.tasks) - len(results))]
        pairs = zip(lease.tasks, padded, strict=False)
        return self.settle(*(self.outcome(lease, result, task) for task, result in pairs))

    def open_host(self, *urls: str, body: RobotsRead = NO_RULES) -> None:
        """Seed URLs and get their hosts' robots.txt out of the way; ends when the hosts may be asked."""
        self.admit(*(seed(url) for url in urls))
        for lease in self.lease():
            assert lease.tasks[0].kind is TaskKind.ROBOTS, lease
            self.answer(lease, body)
        self.clock.advance(max((view.delay for view in self.ask(self.frontier.hosts(limit=9999))), default=0))

    def fetch(self, result: Result = OK, **asked: Any) -> Settlement:
        """Lease the one host that is ready, settle its tasks with this result; what became of the first."""
        return self.answer(self.lease_one(**asked), result)[0]

    def serve(self, rounds: int, page: Fetched = OK, **asked: Any) -> None:
        """A worker that answers all it gets, at the pace of a host a second."""
        for _ in range(rounds):
            for lease in self.lease(**asked):
                kind = lease.tasks[0].kind
                self.answer(lease, page if kind is TaskKind.PAGE else NO_RULES)
            self.clock.advance(1)

    # ends and beginnings

    def crash(self) -> None:
        """The process dies here: no call of the frontier sees it coming."""
        self.frontier._store.close()

    def reopen(self, settings: Settings | None = None) -> None:
        self.crash()
        self.settings = settings or self.settings
        self.frontier = self._opener(self.settings, self.clock)
        audit(self.frontier)

    def close(self) -> None:
        try:
            audit(self.frontier)
        finally:
            self._runner.run(self.frontier.close())
            self._runner.close()


def token_of(lease: HostLease, change: int) -> Token:
    return Token(lease.token + change)


# -- the audit


class _Tables:
    """Everything on disk, decoded."""

    def __init__(self, frontier: RocksFrontier) -> None:
        store = frontier._store
        raw = {name: dict(store.scan(name, b"", _END)) for name in TABLES}
        self.raw = raw
        self.urls = {key: decode_url(value) for key, value in raw["urls"].items()}
        self.hosts = {ident: decode_host(value) for ident, value in raw["hosts"].items()}
        self.leases = {ident: decode_tasks(value) for ident, value in raw["leases"].items()}
        self.tally = decode_tally(raw["meta"].get(b"tally", b"\x80"))

    def out(self) -> dict[bytes, bytes]:
        """The pages that a live lease holds: key -> slot."""
        tasks = (task for tasks in self.leases.values() for task in tasks)
        return {t.key: t.slot for t in tasks if t.key in self.urls and self.urls[t.key].slot == t.slot != b""}


def audit(frontier: RocksFrontier) -> None:
    """Every promise the tables make to each other, checked by full scans."""
    tables = _Tables(frontier)
    _check_urls(tables, frontier._keys)
    _check_places(tables)
    _check_queues(tables)
    _check_leases(tables)
    _check_ready_index(frontier, tables)
    _check_standings(tables)
    _check_abandoned(tables)
    _check_aliases(tables)
    _check_fingerprints(tables, frontier._book)
    _check_held(tables)
    _check_traps(frontier, tables)
    _check_memory(frontier, tables)


def _check_urls(tables: _Tables, keys: Keys) -> None:
    """Every known URL is in exactly one state, and the running totals say how many in each."""
    out = tables.out()
    states = Counter(
        UrlState.IN_PROGRESS if key in out else UrlState(row.state) for key, row in tables.urls.items()
    )
    assert states == Counter({UrlState(s): n for s, n in tables.tally.urls.items() if n})
    refused = Counter(row.reason for row in tables.urls.values() if row.state == UrlState.REFUSED)
    assert refused == {reason: n for reason, n in tables.tally.refusals.items() if n}
    pages = [
        row for row in tables.urls.values() if row.state == UrlState.COMPLETED and row.status // 100 == 2
    ]
    assert sum(not row.requisite for row in pages) == tables.tally.pages
    assert sum(bool(row.requisite) for row in pages) == tables.tally.requisites
    assert all(keys.key_of(row.url) == key for key, row in tables.urls.items())
    assert sum(bool(row.canonical) for row in tables.urls.values()) == tables.tally.aliases


def _check_places(tables: _Tables) -> None:
    """Each state has its index, and each index only that state."""
    keys = {state: {k for k, row in tables.urls.items() if row.state == state} for state in UrlState}
    assert not keys[UrlState.IN_PROGRESS], "IN_PROGRESS is never stored"
    assert set(tables.raw["dead"]) == keys[UrlState.DEAD_LETTER]
    assert set(tables.raw["denied"]) == keys[UrlState.DENIED]
    due = {micros(tables.urls[key].due) + key for key in keys[UrlState.FAILED]}
    assert set(tables.raw["due"]) == due
    assert {key for key, row in tables.urls.items() if row.slot} == keys[UrlState.QUEUED]
    denied = Counter(host_id(host_of(tables.urls[key].url)) for key in keys[UrlState.DENIED])
    assert denied == {ident: row.denied for ident, row in tables.hosts.items() if row.denied}


def _check_queues(tables: _Tables) -> None:
    """Queue entries are exactly the rows with a place; the hosts' counts are what waits and is not out."""
    entries = {slot: value for slot, value in tables.raw["queue"].items() if lane_of(slot) != ERRAND_LANE}
    assert entries == {row.slot: key for key, row in tables.urls.items() if row.slot}
    assert all(lane_of(row.slot) == tier_of(row.priority) + 1 for row in tables.urls.values() if row.slot)
    waiting = Counter((slot[:8], lane_of(slot) - 1) for slot in entries)
    waiting.subtract((slot[:8], lane_of(slot) - 1) for slot in tables.out().values())
    heads: dict[bytes, bytes] = {}
    for slot in sorted(entries, reverse=True):
        heads[slot[:9]] = slot[9:]
    for ident, row in tables.hosts.items():
        assert row.queued == [waiting[ident, tier] for tier in range(TIERS)], row.host
        for tier, low in enumerate(row.lows):
            assert low <= heads.get(ident + bytes((tier + 1,)), _END), f"{row.host} skips the head of {tier}"
    assert tables.tally.tiers == [sum(row.queued[t] for row in tables.hosts.values()) for t in range(TIERS)]
    assert all(int.from_bytes(slot[10:], "big") <= tables.tally.seq for slot in tables.raw["queue"])
    _check_errands(tables)


def _check_errands(tables: _Tables) -> None:
    """Whoever waits for a robots.txt elsewhere has exactly one errand under way, and nobody else has any."""
    slots = {s: decode_errand(v) for s, v in tables.raw["queue"].items() if lane_of(s) == ERRAND_LANE}
    behalf = Counter(errand.behalf for errand in slots.values())
    assert behalf == Counter(row.host for row in tables.hosts.values() if row.robots_elsewhere)
    waiting = Counter(slot[:8] for slot in slots)
    for ident, row in tables.hosts.items():
        assert waiting[ident] == row.errands + (row.lease.errands if row.lease else 0), row.host


def _check_leases(tables: _Tables) -> None:
    leased = {ident: row.lease for ident, row in tables.hosts.items() if row.lease is not None}
    assert set(tables.leases) == set(leased)
    assert set(tables.raw["timers"]) == {micros(lease.deadline) + ident for ident, lease in leased.items()}
    held = Counter((slot[:8], lane_of(slot) - 1) for slot in tables.out().values())
    for ident, lease in leased.items():
        assert lease.pages == [held[ident, tier] for tier in range(TIERS)]
        assert 0 < lease.outstanding() <= len(tables.leases[ident])
        assert lease.token <= tables.tally.token
    tokens = [lease.token for lease in leased.values()]
    assert len(tokens) == len(set(tokens))


def _check_ready_index(frontier: RocksFrontier, tables: _Tables) -> None:
    """The index holds a host for every tier in which it has something that may be asked, once it may."""
    expected = set()
    for ident, row in tables.hosts.items():
        at = int(frontier._book.earliest_start(row) * 1_000_000).to_bytes(8, "big")
        expected |= {bytes((tier,)) + at + ident for tier in range(TIERS) if _may_be_asked(row, tier)}
    assert set(tables.raw["ready"]) == expected


def _may_be_asked(row: HostRow, tier: int) -> bool:
    if row.lease is not None or row.given_up or (row.policy is not None and row.policy.blocked):
        return False
    errand = tier == 0 and row.errands > 0
    return errand or (row.queued[tier] > 0 and not row.robots_elsewhere)


def _check_standings(tables: _Tables) -> None:
    standings = Counter(_standing(row) for row in tables.hosts.values())
    assert standings == {name: n for name, n in tables.tally.hosts.items() if n}
    assert all(row.standing == _standing(row) for row in tables.hosts.values())
    assert sum(row.received for row in tables.hosts.values()) == tables.tally.received


def _standing(row: HostRow) -> HostStanding:
    if row.lease is not None:
        return HostStanding.ACTIVE
    if row.policy is not None and row.policy.blocked:
        return HostStanding.BLOCKED
    if row.given_up:
        return HostStanding.GIVEN_UP
    if sum(row.queued) + row.errands == 0:
        return HostStanding.IDLE
    return HostStanding.BACKING_OFF if row.failures else HostStanding.WAITING


def _check_held(tables: _Tables) -> None:
    """What waits to be stored is in the ledger under that segment, and counted; a page is held at most once."""
    held = {place: decode_held(raw) for place, raw in tables.raw["unstored"].items()}
    counts: dict[str, list[int]] = {segment: [0, 0] for segment in tables.tally.held}
    for place, entry in held.items():
        segment, _, fetch = place.partition(b"\0")
        counts[segment.decode()][0] += 1
        counts[segment.decode()][1] += entry.is_page
        row = decode_fetch(tables.raw["ledger"][fetch])
        assert row.record
        assert row.record[0] == segment.decode()
        if entry.is_page:
            assert tables.urls[fetch[:16]].waiting == segment + b"\0" + fetch[16:]
            assert tables.urls[fetch[:16]].state == UrlState.COMPLETED
    assert counts == tables.tally.held
    lost = [row for row in map(decode_fetch, tables.raw["ledger"].values()) if row.result == "lost"]
    assert len(lost) == tables.tally.lost
    assert not any(row.record for row in lost)


def _check_abandoned(tables: _Tables) -> None:
    """Whatever waits for a host that will never be asked is on the list of what is to be emptied."""
    listed = {entry[len(ABANDON) :] for entry in tables.raw["meta"] if entry.startswith(ABANDON)}
    for ident, row in tables.hosts.items():
        blocked = row.policy is not None and row.policy.blocked
        in_vain = row.errands > 0 and (blocked or row.given_up)
        if in_vain or (row.given_up and any(row.queued)):
            assert ident in listed, row.host


def _check_aliases(tables: _Tables) -> None:
    assert tables.tally.aliases == sum(bool(row.canonical) for row in tables.urls.values())


def _check_fingerprints(tables: _Tables, book: Book) -> None:
    """The index holds the fingerprints of originals and nothing else, and the totals count the others."""
    near = {key: row for key, row in tables.urls.items() if row.near_of}
    assert len(near) == tables.tally.near
    assert all(row.simhash is not None and row.distance <= NEAR for row in near.values())
    originals = {
        row.simhash: key for key, row in tables.urls.items() if row.simhash is not None and not row.near_of
    }
    owners = {key[1:]: raw[:16] for key, raw in tables.raw["near"].items() if key[0] == 0}
    assert owners == {simhash.to_bytes(8, "big"): key for simhash, key in originals.items()}
    listed: Counter[int] = Counter()
    for key, raw in tables.raw["near"].items():
        held = [int.from_bytes(raw[at : at + 8], "big") for at in range(0, len(raw), 8)] if key[0] else []
        assert all(key in rows_of(one) for one in held)
        listed.update(held)
    assert set(listed) <= set(originals)
    assert all(count == 2 for count in listed.values()) or len(originals) > MOST_ALIKE
    asked = list(originals)
    for one, suspects in zip(asked, book.near.suspects(asked), strict=True):
        assert set(rows_of(one)) <= set(suspects)


def _check_traps(frontier: RocksFrontier, tables: _Tables) -> None:
    """What a verdict refused is listed under it and counted by its subject; hosts know the verdicts on them."""
    refused = {
        key: row.trap
        for key, row in tables.urls.items()
        if row.state == UrlState.REFUSED and row.reason == Refusal.TRAP
    }
    assert all(refused.values())
    listed = {refused_by(number) + key for key, number in refused.items()}
    assert {place for place in tables.raw["traps"] if place[:1] == REFUSED} == listed
    in_force: Counter[str] = Counter()
    domains = 0
    for number in range(1, tables.tally.traps + 1):
        row = trap_row(frontier._book, number)
        assert row is not None
        seen = evidence(frontier._book, row.subject)
        assert seen is not None
        assert (seen.trap == number) == (not row.ended)
        if row.ended:
            continue
        assert seen.refused == sum(by == number for by in refused.values()), row.name
        domains += row.level == "domain"
        in_force[row.host] += row.level != "domain"
    assert domains == tables.tally.domains
    assert +in_force == {row.host: row.traps for row in tables.hosts.values() if row.traps}
    for subject, raw in tables.raw["skeletons"].items():
        cached = frontier._book.evidence.get(subject)
        assert cached is None or encode(cached) == raw


def _check_memory(frontier: RocksFrontier, tables: _Tables) -> None:
    """What is cached is what is on disk, and below a low-water mark nothing is alive but what is listed."""
    book = frontier._book
    assert encode(book.tally) == tables.raw["meta"].get(b"tally", encode(book.tally))
    assert all(encode(row) == tables.raw["hosts"].get(ident) for ident, row in book._hosts.items())
    assert dict(book._dormant.items()).items() <= tables.raw["hosts"].items()
    assert dict(book._held.items()).items() <= tables.raw["urls"].items()
    for key, kin in book.kinds.items():
        assert kin.shape == skeleton(tables.urls[key].url)
        assert kin.own[:8] == host_id(host_of(tables.urls[key].url))
    for tier, (low, early) in enumerate(zip(book.ready._lows, book.ready._early, strict=True)):
        assert early == sorted(key for key in tables.raw["ready"] if key[0] == tier and key < low)
    assert book.due_low <= min(tables.raw["due"], default=_END)
    assert {*book.recent.young, *book.recent.old} <= set(tables.urls)
    cached = {anchor for anchor, dropped in book._anchors.items() if dropped}
    assert cached <= {anchor.decode() for anchor in tables.raw["anchors"]}
    for ident, rules in book._rules.items():
        stored = parse_robots(tables.raw["robots"].get(ident, b""), book._product)
        assert [rules.decide(p) for p in _PROBES] == [stored.decide(p) for p in _PROBES]
    assert all(host_id(row.host) == ident for ident, row in tables.hosts.items())
    for ident, host in tables.hosts.items():
        assert host.robots_mark in (b"", mark_of_robots(tables.raw["robots"].get(ident, b"")))
