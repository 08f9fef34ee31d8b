"""What a worker needs of the one who knows: hosts to ask, and somebody who takes what came of it.

Between `worker/` and the desk. In one process the brain is the desk itself; in another it is `worker/remote.py`,
which speaks to a desk over HTTP. Never lets a worker see how pages are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from skitter.archive.packing import Parcel
from skitter.frontier import bundles
from skitter.model import Fetched, Host, HostLease, Outcome, Token


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """What became of one task: its outcome, without a place in the archive, and what is to be put there. There is
    no parcel where there was no answer."""

    outcome: Outcome
    parcel: Parcel | None = None
    reused_connection: bool = False


class Standing(StrEnum):
    """What the brain has to say to all workers."""

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
    """Wants to know."""


def links_of(delivery: Delivery) -> int:
    result = delivery.outcome.result
    return sum(map(bundles.size, result.bundles)) if isinstance(result, Fetched) else 0


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


class Brain(Protocol):
    @property
    def standing(self) -> Standing: ...

    @property
    def uncommitted(self) -> int:
        """Deliveries that it was told of and that are not committed: a kill would cost them."""
        ...

    async def lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]: ...

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        """Returns when they are the brain's: they need not be told again. Whenever some of them are committed it
        says so."""
        ...

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None] | None:
        """The new deadline of each lease, None for one that is no longer ours; None when nobody can tell now."""
        ...

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None: ...

    async def beat(self, as_of: float | None = None) -> None:
        """Called on every pulse of a worker's loop: the brain's own duties. A worker that renews its leases first
        says when it looked at them: what ran out since then is not over yet."""
        ...
