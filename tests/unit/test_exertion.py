"""What a worker says of how hard it works."""

from __future__ import annotations

import pytest

from skitter.desk.exertion import Exertion
from skitter.testing.clock import FakeClock


class Thread:
    """Works for so much of the time that passes."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.spent = 0.0
        self.exertion = Exertion(self.clock, lambda: self.spent)

    def works(self, seconds: float, share: float) -> float:
        self.clock.advance(seconds)
        self.spent += seconds * share
        return self.exertion.look()


def test_it_is_the_share_of_the_last_span_not_of_all_time() -> None:
    thread = Thread()
    assert thread.works(10.0, 0.25) == pytest.approx(0.25)
    assert thread.works(1.0, 0.75) == pytest.approx(0.75)


def test_a_moment_proves_nothing() -> None:
    thread = Thread()
    thread.works(1.0, 0.5)
    assert thread.works(0.1, 1.0) == pytest.approx(0.5)
    assert thread.works(0.4, 1.0) == pytest.approx(1.0)


def test_before_anything_was_seen_nobody_is_busy() -> None:
    assert Thread().exertion.look() == 0.0
