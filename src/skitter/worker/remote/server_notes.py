"""What a worker says of its server: that it joined, lost and found it, and from time to time that it still waits.

Beside `remote_work_source.py`, which notices. Lines of the log for machines, and a sentence for whoever looks on.
Never raises.
"""

from __future__ import annotations

from collections.abc import Callable

from skitter.clock import Clock
from skitter.log import Log
from skitter.telemetry import Event

# Seconds between two reminders, and what they grow to: a server may be away for a night.
_FIRST_REMINDER, _SELDOM = 5.0, 60.0
_OFTEN_FOR = 60.0


class ServerNotes:
    """`_silent_since` is set from the start, or the first request that nobody answered, to the next answer."""

    def __init__(self, server: str, worker: str, log: Log, note: Callable[[str], None], clock: Clock) -> None:
        self._server = server
        self._worker = worker
        self._log = log
        self._note = note
        self._clock = clock
        self._is_lost = False
        self._silent_since: float | None = clock.now()
        self._remind_at = clock.now() + _FIRST_REMINDER

    @property
    def silent_for(self) -> float:
        """Seconds in which nobody answered; 0 while somebody does."""
        return 0.0 if self._silent_since is None else self._clock.now() - self._silent_since

    def remind(self) -> None:
        """That it still waits, if it does: every few seconds for a minute, then every minute."""
        now = self._clock.now()
        if self._silent_since is None or now < self._remind_at:
            return
        silent = now - self._silent_since
        self._remind_at = now + (_FIRST_REMINDER if silent < _OFTEN_FOR else _SELDOM)
        self._note(f"still no answer of {self._server} after {silent:,.0f} s; asking on")

    def joined(self) -> None:
        self._is_lost, self._silent_since = False, None
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
        if self._silent_since is None:
            self._silent_since = self._clock.now()
            self._remind_at = self._silent_since + _FIRST_REMINDER
        self._note(f"{self._server} does not answer ({why}); asking again, and nobody else meanwhile")
        self._log.write(Event.SERVER_AWAY, worker=self._worker, server=self._server, why=why)
        self._log.flush()

    def found(self, undelivered: int) -> None:
        self._is_lost, self._silent_since = False, None
        self._note(f"{self._server} answers again; {undelivered:,} answers wait to be delivered")
        self._log.write(Event.SERVER_BACK, worker=self._worker, server=self._server, undelivered=undelivered)
        self._log.flush()

    def dropped(self, deliveries: int, why: str) -> None:
        self._note(f"{deliveries:,} answers are lost and will be fetched again: {why}")
        self._log.write(Event.DELIVERIES_DROPPED, worker=self._worker, deliveries=deliveries, why=why)
