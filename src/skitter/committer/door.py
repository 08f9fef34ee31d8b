"""What workers and operators need of a committer, of one crawl or of the partitions that a node has.

A `Committer` is one; `part_committers.py` has one for each partition. Which hosts are here is asked before
anything is settled: what belongs to another node is not refused, it is sent there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skitter.committer.render_source import RenderSource
from skitter.committer.work_source import Delivery, Standing
from skitter.errors import SkitterError
from skitter.frontier.base import Settlement
from skitter.model import Host, HostLease, Outcome, Token


class NotHere(SkitterError):
    """The partition was here a moment ago. Whatever was asked of it is asked of its next owner."""


class CommitterDoor(Protocol):
    @property
    def standing(self) -> Standing: ...

    @property
    def is_closing(self) -> bool: ...

    @property
    def why_paused(self) -> str: ...

    @property
    def is_paused_by_operator(self) -> bool: ...

    @property
    def renders(self) -> RenderSource: ...

    def divide(self, hosts: Sequence[Host]) -> list[list[int]]:
        """Places of those that are committed together, by partition. Hosts that are not here are in none."""
        ...

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]: ...

    async def commit_batch(self, deliveries: Sequence[Delivery]) -> list[Settlement]: ...

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]: ...

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None: ...

    def refuse(self, worker: str, outcome: Outcome, why: str) -> None: ...

    def refuse_lease(self, worker: str, host: Host) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...
