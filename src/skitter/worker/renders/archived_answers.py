"""Answers to what a rendered page asks for, read from the crawl's archive, and remembered by their digests.

Between a page in a tab and the committer. Every page of an app asks for the same bundles: 64 MB of answers stay
in memory. A redirect is answered as one; the browser follows it, and asks again.
"""

from __future__ import annotations

import msgspec

from skitter.archive.warc.coding import coding_of
from skitter.collection.members import inflate
from skitter.collection.record import Record, parse_record
from skitter.committer.render_source import RenderSource
from skitter.model import AnswerAt, RecordAt, Standby
from skitter.render.base import Answer
from skitter.settings.rendering import RenderSettings

_MOST_REMEMBERED = 64_000_000
_REVISIT = "revisit"


class Origin(msgspec.Struct, frozen=True):
    """The record of a page, and its answer."""

    record: Record
    answer: Answer


class ArchivedAnswers:
    def __init__(self, source: RenderSource, limits: RenderSettings) -> None:
        self._source = source
        self._limits = limits
        self._remembered: dict[tuple[str, bytes], Answer] = {}
        self._size = 0

    async def standing(self, url: str) -> AnswerAt:
        (found,) = await self._source.answers([url])
        return found

    async def origin(self, url: str) -> Origin | None:
        """The page itself; None where its record is not at hand."""
        at = await self.standing(url)
        record = await self._record(at.record) if at.record is not None else None
        if record is None:
            return None
        answer = await self._answer_of(record, at)
        return None if answer is None else Origin(record, answer)

    async def answer(self, url: str, at: AnswerAt) -> Answer | None:
        if at.leads:
            return Answer(status=at.status, headers=(("location", at.leads),))
        if at.standby is not Standby.HELD or at.record is None:
            return None
        name = url, at.digest
        answer = self._remembered.pop(name, None)
        if answer is None:
            record = await self._record(at.record)
            answer = None if record is None else await self._answer_of(record, at)
            if answer is None:
                return None
            self._size += len(answer.body)
        self._remembered[name] = answer  # last: what was used long ago is forgotten first
        while self._size > _MOST_REMEMBERED:
            self._size -= len(self._remembered.pop(next(iter(self._remembered))).body)
        return answer

    async def _answer_of(self, record: Record, at: AnswerAt) -> Answer | None:
        whole = record
        if record.kind == _REVISIT:
            place = await self._source.place_of_copy(at.digest)
            original = await self._record(place) if place is not None else None
            if original is None:
                return None
            whole = Record(record.fields, record.head + original.body)
        return Answer(
            status=record.status or at.status, headers=tuple(record.headers()), body=_decoded(whole)
        )

    async def _record(self, at: RecordAt) -> Record | None:
        raw = await self._source.record(at)
        content = inflate(raw, coding_of(at.segment)) if raw is not None else ""
        record = parse_record(content) if isinstance(content, bytes) else content
        return None if isinstance(record, str) else record


def _decoded(record: Record) -> bytes:
    return record.decoded()
