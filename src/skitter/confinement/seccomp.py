"""seccomp: the kernel refuses this process, and all it starts, calls that a reader of bytes never makes.

`forbid_calls` is for readers: no socket, no other program, no look into other processes, no new name spaces or
mounts; each such call fails with EPERM. `forbid_network` is for a browser, which needs all of that but one thing:
a socket that leads anywhere. For x86-64 and ARM64; elsewhere, and where the kernel has no filters, both say that
they do not hold.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import sys

_PR_SET_SECCOMP, _FILTER_MODE, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
# Instructions of the classic Berkeley packet filter: load a word, jump if equal or greater, return.
_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
# Calls by the numbers of the 32-bit-pointer variant of x86-64.
_X32 = 0x40000000

# execve execveat socket connect ptrace process_vm_readv process_vm_writev bpf perf_event_open io_uring_setup
# mount unshare setns pidfd_getfd userfaultfd keyctl
_FORBIDDEN = {
    "x86_64": (0xC000003E, (59, 322, 41, 42, 101, 310, 311, 321, 298, 425, 165, 272, 308, 438, 323, 250)),
    "aarch64": (0xC00000B7, (221, 281, 198, 203, 117, 270, 271, 280, 241, 425, 40, 97, 268, 438, 282, 219)),
}
# socket, then calls that make sockets, or take those of others, past it: io_uring_setup io_uring_enter
# io_uring_register pidfd_getfd
_NETWORK = {
    "x86_64": (0xC000003E, 41, (425, 426, 427, 438)),
    "aarch64": (0xC00000B7, 198, (425, 426, 427, 438)),
}
_AF_UNIX = 1


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid_calls() -> bool:
    known = _FORBIDDEN.get(platform.machine())
    return known is not None and _install(_filter(*known))


def forbid_network() -> bool:
    """Every socket but those between processes of one machine: by a list of what is allowed, for a kernel knows
    forty families, and some of them (vsock) lead out of a virtual machine. They fail with EACCES; who calls by
    the numbers of another architecture is killed."""
    known = _NETWORK.get(platform.machine())
    return known is not None and _install(_network_filter(*known))


def _install(program: bytes) -> bool:
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    packed = _Program(len(program) // 8, program)
    return bool(libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(packed)) == 0)


def _filter(architecture: int, forbidden: tuple[int, ...]) -> bytes:
    """Another architecture's numbers would mean other calls: all of those fail."""
    checks = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _FAIL | errno.EPERM),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    left = len(forbidden)
    if architecture == _FORBIDDEN["x86_64"][0]:
        checks.append(_instruction(_JUMP_GREATER, _X32, left + 1, 0))
    checks += [_instruction(_JUMP_EQUAL, number, left - place, 0) for place, number in enumerate(forbidden)]
    return b"".join((*checks, _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _FAIL | errno.EPERM)))


def _network_filter(architecture: int, socket: int, forbidden: tuple[int, ...]) -> bytes:
    """Its last four instructions are, from the end: kill, fail, allow, and the check of the family."""
    checks = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    # From the instruction after a check of a number: the other checks, then socket, load, family, allow, fail.
    left = len(forbidden)
    if architecture == _NETWORK["x86_64"][0]:
        checks.append(_instruction(_JUMP_GREATER, _X32, left + 5, 0))
    checks += [_instruction(_JUMP_EQUAL, number, left - at + 3, 0) for at, number in enumerate(forbidden)]
    checks += [
        _instruction(_JUMP_EQUAL, socket, 0, 2),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_JUMP_EQUAL, _AF_UNIX, 0, 1),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _FAIL | errno.EACCES),
        _instruction(_RETURN, _KILL),
    ]
    return b"".join(checks)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return code.to_bytes(2, "little") + bytes((if_true, if_false)) + value.to_bytes(4, "little")
