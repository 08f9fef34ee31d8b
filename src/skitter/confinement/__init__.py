"""What a process gives up before it meets bytes of strangers: files, sockets, other programs, memory.

Called by the children that read PDFs and write tables, first thing in their lives, and by `skitter query`.
Nothing given up can be had back. What the kernel does not offer is left out and named: limits and the empty
environment hold everywhere, Landlock and seccomp where Linux has them.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from skitter.confinement.landlock import forbid_files, forbid_writing
from skitter.confinement.seccomp import forbid_calls

__all__ = ["child_environment", "confine", "run_without_writing"]

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
# How Python finds its own modules, how libraries are found, and what only tests set.
_KEPT = ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "SKITTER_KERNELS", "SKITTER_FAULT_POINT")
_MOST_FILES = 64


def child_environment() -> dict[str, str]:
    """No secret of the operator's: tokens, keys of object stores, proxies."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


def confine(
    parent: int,
    *,
    memory: int = 0,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
) -> tuple[str, ...]:
    """Lives no longer than `parent`, has `memory` bytes of address space (0: no limit) and few descriptors,
    leaves no core file, gains no privilege, opens no socket, starts no program, and reaches no file but Python's
    own and those under the folders named. Returns what this kernel has not: `landlock`, `seccomp`."""
    _end_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_MOST_FILES, _MOST_FILES))
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if sys.platform != "linux":
        return ("landlock", "seccomp")
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    missing = () if forbid_files(reads=(*_of_python(), *reads), writes=writes) else ("landlock",)
    return missing if forbid_calls() else (*missing, "seccomp")


def _end_with(parent: int) -> None:
    """Killed as soon as the parent is; a pipe that ends would be seen only between two tasks."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        sys.exit(0)


def _of_python() -> list[str]:
    """Where modules and the libraries under them are loaded from, now and later."""
    folders = {sys.prefix, sys.base_prefix, "/usr/lib", "/lib", "/lib64", *sys.path}
    return [folder for folder in folders if folder and os.path.exists(folder)]


def run_without_writing(work: Callable[[], None], *, but: Sequence[str] = ()) -> None:
    """In a thread that can change no file `but` those under the folders named, and neither can any thread that it
    starts; files that are open stay so. Raises what `work` raised. The thread is left behind when the caller is
    interrupted."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            forbid_writing(but)
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True, name="read-only")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
