from __future__ import annotations

import time

import pytest

from skitter.clock import SystemClock

ASLEEP = 3_600.0


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has a clock that stops in sleep")
def test_time_spent_asleep_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, read = SystemClock(), time.clock_gettime
    before = clock.now()
    slept = {time.CLOCK_BOOTTIME: ASLEEP}
    monkeypatch.setattr(time, "clock_gettime", lambda which: read(which) + slept.get(which, 0.0))
    assert ASLEEP <= clock.now() - before < ASLEEP + 60


def test_a_wall_clock_that_is_set_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, wall = SystemClock(), time.time
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: wall() - ASLEEP)
    assert 0 <= clock.now() - before < 60
