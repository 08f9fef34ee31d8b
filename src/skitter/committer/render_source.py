"""Pages to render, and the answers that they ask for: what a renderer gets of the committer.

Beside `work_source.py`. In the crawl's own process it is the committer's; in another one it is
`worker/remote/remote_renders.py`. What came of a rendering is settled like any other delivery. Never fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from skitter.archive.store import Archive
from skitter.committer.work_source import Standing
from skitter.frontier.base import Frontier
from skitter.model import AnswerAt, RecordAt, RenderTask, Token, UrlKey

# Seconds. A page has 15 of its own, and a browser may take 60 to start where the machine is busy.
LEASE = 120.0


class RenderSource(Protocol):
    @property
    def waiting(self) -> int:
        """Pages that could be leased, as far as is known here."""
        ...

    @property
    def has_others(self) -> bool:
        """Whether other workers may render what this one cannot."""
        ...

    async def lease(self, worker: str, capacity: int) -> list[RenderTask]: ...

    async def release(self, leases: Sequence[tuple[UrlKey, Token]]) -> None: ...

    async def answers(self, urls: Sequence[str]) -> list[AnswerAt]: ...

    async def record(self, at: RecordAt) -> bytes | None:
        """As it lies in the archive; None where it is not at hand."""
        ...

    async def place_of_copy(self, digest: bytes) -> RecordAt | None: ...


class CommitterRenders:
    has_others = False

    def __init__(self, frontier: Frontier, archive: Archive, standing: Callable[[], Standing]) -> None:
        self._frontier = frontier
        self._archive = archive
        self._standing = standing

    @property
    def waiting(self) -> int:
        return self._frontier.renders_waiting

    async def lease(self, worker: str, capacity: int) -> list[RenderTask]:
        if self._standing() is not Standing.OPEN:
            return []
        return await self._frontier.lease_renders(worker, capacity, LEASE)

    async def release(self, leases: Sequence[tuple[UrlKey, Token]]) -> None:
        await self._frontier.release_renders(leases)

    async def answers(self, urls: Sequence[str]) -> list[AnswerAt]:
        return await self._frontier.answers(urls)

    async def record(self, at: RecordAt) -> bytes | None:
        return self._archive.read(at)

    async def place_of_copy(self, digest: bytes) -> RecordAt | None:
        return await self._frontier.place_of_copy(digest)


class NoRenders:
    """Of a cluster, which renders nothing: what a page asks for may be of any partition."""

    waiting = 0
    has_others = True

    async def lease(self, worker: str, capacity: int) -> list[RenderTask]:
        return []

    async def release(self, leases: Sequence[tuple[UrlKey, Token]]) -> None:
        """None was given."""

    async def answers(self, urls: Sequence[str]) -> list[AnswerAt]:
        return []

    async def record(self, at: RecordAt) -> bytes | None:
        return None

    async def place_of_copy(self, digest: bytes) -> RecordAt | None:
        return None
