"""Compares every table of a frontier with every other, and with what is cached in memory, by full scans.

The driver calls it after each call that may write, so that every test is also a test of the bookkeeping. It knows
the layout of the tables and the engine's caches; it reads the tables through the `Store` alone.
"""

from __future__ import annotations

from collections import Counter

from skitter.frontier.base import HostStanding
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.rows import Habits, HostRow, RenderState, UrlRow
from skitter.frontier.stores.base import Store
from skitter.frontier.tables import render_tables
from skitter.frontier.tables.layout import (
    ABANDON,
    REVISIT,
    TABLES,
    decode_errand,
    decode_fetch,
    decode_held,
    decode_host,
    decode_tally,
    decode_tasks,
    decode_url,
    encode,
    micros,
    refused_prefix,
)
from skitter.frontier.tables.near_index import MOST_ALIKE, rows_of
from skitter.frontier.tables.row_cache import RowCache, rules_key_of
from skitter.frontier.tables.slots import ERRAND_LANE, lane_of
from skitter.frontier.tables.trap_tables import REFUSED, evidence, trap_row
from skitter.model import Refusal, UrlState
from skitter.robots.rules import parse_robots
from skitter.schedule.near import NEAR
from skitter.schedule.priority import LANES, REVISITS, tier_of
from skitter.schedule.revisit import is_prompt, unpack_visits
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import Keys, form_key
from skitter.urls.skeleton import skeleton

_END = b"\xff" * 40
_PROBES = ("/", "/private/1", "/private", "/deny")


class Tables:
    """Everything in the store, decoded."""

    def __init__(self, store: Store) -> None:
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


def audit(frontier: EngineFrontier, *others: EngineFrontier) -> None:
    """Every promise the tables make to each other, checked by full scans. `others` are the other partitions."""
    tables = Tables(frontier._cache.store)
    _check_urls(tables, frontier._keys)
    _check_places(tables)
    _check_queues(tables)
    _check_errands([tables, *(Tables(one._cache.store) for one in others)])
    _check_leases(tables)
    _check_ready_index(frontier, tables)
    _check_standings(tables)
    _check_abandoned(tables)
    _check_aliases(tables)
    _check_fingerprints(tables, frontier._cache)
    _check_held(tables)
    _check_revisits(tables, frontier._cache)
    _check_traps(frontier, tables)
    _check_memory(frontier, tables)
    _check_renderings(frontier._cache)


def _check_renderings(cache: RowCache) -> None:
    """Every rendering is in one state, with its place, timer and awaited URLs, and the totals say how many."""
    rows = dict(render_tables.all_renderings(cache))
    tally = cache.tally.renders
    if tally is None:
        assert not rows
        return
    states = Counter(RenderState(row.state) for row in rows.values() if row.ending != "skipped")
    counted = (tally.queued, tally.leased, tally.awaiting, tally.done)
    assert counted == tuple(states[state] for state in RenderState), (counted, states)
    assert tally.skipped == sum(row.ending == "skipped" for row in rows.values())
    queued = {key: row.slot for key, row in rows.items() if row.state == RenderState.QUEUED}
    assert {key: slot for slot, key in render_tables.queued(cache, 10_000)} == queued
    timed = {key for key, row in rows.items() if row.state in (RenderState.LEASED, RenderState.AWAITING)}
    timers = render_tables.timers(cache, None, 10_000)
    assert {key for _, key in timers} == timed
    assert all(abs(rows[key].until - at) < 0.001 for at, key in timers)
    waits = Counter(
        page for _, page, number in render_tables.all_awaited(cache) if number == rows[page].rounds
    )
    for key, row in rows.items():
        assert row.awaited == (waits[key] if row.state == RenderState.AWAITING else 0), key


def _check_urls(tables: Tables, keys: Keys) -> None:
    """Every known URL is in exactly one state, and the running totals say how many in each."""
    out = tables.out()
    states = Counter(
        UrlState.IN_PROGRESS if key in out else UrlState(row.state) for key, row in tables.urls.items()
    )
    assert states == Counter({UrlState(s): n for s, n in tables.tally.urls.items() if n})
    refused = Counter(row.reason for row in tables.urls.values() if row.state == UrlState.REFUSED)
    assert refused == {reason: n for reason, n in tables.tally.refusals.items() if n}
    pages = [
        row
        for row in tables.urls.values()
        if row.answer.status // 100 == 2 and (row.state == UrlState.COMPLETED or _is_revisit(row))
    ]
    by_kind = Counter(row.found.kind for row in pages)
    assert by_kind == {kind: n for kind, n in tables.tally.answers.items() if n}
    for key, row in tables.urls.items():
        own = keys.key_of(row.url)
        assert key == (form_key(own, row.found.form) if row.found.form else own)
    assert sum(bool(row.answer.canonical) for row in tables.urls.values()) == tables.tally.aliases


def _is_revisit(row: UrlRow) -> bool:
    """It waits to be visited again, and counts as the page that we have meanwhile."""
    return bool(row.slot) and lane_of(row.slot) == REVISITS + 1


def _check_revisits(tables: Tables, cache: RowCache) -> None:
    """Pages with a date are in the index under it and nothing else is; the totals count them, and who is out."""
    final = (UrlState.COMPLETED, UrlState.GONE)
    dated = {key: row for key, row in tables.urls.items() if row.state in final and row.due}
    index = {entry for entry in tables.raw["due"] if entry[:1] in REVISIT.values()}
    assert index == {REVISIT[is_prompt(row.visits)] + micros(row.due) + key for key, row in dated.items()}
    for prompt, prefix in REVISIT.items():
        first = min((entry for entry in index if entry[:1] == prefix), default=_END)
        assert cache.revisit_lows[prompt] <= first
    found = tables.tally.revisits
    assert found.watched == len(dated)
    leases = [row.lease for row in tables.hosts.values() if row.lease is not None]
    assert found.leased == sum(lease.pages[REVISITS] for lease in leases)
    assert found.audited_fresh <= found.audited
    assert all(unpack_visits(row.visits) is not None for row in tables.urls.values())
    stored = {key[:16]: raw for key, raw in tables.raw["skeletons"].items() if len(key) == 17}
    for key, habits in cache.habits.items():
        assert encode(habits) == stored.get(key, encode(Habits()))


def _check_places(tables: Tables) -> None:
    """Each state has its index, and each index only that state."""
    keys = {state: {k for k, row in tables.urls.items() if row.state == state} for state in UrlState}
    assert not keys[UrlState.IN_PROGRESS], "IN_PROGRESS is never stored"
    assert set(tables.raw["dead"]) == keys[UrlState.DEAD_LETTER]
    assert set(tables.raw["denied"]) == keys[UrlState.DENIED]
    due = {micros(tables.urls[key].due) + key for key in keys[UrlState.FAILED]}
    assert {entry for entry in tables.raw["due"] if entry[:1] not in REVISIT.values()} == due
    assert {key for key, row in tables.urls.items() if row.slot} == keys[UrlState.QUEUED]
    denied = Counter(host_id(host_of(tables.urls[key].url)) for key in keys[UrlState.DENIED])
    assert denied == {ident: row.counts.denied for ident, row in tables.hosts.items() if row.counts.denied}


def _check_queues(tables: Tables) -> None:
    """Queue entries are exactly the rows with a place; the hosts' counts are what waits and is not out."""
    entries = {slot: value for slot, value in tables.raw["queue"].items() if lane_of(slot) != ERRAND_LANE}
    assert entries == {row.slot: key for key, row in tables.urls.items() if row.slot}
    assert all(
        _is_revisit(row) or lane_of(row.slot) == tier_of(row.priority) + 1
        for row in tables.urls.values()
        if row.slot
    )
    waiting = Counter((slot[:8], lane_of(slot) - 1) for slot in entries)
    waiting.subtract((slot[:8], lane_of(slot) - 1) for slot in tables.out().values())
    heads: dict[bytes, bytes] = {}
    for slot in sorted(entries, reverse=True):
        heads[slot[:9]] = slot[9:]
    for ident, row in tables.hosts.items():
        assert row.queue.lengths == [waiting[ident, tier] for tier in range(LANES)], row.host
        for tier, low in enumerate(row.queue.lows):
            assert low <= heads.get(ident + bytes((tier + 1,)), _END), f"{row.host} skips the head of {tier}"
    assert tables.tally.tiers == [
        sum(row.queue.lengths[t] for row in tables.hosts.values()) for t in range(LANES)
    ]
    assert all(int.from_bytes(slot[10:], "big") <= tables.tally.seq for slot in tables.raw["queue"])


def _check_errands(partitions: list[Tables]) -> None:
    """Whoever waits for a robots.txt elsewhere has exactly one errand under way, and nobody else has any."""
    errands = [
        decode_errand(v)
        for one in partitions
        for s, v in one.raw["queue"].items()
        if lane_of(s) == ERRAND_LANE
    ]
    behalf = Counter(errand.behalf for errand in errands)
    hosts = [row for one in partitions for row in one.hosts.values()]
    assert behalf == Counter(row.host for row in hosts if row.robots.is_elsewhere)
    tables = partitions[0]
    slots = [slot for slot in tables.raw["queue"] if lane_of(slot) == ERRAND_LANE]
    waiting = Counter(slot[:8] for slot in slots)
    for ident, row in tables.hosts.items():
        assert waiting[ident] == row.queue.errands + (row.lease.errands if row.lease else 0), row.host


def _check_leases(tables: Tables) -> None:
    leased = {ident: row.lease for ident, row in tables.hosts.items() if row.lease is not None}
    assert set(tables.leases) == set(leased)
    assert set(tables.raw["timers"]) == {micros(lease.deadline) + ident for ident, lease in leased.items()}
    held = Counter((slot[:8], lane_of(slot) - 1) for slot in tables.out().values())
    for ident, lease in leased.items():
        assert lease.pages == [held[ident, tier] for tier in range(LANES)]
        assert 0 < lease.outstanding() <= len(tables.leases[ident])
        assert lease.token <= tables.tally.token
    tokens = [lease.token for lease in leased.values()]
    assert len(tokens) == len(set(tokens))


def _check_ready_index(frontier: EngineFrontier, tables: Tables) -> None:
    """The index holds a host for every tier in which it has something that may be asked, once it may."""
    expected = set()
    for ident, row in tables.hosts.items():
        at = int(frontier._cache.earliest_start(row) * 1_000_000).to_bytes(8, "big")
        expected |= {bytes((tier,)) + at + ident for tier in range(LANES) if _may_be_asked(row, tier)}
    assert set(tables.raw["ready"]) == expected


def _may_be_asked(row: HostRow, tier: int) -> bool:
    if row.lease is not None or row.health.given_up or (row.policy is not None and row.policy.blocked):
        return False
    errand = tier == 0 and row.queue.errands > 0
    return errand or (row.queue.lengths[tier] > 0 and not row.robots.is_elsewhere)


def _check_standings(tables: Tables) -> None:
    standings = Counter(_standing(row) for row in tables.hosts.values())
    assert standings == {name: n for name, n in tables.tally.hosts.items() if n}
    assert all(row.standing == _standing(row) for row in tables.hosts.values())
    assert sum(row.counts.received for row in tables.hosts.values()) == tables.tally.received


def _standing(row: HostRow) -> HostStanding:
    if row.lease is not None:
        return HostStanding.ACTIVE
    if row.policy is not None and row.policy.blocked:
        return HostStanding.BLOCKED
    if row.health.given_up:
        return HostStanding.GIVEN_UP
    if sum(row.queue.lengths) + row.queue.errands == 0:
        return HostStanding.IDLE
    return HostStanding.BACKING_OFF if row.health.failures else HostStanding.WAITING


def _check_held(tables: Tables) -> None:
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


def _check_abandoned(tables: Tables) -> None:
    """Whatever waits for a host that will never be asked is on the list of what is to be emptied."""
    listed = {entry[len(ABANDON) :] for entry in tables.raw["meta"] if entry.startswith(ABANDON)}
    for ident, row in tables.hosts.items():
        blocked = row.policy is not None and row.policy.blocked
        in_vain = row.queue.errands > 0 and (blocked or row.health.given_up)
        if in_vain or (row.health.given_up and any(row.queue.lengths)):
            assert ident in listed, row.host


def _check_aliases(tables: Tables) -> None:
    assert tables.tally.aliases == sum(bool(row.answer.canonical) for row in tables.urls.values())


def _check_fingerprints(tables: Tables, cache: RowCache) -> None:
    """The index holds the fingerprints of originals and nothing else, and the totals count the others."""
    near = {key: row for key, row in tables.urls.items() if row.near.of}
    assert len(near) == tables.tally.near
    assert all(row.near.simhash is not None and row.near.distance <= NEAR for row in near.values())
    originals = {
        row.near.simhash: key
        for key, row in tables.urls.items()
        if row.near.simhash is not None and not row.near.of
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
    for one, suspects in zip(asked, cache.near.suspects(asked), strict=True):
        assert set(rows_of(one)) <= set(suspects)


def _check_traps(frontier: EngineFrontier, tables: Tables) -> None:
    """What a verdict refused is listed under it and counted by its subject; hosts know the verdicts on them."""
    refused = {
        key: row.trap
        for key, row in tables.urls.items()
        if row.state == UrlState.REFUSED and row.reason == Refusal.TRAP
    }
    assert all(refused.values())
    listed = {refused_prefix(number) + key for key, number in refused.items()}
    assert {place for place in tables.raw["traps"] if place[:1] == REFUSED} == listed
    in_force: Counter[str] = Counter()
    domains = 0
    for number in range(1, tables.tally.traps + 1):
        row = trap_row(frontier._cache, number)
        assert row is not None
        seen = evidence(frontier._cache, row.subject)
        assert seen is not None
        assert (seen.trap == number) == (not row.ended)
        if row.ended:
            continue
        assert seen.refused == sum(by == number for by in refused.values()), row.name
        domains += row.level == "domain"
        in_force[row.host] += row.level != "domain"
    assert domains == tables.tally.domains
    assert +in_force == {row.host: row.novelty.traps for row in tables.hosts.values() if row.novelty.traps}
    for subject, raw in tables.raw["skeletons"].items():
        cached = frontier._cache.evidence.get(subject)
        assert cached is None or encode(cached) == raw


def _check_memory(frontier: EngineFrontier, tables: Tables) -> None:
    """What is cached is what is on disk, and below a low-water mark nothing is alive but what is listed."""
    cache = frontier._cache
    assert encode(cache.tally) == tables.raw["meta"].get(b"tally", encode(cache.tally))
    assert all(encode(row) == tables.raw["hosts"].get(ident) for ident, row in cache._hosts.items())
    assert dict(cache._dormant.items()).items() <= tables.raw["hosts"].items()
    assert dict(cache._held.items()).items() <= tables.raw["urls"].items()
    for key, pattern in cache.patterns.items():
        assert pattern.shape == skeleton(tables.urls[key].url)
        assert pattern.own[:8] == host_id(host_of(tables.urls[key].url))
    for tier, (low, early) in enumerate(zip(cache.ready._lows, cache.ready._early, strict=True)):
        assert early == sorted(key for key in tables.raw["ready"] if key[0] == tier and key < low)
    retries = (entry for entry in tables.raw["due"] if entry[:1] not in REVISIT.values())
    assert cache.due_low <= min(retries, default=_END)
    if cache.partition is None:  # others are told of links to their hosts, and these are remembered
        assert {*cache.recent.young, *cache.recent.old} <= set(tables.urls)
    cached = {anchor for anchor, dropped in cache._anchors.items() if dropped}
    assert cached <= {anchor.decode() for anchor in tables.raw["anchors"]}
    for ident, rules in cache._rules.items():
        stored = parse_robots(tables.raw["robots"].get(ident, b""), cache._product)
        assert [rules.decide(p) for p in _PROBES] == [stored.decide(p) for p in _PROBES]
    assert all(host_id(row.host) == ident for ident, row in tables.hosts.items())
    for ident, host in tables.hosts.items():
        assert host.robots.rules_key in (b"", rules_key_of(tables.raw["robots"].get(ident, b"")))
