"""Landlock: the kernel keeps this thread, and all it starts, away from files and TCP (linux/landlock.h).

Nothing to install and no privilege needed; Linux 5.13 and later, where it is switched on. Says whether it holds,
and raises nothing: who calls it decides whether to go on without.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_ASK_VERSION, _PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_EXECUTE, _IOCTL_DEVICE = 1 << 0, 1 << 15
# Remove, make a file of any kind, link, rename.
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_WRITING = _WRITE_FILE | _CHANGE_FOLDER | _REFER | _TRUNCATE
_READING = _READ_FILE | _READ_DIR
# What each version of the interface added, by the first version that has it.
_SINCE = (
    (1, _EXECUTE | _READING | _WRITE_FILE | _CHANGE_FOLDER),
    (2, _REFER),
    (3, _TRUNCATE),
    (5, _IOCTL_DEVICE),
)
_OF_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE
_BIND_AND_CONNECT, _NET_SINCE = 3, 4
_SIGNALS_AND_SOCKETS, _SCOPES_SINCE = 3, 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def forbid_files(*, reads: Sequence[str], writes: Sequence[str], runs: Sequence[str] = ()) -> bool:
    """Every file but those under `reads`, which can be read, under `runs`, which can be read and started, and
    under `writes`, which can be read and changed. Every TCP connection, and signals to processes that are not its
    own."""
    ours = version()
    known = _rights_in(ours)
    ruleset = _Ruleset(
        known,
        _BIND_AND_CONNECT if ours >= _NET_SINCE else 0,
        _SIGNALS_AND_SOCKETS if ours >= _SCOPES_SINCE else 0,
    )
    allowed = [(path, _READING) for path in reads] + [
        (path, (_READING | _WRITING) & known) for path in writes
    ]
    allowed += [(path, _READING | _EXECUTE) for path in runs]
    return _restrict(ruleset, allowed)


def forbid_writing(but: Sequence[str] = ()) -> bool:
    """Every change of a file or folder that is not open already, but for the null device and folders named."""
    rights = _WRITING & _rights_in(version())
    return _restrict(_Ruleset(rights, 0, 0), [(path, rights) for path in (os.devnull, *but)])


def _rights_in(version: int) -> int:
    return sum(rights for since, rights in _SINCE if since <= version)


def version() -> int:
    """Of the kernel's interface; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE_RULESET, None, 0, _ASK_VERSION))


def _restrict(ruleset: _Ruleset, allowed: Iterable[tuple[str, int]]) -> bool:
    if not ruleset.files:
        return False
    # A kernel takes a longer structure only if it is zero where it knows no field.
    handle = _call(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)
    if handle < 0:
        return False
    try:
        for path, rights in allowed:
            _allow(handle, path, rights)
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return _call(_RESTRICT_SELF, handle, 0) == 0
    finally:
        os.close(handle)


def _allow(handle: int, path: str, rights: int) -> None:
    """A path that is not there needs no leave."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = _Beneath(rights if os.path.isdir(path) else rights & _OF_FILES, opened)
        _call(_ADD_RULE, handle, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)


def _call(number: int, *arguments: object) -> int:
    result: int = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    return result
