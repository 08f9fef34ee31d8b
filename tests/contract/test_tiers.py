"""Who is served next: tiers by weight, hosts by readiness, URLs by priority then age."""

from __future__ import annotations

from skitter.schedule.priority import TierTurns
from tests.frontier_kit import Driver, seed

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


def test_the_lowest_tier_advances_while_new_hosts_keep_coming_in_the_highest(driver: Driver) -> None:
    driver.open_host("http://low.test/a")
    driver.fetch()
    driver.admit(seed("http://low.test/b", priority=10))
    driver.clock.advance(60)
    for batch in range(20):
        driver.admit(*(seed(f"http://new{batch}-{i}.test/", priority=90) for i in range(8)))
        if any(lease.host == "http://low.test" for lease in driver.lease(capacity=4)):
            return
    raise AssertionError("80 leases, and the lowest tier was never served")
