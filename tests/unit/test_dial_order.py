from __future__ import annotations

import pytest

from skitter.fetch.dial_order import MOST_DIALLED, REMEMBERED_FOR, DialOrder
from skitter.testing.clock import FakeClock

A, B, C, D = "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"
V6, W6 = "2001:db8::1", "2001:db8::2"


def dialling() -> tuple[DialOrder, FakeClock]:
    clock = FakeClock()
    return DialOrder(12.0, clock), clock


def order(plan: list[tuple[str, float]]) -> list[str]:
    return [address for address, _ in plan]


@pytest.mark.parametrize(
    ("addresses", "dialled"),
    [
        ([A], [A]),
        ([V6], [V6]),
        ([A, B, C, D], [A, B, C]),
        ([A, B, V6, W6], [A, V6, B]),
        ([V6, W6], [V6, W6]),
        ([A, B, C, V6], [A, V6, B]),
    ],
)
def test_families_take_turns_and_few_are_dialled(addresses: list[str], dialled: list[str]) -> None:
    plan = dialling()[0].plan(addresses)
    assert order(plan) == dialled
    assert len(plan) <= MOST_DIALLED


@pytest.mark.parametrize("addresses", [[A], [A, V6], [A, B, V6]])
def test_all_together_get_the_time_that_one_would_have(addresses: list[str]) -> None:
    assert sum(seconds for _, seconds in dialling()[0].plan(addresses)) == pytest.approx(12.0)


def test_what_could_not_be_reached_goes_last_for_a_while() -> None:
    dial, clock = dialling()
    dial.note_unreached(A)
    assert order(dial.plan([A, V6])) == [V6, A]
    assert order(dial.plan([A, B, C, D])) == [B, C, D]
    dial.note_unreached(V6)
    assert order(dial.plan([A, V6])) == [A, V6]
    clock.advance(REMEMBERED_FOR)
    assert order(dial.plan([A, B])) == [A, B]


def test_what_is_remembered_is_bounded() -> None:
    dial, _ = dialling()
    dial.note_unreached(A)
    for number in range(5000):
        dial.note_unreached(f"2001:db8::{number:x}")
    assert order(dial.plan([A, B])) == [A, B]
