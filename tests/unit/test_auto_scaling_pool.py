"""When a crawl's own process has more to do than it can."""

from __future__ import annotations

import pytest

from skitter.runtime.auto_scaling_pool import is_too_busy


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        ([0.97] * 10, True),
        ([0.97] * 9, False),
        ([0.97] * 5 + [0.2] + [0.97] * 4, True),
        ([0.7] * 10, False),
        ([1.0] * 5 + [0.1] * 5, False),
        ([], False),
    ],
)
def test_a_core_is_full_by_the_mean_of_all_its_seconds(busy: list[float], expected: bool) -> None:
    assert is_too_busy([(1.0, each) for each in busy], 10.0) is expected


def test_without_patience_it_is_too_busy_at_once() -> None:
    assert is_too_busy([], 0.0)
    assert is_too_busy([(1.0, 0.1)], 0.0)
