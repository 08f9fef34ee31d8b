"""An owner's heartbeat: a thread that says that it is alive, and hears whether it still is the owner.

From the claim on, also while a folder catches up. A database that is away is asked again: nobody else can claim
the log there meanwhile.
"""

from __future__ import annotations

import threading
from typing import Protocol

from skitter.errors import LogFailed, SkitterError
from skitter.frontier.log.base import Log

# Three heartbeats may be late before the owner may be replaced.
_BEATS_A_LAPSE = 3


class Beating(Protocol):
    """Who says that an owner is alive. `fault` is why the owner must stop."""

    @property
    def fault(self) -> SkitterError | None: ...

    def stop(self) -> None: ...


class Heartbeat:
    """`fault` is why the owner must stop; None while it need not."""

    def __init__(self, log: Log, lapse: float) -> None:
        self._log = log
        self._seconds = lapse / _BEATS_A_LAPSE
        self._stopped = threading.Event()
        self.fault: SkitterError | None = None
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._log.heartbeat()
            except LogFailed:
                continue
            except SkitterError as error:
                self.fault = error
                return

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
