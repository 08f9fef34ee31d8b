"""Workers on other machines, when this machine was started anew: they know of leases that the store may not.

Beside leasing. A power loss takes the last second of commits along, and with it leases that are in use: nobody
gets a host until those must have ended. The death of a process loses no commit, and nothing waits for it here.
"""

from __future__ import annotations

from pathlib import Path

from skitter.frontier.base import REMOTE
from skitter.frontier.rocks.book import Turn

# New with every start of the kernel; empty where there is no such file, and then nothing is ever waited for.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT, _REMOTE = b"boot", b"remote"


class Elsewhere:
    """`_until`: before then no lease is given. That this machine is known is stored only after it: a process that
    dies meanwhile has not waited for anybody."""

    def __init__(self, longest_lease: float) -> None:
        self._longest = longest_lease
        self._until = float("-inf")
        self._boot = self._known = b""
        self._has_any = False

    def opened(self, turn: Turn) -> None:
        store = turn.book.store
        self._boot = _boot_id()
        self._known = store.get("meta", _BOOT) or b""
        self._has_any = store.get("meta", _REMOTE) is not None
        if self._has_any and self._known != self._boot:
            self._until = turn.now + self._longest

    def has_ended(self, turn: Turn, worker: str) -> bool:
        """Whether a lease may be given to this worker; what of it must be known later is written down."""
        if turn.now < self._until:
            return False
        if self._known != self._boot:
            self._known = self._boot
            turn.put("meta", _BOOT, self._boot)
        if not self._has_any and worker.startswith(REMOTE):
            self._has_any = True
            turn.put("meta", _REMOTE, b"\1")
        return True


def _boot_id() -> bytes:
    try:
        return BOOT_ID.read_bytes().strip()
    except OSError:
        return b""
