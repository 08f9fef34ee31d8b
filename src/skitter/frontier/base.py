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
- `judge` says of each outcome what the next `settle` does with it, so that only what counts is archived.
- With an object store (`archive.url`) every archived fetch is held by its segment until `stored` is told of it;
  what is held goes back to its queue, once, when the segment is `lost`, and never afterwards.

Calls are asynchronous because implementations may live behind a network, and take batches for the same
reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from skitter.model import (
    Copy,
    Discovered,
    Host,
    HostLease,
    HostPolicy,
    Outcome,
    SegmentMark,
    Token,
    UrlKey,
    UrlState,
    Verdict,
)

REMOTE = "remote:"
"""How the names of workers in other processes begin: their leases outlive the process that gave them."""


class Settled(StrEnum):
    """What `settle` did with an outcome."""

    ACCEPTED = "accepted"
    LATE = "late"
    STALE = "stale"


class Settlement(msgspec.Struct, frozen=True):
    """How one outcome was settled, what admission said of the links it brought, and whether it was the failure
    that made us give its host up. `near` is in how many bits the page differs from the one it resembles."""

    settled: Settled
    state: UrlState | None = None
    added: int = 0
    known: int = 0
    refused: int = 0
    gave_up: bool = False
    near: int | None = None


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


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """`unstored` are pages that wait for upload to the object store (`stored` are the others), `lost` fetches
    whose records were gone before that."""

    urls: dict[str, int]
    hosts: dict[str, int]
    tiers: tuple[int, ...]
    pages: int
    stored: int
    unstored: int
    lost: int
    requisites: int = 0
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
    `alias_of` the page that therefore stands for it; or `alias_why` says why it stands for itself."""

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
    its latest requests, newest first."""

    view: HostView
    worker: str
    lease_until: float | None
    last_failure: str
    robots_status: int
    robots_at: float
    robots_until: float
    robots_text: str
    robots_size: int
    fetches: tuple[HostFetch, ...]


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """`tasks` counts what of it is still out."""

    host: str
    worker: str
    deadline: float
    tasks: int


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


class Witness(Protocol):
    """Is told what a frontier has done, after it is committed, and may do nothing about it. Whichever worker it
    came from, in this process or afar, an outcome passes here once."""

    def leased(self, worker: str, leases: int, now: float) -> None: ...

    def settled(self, outcomes: Sequence[Outcome], settlements: Sequence[Settlement], now: float) -> None: ...

    def syncing(self) -> None:
        """What was settled before survives a power loss once `synced` is told."""
        ...

    def synced(self) -> None: ...


class Frontier(Protocol):
    def attend(self, witness: Witness) -> None:
        """From now on the witness is told, and no other."""
        ...

    async def admit(self, discovered: Sequence[Discovered]) -> list[Verdict]:
        """One verdict per URL, in order. A seed brings its host, domain and folder into scope."""
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

    async def judge(self, outcomes: Sequence[Outcome]) -> list[Settled]:
        """Which of them `settle` would accept if it were called next; changes nothing."""
        ...

    async def settle(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]: ...

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
        """Due retries go back to their queues, and so does what a changed robots.txt allows; what waits for a
        host that was given up becomes dead letters. A bounded step: how many it moved, 0 when all is done."""
        ...

    async def first_copies(self, digests: Sequence[bytes]) -> list[Copy | None]:
        """Where each body was first archived, if it was."""
        ...

    async def marks(self) -> list[SegmentMark]: ...

    async def stored(self, segment: str) -> None:
        """All of a finished segment is safe in the object store. Telling it twice is harmless."""
        ...

    async def lost(self, segment: str) -> int:
        """A segment is gone that was held and not stored: its fetches are given back, its mark is forgotten.
        How many they were; 0, and nothing changed, when it is not held."""
        ...

    async def horizon(self) -> Horizon: ...

    async def stats(self) -> Stats: ...

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

    async def leases(self, *, limit: int) -> list[LeaseView]:
        """Leases that are out now."""
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

    async def set_policy(self, host: Host, policy: HostPolicy) -> None: ...

    async def traps(self, *, limit: int) -> list[TrapView]:
        """Verdicts on kinds of pages that bring nothing new, the latest first."""
        ...

    async def undo_trap(self, number: int) -> int:
        """Revoke a verdict: what it refused goes back to its queue, once, and what it was about is exempt from
        now on. How many went back; 0 when there is no such verdict in force."""
        ...

    async def sync(self) -> None:
        """Everything settled so far survives a power loss once this returns."""
        ...

    async def close(self) -> None:
        """Nothing is asked of it from now on, but perhaps to close once more, which does nothing."""
        ...
