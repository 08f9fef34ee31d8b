"""The Protocol by which a worker gets hosts and hands over what came of them.

Between `worker/` and the committer. In the crawl's own process the work source is the committer itself, or
`local_work_source.py` beside other workers. In another process it is `worker/remote/remote_work_source.py`, over
HTTP. Never lets a worker see how pages are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from skitter.archive.packing import Parcel
from skitter.frontier import link_batches
from skitter.model import Extracted, Fetched, Host, HostLease, Outcome, Rendered, Token

if TYPE_CHECKING:
    from skitter.committer.render_source import RenderSource


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """What became of one task: its outcome, without a place in the archive, and what is to be put there. There is
    no parcel where there was no answer. `extracted` is what users' code made of it, to be counted; the items
    themselves are in the parcel."""

    outcome: Outcome
    parcel: Parcel | None = None
    reused_connection: bool = False
    extracted: tuple[Extracted, ...] = ()


class Standing(StrEnum):
    """What the source has to say to all workers."""

    OPEN = "open"
    PAUSED = "paused"
    """No new requests for now: too much waits to be stored, or nobody is there to take it."""
    CLOSING = "closing"
    """No new requests: the disk is nearly full."""


# Pages that are committed together. After a burst 256 are delivered at once, and a kill takes along what is not
# committed.
COMMITTED_AT_ONCE = 64
# And links, most of which may be new: an index of 4,900 took 28 ms, and in a commit of eight no worker would be
# given a host for as long as all of them take.
LINKS_AT_ONCE = 3_000
# Of a worker that leaves none out nine of ten are known, at 0.1 us each where a new one takes 6.
ALL_LINKS_AT_ONCE = 4 * LINKS_AT_ONCE


def nobody() -> None:
    """The callback of a caller that does not wait for commits."""


def links_of(delivery: Delivery) -> int:
    result = delivery.outcome.result
    if not isinstance(result, Fetched | Rendered):
        return 0
    return sum(map(link_batches.size, result.link_batches))


def commits_of(
    deliveries: Sequence[Delivery], at_once: int = COMMITTED_AT_ONCE, links_at_once: int = ALL_LINKS_AT_ONCE
) -> Iterator[list[Delivery]]:
    """What is committed together, in its order: between two commits others have their turn."""
    part: list[Delivery] = []
    links = 0
    for delivery in deliveries:
        found = links_of(delivery)
        if part and (len(part) == at_once or links + found > links_at_once):
            yield part
            part, links = [], 0
        part.append(delivery)
        links += found
    if part:
        yield part


class WorkSource(Protocol):
    @property
    def standing(self) -> Standing: ...

    @property
    def renders(self) -> RenderSource:
        """Pages to be rendered, and answers for them."""
        ...

    @property
    def uncommitted(self) -> int:
        """Deliveries that it was told of and that are not committed: a kill would cost them."""
        ...

    async def lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]: ...

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        """Returns when they are the source's: they need not be told again. Whenever some of them are committed it
        says so."""
        ...

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None] | None:
        """The new deadline of each lease, None for one that is no longer ours; None when nobody can tell now."""
        ...

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None: ...

    async def beat(self, as_of: float | None = None) -> None:
        """Does the source's periodic chores; called on every pulse of a worker's loop. `as_of` is when the worker
        last renewed its leases: those that ran out since then are not reaped yet."""
        ...
