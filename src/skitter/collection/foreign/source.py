"""WARC files of others as a `Source`: their bytes where they lie, and an index and tables of them in a cache.

So whatever reads an archive of ours reads theirs. The index and the tables of a file are made when it is first
opened, and again when it has changed. Never writes to where the files lie.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from skitter.archive.warc.coding import PLAIN, stem_of
from skitter.collection.foreign.files import WACZ, ForeignFile, list_files
from skitter.collection.foreign.tables import NotByRecord, write_index, write_plain
from skitter.collection.source import FolderSource, cache_home
from skitter.errors import ArchiveFailed

# Raised whenever an index or a row would be made otherwise than before.
_FORMAT = 1
_CACHED_AT_MOST = 10_000_000_000
_BLOCK = 1 << 20


class ForeignSource:
    """`files` by their names here. All that is made of a file lies in a folder of its own in the cache."""

    def __init__(self, place: Path) -> None:
        self.place = place.absolute()
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._cache = self._open_cache()
        self.files: dict[str, ForeignFile] = {}
        self._made: dict[str, Path] = {}
        self._folders: list[Path] = []
        for file in list_files(self.place):
            self._take(file)
        _make_room(self._cache, set(self._folders))

    @property
    def packages(self) -> list[Path]:
        places = [self.place] if self.place.is_file() else sorted(self.place.rglob(f"*{WACZ}"))
        return [path for path in places if path.name.endswith(WACZ)]

    def list(self) -> dict[str, int]:
        sizes = {name: file.size for name, file in self.files.items()}
        return sizes | {name: path.stat().st_size for name, path in self._made.items()}

    def has(self, name: str) -> bool:
        return name in self.files or name in self._made

    def size(self, name: str) -> int:
        return self.files[name].size if name in self.files else self._made[name].stat().st_size

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        try:
            file = self.files.get(name)
            if file is None:
                path, start, end = self._made[name], 0, self._made[name].stat().st_size
            else:
                path, start, end = file.path, file.start, file.size
            wanted = max(0, end - offset) if length is None else min(length, max(0, end - offset))
            with path.open("rb") as opened:
                opened.seek(start + offset)
                return opened.read(wanted)
        except (OSError, KeyError) as error:
            raise ArchiveFailed(f"cannot read {name} of {self.place} ({error}): put the file back") from error

    def location(self, name: str) -> str:
        return str(self._made[name])

    def folders(self) -> tuple[str, ...]:
        return tuple(map(str, self._folders))

    def _open_cache(self) -> Path:
        folder = cache_home() / "foreign"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            self._own = tempfile.TemporaryDirectory(prefix="skitter-")
            folder = Path(self._own.name)
        return folder

    def _folder(self, file: ForeignFile) -> Path:
        told = (_FORMAT, file.name, str(file.path), file.start, file.size, file.modified)
        return self._cache / sha256(repr(told).encode()).hexdigest()[:32]

    def _take(self, file: ForeignFile) -> None:
        folder = self._folder(file)
        if not folder.is_dir():
            self._make(file, folder)
        os.utime(folder)
        self._folders.append(folder)
        self.files.pop(file.name, None)
        # What could not be read from any place on lies here in another form.
        for other in (folder / f"{stem_of(file.name)}{PLAIN.suffix}", folder / file.name):
            if other.is_file():
                size = other.stat().st_size
                file = msgspec.structs.replace(file, name=other.name, path=other, start=0, size=size)
                break
        self.files[file.name] = file
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in (".cdxj", ".parquet"):
                self._made[path.relative_to(folder).as_posix()] = path

    def _make(self, file: ForeignFile, folder: Path) -> None:
        """Whole under its name, or not at all: another process may be making the same."""
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="making-") as making:
            made = Path(making, "made")
            made.mkdir()
            name, source = self._readable(file, made)
            try:
                write_index(source, name, made)
            except NotByRecord:
                plain = made / f"{stem_of(file.name)}{PLAIN.suffix}"
                write_plain(source, name, plain)
                for path in made.iterdir():
                    if path != plain:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                write_index(FolderSource(made), plain.name, made)
            with suppress(OSError):
                made.rename(folder)

    def _readable(self, file: ForeignFile, made: Path) -> tuple[str, FolderSource | ForeignSource]:
        """Where the file can be read from any offset on: a package that compressed it is unpacked."""
        if not file.packed:
            self.files[file.name] = file
            return file.name, self
        with (
            zipfile.ZipFile(file.path) as package,
            package.open(file.member) as packed,
            (made / file.name).open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked, _BLOCK)
        return file.name, FolderSource(made)


def _make_room(cache: Path, used: set[Path]) -> None:
    """The least recently opened go first."""
    folders = [path for path in cache.iterdir() if path.is_dir() and not path.is_symlink()]
    sizes = {path: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) for path in folders}
    total = sum(sizes.values())
    for path in sorted(folders, key=lambda folder: folder.stat().st_mtime):
        if total <= _CACHED_AT_MOST:
            return
        if path not in used:
            total -= sizes[path]
            shutil.rmtree(path, ignore_errors=True)
