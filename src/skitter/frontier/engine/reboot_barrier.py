"""Workers on other machines, when this machine was started anew: they know of leases that the store may not.

Beside leasing. A power loss takes the last second of commits along, and with it leases that are in use: nobody
gets a host until those must have ended. The death of a process loses no commit, and nothing waits for it here;
nor does anything where a log elsewhere keeps every commit.
"""

from __future__ import annotations

from pathlib import Path

from skitter.frontier.base import REMOTE
from skitter.frontier.rows import Note
from skitter.frontier.tables.transaction import Transaction

# New with every start of the kernel; empty where there is no such file, and then nothing is ever waited for.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class RebootBarrier:
    """`_until`: before then no lease is given. That this machine is known is stored only after it: a process that
    dies meanwhile has not waited for anybody. `_longest`: the longest lease that anybody elsewhere ever had;
    they may ask for what they like. 0 while there was nobody."""

    def __init__(self, usual_lease: float) -> None:
        self._usual = usual_lease
        self._until = float("-inf")
        self._boot = self._known = b""
        self._longest = 0.0

    def opened(self, tx: Transaction) -> None:
        self._boot = _boot_id()
        self._known = tx.cache.note(Note.BOOT) or b""
        self._longest = self._stored(tx.cache.note(Note.LONGEST_REMOTE_LEASE))
        if self._longest and self._known != self._boot and not tx.cache.keeps_every_commit:
            self._until = tx.now + self._longest

    def pass_if_over(self, tx: Transaction) -> bool:
        """Whether leases may be given. The first time that they may, this boot of the machine is noted."""
        if tx.now < self._until:
            return False
        if self._known != self._boot:
            self._known = self._boot
            tx.set_note(Note.BOOT, self._boot)
        return True

    def remember(self, tx: Transaction, worker: str, duration: float) -> None:
        """This worker may hold a host for so long. Written with the lease itself."""
        if duration > self._longest and worker.startswith(REMOTE):
            self._longest = max(duration, self._usual)
            tx.set_note(Note.LONGEST_REMOTE_LEASE, repr(self._longest).encode())

    def _stored(self, row: bytes | None) -> float:
        if row is None:
            return 0.0
        # what was written before leases had lengths of their own
        return self._usual if row == b"\1" else float(row)


def _boot_id() -> bytes:
    try:
        return BOOT_ID.read_bytes().strip()
    except OSError:
        return b""
