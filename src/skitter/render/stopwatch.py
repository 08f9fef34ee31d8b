"""Counts the seconds of a page, without those in which it waits for answers: politeness is not its fault."""

from __future__ import annotations

from skitter.clock import Clock


class Stopwatch:
    """Runs from the start; `pause` and `go_on` may be called twice in a row."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.now()
        self._ran = self._rested = 0.0
        self.is_running = True

    def pause(self) -> None:
        if self.is_running:
            now = self._clock.now()
            self._ran += now - self._since
            self._since, self.is_running = now, False

    def go_on(self) -> None:
        if not self.is_running:
            now = self._clock.now()
            self._rested += now - self._since
            self._since, self.is_running = now, True

    @property
    def ran(self) -> float:
        return self._ran + (self._clock.now() - self._since if self.is_running else 0.0)

    @property
    def rested(self) -> float:
        return self._rested + (0.0 if self.is_running else self._clock.now() - self._since)
