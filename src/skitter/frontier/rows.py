"""The rows a frontier keeps: what is known of a URL, a host, a lease, a fetch, and the running totals.

Read and written through a `Transaction` (`tables/transaction.py`); `tables/layout.py` says how they lie on
disk. Rows are arrays in msgpack: a new field goes at the end of its part, with a default. None can be part of a
cycle, so the garbage collector does not look at them.
"""

from __future__ import annotations

import math
from enum import IntEnum, StrEnum

import msgspec

from skitter.model import HostPolicy, TaskKind, Via
from skitter.schedule.kinds import KINDS
from skitter.schedule.price import FIRST_PRICE
from skitter.schedule.priority import LANES
from skitter.schedule.signals import Trust


class Note(StrEnum):
    """Single values that a frontier keeps for itself."""

    FORMAT = "format"
    """The number of the layout of these rows: `tables/layout.py` has the current one."""
    KEY_RULES = "keys"
    """The settings that its keys were made with."""
    FILTERS = "filter"
    """The stamp of the filters that a clean close saved; absent while a frontier is open."""
    BOOT = "boot"
    """The machine's boot that leases were last given under."""
    LONGEST_REMOTE_LEASE = "remote"
    RULES = "rules"
    """The rules of admission in force, as `engine/rules_in_force.py` has them."""
    ALLOWS_PRIVATE = "private"
    """Present once private addresses were allowed, and what had been refused for its address is back."""
    REVISIT_WALK = "revisits"
    """How far the walk has got that gives pages a first date, where a crawl is kept fresh; `DONE` at its end."""


class LeaseRow(msgspec.Struct, array_like=True, gc=False):
    """The live lease of a host, and how much of it is still out: pages by tier and revisits, errands, its own
    robots.txt."""

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


class HostQueue(msgspec.Struct, array_like=True, gc=False):
    """What waits for a host. `lengths` by tier, and of revisits last, exclude what is leased; `lows` say where
    the first live place of each can be at the earliest, behind the tombstones; `ready_at` and `ready_tiers` are
    what the ready index holds for the host now. `admitted` counts all URLs that were ever let in.
    `is_over_budget` when some may have been refused because it was the budget's."""

    lengths: list[int] = msgspec.field(default_factory=lambda: [0] * LANES)
    lows: list[bytes] = msgspec.field(default_factory=lambda: [b""] * LANES)
    errands: int = 0
    ready_at: int = 0
    ready_tiers: int = 0
    admitted: int = 0
    is_over_budget: bool = False


class HostPace(msgspec.Struct, array_like=True, gc=False):
    """When a host may be asked: a delay after `last_start`, and not before `not_before` (backoff, Retry-After).
    `crowded_until` is a `not_before` that was set because the host's address was busy, `closed_until` one that
    was set because of its quiet hours or the day's load, `costly_until` one that was set because a page took too
    long to read (whole seconds: 0 is a byte). `last_sent`, `last_ended` and `tightest` are the politeness
    ledger's."""

    last_start: float = 0.0
    not_before: float = 0.0
    crawl_delay: float | None = None
    penalty: float = 1.0
    response_time: float = 0.0
    crowded_until: float = 0.0
    address: str = ""
    last_sent: float = 0.0
    last_ended: float = 0.0
    tightest: Gap | None = None
    closed_until: float = 0.0
    closed_why: str = ""
    costly_until: int = 0


class HostLoad(msgspec.Struct, array_like=True, gc=False):
    """What a host was asked in one day of its time zone. Kept only where the operator limits it."""

    day: int = 0
    requests: int = 0
    received: int = 0


class HostRobots(msgspec.Struct, array_like=True, gc=False):
    """A host's robots.txt: when it was read and until when it counts. `is_elsewhere` while another host is
    asked for it. `rules_key` is a hash of its words, which many hosts share. `tdm` are the rules of its
    tdmrep.json."""

    status: int = 0
    read_at: float = 0.0
    until: float = 0.0
    is_elsewhere: bool = False
    etag: str = ""
    last_modified: str = ""
    digest: bytes = b""
    failing_since: float = 0.0
    rules_key: bytes = b""
    tdm: str = ""


class HostHealth(msgspec.Struct, array_like=True, gc=False):
    """`failures` are in a row, the last `alike` of them `failing_as` one kind; `given_up` is the kind that
    ended our patience. `address_refused` is why its robots.txt could not be asked for: it holds until
    `HostRobots.until`, and no longer than the process, whose next one may allow more. `has_bare_seeds`: some of
    its seeds were given without a scheme, and are asked for over http if it cannot be connected."""

    failures: int = 0
    alike: int = 0
    failing_as: str = ""
    given_up: str = ""
    last_failure: str = ""
    address_refused: str = ""
    refused_at: float = 0.0
    has_bare_seeds: bool = False


class HostCounts(msgspec.Struct, array_like=True, gc=False):
    fetched: int = 0
    failed: int = 0
    denied: int = 0
    received: int = 0
    sitemaps: int = 0
    """And feeds, that were let in."""


class HostNovelty(msgspec.Struct, array_like=True, gc=False):
    """What a host's pages were worth. Of its `pages` some were `novel` and some `repeats`; `traps` verdicts are
    in force on it, `stopped` is the one on all of it, `learned` are parameters that change nothing. `soft_404`
    is the tag of its answer for pages that it does not have. `tags` are of its last different texts, `texts` has
    their fingerprints and titles. For `depth_probing` more pages depth probes look for the end of a section.
    `entries` pages had the words of others, and a title and figures of their own: `noted` are marks of the last
    ones, `entry_kinds` tags of their patterns. `waited` says how much waited when that was last looked at."""

    pages: int = 0
    novel: int = 0
    repeats: int = 0
    traps: int = 0
    stopped: int = 0
    learned: list[str] = msgspec.field(default_factory=list)
    is_probed: bool = False
    soft_404: bytes = b""
    tags: bytes = b""
    texts: bytes = b""
    depth_probing: int = 0
    entries: int = 0
    noted: bytes = b""
    entry_kinds: bytes = b""
    waited: int = 0


class HostGrowth(msgspec.Struct, array_like=True, gc=False):
    """What estimates are made of: first `answers` of URLs of the host, how many new URLs of it they
    `brought`, the mean of what the later ones did, and how far apart requests really were (s)."""

    answers: int = 0
    brought: int = 0
    recent: float = 0.0
    gap: float = 0.0


class HostRank(msgspec.Struct, array_like=True, gc=False):
    """How much a host matters: its score by the links of others, and its `worth` by signals from downstream, from
    -1 to 1; `paths` has the same for those of its URLs whose path begins so."""

    score: float = 0.0
    worth: float = 0.0
    paths: dict[str, float] = msgspec.field(default_factory=dict)


class HostRow(msgspec.Struct, array_like=True, gc=False):
    """A host. `standing` is a `HostStanding`. `session` is what the last lease left of its cookies, sealed.
    `regions` says how long answers take by region."""

    host: str
    standing: str = "idle"
    lease: LeaseRow | None = None
    policy: HostPolicy | None = None
    queue: HostQueue = msgspec.field(default_factory=HostQueue)
    pace: HostPace = msgspec.field(default_factory=HostPace)
    robots: HostRobots = msgspec.field(default_factory=HostRobots)
    health: HostHealth = msgspec.field(default_factory=HostHealth)
    counts: HostCounts = msgspec.field(default_factory=HostCounts)
    novelty: HostNovelty = msgspec.field(default_factory=HostNovelty)
    session: bytes = b""
    load: HostLoad | None = None
    growth: HostGrowth | None = None
    rank: HostRank | None = None
    regions: dict[str, float] | None = None

    def is_out_of_reach(self) -> bool:
        return bool(self.health.given_up) or (self.policy is not None and self.policy.blocked)

    def is_to_be_emptied(self) -> bool:
        """Something waits here in vain: robots.txt errands of other hosts, or URLs of a host that is given up.
        Those of a blocked host wait for the operator."""
        waits_in_vain = bool(self.health.given_up) and any(self.queue.lengths)
        return self.is_out_of_reach() and (self.queue.errands > 0 or waits_in_vain)


class Found(msgspec.Struct, array_like=True, gc=False):
    """How a URL was found, and as what it is asked for: how deep, by what, on which page, after how many
    redirects; `kind`, `nesting` and `form` as `Discovered` has them; `by` which extractor it is followed. Of what
    is sent once, `is_out` from its lease to its outcome."""

    depth: int
    via: Via
    parent: bytes | None = None
    hops: int = 0
    kind: TaskKind = TaskKind.PAGE
    nesting: int = 0
    by: str = ""
    form: str = ""
    is_out: bool = False


class Answer(msgspec.Struct, array_like=True, gc=False):
    """What the last fetch of a URL brought. `status` is that of the last answer, whatever it was; `body_status`
    came with the body that `digest`, `record` and the validators speak of. `canonical` is the other page that
    the page names as such."""

    at: float = 0.0
    status: int = 0
    failure: str = ""
    body_status: int = 0
    etag: str = ""
    last_modified: str = ""
    digest: bytes = b""
    size: int = 0
    record: tuple[str, int, int] | None = None
    content_type: str = ""
    title: str = ""
    directives: str = ""
    truncated: bool = False
    canonical: str = ""


class Near(msgspec.Struct, array_like=True, gc=False):
    """A page's fingerprint; the key of the page that its text resembles, and in how many bits they differ."""

    simhash: int | None = None
    of: bytes = b""
    distance: int = 0


class UrlRow(msgspec.Struct, array_like=True, gc=False):
    """A URL. `state` is a UrlState, except that IN_PROGRESS is never stored: a leased URL keeps its place
    (`slot`) in the queue, so a lease that ends without an outcome leaves nothing to repair. `linkers` are
    two-byte marks of the other hosts that link it, as long as it is queued and up to a limit. `reason` and
    `rule` say why it is where it is. `waiting` says by which entry of `unstored` this page counts there, as
    long as its segment does. `trap` is the verdict that refused it, or of which it is a sample. `due` is when it
    goes back to its queue: a retry, or where a crawl is kept fresh its next visit; `visits` is what earlier ones
    taught, packed (`schedule/revisit.py`)."""

    url: str
    state: int
    priority: int
    found: Found
    slot: bytes = b""
    linkers: bytes = b""
    reason: str = ""
    rule: str = ""
    attempts: int = 0
    due: float = 0.0
    trap: int = 0
    waiting: bytes = b""
    answer: Answer = msgspec.field(default_factory=Answer)
    near: Near = msgspec.field(default_factory=Near)
    visits: bytes = b""


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


class Walk(msgspec.Struct, array_like=True, gc=False):
    """A walk over refused URLs, all or those of `host`: for which reasons they are looked at, and how far it has
    come. `back` counts those that went back to a queue, by reason. `again` are reasons for a walk after it."""

    reasons: list[str]
    host: str = ""
    cursor: bytes = b""
    back: dict[str, int] = msgspec.field(default_factory=dict)
    again: list[str] = msgspec.field(default_factory=list)


class RenderState(IntEnum):
    """Where the rendering of a page stands."""

    QUEUED = 1
    LEASED = 2
    AWAITING = 3
    """Answers to what the page asked for."""
    DONE = 4


class RenderRow(msgspec.Struct, array_like=True, gc=False):
    """The rendering of a page: `why` it is wanted, and where it stands. A queued one has a `slot`; it is for
    `worker`, who has its tab, until `until`. Of a leased one that is the deadline, of one that awaits so many
    answers it is when it goes on without them. `asked` counts URLs that were admitted for it. The rest is of the
    last one that ended: `gained` URLs were new to the crawl."""

    state: int
    why: str = ""
    priority: int = 0
    slot: bytes = b""
    token: int = 0
    worker: str = ""
    until: float = 0.0
    rounds: int = 0
    awaited: int = 0
    asked: int = 0
    ending: str = ""
    at: float = 0.0
    record: tuple[str, int, int] | None = None
    digest: bytes = b""
    gained: int = 0
    text: int = 0
    plain_text: int = 0
    requests: int = 0
    lacking: int = 0
    seconds: float = 0.0
    tries: int = 0
    is_sounding: bool = False
    is_out: bool = False
    """It was begun, and counts as such for its kind until it ends."""


class RenderTally(msgspec.Struct, array_like=True):
    """Renderings in all: by state, `rounds` that ended in waiting, pages `changed` (their scripts brought new
    URLs or text) and `failed`, URLs `gained`, and the time that they took in browsers, of which soundings
    `sounded`. `skipped` are pages that were passed over."""

    queued: int = 0
    leased: int = 0
    awaiting: int = 0
    done: int = 0
    rounds: int = 0
    changed: int = 0
    failed: int = 0
    gained: int = 0
    seconds: float = 0.0
    sounded: float = 0.0
    skipped: int = 0
    since: float = 0.0
    """When the first page was seen that may be sounded."""

    @property
    def pending(self) -> int:
        return self.queued + self.leased + self.awaiting


class Audits(msgspec.Struct, array_like=True, gc=False):
    """Visits at random times: how many, the `weight` of the intervals that they fell into (days, by importance),
    and of those that found the page as it was."""

    count: int = 0
    weight: float = 0.0
    fresh: float = 0.0

    def add(self, weight: float, *, is_fresh: bool) -> None:
        self.count += 1
        self.weight += weight
        self.fresh += weight * is_fresh


# At least a thousand visits count: some three hundred changes, which say to a twentieth how good forecasts are.
_FORECASTS_KEPT = 1_000
_LATENESS_FADE = 0.999


class Forecasts(msgspec.Struct, array_like=True, gc=False):
    """Of late visits: how many changes were forecast, and how many were seen. Older ones count less: of `visits`
    so far the later half, and no more than are kept. Each counts as much as the interval that it ends was long:
    so each page counts alike, however often it is visited: `weight` of `count` visits. `squares` is of those
    that were seen to have changed."""

    forecast: float = 0.0
    seen: float = 0.0
    visits: int = 0
    weight: float = 0.0
    count: float = 0.0
    squares: float = 0.0

    def add(self, chance: float, *, changed: bool, weight: float = 1.0, kept: int = _FORECASTS_KEPT) -> None:
        self.visits += 1
        fade = 1 - 1 / min(1 + self.visits / 2, max(kept, _FORECASTS_KEPT))
        self.forecast = fade * self.forecast + weight * chance
        self.seen = fade * self.seen + weight * changed
        self.weight = fade * self.weight + weight
        self.count = fade * self.count + 1
        self.squares = fade * fade * self.squares + weight * weight * changed

    @property
    def correction(self) -> float:
        """Changes seen for each that was forecast; three of each are assumed beforehand."""
        assumed = 3.0 * self._usual
        return (self.seen + assumed) / (self.forecast + assumed)

    @property
    def error(self) -> float:
        """How far the correction may be off (a standard error)."""
        usual = self._usual
        return math.sqrt(self.squares + 0.5 * usual * usual) / (self.forecast + 0.5 * usual)

    @property
    def _usual(self) -> float:
        """The weight of a usual visit."""
        return self.weight / self.count if self.weight else 1.0


class Lateness(msgspec.Struct, array_like=True, gc=False):
    """Of late routine visits: the days that were planned between them and the ones before, and that it took."""

    planned: float = 0.0
    took: float = 0.0

    def add(self, planned: float, took: float) -> None:
        self.planned = _LATENESS_FADE * self.planned + planned
        self.took = _LATENESS_FADE * self.took + took

    @property
    def stretch(self) -> float:
        """By how much intervals turn out longer than planned; a day of each is assumed beforehand."""
        return (self.took + 1.0) / (self.planned + 1.0)


class Habits(msgspec.Struct, array_like=True, gc=False):
    """How often pages of one pattern or host change: `changes` in so many `days` of watching. Of `checked` pages
    whose bytes differed, `noisy` differed again at once. Of a host also what its word was worth (`trust`), when
    one of its sitemaps was last read (s), and its audits. Of a sitemap or feed itself: the news that it brought
    in so many days, and `news` of the reading that is not settled yet."""

    changes: float = 0.0
    days: float = 0.0
    checked: int = 0
    noisy: int = 0
    trust: Trust | None = None
    heard_at: int = 0
    news: float = 0.0
    audits: Audits | None = None


class RevisitTally(msgspec.Struct, array_like=True):
    """Revisits in all: pages `watched` (with a date for their next visit), revisits leased now, the price of a
    visit, the habits of all pages; visits made again and how many of them found a change. `audits` are visits at
    random times; `audited` sums the weights of the intervals they fell into, `audited_fresh` of those that found
    the page as it was. `audited_tiers` has the same by tier, from the first audit on; `forecasts` are of routine
    visits and of promised ones, from the first visit on; `lateness` is of routine ones."""

    watched: int = 0
    leased: int = 0
    price: float = FIRST_PRICE
    habits: Habits = msgspec.field(default_factory=Habits)
    visits: int = 0
    changed: int = 0
    audits: int = 0
    audited: float = 0.0
    audited_fresh: float = 0.0
    audited_tiers: list[Audits] = msgspec.field(default_factory=list)
    forecasts: list[Forecasts] = msgspec.field(default_factory=list)
    lateness: Lateness = msgspec.field(default_factory=Lateness)


class Tally(msgspec.Struct):
    """Running totals, committed with every change. `now` is when that was by the frontier's own time, which is
    the clock's plus `skew` and never goes back. `held` counts what waits to be stored by segment: fetches, and
    pages among them; there are as many segments as the spool has room for. `lost` are fetches whose records are
    gone, `answers` are good ones by kind of task, `aliases` pages that name another as canonical. `traps` is
    the number of the last verdict; `verdicts` are in force, `domains` of them on domains, and `refusing` of them
    refuse a URL or more. Of a focused crawl `scored` pages were judged, and `on_topic` of them are about it.
    `seeds` counts URLs that were let in under seeds with rules of their own. `renders` is None where nothing was
    ever to be rendered. `votes` are those that pages gave to other hosts. `regions` has
    requests, seconds of answers and bytes of each."""

    seq: int = 0
    token: int = 0
    urls: dict[int, int] = msgspec.field(default_factory=dict)
    tiers: list[int] = msgspec.field(default_factory=lambda: [0] * LANES)
    hosts: dict[str, int] = msgspec.field(default_factory=dict)
    answers: dict[TaskKind, int] = msgspec.field(default_factory=dict)
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
    verdicts: int = 0
    refusing: int = 0
    revisits: RevisitTally = msgspec.field(default_factory=RevisitTally)
    scored: int = 0
    on_topic: int = 0
    seeds: dict[str, int] = msgspec.field(default_factory=dict)
    renders: RenderTally | None = None
    votes: float = 0.0
    regions: dict[str, tuple[int, float, int]] = msgspec.field(default_factory=dict)

    @property
    def pages(self) -> int:
        return sum([count for kind, count in self.answers.items() if KINDS[kind].is_page])

    @property
    def requisites(self) -> int:
        return self.answers.get(TaskKind.REQUISITE, 0)

    @property
    def sitemaps(self) -> int:
        return sum([count for kind, count in self.answers.items() if KINDS[kind].lists_urls])
