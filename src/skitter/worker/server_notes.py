"""What a worker says of its server: that it joined, lost and found it, once each time.

Beside `remote_work_source.py`, which notices. Lines of the log for machines, and a sentence for whoever looks on.
Never raises.
"""

from __future__ import annotations

from collections.abc import Callable

from skitter.log import Log
from skitter.telemetry import Event


class ServerNotes:
    """`_is_lost` from the first request that nobody answered to the next that somebody did."""

    def __init__(self, server: str, worker: str, log: Log, note: Callable[[str], None]) -> None:
        self._server = server
        self._worker = worker
        self._log = log
        self._note = note
        self._is_lost = False

    def joined(self) -> None:
        self._is_lost = False
        self._note(f"joined {self._server} as {self._worker}")
        self._log.write(Event.SERVER_JOINED, worker=self._worker, server=self._server)
        self._log.flush()

    def warn(self, what: str) -> None:
        self._note(what)
        self._log.write(Event.SERVER_DOUBTED, worker=self._worker, server=self._server, why=what)
        self._log.flush()

    def lost(self, why: str) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._note(f"{self._server} does not answer ({why}); asking again, and nobody else meanwhile")
        self._log.write(Event.SERVER_AWAY, worker=self._worker, server=self._server, why=why)
        self._log.flush()

    def found(self, undelivered: int) -> None:
        self._is_lost = False
        self._note(f"{self._server} answers again; {undelivered:,} answers wait to be delivered")
        self._log.write(Event.SERVER_BACK, worker=self._worker, server=self._server, undelivered=undelivered)
        self._log.flush()

    def dropped(self, deliveries: int, why: str) -> None:
        self._note(f"{deliveries:,} answers are lost and will be fetched again: {why}")
        self._log.write(Event.DELIVERIES_DROPPED, worker=self._worker, deliveries=deliveries, why=why)
