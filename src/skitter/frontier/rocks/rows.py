"""What lies on disk: the rows of each table and the layout of the keys that order them.

    urls     UrlKey                                   -> UrlRow
    hosts    host id (8)                              -> HostRow
    queue    host id, lane (1), urgency (1), seq (8)  -> what waits there: a URL's key or an errand
    ready    tier (1), microseconds (8), host id      -> nothing; hosts by when they may be asked
    leases   host id                                  -> LeaseTasks of the live lease
    timers   microseconds (8), host id                -> nothing; leases by deadline
    due      microseconds (8), UrlKey                 -> nothing; URLs by when they go back to a queue
    denied   UrlKey                                   -> nothing; looked at again when robots.txt changes
    dead     UrlKey                                   -> nothing; dead letters
    robots   host id                                  -> body of robots.txt
    copies   SHA-256 of a body                        -> Copy
    ledger   UrlKey, microseconds (8)                 -> FetchRow, one per fetch
    near     see `near_index.py`                      -> fingerprints of pages, and whose they are
    unstored segment, 0, UrlKey, microseconds (8)     -> Held; fetches whose segment is not stored elsewhere yet
    skeletons, traps  see `subjects.py`               -> what traps are judged by, verdicts, what they refused
    anchors  text                                     -> nothing; what the seeds brought into scope
    meta     name                                     -> Tally, marks, format

A UrlKey begins with its host's id, so all of a host lies together in every table that is keyed by it. Rows are
arrays in msgpack: 1 to 2 us to read or write. New fields go at the end, with a default. None can be part of a
cycle, so the garbage collector does not look at them: 2 to 4 us a page.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from skitter.model import Copy, Discovered, HostPolicy, UrlState, Via

try:
    from skitter.native.fields import bytes_at
except ImportError:
    from skitter.frontier.rocks.fields_plain import bytes_at

TABLES = """urls hosts queue ready leases timers due denied dead robots copies ledger near unstored anchors
    skeletons traps meta""".split()
ERRAND_LANE = 0
# meta: hosts whose robots.txt changed, so that what it denied is looked at again
REJUDGE = b"rejudge"
# meta: hosts that are given up or blocked, whose queue has yet to be emptied
ABANDON = b"abandon"
# meta: where the walk over what blocklists refused has got to, after they changed
LISTED = b"listed"
_MICRO = 1_000_000
_QUEUED = UrlState.QUEUED


class LeaseRow(msgspec.Struct, array_like=True, gc=False):
    """The live lease of a host, and how much of it is still out: pages by tier, errands, its own robots.txt."""

    token: int
    worker: str
    deadline: float
    pages: list[int]
    errands: int = 0
    robots: int = 0
    delay: float = 0.0
    parallel: int = 1
    duration: float = 0.0

    def outstanding(self) -> int:
        return sum(self.pages) + self.errands + self.robots


class LeasedTask(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """`slot` is where the task waits in the queue; empty for the host's own robots.txt. A task is out as long
    as its URL still names that slot, so settling it twice cannot be mistaken for a second fetch."""

    key: bytes
    slot: bytes


class Gap(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How long after a request to a host the next one was sent, and how long it had to be at least."""

    seconds: float
    required: float

    def margin(self) -> float:
        return self.seconds - self.required


class HostRow(msgspec.Struct, array_like=True, gc=False):
    """A host. Counts in `queued` exclude what is leased. It may be asked again `delay` after `last_start` and
    not before `not_before` (backoff, Retry-After). `ready_at`/`ready_tiers` say what the ready index holds for
    it now; `lows` where each lane's first live entry can be at the earliest (tombstones before). `failures` are
    in a row, the last `alike` of them `failing_as` one kind; `given_up` is the kind that ended our patience.
    `crowded` is a `not_before` that was set because the host's address was busy. `address_refused` is why its
    robots.txt could not be asked for; it holds until `robots_until`, and no longer than the process, whose next
    one may allow more. Of its `pages` some were `novel` and some `repeats`; `traps` verdicts are in force on it,
    `stopped` is the one on all of it, `learned` are parameters that change nothing; `soft` marks what it
    says of pages that it does not have, `marks` its last different texts
    and `texts` their titles and fingerprints. For `sounding` more pages the end of a section is looked for.
    `robots_mark` stands for the words of its robots.txt: those of many hosts are the same."""

    host: str
    queued: list[int] = msgspec.field(default_factory=lambda: [0, 0, 0, 0])
    lows: list[bytes] = msgspec.field(default_factory=lambda: [b"", b"", b"", b""])
    errands: int = 0
    last_start: float = 0.0
    not_before: float = 0.0
    lease: LeaseRow | None = None
    ready_at: int = 0
    ready_tiers: int = 0
    standing: str = "idle"
    robots_status: int = 0
    robots_at: float = 0.0
    robots_until: float = 0.0
    robots_elsewhere: bool = False
    crawl_delay: float | None = None
    policy: HostPolicy | None = None
    failures: int = 0
    penalty: float = 1.0
    response_time: float = 0.0
    admitted: int = 0
    fetched: int = 0
    failed: int = 0
    denied: int = 0
    received: int = 0
    address: str = ""
    last_failure: str = ""
    last_sent: float = 0.0
    last_ended: float = 0.0
    tightest: Gap | None = None
    address_refused: str = ""
    refused_at: float = 0.0
    alike: int = 0
    failing_as: str = ""
    given_up: str = ""
    robots_etag: str = ""
    robots_last_modified: str = ""
    robots_digest: bytes = b""
    robots_failing_since: float = 0.0
    crowded: float = 0.0
    pages: int = 0
    novel: int = 0
    repeats: int = 0
    traps: int = 0
    stopped: int = 0
    learned: list[str] = msgspec.field(default_factory=list)
    probed: bool = False
    soft: bytes = b""
    marks: bytes = b""
    texts: bytes = b""
    sounding: int = 0
    robots_mark: bytes = b""

    def is_out_of_reach(self) -> bool:
        return bool(self.given_up) or (self.policy is not None and self.policy.blocked)

    def is_to_be_emptied(self) -> bool:
        """Something waits here in vain: robots.txt errands of other hosts, or URLs of a host that is given up.
        Those of a blocked host wait for the operator."""
        return self.is_out_of_reach() and (self.errands > 0 or (bool(self.given_up) and any(self.queued)))


class UrlRow(msgspec.Struct, array_like=True, gc=False):
    """A URL. `state` is a UrlState, except that IN_PROGRESS is never stored: a leased URL keeps its place in
    the queue, so a lease that ends without an outcome leaves nothing to repair. `linkers` are two-byte marks of
    the other hosts that link it, as long as it is queued and up to a limit. `body_status` came with the body that
    `digest`, `record` and the validators speak of; `status` is that of the last answer, whatever it was.
    `near_of` is the key of the page that its text resembles, `distance` the bits in which their fingerprints
    differ. `canonical` is the other page that it names as such. `waiting` says by which entry of `unstored` this
    page counts there, as long as its segment does.
    `trap` is the verdict that refused it, or of which it is a sample."""

    url: str
    state: int
    priority: int
    depth: int
    via: Via
    parent: bytes | None = None
    hops: int = 0
    slot: bytes = b""
    reason: str = ""
    rule: str = ""
    attempts: int = 0
    due: float = 0.0
    fetched_at: float = 0.0
    status: int = 0
    failure: str = ""
    etag: str = ""
    last_modified: str = ""
    digest: bytes = b""
    size: int = 0
    record: tuple[str, int, int] | None = None
    content_type: str = ""
    title: str = ""
    directives: str = ""
    truncated: bool = False
    linkers: bytes = b""
    body_status: int = 0
    simhash: int | None = None
    near_of: bytes = b""
    distance: int = 0
    waiting: bytes = b""
    requisite: int = 0
    canonical: str = ""
    trap: int = 0


Fresh = tuple[int, int, bytes, bytes, bytes]
"""What the rows of a run of new URLs have in common: lane, priority, and all but URL and place, encoded once:
what is before the URL, between it and the place, and behind that."""


class FetchRow(msgspec.Struct, array_like=True, gc=False):
    seconds: float
    result: str
    status: int
    size: int
    address: str
    record: tuple[str, int, int] | None
    detail: str


class Held(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A fetch whose record is not safe yet: whether it counts as a page, the digest of the body that it was the
    first copy of, and whose robots.txt it was."""

    is_page: bool
    copied: bytes = b""
    behalf: str = ""


class Errand(msgspec.Struct, array_like=True, gc=False):
    """A robots.txt redirect that leads to another host: asked there, in that host's own turn, on behalf of
    the host that sent us."""

    behalf: str
    url: str
    hops: int


class Tally(msgspec.Struct):
    """Running totals, committed with every change. `now` is when that was by the frontier's own time, which is
    the clock's plus `skew` and never goes back. `held` counts what waits to be stored by segment: fetches, and
    pages among them; there are as many segments as the spool has room for. `lost` are fetches whose records are
    gone, `aliases` pages that name another as canonical. `traps` is the number of the last verdict,
    `domains` how many of those in force are on domains."""

    seq: int = 0
    token: int = 0
    urls: dict[int, int] = msgspec.field(default_factory=dict)
    tiers: list[int] = msgspec.field(default_factory=lambda: [0, 0, 0, 0])
    hosts: dict[str, int] = msgspec.field(default_factory=dict)
    pages: int = 0
    requisites: int = 0
    fetches: int = 0
    robots_fetches: int = 0
    received: int = 0
    failures: dict[str, int] = msgspec.field(default_factory=dict)
    refusals: dict[str, int] = msgspec.field(default_factory=dict)
    statuses: dict[str, int] = msgspec.field(default_factory=dict)
    leases_expired: int = 0
    stale_outcomes: int = 0
    gaps: int = 0
    violations: int = 0
    tightest: Gap | None = None
    tightest_host: str = ""
    now: float = 0.0
    skew: float = 0.0
    near: int = 0
    held: dict[str, list[int]] = msgspec.field(default_factory=dict)
    lost: int = 0
    aliases: int = 0
    traps: int = 0
    domains: int = 0


_slot = struct.Struct(">8sBBQ").pack
encode = msgspec.msgpack.Encoder().encode
# The msgpack head of a slot; where the slot and the linkers lie in a URL's row.
_SLOT = b"\xc4\x12"
_SLOT_AT = UrlRow.__struct_fields__.index("slot")
_LINKERS_AT = UrlRow.__struct_fields__.index("linkers")
decode_url = msgspec.msgpack.Decoder(UrlRow).decode
decode_host = msgspec.msgpack.Decoder(HostRow).decode
decode_held = msgspec.msgpack.Decoder(Held).decode
decode_copy = msgspec.msgpack.Decoder(Copy).decode
decode_fetch = msgspec.msgpack.Decoder(FetchRow).decode
decode_tally = msgspec.msgpack.Decoder(Tally).decode
decode_errand = msgspec.msgpack.Decoder(Errand).decode
decode_tasks = msgspec.msgpack.Decoder(list[LeasedTask]).decode


def micros(seconds: float) -> bytes:
    return max(0, int(seconds * _MICRO)).to_bytes(8, "big")


def seconds(stamp: bytes) -> float:
    return int.from_bytes(stamp, "big") / _MICRO


def slot_of(host_id: bytes, lane: int, priority: int, seq: int) -> bytes:
    """Lane 0 holds errands, lane t+1 tier t; within a lane urgent first, then old first."""
    return _slot(host_id, lane, 255 - priority, seq)


def fresh(found: Discovered, priority: int, lane: int, linkers: bytes) -> Fresh:
    """`found` is one of them. What it leaves open has its default, and is left out at the end of a row: 45 of 158
    bytes that are logged, sorted and merged for each URL of a host's own pages."""
    before, hops = _around_parent(priority, found.depth, found.via, found.hops)
    between = before + encode(found.parent) + hops
    if linkers:
        return lane, priority, _UP_TO_LINKERS, between, _BEFORE_LINKERS + encode(linkers)
    return lane, priority, _UP_TO_SLOT, between, b""


def placed(
    links: Iterable[Discovered], alike: Fresh, ident: bytes, seq: int
) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The slots of new URLs, numbered from `seq` on, and their rows. 0.9 us each, where to make a `UrlRow` and to
    encode it takes 3."""
    lane, priority, head, between, behind = alike
    slots: list[bytes] = []
    rows: dict[bytes, bytes] = {}
    for number, link in enumerate(links, seq):
        slot = _slot(ident, lane, 255 - priority, number)
        slots.append(slot)
        rows[link.key] = b"".join((head, encode(link.url), between, slot, behind))
    return slots, rows


@lru_cache(maxsize=256)
def _around_parent(priority: int, depth: int, via: Via, hops: int) -> tuple[bytes, bytes]:
    """What lies between a new URL and its parent, and between that and its slot."""
    return b"".join(map(encode, (_QUEUED, priority, depth, via))), encode(hops) + _SLOT


def _head(last: int) -> bytes:
    """Of a row that ends with that field."""
    return b"\xdc" + (last + 1).to_bytes(2, "big")


def _before_linkers() -> bytes:
    """What lies between the slot of a new URL and its linkers: the same for all."""
    values = msgspec.structs.astuple(UrlRow(url="", state=0, priority=0, depth=0, via=Via.LINK))
    return b"".join(map(encode, values[_SLOT_AT + 1 : _LINKERS_AT]))


_UP_TO_SLOT, _UP_TO_LINKERS, _BEFORE_LINKERS = _head(_SLOT_AT), _head(_LINKERS_AT), _before_linkers()


def slots_of(rows: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Where the URLs of stored rows wait, each behind its key; empty where one does not. 0.03 us each, where it
    takes 0.3 to decode no more of a row than that."""
    return bytes_at(rows, _SLOT_AT)


def lane_of(slot: bytes) -> int:
    return slot[8]
