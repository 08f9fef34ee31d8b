"""The budget of revisits: how many may go to their queues now.

Earned by time, spent by promotion. What nobody needed when the budget was full is spare: pages are then visited
before their date, and the price of a visit falls. Lost with the process; never stored.
"""

from __future__ import annotations

from skitter.schedule.revisit import DAY

# Where the operator names no number: a tenth of the pages a day.
_PAGES_A_DAY = 0.1
# How many seconds of budget may be saved up, and may wait in queues for their hosts.
_SAVED, _WAITING = 60.0, 60.0
_LEAST_WAITING = 200


def visits_a_second(per_second: float, watched: int) -> float:
    """What the operator gives (`revisit.per_second`), or what follows from so many watched pages."""
    return per_second or watched * _PAGES_A_DAY / DAY


class RevisitBudget:
    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._earned_at: float | None = None
        self._left = self._spare = 0.0
        self._most = 1.0
        self.most_waiting = _LEAST_WAITING
        """How many revisits may wait in queues, over all hosts: more say that workers do not keep up."""

    def earn(self, now: float, watched: int) -> None:
        rate = visits_a_second(self._per_second, watched)
        most = self._most = max(1.0, rate * _SAVED)
        # a crawl begins with what may be saved up
        since = now - most / rate if self._earned_at is None and rate else self._earned_at or now
        self._earned_at = now
        left = self._left + max(0.0, now - since) * rate
        self._left = min(left, most)
        self._spare = min(self._spare + left - self._left, most)
        self.most_waiting = max(_LEAST_WAITING, int(rate * _WAITING))

    def has_one(self) -> bool:
        return self._left + self._spare >= 1.0

    def has_spare(self) -> bool:
        return self._spare >= 1.0

    def spend(self, is_early: bool) -> None:
        """Below nothing, where a visit had to be on time: later ones wait for that."""
        if self._spare >= 1.0 and (is_early or self._left < 1.0):
            self._spare -= 1.0
        else:
            self._left = max(self._left - 1.0, -self._most)
