"""The memory of long bodies: bounded whatever comes in whatever order, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from skitter.fetch.body_budget import BodyBudget

MOST = 1_000_000
LONGEST = 400_000
SHORT = 65_536


class Body:
    """Arrives in chunks, as libcurl delivers them: one that was not taken comes again when it is resumed."""

    def __init__(self, bodies: BodyBudget, chunks: Sequence[int] = ()) -> None:
        self.size = 0
        self._bodies = bodies
        self._chunks = list(chunks)
        self.is_paused = False

    def resume(self) -> None:
        self.is_paused = False
        self.deliver()

    def deliver(self) -> None:
        """The next chunk, if there is one."""
        if self._chunks and not self.is_paused:
            self.take(self._chunks[0])

    def take(self, count: int) -> bool:
        self.is_paused = not self._bodies.reserve(self, count)
        if not self.is_paused:
            self.size += count
            self._chunks = self._chunks[1:]
        return not self.is_paused

    @property
    def is_over(self) -> bool:
        return not self._chunks


def full() -> tuple[BodyBudget, Body, Body]:
    """No room is left, one body has gone ahead, and another waits."""
    bodies = BodyBudget(MOST)
    assert Body(bodies).take(MOST)
    ahead, behind = Body(bodies), Body(bodies, [LONGEST])
    assert ahead.take(LONGEST)
    assert not behind.take(LONGEST)
    return bodies, ahead, behind


def test_a_short_body_is_never_held_up() -> None:
    bodies, _, _ = full()
    held = bodies.held
    assert Body(bodies).take(SHORT)
    assert bodies.held == held


def test_a_long_one_goes_on_when_there_is_memory_again() -> None:
    bodies, _, behind = full()
    assert bodies.is_waiting(behind)
    bodies.release(MOST)
    assert not bodies.is_waiting(behind)
    assert behind.size == LONGEST


def test_one_goes_ahead_at_a_time_and_the_next_when_it_is_let_go() -> None:
    bodies, ahead, behind = full()
    bodies.end(ahead)
    assert bodies.is_waiting(behind)
    assert not behind.take(LONGEST)
    bodies.release(ahead.size)
    assert behind.size == LONGEST
    assert bodies.held == MOST + LONGEST


def test_one_that_is_dropped_lets_the_next_go_ahead() -> None:
    bodies, ahead, behind = full()
    bodies.drop(ahead)
    assert behind.size == LONGEST


def test_one_that_ends_while_it_waits_is_not_resumed() -> None:
    bodies, ahead, behind = full()
    bodies.drop(behind)
    bodies.drop(ahead)
    assert behind.size == 0


chunks = st.lists(st.integers(1, LONGEST // 4), max_size=4)


@given(st.lists(chunks, max_size=12), st.randoms(use_true_random=False))
def test_all_arrive_and_never_more_is_held_than_the_limit_and_one_body(
    planned: list[list[int]], chance: Random
) -> None:
    bodies = BodyBudget(MOST // 4)
    coming = [Body(bodies, plan) for plan in planned]
    concluded: list[Body] = []
    for _ in range(10_000):
        moving = [body for body in coming if not body.is_paused]
        choices = [*moving, *concluded]
        if not choices:
            break
        chosen = chance.choice(choices)
        if chosen in concluded:
            concluded.remove(chosen)
            bodies.release(chosen.size)
        elif chosen.is_over:
            coming.remove(chosen)
            concluded.append(chosen)
            bodies.end(chosen)
        else:
            chosen.deliver()
        assert bodies.held <= MOST // 4 + LONGEST
    assert not coming
    assert bodies.held == 0
