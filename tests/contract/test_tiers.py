"""Who is served next: tiers by weight, hosts by readiness, URLs by priority then age."""

from __future__ import annotations

from skitter.schedule.priority import TierTurns

WEIGHTS = (8, 4, 2, 1)


def _serve(turns: TierTurns, tiers: list[int], times: int) -> list[int]:
    served = []
    for _ in range(times):
        tier = turns.next_of(tiers)
        turns.served(tier, 1)
        served.append(tier)
    return served


def test_tiers_share_by_weight() -> None:
    served = _serve(TierTurns(WEIGHTS), [0, 1, 2, 3], 1500)
    for tier, weight in enumerate(WEIGHTS):
        assert abs(served.count(tier) - 100 * weight) <= 10 * weight


def test_a_tier_that_was_idle_gets_no_credit_for_it() -> None:
    turns = TierTurns(WEIGHTS)
    _serve(turns, [0], 8000)
    served = _serve(turns, [0, 3], 90)
    assert 72 <= served.count(0) <= 88


def test_a_tier_gets_no_credit_for_the_time_before_all_were_idle() -> None:
    turns = TierTurns(WEIGHTS)
    _serve(turns, [3], 1000)
    turns.empty(3)
    assert _serve(turns, [0, 3], 90).count(3) >= 8
