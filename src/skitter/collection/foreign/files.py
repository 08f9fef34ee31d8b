"""Which WARC files there are at a place: a file, a WACZ package, or a folder of either, however deep.

The lowest part of reading what others made. Looks at names and at the list of contents of a package; reads no
record. Never writes.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from skitter.archive.segments import INDEX
from skitter.archive.warc.coding import READABLE_SUFFIXES, coding_of, stem_of
from skitter.errors import NotACrawl, UsageError

WACZ = ".wacz"
_LOCAL_HEADER = 30


class ForeignFile(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of one WARC file: `size` from `start` of `path`. `name` is unlike that of any other file of the
    place. `member` is its name in the package `path`, if it lies in one; `packed` when it is compressed there."""

    name: str
    path: Path
    start: int
    size: int
    modified: int
    member: str = ""
    packed: bool = False


def is_foreign(place: Path) -> bool:
    """Whether a place holds WARC files and is no folder that skitter crawled into."""
    if place.is_file():
        return place.name.endswith((*READABLE_SUFFIXES, WACZ))
    if not place.is_dir() or (place / "crawl.toml").is_file():
        return False
    archive = place / "archive"
    if archive.is_dir() and (_has_own_index(archive) or not any(_names_in(archive))):
        return False
    return any(_names_in(place))


def _has_own_index(archive: Path) -> bool:
    names = os.listdir(archive)
    return any(stem_of(name) + INDEX in names for name in names if name.endswith(READABLE_SUFFIXES))


def list_files(place: Path) -> list[ForeignFile]:
    """In the order of their paths. Raises where a package cannot be read."""
    paths = [place] if place.is_file() else list(_names_in(place))
    found: list[ForeignFile] = []
    stems: set[str] = set()
    for path in paths:
        for file in _in_package(path) if path.name.endswith(WACZ) else (_as_it_is(path),):
            found.append(_with_own_name(file, stems))
    if not found:
        raise NotACrawl(
            f"{place} holds no WARC file: name a crawl's folder, a WARC or WACZ file, or a folder of them"
        )
    return found


def _names_in(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith((*READABLE_SUFFIXES, WACZ)):
                yield Path(parent, name)


def _as_it_is(path: Path) -> ForeignFile:
    stat = path.stat()
    return ForeignFile(name=path.name, path=path, start=0, size=stat.st_size, modified=stat.st_mtime_ns)


def _in_package(path: Path) -> Iterator[ForeignFile]:
    modified = path.stat().st_mtime_ns
    try:
        with zipfile.ZipFile(path) as package, path.open("rb") as raw:
            for entry in package.infolist():
                if entry.filename.startswith("archive/") and entry.filename.endswith(READABLE_SUFFIXES):
                    packed = entry.compress_type != zipfile.ZIP_STORED
                    yield ForeignFile(
                        name=entry.filename.rpartition("/")[2],
                        path=path,
                        start=0 if packed else _begins(raw.fileno(), entry.header_offset),
                        size=entry.file_size,
                        modified=modified,
                        member=entry.filename,
                        packed=packed,
                    )
    except (zipfile.BadZipFile, OSError) as error:
        raise UsageError(
            f"{path} is no WACZ file that can be read ({error}): put back a whole copy of it"
        ) from error


def _begins(package: int, header: int) -> int:
    """Where a stored member's bytes begin (APPNOTE 4.3.7): behind its header, its name and an extra field."""
    local = os.pread(package, _LOCAL_HEADER, header)
    name, extra = int.from_bytes(local[26:28], "little"), int.from_bytes(local[28:30], "little")
    return header + _LOCAL_HEADER + name + extra


def _with_own_name(file: ForeignFile, stems: set[str]) -> ForeignFile:
    suffix, stem, number = coding_of(file.name).suffix, stem_of(file.name), 1
    name = file.name
    while stem_of(name) in stems:
        number += 1
        name = f"{stem}-{number}{suffix}"
    stems.add(stem_of(name))
    return msgspec.structs.replace(file, name=name)
