"""What lies in an archive: segments, indexes, journals, tables, and what belongs to none of them.

Read from the names alone, before anything is opened. A growing segment has `.open` at the end of its names
until it is finished. Never guesses what is committed: that is the frontier's to say.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from skitter.archive.schema import TABLES, is_table_name
from skitter.archive.segments import INDEX
from skitter.archive.set_aside import FOLDER
from skitter.archive.store import MERGED_INDEX
from skitter.archive.tables.parts import PARQUET
from skitter.archive.warc.cdxj import TEMPORARY
from skitter.archive.warc.coding import OPEN, READABLE_SUFFIXES, stem_of
from skitter.collection.source import Source


class SegmentAt(msgspec.Struct, frozen=True, kw_only=True):
    """A segment by its finished name, and the files that hold it now. `index` is a journal while it grows."""

    name: str
    file: str
    size: int
    index: str = ""

    @property
    def is_growing(self) -> bool:
        return self.file.endswith(OPEN)


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    segments: tuple[SegmentAt, ...]
    indexes: tuple[str, ...]
    """Sorted indexes of finished segments, also of those that were moved elsewhere."""
    merged: str = ""
    parts: dict[str, tuple[str, ...]]
    """By table: those of ours, and whatever else has parts here."""
    unfinished: tuple[str, ...] = ()
    """What an interrupted run left, or a running one is about to rename."""
    set_aside: tuple[str, ...] = ()
    """What could not be read of journals and tables when a crawl went on."""
    strange: tuple[str, ...] = ()

    @property
    def by_name(self) -> dict[str, SegmentAt]:
        return {segment.name: segment for segment in self.segments}


def read_layout(source: Source) -> Layout:
    files = source.list()
    segments = tuple(_segments(files))
    parts = _parts(files)
    used = {segment.file for segment in segments} | {segment.index for segment in segments}
    used |= {name for names in parts.values() for name in names}
    indexes = tuple(sorted(n for n in files if n.endswith(INDEX) and n != MERGED_INDEX and "/" not in n))
    rest = sorted(set(files) - used - set(indexes) - {MERGED_INDEX})
    growing = {stem_of(segment.name) for segment in segments if segment.is_growing}
    rest = [name for name in rest if not (name.endswith(OPEN) and name.split(".")[0] in growing)]
    set_aside = tuple(name for name in rest if name.startswith(f"{FOLDER}/") and not _is_unfinished(name))
    rest = [name for name in rest if name not in set_aside]
    unfinished = tuple(name for name in rest if _is_unfinished(name))
    return Layout(
        segments=segments,
        indexes=indexes,
        merged=MERGED_INDEX if MERGED_INDEX in files else "",
        parts=parts,
        unfinished=unfinished,
        set_aside=set_aside,
        strange=tuple(name for name in rest if not _is_unfinished(name)),
    )


def _parts(files: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {table.name: [] for table in TABLES}
    for name in sorted(files):
        table, _, part = name.partition("/")
        if part.endswith(PARQUET) and "/" not in part and is_table_name(table):
            found.setdefault(table, []).append(name)
    return {table: tuple(names) for table, names in found.items()}


def _segments(files: dict[str, int]) -> list[SegmentAt]:
    found = {}
    for name in sorted(files, key=lambda file: (not file.endswith(OPEN), file)):
        # Sorted so that a finished file wins over the growing one it was renamed from while we listed.
        finished = name.removesuffix(OPEN)
        if not finished.endswith(READABLE_SUFFIXES) or "/" in name:
            continue
        index = stem_of(finished) + INDEX + (OPEN if name.endswith(OPEN) else "")
        found[finished] = SegmentAt(
            name=finished, file=name, size=files[name], index=index if index in files else ""
        )
    return sorted(found.values(), key=lambda segment: segment.name)


def _is_unfinished(name: str) -> bool:
    return name.endswith((OPEN, TEMPORARY))
