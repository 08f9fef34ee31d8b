"""Pages to render and answers for them, from a committer in another process.

Beside `remote_work_source.py`, over the same connection. How many pages wait is told with every answer of the
server. While nobody answers there is nothing to render, and a page that asks gets no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skitter.committer.worker_messages import (
    RENDER_ANSWERS,
    RENDER_LEASE,
    RENDER_RECORD,
    RENDER_RELEASE,
    AnswersRequest,
    AnswersResponse,
    RecordRequest,
    RecordResponse,
    ReleaseResponse,
    RenderLeaseRequest,
    RenderLeaseResponse,
    RenderReleaseRequest,
)
from skitter.model import AnswerAt, RecordAt, RenderTask, Standby, Token, UrlKey
from skitter.urls.canonical import host_of

if TYPE_CHECKING:
    from skitter.worker.remote.remote_work_source import RemoteWorkSource


class RemoteRenders:
    """A `RenderSource`."""

    has_others = True

    def __init__(self, source: RemoteWorkSource) -> None:
        self._source = source
        self.waiting = 0

    async def lease(self, worker: str, capacity: int) -> list[RenderTask]:
        self.waiting = 0  # until it is told again
        request = RenderLeaseRequest(**self._source.signed(), capacity=capacity)
        given = await self._source.tried(RENDER_LEASE, request, RenderLeaseResponse)
        if given is None:
            return []
        self._source.keep_seals([(host_of(one.url), one.token) for one in given.tasks], given.seals)
        return given.tasks

    async def release(self, leases: Sequence[tuple[UrlKey, Token]]) -> None:
        request = RenderReleaseRequest(**self._source.signed(), leases=list(leases))
        await self._source.tried(RENDER_RELEASE, request, ReleaseResponse)

    async def answers(self, urls: Sequence[str]) -> list[AnswerAt]:
        request = AnswersRequest(**self._source.signed(), urls=list(urls))
        found = await self._source.tried(RENDER_ANSWERS, request, AnswersResponse)
        return (
            [AnswerAt(Standby.REFUSED, "the server is away")] * len(urls) if found is None else found.answers
        )

    async def record(self, at: RecordAt) -> bytes | None:
        return (await self._found(RecordRequest(**self._source.signed(), at=at))).record

    async def place_of_copy(self, digest: bytes) -> RecordAt | None:
        return (await self._found(RecordRequest(**self._source.signed(), digest=digest))).place

    async def _found(self, request: RecordRequest) -> RecordResponse:
        found = await self._source.tried(RENDER_RECORD, request, RecordResponse)
        return RecordResponse(server="", now=0.0, standing=self._source.standing) if found is None else found
