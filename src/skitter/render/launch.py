"""Becomes a browser without a network: `python -P -m skitter.render.launch ... -- BROWSER FLAG...`.

Between `browser.py`, which starts it, and the browser, which takes its place in the same process. Gives up
privileges, files, memory and sockets, tries whether the filter holds, and executes the browser with the two pipes
at the descriptors where it looks for them. A filter that does not hold ends it: it never starts a browser with a
network. Exit status 70 says so; what is missing is on standard error.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import resource
import signal
import socket
import sys
from collections.abc import Sequence

from skitter.confinement.landlock import forbid_files
from skitter.confinement.seccomp import forbid_network
from skitter.render.flags import environment
from skitter.render.layers import Layer

NO_FILTER = 70
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_NEWNET = 0x40000000
# Where a browser told to use pipes reads and writes.
_READS_AT, _WRITES_AT = 3, 4
_SPARE = 64
# V8 takes the limit for the memory of the machine, and crashes if that is not of whole pages of any size.
_WHOLE = 1 << 24
# What a browser's own files, fonts, devices and name spaces need.
_READ = ("/etc", "/sys", "/var/lib", "/var/cache/fontconfig", "/run")
_RUN = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/nix", "/snap")
_WRITTEN = ("/dev", "/proc")


def main(words: Sequence[str]) -> int:  # noqa: RET503
    arguments = _parse(words)
    layers = frozenset(Layer(name) for name in arguments.layers.split(",") if name)
    _place_pipes(arguments.read, arguments.write)
    os.nice(arguments.nice)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = arguments.memory // _WHOLE * _WHOLE
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if Layer.NAMESPACE in layers:
        libc.unshare(_CLONE_NEWNET)  # for who may; the filter is for all
    if arguments.user and os.geteuid() == 0:
        _become(arguments.user, arguments.profile)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # forgotten when the user changes: after that
    if os.getppid() != arguments.parent:
        return 0
    if Layer.FILES in layers:
        program = os.path.dirname(os.path.realpath(arguments.command[0]))
        forbid_files(reads=_READ, writes=(arguments.profile, *_WRITTEN), runs=(*_RUN, program))
    if Layer.FILTER in layers and not (forbid_network() and _is_cut_off()):
        print("the kernel offers no filter for sockets (seccomp)", file=sys.stderr)
        return NO_FILTER
    os.chdir(arguments.profile)
    os.execve(arguments.command[0], arguments.command, environment(arguments.profile))


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="skitter.render.launch")
    for name in ("read", "write", "memory", "parent", "nice"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("layers", "user", "profile"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("command", nargs="+")
    return parser.parse_args(words)


def _place_pipes(read: int, write: int) -> None:
    """By way of high numbers: each may lie where the other has to go."""
    os.dup2(read, _SPARE)
    os.dup2(write, _SPARE + 1)
    os.dup2(_SPARE, _READS_AT, inheritable=True)
    os.dup2(_SPARE + 1, _WRITES_AT, inheritable=True)
    os.closerange(_WRITES_AT + 1, _SPARE + 2)


def _become(user: str, profile: str) -> None:
    found = pwd.getpwnam(user)
    os.chown(profile, found.pw_uid, found.pw_gid)
    os.setgroups([])
    os.setgid(found.pw_gid)
    os.setuid(found.pw_uid)


def _is_cut_off() -> bool:
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_PACKET):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            try:
                socket.socket(family, kind).close()
            except OSError:
                continue
            return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
