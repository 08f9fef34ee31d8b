"""What a worker says of how hard it works."""

from __future__ import annotations

import pytest

from skitter.committer.cpu_share import CpuShare
from skitter.testing.clock import FakeClock


class Thread:
    """Works for so much of the time that passes."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.spent = 0.0
        self.cpu_share = CpuShare(self.clock, lambda: self.spent)

    def works(self, seconds: float, share: float) -> float:
        self.clock.advance(seconds)
        self.spent += seconds * share
        return self.cpu_share.measure()


def test_it_is_the_share_of_the_last_span_not_of_all_time() -> None:
    thread = Thread()
    for _ in range(10):
        assert thread.works(1.0, 0.25) == pytest.approx(0.25)
    assert thread.works(1.0, 0.75) == pytest.approx(0.75)


def test_a_span_in_which_it_was_stopped_says_nothing() -> None:
    """By half a second of work and two of standing still, it would be taken for idle, and given others' hosts."""
    thread = Thread()
    thread.works(0.6, 0.9)
    thread.works(0.4, 0.9)
    assert thread.works(2.0, 0.0) == pytest.approx(0.9)
    assert thread.works(0.5, 0.8) == pytest.approx(0.8)


def test_a_clock_that_is_set_back_begins_a_new_span() -> None:
    thread = Thread()
    thread.works(0.6, 0.9)
    thread.clock.set_back(100.0)
    assert thread.cpu_share.measure() == pytest.approx(0.9)
    assert thread.works(0.5, 0.4) == pytest.approx(0.4)


def test_a_moment_proves_nothing() -> None:
    thread = Thread()
    thread.works(1.0, 0.5)
    assert thread.works(0.1, 1.0) == pytest.approx(0.5)
    assert thread.works(0.4, 1.0) == pytest.approx(1.0)


def test_before_anything_was_seen_nobody_is_busy() -> None:
    assert Thread().cpu_share.measure() == 0.0
