"""Parcels into the archive, each body once: a body that is known already becomes a revisit record.

A part of the committer. A body is known when the frontier has a committed copy of it, or when it was filed since
the last commit, which the frontier cannot know yet.
"""

from __future__ import annotations

from msgspec.structs import replace

from skitter.archive.packing import Parcel
from skitter.archive.record_place import Archived
from skitter.archive.store import Archive
from skitter.committer.work_source import Delivery
from skitter.model import Copy, Fetched, Outcome, Rendered, RobotsRead

# Bytes. A revisit record takes some 680 in the archive, as many as a short error page as it is.
_WORTH_A_REVISIT = 512


class RecordFiling:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._fresh: dict[bytes, Copy] = {}

    def file(self, delivery: Delivery, known: Copy | None) -> Outcome:
        """The outcome, with where its exchange lies in the archive. `known` is the committed copy of its body."""
        outcome, parcel = delivery.outcome, delivery.parcel
        if parcel is None:
            return outcome
        if isinstance(outcome.result, Rendered):
            # made here, and of one page: no copy of anything that a server sent
            record = self._archive.place(parcel, None).record
            return replace(outcome, result=replace(outcome.result, record=record))
        fresh = self._fresh.get(parcel.digest)
        # Since the last commit this crawl may have met what only another archive held before.
        original = fresh if fresh is not None and (known is None or not known.segment) else known
        again = None if 0 < parcel.size < _WORTH_A_REVISIT else original
        archived = self._archive.place(parcel, again)
        result = outcome.result
        if original is not None and not original.segment and parcel.size:
            return self._filed_elsewhere(outcome, parcel, original, archived)
        # Again with its body, where the copy that is known may yet be lost: then this one is known from now on.
        is_new = original is None or (again is not None and not archived.is_revisit)
        if not is_new or not parcel.size:
            return replace(outcome, result=replace(result, record=archived.record))
        copy = Copy(parcel.url, parcel.sent_at, archived.record_id, archived.record.segment)
        self._fresh[parcel.digest] = copy
        if isinstance(result, Fetched | RobotsRead):
            return replace(outcome, result=replace(result, record=archived.record, copy=copy))
        return replace(outcome, result=replace(result, record=archived.record))

    def _filed_elsewhere(
        self, outcome: Outcome, parcel: Parcel, original: Copy, archived: Archived
    ) -> Outcome:
        """The first time that this crawl meets a body which another archive holds: from now on it is known as one
        of the crawl's own."""
        segment = archived.record.segment
        own = Copy(parcel.url, parcel.sent_at, archived.record_id, segment)
        copy = replace(original, segment=segment) if archived.is_revisit else own
        self._fresh[parcel.digest] = copy
        result = outcome.result
        if isinstance(result, Fetched | RobotsRead):
            return replace(outcome, result=replace(result, record=archived.record, copy=copy))
        return replace(outcome, result=replace(result, record=archived.record))

    def committed(self) -> None:
        self._fresh.clear()
