"""The frontier contract: what every frontier promises to workers and operators, whatever it is stored in.

The frontier is the brain of a crawl: admission, dedup, priority, politeness, robots decisions, budgets,
retries and revisit times. Workers are stateless and may die at any line.

What every implementation must keep, and `tests/contract` checks:

- A URL is known at most once; seen-check and enqueue are one act.
- A known URL is in exactly one state, and the counts of `stats` add up to the URLs known.
- At most one lease per host is live, and the host's next request may not start before `HostLease.not_before`,
  across settle, release, expiry and restart.
- A lease of a worker in this process ends with the process; one of a `REMOTE` worker may be in use for as long as
  a lease lasts, and its host rests for that long after a restart.
- No page of a host is leased before its robots.txt was settled.
- `settle` is atomic: the outcome, the links it brought, the host's health and the archive marks are committed
  together or not at all; settling twice changes nothing the second time.
- A stale token changes nothing that a newer lease did.
- Judging, archiving and settling a batch is one act (`settling`): its verdicts hold until it is committed,
  because every other call that writes waits, whoever makes it and whatever the act awaits meanwhile.
- The rules in force decide: a URL that was let in by others is judged again when it is about to be leased, and
  what a loosened rule refused goes back to its queue, once.
- With an object store (`archive.url`) every archived fetch is held by its segment until `stored` is told of it;
  what is held goes back to its queue, once, when the segment is `lost`, and never afterwards.

Calls are asynchronous because implementations may live behind a network, and take batches for the same
reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from skitter.model import (
    AnswerAt,
    Copy,
    Discovered,
    Host,
    HostLease,
    HostPolicy,
    LinkBatch,
    Outcome,
    RecordAt,
    RenderTask,
    SegmentMark,
    Token,
    UrlKey,
    UrlState,
    Verdict,
)
from skitter.plan.estimate import Estimate
from skitter.settings import Settings

REMOTE = "remote:"
"""How the names of workers in other processes begin: their leases outlive the process that gave them."""


class Settled(StrEnum):
    """What `settle` did with an outcome."""

    ACCEPTED = "accepted"
    LATE = "late"
    STALE = "stale"


class LookedAgain(StrEnum):
    """What another look at a URL that had an answer before showed."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    GONE = "gone"
    REDIRECTED = "redirected"
    FAILED = "failed"


class Settlement(msgspec.Struct, frozen=True):
    """How one outcome was settled, what admission said of the links it brought, and whether it was the failure
    that made us give its host up. `near` is in how many bits the page differs from the one it resembles. `url` is
    set where the log speaks of it: a failure, or a page with a note."""

    settled: Settled
    state: UrlState | None = None
    added: int = 0
    known: int = 0
    refused: int = 0
    gave_up: bool = False
    near: int | None = None
    url: str = ""
    again: LookedAgain | None = None


class Admitted(msgspec.Struct, frozen=True):
    """What admission said of some links, in numbers."""

    added: int = 0
    known: int = 0
    refused: int = 0


class HostStanding(StrEnum):
    """Where a host stands; it is always in exactly one of these."""

    IDLE = "idle"
    WAITING = "waiting"
    ACTIVE = "active"
    BACKING_OFF = "backing_off"
    BLOCKED = "blocked"
    GIVEN_UP = "given_up"


class Horizon(msgspec.Struct, frozen=True, kw_only=True):
    """What is still to come: leases out now, whether the page limit is reached, and when the next host or
    retry is ready (None: never, nothing is left to do)."""

    leased_hosts: int
    limit_reached: bool
    next_at: float | None
    never_ends: bool = False
    """The crawl is kept fresh: it waits for whatever comes next."""


class Upcoming(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is asked at some time to come; `url` is the one that is tried again then, if it is for that."""

    at: float
    host: str
    why: str
    url: str = ""


class PolitenessLedger(msgspec.Struct, frozen=True, kw_only=True):
    """What hosts were promised against what they got, by the workers' own times. `violations` must stay 0.
    The smallest gap is the one that came closest to what was required of it (or went below)."""

    gaps: int
    violations: int
    smallest_gap: float | None = None
    required: float | None = None
    host: str = ""


class FilterFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The seen filter: its size, the share of it that can be trusted, and its observed false-positive rate. How
    many keys it holds, of those it is made for, is its `fill`; above 1 it is overfull."""

    bytes: int
    layers: int
    trusted: float
    asked: int
    false_positive_rate: float
    fill: float = 0.0


class RevisitFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How a crawl is kept fresh: pages with a date for their next visit, those that are queued for it, the price
    of a visit, visits made again and how many of them found a change. The first visit that is overdue has been so
    for `late` seconds. `audits` were at random times; from them follows the share of pages, by importance and
    over time, that were as we have them (`audited_freshness`, with its standard error). `budget` is how many
    visits a second there may be."""

    watched: int
    queued: int
    price: float
    budget: float
    visits: int
    changed: int
    late: float
    audits: int
    audited_freshness: float | None = None
    audit_error: float | None = None


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What so many visits at random times have found: the share of copies that were current, over the time of the
    crawl, with its standard error."""

    audits: int
    fresh: float
    error: float


class HostFreshness(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    pages: int
    expected: float
    audited: Audited | None = None


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """The share of pages that are expected to be as we have them now: by importance, plain, by tier, and of the
    hosts where most is missing. Beside it what visits at random times have found, over the time of the crawl.
    `age` is how many days ago pages were last seen, on average; `changes_a_day` is expected of them in all.
    `error` and `error_plain` are standard errors of what is expected: three of them are its band."""

    pages: int
    expected: float | None
    expected_plain: float | None
    by_tier: dict[str, float]
    hosts: tuple[HostFreshness, ...]
    audits: int
    audited: float | None = None
    audit_error: float | None = None
    audited_by_tier: dict[str, Audited] = msgspec.field(default_factory=dict)
    age: float | None = None
    changes_a_day: float = 0.0
    error: float | None = None
    error_plain: float | None = None


class RenderFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Renderings: those that wait for a browser, are in one, wait for answers, and have ended. `rounds` ended in
    waiting; `changed` pages had new URLs or text by their scripts, `gained` URLs in all; `skipped` were passed
    over, because renderings of their kind bring nothing. `seconds` is the time that pages took in browsers."""

    queued: int
    leased: int
    awaiting: int
    done: int
    rounds: int
    changed: int
    failed: int
    skipped: int
    gained: int
    seconds: float


class RegionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What workers of a region did: requests with an answer, the mean time of those (s), bytes."""

    requests: int
    mean_seconds: float
    bytes: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """`unstored` are pages that wait for upload to the object store (`stored` are the others), `lost` fetches
    whose records were gone before that. `came_back` counts refused URLs that went back to a queue since this
    process began, because the rule that had refused them changed; `rejudging` are the reasons looked at now.
    `over_defaults` are refusals by limits that nobody chose: a depth or a budget that is as skitter sets it.
    Of a focused crawl `scored` pages were judged, and `on_topic` of them are about it."""

    urls: dict[str, int]
    hosts: dict[str, int]
    tiers: tuple[int, ...]
    pages: int
    stored: int
    unstored: int
    lost: int
    requisites: int = 0
    sitemaps: int = 0
    fetches: int
    robots_fetches: int
    bytes: int
    failures: dict[str, int]
    refusals: dict[str, int]
    statuses: dict[str, int]
    leases_expired: int
    stale_outcomes: int
    politeness: PolitenessLedger
    seen_filter: FilterFigures | None = None
    next_at: float | None = None
    near_duplicates: int = 0
    aliases: int = 0
    came_back: dict[str, int] = {}
    rejudging: tuple[str, ...] = ()
    verdicts: int = 0
    refusing: int = 0
    revisits: RevisitFigures | None = None
    over_defaults: dict[str, int] = {}
    scored: int = 0
    on_topic: int = 0
    regions: dict[str, RegionFigures] = {}
    renderings: RenderFigures | None = None


class RuleChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What it means that a frontier was opened with other rules of admission than before: how many URLs that were
    refused are judged again, by reason, and of how many pages the requisites are not known because they were not
    asked for."""

    judged_again: dict[str, int] = {}
    pages_without_requisites: int = 0


class FetchView(msgspec.Struct, frozen=True, kw_only=True):
    """One fetch of a URL, as the ledger has it."""

    at: float
    seconds: float
    result: str
    status: int
    size: int
    address: str
    record: str
    detail: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a URL: how it was found, who decided what, where it stands and what comes next.
    `trail` are the pages through which it was found, nearest first. `resembles` is the page that had much the
    same text before, `distance` the bits of 64 in which their fingerprints differ, `resembling` how many
    resemble this one. `form` is what the key is the hash of. `canonical` is what the page names as such, and
    `alias_of` the page that therefore stands for it; or `alias_why` says why it stands for itself. `leads_to` is
    the URL that is asked for in its place: where it redirects to, or its http form where there is no https.
    `next_at` is when it can be asked for next for any reason, `next_crawl_at` when it is visited again to keep
    its copy fresh."""

    asked: str
    url: str = ""
    key: str = ""
    host: str = ""
    known: bool = False
    state: str = "unknown"
    reason: str = ""
    found: str = ""
    admitted: str = ""
    trail: tuple[str, ...] = ()
    depth: int = 0
    priority: int = 0
    tier: str = ""
    waits: str = ""
    robots: str = ""
    attempts: int = 0
    title: str = ""
    content_type: str = ""
    fetches: tuple[FetchView, ...] = ()
    next_at: float | None = None
    simhash: str = ""
    resembles: str = ""
    distance: int | None = None
    resembling: int = 0
    form: str = ""
    canonical: str = ""
    alias_of: str = ""
    alias_why: str = ""
    leads_to: str = ""
    rendering: tuple[str, ...] = ()
    next_crawl_at: float | None = None


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    standing: str
    queued: int
    fetched: int
    failed: int
    denied: int
    bytes: int
    delay: float
    delay_why: str
    robots: str
    failures_in_a_row: int
    next_start: float
    response_ms: float
    address: str
    policy: HostPolicy | None
    smallest_gap: float | None


class HostFetch(FetchView, frozen=True, kw_only=True):
    """A request to a host; `url` is empty when its URL is not known any more."""

    url: str


class HostExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a host: the view, who has it leased, its robots.txt (the beginning of a long one) and
    its latest requests, newest first. `pace` says in a sentence why it is asked as often as it is."""

    view: HostView
    pace: str
    worker: str
    lease_until: float | None
    last_failure: str
    robots_status: int
    robots_at: float
    robots_until: float
    robots_text: str
    robots_size: int
    fetches: tuple[HostFetch, ...]


class DayOfHost(msgspec.Struct, frozen=True, kw_only=True):
    """What a host was asked on one day, in UTC."""

    day: str
    requests: int
    bytes: int
    errors: int


class HostLedger(msgspec.Struct, frozen=True, kw_only=True):
    """What one host was asked, all in all: for its webmaster. Gaps are between the times when requests had left,
    by the worker's clock; `required` is what the smallest of them had to be at least. `errors` are answers of 5xx
    and 429, and requests without an answer, by kind; `latest_errors` and `latest` are the last ones, newest
    first. `robots_text` is the beginning of the robots.txt that is obeyed."""

    host: str
    standing: str
    policy: HostPolicy | None
    pace: str
    delay: float
    delay_why: str
    requests: int
    robots_requests: int
    bytes: int
    first_at: float | None
    last_at: float | None
    seconds_answering: float
    smallest_gap: float | None
    required: float | None
    median_gap: float | None
    busiest_minute: int
    results: dict[str, int]
    statuses: dict[str, int]
    errors: dict[str, int]
    addresses: tuple[str, ...]
    days: tuple[DayOfHost, ...]
    robots: str
    robots_at: float
    robots_until: float
    robots_size: int
    robots_text: str
    latest_errors: tuple[HostFetch, ...]
    latest: tuple[HostFetch, ...]


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """`tasks` counts what of it is still out."""

    host: str
    worker: str
    deadline: float
    tasks: int


class HostOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """Why a host is not asked sooner. `failure` is what it backs off after, of its robots.txt if `is_of_robots`;
    `is_crowded`: its address is busy with other hosts. `closed` is quiet (its quiet hours) or spent (its load of
    the day)."""

    host: str
    is_leased: bool
    queued: int
    next_start: float
    delay: float
    delay_why: str
    failure: str = ""
    is_of_robots: bool = False
    is_crowded: bool = False
    closed: str = ""


class UrlView(msgspec.Struct, frozen=True, kw_only=True):
    """A URL in a list. `why` is the kind of its failure or refusal; `status` and `at` are of its last answer.
    `next_crawl_at` is when it is visited next, where a crawl is kept fresh."""

    url: str
    state: str
    why: str
    detail: str
    status: int
    title: str
    at: float
    next_crawl_at: float | None = None


class UrlList(msgspec.Struct, frozen=True, kw_only=True):
    """`after` is where the list goes on; empty at its end. It may be short and yet go on: a call looks at so many
    URLs at most."""

    urls: list[UrlView]
    after: str = ""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    kind: str
    detail: str
    status: int
    attempts: int
    at: float


class TrapView(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict on a kind of page: `skeleton` names it, `why` gives the figures it fell with. `members` are the
    URLs of it that were fetched since its host first repeated itself, and those refused; `refused` go back when
    it is undone, and `ended` says that it was, or that pages contradicted it."""

    id: int
    kind: str
    level: str
    host: str
    skeleton: str
    members: int
    fetched: int
    novel: int
    refused: int
    bytes: int
    deepest: int
    at: float
    why: str
    examples: tuple[str, ...]
    ended: str = ""
    released: int = 0


class MovedRecord(NamedTuple):
    """A record that lies elsewhere from now on. `copy` when it is now the first of its body, by its digest."""

    key: UrlKey
    sent_at: float
    old: RecordAt
    new: RecordAt
    digest: bytes = b""
    copy: Copy | None = None


class Forgetting(Protocol):
    """What is forgotten of a frontier: hosts, or one URL. For whoever holds the crawl's folder and crawls
    nothing; every call may be made twice."""

    def is_of(self, url: str) -> bool:
        """Whether a URL is to be forgotten."""
        ...

    def is_named(self, text: str) -> bool:
        """Whether a text names what is to be forgotten."""
        ...

    def begin(self) -> None:
        """From now on nothing of it is let in."""
        ...

    def key_of_fetch(self, url: str, sent_at: float) -> UrlKey: ...

    def has_moved(self, key: UrlKey, sent_at: float, segment: str) -> bool:
        """Whether the record of this fetch is known to lie in another segment than this one."""
        ...

    def move(self, moves: Sequence[MovedRecord], marks: Sequence[SegmentMark]) -> None:
        """The records lie there, and so much of the new segments counts: all or nothing."""
        ...

    def drop_segment(self, segment: str) -> None:
        """All that was kept of it lies elsewhere; its files are to go, and are noted until they are."""
        ...

    def spent_segments(self) -> list[str]:
        """Segments that were dropped, and whose files are not known to be gone."""
        ...

    def segment_is_gone(self, segment: str) -> None: ...

    def forget_rows(self) -> int:
        """All rows of it; how many URLs it were."""
        ...

    def scrub(self) -> int:
        """Rows of others that name it lose the name; how many they were."""
        ...

    def compact(self) -> None:
        """No file of the store holds what was deleted any more."""
        ...

    def left(self) -> int:
        """Rows that still name it."""
        ...


class Witness(Protocol):
    """Is told what a frontier has done, after it is committed, and may do nothing about it. Whichever worker it
    came from, in this process or afar, an outcome passes here once."""

    def leased(self, worker: str, leases: int, now: float) -> None: ...

    def settled(self, outcomes: Sequence[Outcome], settlements: Sequence[Settlement], now: float) -> None: ...

    def syncing(self) -> None:
        """What was settled before survives a power loss once `synced` is told."""
        ...

    def synced(self) -> None: ...


class Settling(Protocol):
    """One batch of outcomes between its judgement and its commit. `verdicts` says of each outcome, in order, what
    `commit` will do with it: only what is not STALE may be archived."""

    @property
    def verdicts(self) -> Sequence[Settled]: ...

    async def commit(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]:
        """Commits the same outcomes, now with their places in the archive, and the archive's marks: all or
        nothing, and once at most."""
        ...


class Frontier(Protocol):
    def attend(self, witness: Witness) -> None:
        """From now on the witness is told, and no other."""
        ...

    async def admit(self, discovered: Sequence[Discovered]) -> list[Verdict]:
        """One verdict per URL, in order. A seed brings its host, domain and folder into scope."""
        ...

    async def admit_listed(self, link_batches: Sequence[LinkBatch]) -> list[Admitted]:
        """Links of a sitemap or feed that go ahead of its outcome, a batch a transaction, so that others have
        their turn in between. Whatever becomes of the outcome, a second telling changes nothing."""
        ...

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        """Up to `capacity` hosts that are ready now, each for `duration` seconds, with `most_tasks` tasks each at
        most (None: as many as fit). `staggered`: hosts that are asked without a pause are given different
        numbers of them, so that those which were leased together do not all come back at once."""
        ...

    def settling(self, outcomes: Sequence[Outcome]) -> AbstractAsyncContextManager[Settling]:
        """Opens the act that judges these outcomes, lets the caller archive those that count, and commits them.
        Every other call that writes waits until it ends. Leaving it without `commit` changes nothing."""
        ...

    async def settle(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]:
        """A `settling` for outcomes of which nothing is archived."""
        ...

    @property
    def renders_waiting(self) -> int:
        """Pages that wait to be rendered, or for the end of a wait."""
        ...

    async def lease_renders(self, worker: str, capacity: int, duration: float) -> list[RenderTask]:
        """Up to `capacity` pages to render, each for `duration` seconds. Their outcomes are settled like others;
        one that comes after the deadline is stale."""
        ...

    async def release_renders(self, leases: Sequence[tuple[UrlKey, Token]]) -> None:
        """Pages that were not rendered go back."""
        ...

    async def answers(self, urls: Sequence[str]) -> list[AnswerAt]:
        """What there is of each URL for a page that is rendered."""
        ...

    async def place_of_copy(self, digest: bytes) -> RecordAt | None:
        """Where the first copy of a body lies, if this crawl has it."""
        ...

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]:
        """The new deadline of each lease, None for one that is no longer ours."""
        ...

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        """Give back what was not fetched; the host stays spaced from its last request."""
        ...

    async def reap(self, now: float) -> int:
        """Expired leases go back; the host is not eligible before deadline + delay."""
        ...

    async def promote(self, now: float) -> int:
        """Due retries go back to their queues, and so do pages that are due for another visit and what a changed
        robots.txt or a loosened rule allows; what waits for a host that was given up becomes dead letters. A
        bounded step: how many it moved, 0 when all is done."""
        ...

    async def first_copies(self, digests: Sequence[bytes]) -> list[Copy | None]:
        """Where each body was first archived, if it was."""
        ...

    async def remember_copies(self, copies: Sequence[tuple[bytes, Copy]]) -> int:
        """Bodies that other archives hold, by their digests; how many of them were not known."""
        ...

    async def marks(self) -> list[SegmentMark]: ...

    async def stored(self, segment: str) -> None:
        """All of a finished segment is safe in the object store. Telling it twice is harmless."""
        ...

    async def lost(self, segment: str) -> int:
        """A segment is gone that was held and not stored: its fetches are given back, its mark is forgotten.
        How many they were; 0, and nothing changed, when it is not held."""
        ...

    async def lost_segments(self) -> list[str]:
        """Those that `lost` gave back. Whoever had one of them may yet upload it; it does not count."""
        ...

    async def horizon(self) -> Horizon: ...

    async def upcoming(self, *, limit: int) -> list[Upcoming]:
        """Who is asked next, and when: what a crawl with nothing to do waits for."""
        ...

    async def seeds(self, *, limit: int) -> list[str]:
        """URLs that were given as seeds, found among the first that are known: a look, not a list of all."""
        ...

    async def stats(self) -> Stats: ...

    async def freshness(self) -> Freshness:
        """How fresh the copies of watched pages are expected to be: a walk over all URLs, in slices."""
        ...

    async def estimate(self) -> Estimate:
        """How much is left, how long it takes and what limits it: a walk over all hosts, in slices."""
        ...

    async def explain(self, url: str) -> Explanation: ...

    async def url_of(self, key: UrlKey) -> str | None:
        """The URL that a key stands for, if it is known."""
        ...

    async def host(self, host: Host) -> HostView | None: ...

    async def robots_of(self, host: Host) -> bytes | None:
        """The robots.txt whose rules are obeyed on a host; None when there is none."""
        ...

    async def hosts(
        self, *, limit: int, standing: HostStanding | None = None, matching: str = ""
    ) -> list[HostView]:
        """The busiest first; `matching` is a part of their names."""
        ...

    async def explain_host(self, host: Host, *, fetches: int) -> HostExplanation | None:
        """All that is known of a host, with so many of its latest requests; None when it is not known."""
        ...

    async def ledger_of(self, host: Host, *, fetches: int) -> HostLedger | None:
        """All requests that were made to a host, summed up, and so many of the latest ones; None when it is not
        known."""
        ...

    async def leases(self, *, limit: int) -> list[LeaseView]:
        """Leases that are out now."""
        ...

    async def outlook(self, *, limit: int) -> list[HostOutlook]:
        """Up to `limit` hosts that are leased now, and as many that are next, the soonest first."""
        ...

    async def urls(
        self,
        *,
        limit: int,
        state: UrlState | None = None,
        why: str = "",
        host: Host | None = None,
        after: str = "",
    ) -> UrlList:
        """URLs in no order that matters: in a state, of a kind of failure or refusal, of a host."""
        ...

    async def anchors(self, *, limit: int) -> list[str]:
        """Up to `limit` prefixes that seeds brought into scope: `example.org/docs/`."""
        ...

    async def dead_letters(self, *, limit: int, host: Host | None = None) -> list[DeadLetter]: ...

    async def requeue(self, *, host: Host | None = None, url: str | None = None) -> int:
        """Dead letters (all, of a host, or one URL) go back to the queue with their attempts forgotten, and so
        are the failures of their hosts: one that was given up is tried again."""
        ...

    async def refresh(self, *, host: Host | None = None, url: str | None = None) -> int:
        """What has its final answer (completed, gone, or refused for its content type; all, of a host, or one
        URL) goes back to its queue once, to be asked for again with the validators it came with."""
        ...

    async def retry(self, host: Host) -> int | None:
        """What a host waits for ends now: its backoff, quarantine or wait for a robots.txt, and the dates of its
        retries. Its failures are forgotten; its delay is kept to. How many retries are queued; None when the host
        is not known."""
        ...

    async def set_policy(self, host: Host, policy: HostPolicy) -> None:
        """What was refused because the host was blocked, or by its budget, is judged again if that changes."""
        ...

    async def signal(self, host: Host, useful: float, path: str = "") -> float | None:
        """Downstream says how useful a host was, from -1 to 1, or those of its URLs whose path begins so. What is
        thought of it now; None when it is not known."""
        ...

    async def allow_private(self, allowed: bool) -> int:
        """Whether private addresses may be asked from now on. When they may and might not before, what was
        refused for its address goes back to its queue; how many did."""
        ...

    def change_settings(self, settings: Settings) -> None:
        """Takes over `crawl.max_pages` and `politeness.delay`, from the next lease on; nothing else of them."""
        ...

    async def traps(self, *, limit: int) -> list[TrapView]:
        """Verdicts on kinds of pages that bring nothing new, the latest first."""
        ...

    async def undo_trap(self, number: int) -> int:
        """Revoke a verdict: what it refused goes back to its queue, once, and what it was about is exempt from
        now on. How many went back; 0 when there is no such verdict in force."""
        ...

    def forgetting(self, hosts: Sequence[Host], url: str = "") -> Forgetting:
        """What it takes to forget these hosts, or with `url` that URL alone."""
        ...

    async def sync(self) -> None:
        """Everything settled so far survives a power loss once this returns."""
        ...

    async def close(self) -> None:
        """Nothing is asked of it from now on, but perhaps to close once more, which does nothing."""
        ...
