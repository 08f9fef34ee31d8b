"""Where an export is written: whole under its name, or not there at all.

Made under a temporary name beside its place, so that renaming is one step and on one disk. An export that
fails takes what it had written with it; what was there before is gone only once the new one is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from skitter.errors import DiskFull, SkitterError, UsageError

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@contextmanager
def whole(path: Path, *, force: bool, folder: bool) -> Iterator[Path]:
    """A path to write to (a folder that exists, or a file that does not), renamed to `path` at the end."""
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} exists: name another place, or replace it with --force")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path.absolute().parent} does not exist: make the folder first")
    temporary = path.absolute().with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        _remove(temporary)
        if folder:
            temporary.mkdir()
        yield temporary
        _put_in_place(temporary, path)
    except OSError as error:
        raise _fault(path, error) from error
    finally:
        with suppress(OSError):
            _remove(temporary)


def _put_in_place(temporary: Path, path: Path) -> None:
    if temporary.is_file():
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
    if not os.path.lexists(path):
        os.rename(temporary, path)
        return
    # A folder cannot be renamed over another that holds something.
    aside = temporary.with_suffix(".replaced")
    os.rename(path, aside)
    try:
        os.rename(temporary, path)
    except OSError:
        os.rename(aside, path)
        raise
    _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _fault(path: Path, error: OSError) -> SkitterError:
    if error.errno in _NO_ROOM:
        return DiskFull(
            f"no room left to write {path} ({error.strerror}): free some; nothing was left behind"
        )
    return SkitterError(f"cannot write {path} ({error.strerror or error}): check its owner and permissions")
