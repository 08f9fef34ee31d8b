"""Where an archive's bytes come from: the one interface between readers and storage.

The lowest part of the reading side. Names are relative to the archive, with `/` between folders. Nothing
above it opens a file of the archive by itself, except DuckDB, which is given `location`s.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from skitter.archive.warc.coding import OPEN, is_segment
from skitter.errors import ArchiveFailed


class Source(Protocol):
    def list(self) -> dict[str, int]:
        """Every file by name, with its size."""

    def has(self, name: str) -> bool: ...

    def size(self, name: str) -> int: ...

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """What there is of the range; shorter at the end of the file."""

    def location(self, name: str) -> str:
        """A local file with the same bytes, as DuckDB and Arrow are told of it."""

    def folders(self) -> tuple[str, ...]:
        """Where such files lie, and nothing but the archive's."""


class FolderSource:
    """A local folder. Files are opened for each read: a growing segment may be renamed at any moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def list(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for parent, _, names in os.walk(self.folder):
            for name in names:
                path = Path(parent, name)
                try:
                    found[path.relative_to(self.folder).as_posix()] = path.stat().st_size
                except FileNotFoundError:  # renamed since it was listed
                    continue
        return found

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def size(self, name: str) -> int:
        try:
            return (self.folder / name).stat().st_size
        except OSError as error:
            raise _unreadable(self.folder / name, error) from error

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        path = self.folder / name
        try:
            finished = name.removesuffix(OPEN)
            if name != finished and is_segment(finished) and not path.exists():
                path = self.folder / finished  # finished since it was listed, byte for byte
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(-1 if length is None else length)
        except OSError as error:
            raise _unreadable(path, error) from error

    def location(self, name: str) -> str:
        return str(self.folder / name)

    def folders(self) -> tuple[str, ...]:
        return (str(self.folder),)


def cache_home() -> Path:
    """Where copies and indexes of archives that lie elsewhere are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "skitter")


def _unreadable(path: Path, error: OSError) -> ArchiveFailed:
    return ArchiveFailed(
        f"cannot read {path} ({error.strerror}): put the file back or check its permissions; "
        f"skitter verify says what else is missing"
    )
