"""Which parts of the tables are final, and which of them a target lacks.

First on the path of a sink. A part of a growing segment is final once every table of its journal has it: until
then a kill of the crawl may have it written again with another end (`archive/tables/parts.py`). Only a power loss
takes final parts back; what is then written in their place overlaps what a target has. Reads names alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from skitter.archive.schema import PAGES
from skitter.archive.segments import ROWS
from skitter.archive.tables.journal import DamagedHeading, read_tables
from skitter.archive.tables.parts import PARQUET
from skitter.archive.warc.coding import OPEN, stem_of
from skitter.collection.layout import Layout
from skitter.collection.source import Source
from skitter.errors import ArchiveFailed

CHANGES = "changes"
_STRETCH = re.compile(r"(.+)-(\d{12})-(\d{12})")


class Part(msgspec.Struct, frozen=True):
    """`table` is what its rows are sent as, `file` where they lie in the archive: those of `changes` are made of
    a part of `pages`."""

    table: str
    file: str

    @property
    def name(self) -> str:
        """The same for every sink and target, and for ever."""
        return f"{self.table}/{self._stem}"

    @property
    def _stem(self) -> str:
        return self.file.partition("/")[2].removesuffix(PARQUET)

    @property
    def order(self) -> tuple[str, str]:
        return self._stem, self.table


class Stretch(msgspec.Struct, frozen=True):
    """The bytes of a segment's journal that a part covers. What `skitter extract` writes has none."""

    table: str
    segment: str
    start: int
    end: int

    def overlaps(self, other: Stretch) -> bool:
        same = (self.table, self.segment) == (other.table, other.segment)
        return same and self.start < other.end and other.start < self.end


def stretch_of(name: str) -> Stretch | None:
    table, _, stem = name.partition("/")
    found = _STRETCH.fullmatch(stem)
    return Stretch(table, found[1], int(found[2]), int(found[3])) if found else None


def final_parts(source: Source, layout: Layout, tables: Sequence[str]) -> list[Part]:
    """In the order in which they were committed."""
    unfinal = {*_unfinal(source, layout)}
    found = []
    for table in tables:
        files = layout.parts.get(PAGES.name if table == CHANGES else table, ())
        found += [Part(table, file) for file in files if file.partition("/")[2] not in unfinal]
    return sorted(found, key=lambda part: part.order)


def _unfinal(source: Source, layout: Layout) -> Iterator[str]:
    """Names of parts that some table of their journal lacks yet."""
    growing = {stem_of(segment.name) for segment in layout.segments if segment.is_growing}
    if not growing:
        return
    by_name: dict[str, set[str]] = {}
    for table, files in layout.parts.items():
        for file in files:
            by_name.setdefault(file.partition("/")[2], set()).add(table)
    needed = {stem: _tables_of(source, stem) for stem in growing}
    for name, tables in by_name.items():
        found = _STRETCH.fullmatch(name.removesuffix(PARQUET))
        if found and found[1] in growing:
            wanted = needed[found[1]]
            if wanted is None or not wanted <= tables:
                yield name


def _tables_of(source: Source, stem: str) -> set[str] | None:
    """None when it cannot be told: the segment is being finished, and all of it is final then."""
    name = stem + ROWS + OPEN
    try:
        tables = read_tables(Path(source.location(name)), source.size(name)) if source.has(name) else None
    except (ArchiveFailed, DamagedHeading, OSError):
        return None
    return {table.name for table in tables} if tables else None


def lacking(parts: Iterable[Part], delivered: Names[str]) -> list[tuple[Part, tuple[str, ...]]]:
    """The parts that are not delivered, each with the delivered ones that it takes the place of."""
    missing = [part for part in parts if part.name not in delivered]
    if not missing:
        return []
    wanted = {stretch.segment for part in missing if (stretch := stretch_of(part.name))}
    known = [(name, stretch) for name in delivered if (stretch := stretch_of(name)) is not None]
    near = [(name, stretch) for name, stretch in known if stretch.segment in wanted]
    return [(part, _overlapped(part, near)) for part in missing]


def _overlapped(part: Part, delivered: Sequence[tuple[str, Stretch]]) -> tuple[str, ...]:
    mine = stretch_of(part.name)
    return tuple(name for name, stretch in delivered if mine is not None and mine.overlaps(stretch))
