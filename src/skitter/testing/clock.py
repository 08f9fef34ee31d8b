"""A clock that stands still until it is told to move: time in tests, and nowhere else."""

from __future__ import annotations

# 2026-01-01T00:00:00Z: far enough from zero that a forgotten time stands out.
_START = 1_767_225_600.0


class FakeClock:
    def __init__(self, start: float = _START) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds}")
        self._now += seconds

    def set_back(self, seconds: float) -> None:
        """What an operator does to a system's clock between two runs; never while one is going on."""
        self._now -= seconds
