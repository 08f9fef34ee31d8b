"""The folder of a crawl: what lies where, whether it is one, and who works in it.

crawl.toml   the settings in force, written when the crawl is made and when they change
crawl.lock   held by the process that works here; names it
control.sock answered by that process, for commands that steer it
frontier/    the frontier's store
archive/     WARC segments, their indexes, and the tables pages, links, text
format       the number of the folder's format, and which version wrote it first
history/     the main figures of the last 30 days, while it was served
skitter.log  what happened, one JSON object a line
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skitter import __version__
from skitter.errors import FolderInUse, NotACrawl, SkitterError, StoreFailed

# Raised with a change that this folder's earlier readers could not know. 1 was 0.1, which noted none.
FORMAT = 2
# Bytes of a unix socket's path: Linux takes 107, others 103.
_LONGEST_SOCKET = 100


class CrawlFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings_file = path / "crawl.toml"
        self.frontier = path / "frontier"
        self.archive = path / "archive"
        self.log = path / "skitter.log"
        self._format_file = path / "format"
        self.control_socket = path / "control.sock"
        self._lock_file = path / "crawl.lock"
        self._lock = -1

    @classmethod
    def existing(cls, path: Path) -> CrawlFolder:
        """A folder that holds a crawl, to look into or to go on with."""
        folder = cls(path)
        if not os.path.exists(path):  # unlike Path.exists, False also for a name that no file can have
            raise NotACrawl(f"{path} does not exist: start a crawl with skitter crawl SEED --into {path}")
        if folder.is_new:
            raise NotACrawl(f"{path} is not a crawl (it has no crawl.toml): name the folder given to --into")
        folder.check_format()
        return folder

    @classmethod
    def for_crawling(cls, path: Path) -> CrawlFolder:
        """A folder that holds a crawl, or can: missing, or empty."""
        folder = cls(path)
        if not folder.is_new:
            folder.check_format()
            return folder
        if os.path.exists(path) and not path.is_dir():
            raise NotACrawl(f"{path} is a file: name a folder for the crawl")
        try:
            # the lock is the first thing a crawl makes: alone, it is of one that was stopped there and then
            if path.exists() and any(entry.name != "crawl.lock" for entry in path.iterdir()):
                raise NotACrawl(f"{path} is not empty and holds no crawl: name a new or an empty folder")
        except OSError as error:
            raise unwritable(path, error) from error
        return folder

    @property
    def is_new(self) -> bool:
        return not os.path.isfile(self.settings_file)

    @property
    def format(self) -> int | None:
        """None where nobody noted it."""
        try:
            return int(self._format_file.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def check_format(self) -> None:
        found = self.format
        if found is not None and found > FORMAT:
            raise StoreFailed(
                f"{self.path} has format {found}, of a later version of skitter; this one knows {FORMAT}: use "
                "that version; its WARC files can be read by any (skitter query DIR/archive)"
            )

    def note_format(self) -> None:
        """Of a crawl that this version can go on with."""
        if self.format is None:
            try:
                self._format_file.write_text(f"{FORMAT} skitter {__version__}\n")
            except OSError as error:
                raise unwritable(self.path, error) from error

    def lock(self) -> None:
        """Until `unlock` or the end of the process, no other process may crawl here. Makes the folder, for its
        owner alone: what was crawled, cookies and the key of leases are nobody else's."""
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            self._lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise unwritable(self.path, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._lock)
            self._lock = -1
            raise FolderInUse(
                f"{self.path} is in use by process {holder}: stop it first, use another folder, or steer it as "
                "it runs (skitter seeds, settings --set, policy, pause)",
                holder,
            ) from None
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def holder(self) -> str:
        """The id of the process that works here; empty when none does. Only looks: to try the lock would keep a
        crawl from starting at this very moment."""
        try:
            inode = os.stat(self._lock_file).st_ino
            holder = self._lock_file.read_text().strip()
        except OSError:
            return ""
        try:
            locks = Path("/proc/locks").read_text()  # proc(5): ends with MAJOR:MINOR:INODE, first, last byte
        except OSError:
            return holder if _is_alive(holder) else ""
        held = any(line.split()[-3].endswith(f":{inode}") for line in locks.splitlines() if "FLOCK" in line)
        return holder if held else ""

    def unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.lock()
        try:
            yield
        finally:
            self.unlock()

    def write_settings(self, text: str) -> None:
        """Whole or not at all: a crawl without readable settings could not be gone on with."""
        if self.settings_file.is_file() and self.settings_file.read_text() == text:
            return
        temporary = self.settings_file.with_suffix(".toml.new")
        try:
            with temporary.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.settings_file)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise unwritable(self.path, error) from error


@contextmanager
def socket_name(path: Path) -> Iterator[str]:
    """A name for a unix socket by which it can be bound or reached while the block lasts: the kernel takes 107
    bytes, and a path may be longer."""
    whole = path.absolute()
    if len(bytes(whole)) <= _LONGEST_SOCKET:
        yield str(whole)
        return
    if hasattr(os, "O_PATH"):
        folder = os.open(whole.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{folder}/{whole.name}"
        finally:
            os.close(folder)
        return
    # Only Linux has that. Elsewhere a link, in a folder that nobody else may enter.
    with tempfile.TemporaryDirectory(prefix="skitter-") as short:
        os.symlink(whole.parent, Path(short, "to"))
        yield f"{short}/to/{whole.name}"


def _is_alive(process: str) -> bool:
    """All that can be known of a lock's holder without /proc."""
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def unwritable(path: Path, error: OSError) -> SkitterError:
    return StoreFailed(
        f"cannot write to {path} ({error.strerror}): check its owner, permissions and free space"
    )
