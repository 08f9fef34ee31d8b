"""The way of finished segments from the crawl's folder, their spool, to the object store.

Behind the archive, beside the path of a URL. A segment is uploaded and compared, then the frontier commits that
it is stored, then the local files go: whoever dies in between leaves work that can be done again. Never removes
a file that the frontier does not know to be stored, and never gives up: a store that is away is asked again.

    idle       nothing is finished that is not stored
    uploading  one segment is on its way
    in trouble the store refuses or does not answer; `trouble` says how, and it is tried again
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skitter.archive.recovery import lost
from skitter.archive.segments import SegmentFiles, finished_in, growing_in
from skitter.archive.store import Archive
from skitter.archive.tables.parts import table_folders
from skitter.archive.warc.coding import stem_of
from skitter.errors import ArchiveFailed, ObjectsFailed
from skitter.faultpoints import Point, reach
from skitter.frontier.base import Frontier
from skitter.model import SegmentMark
from skitter.settings import ArchiveSettings

if TYPE_CHECKING:
    from skitter.archive.objects import Objects

_LOOK = 0.5
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0


class Uploader:
    def __init__(
        self, objects: Objects, archive: Archive, frontier: Frontier, settings: ArchiveSettings
    ) -> None:
        self._objects = objects
        self._archive = archive
        self._frontier = frontier
        self._settings = settings
        self._stored: set[str] = set()
        self._last = False
        self._woken = asyncio.Event()
        self.trouble = ""
        self.uploaded = 0

    async def run(self) -> None:
        """Until `finish` was called and nothing is left."""
        # What recovery finished was finished on commits that were read, not synced.
        await self._frontier.sync()
        for mark in await self._frontier.marks():
            if mark.stored:
                self._stored.add(mark.segment)
                self._remove(mark.segment)
        while True:
            last = self._last
            for segment in self.waiting():
                await self._upload_in_the_end(segment)
            if last:
                return
            await self._pause(_LOOK)

    def finish(self) -> None:
        """The archive is closed: what is there now is all."""
        self._last = True
        self._woken.set()

    def waiting(self) -> list[str]:
        """Finished segments that are not stored, oldest first."""
        growing = self._archive.growing
        names = finished_in(self._archive.folder)
        return sorted(name for name in names if name not in growing and name not in self._stored)

    def spooled(self) -> int:
        """Bytes in the crawl's folder that are not stored yet, journals included."""
        stored = {stem_of(name) for name in self._stored}
        return sum(size for name, size in _files(self._archive.folder) if not _is_of(name, stored))

    def is_full(self) -> bool:
        return self.spooled() >= self._settings.spool

    # -- one segment

    async def _upload_in_the_end(self, segment: str) -> None:
        wait = _FIRST_WAIT
        while True:
            try:
                await self._upload(segment)
            except ObjectsFailed as error:
                self.trouble = str(error)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
            else:
                self.trouble = ""
                return

    async def _upload(self, segment: str) -> None:
        files = SegmentFiles(self._archive.folder, segment)
        for path in files.shown():
            # The WARC file comes last: where it is, the rest is.
            try:
                await self._objects.put(_name(files.folder, path), path)
            except FileNotFoundError:
                raise ArchiveFailed(
                    f"{path} is gone and was not stored yet: run the same command again, which fetches it anew"
                ) from None
            reach(Point.BETWEEN_OBJECTS)
        reach(Point.BEFORE_STORED)
        await self._frontier.stored(segment)
        # A commit that a power loss takes back must not have cost the files.
        await self._frontier.sync()
        self._stored.add(segment)
        self._archive.stored(segment)
        self.uploaded += 1
        reach(Point.BEFORE_REMOVAL)
        self._remove(segment)

    def _remove(self, segment: str) -> None:
        if not self._settings.keep_local:
            for path in SegmentFiles(self._archive.folder, segment).shown():
                path.unlink(missing_ok=True)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return


async def give_back_lost(folder: Path, objects: Objects, frontier: Frontier) -> tuple[int, int]:
    """Segments that are gone although committed, before the archive is opened: how many, and how many fetches
    they held. One that is whole in the store counts as stored; of the others nothing is left there either."""
    segments = fetches = 0
    for mark in lost(folder, await frontier.marks()):
        if await objects.size_of(mark.segment) == mark.length:
            await frontier.stored(mark.segment)
        elif mark.held:
            # First what is left of it, here and there: half a segment would be found by readers.
            await _discard(objects, SegmentFiles(folder, mark.segment))
            segments += 1
            fetches += await frontier.lost(mark.segment)
    return segments, fetches


def discard_unknown(folder: Path, marks: Sequence[SegmentMark]) -> None:
    """Segments in the folder that do not count: another machine has gone on with the crawl meanwhile, and what
    was only here was fetched again. Before the archive is opened."""
    known = {mark.segment for mark in marks}
    if not folder.is_dir():
        return
    for name in {*finished_in(folder), *growing_in(folder)} - known:
        files = SegmentFiles(folder, name)
        files.discard()
        files.finished.unlink(missing_ok=True)


async def sweep_lost(objects: Objects, frontier: Frontier) -> None:
    """Take away what was uploaded of segments that were given back: a machine that was taken for dead may have
    woken up in the middle of an upload."""
    lost = {stem_of(segment) for segment in await frontier.lost_segments()}
    if not lost:
        return
    there = await asyncio.to_thread(objects.list)
    names = [name for name in there if _is_of(os.path.basename(name), lost)]
    await objects.take_away(names)


async def _discard(objects: Objects, files: SegmentFiles) -> None:
    there = await asyncio.to_thread(objects.list)
    await objects.take_away([name for name in there if _is_of(os.path.basename(name), {files.stem})])
    files.discard()
    files.finished.unlink(missing_ok=True)


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _is_of(name: str, stems: set[str]) -> bool:
    """Files of a segment are called after it: `STEM.warc.gz`, `STEM.cdxj`, `STEM-START-END.parquet`."""
    return name.partition(".")[0] in stems or name.rsplit("-", 2)[0] in stems


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    for place in (folder, *table_folders(folder)):
        if not place.is_dir():
            continue
        with os.scandir(place) as entries:
            for entry in entries:
                try:
                    if entry.is_file():
                        yield entry.name, entry.stat().st_size
                except FileNotFoundError:  # renamed since it was listed
                    continue
