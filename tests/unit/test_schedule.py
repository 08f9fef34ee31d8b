"""How often a host is asked, what follows a failure, and whose turn it is."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.model import FailureKind, HostPolicy, UrlState, Via
from skitter.schedule.politeness import MAX_PENALTY, delay_for, recovered, smoothed, throttled
from skitter.schedule.priority import SEED_PRIORITY, TIERS, ByDepthAndLinks, TierScheduler, tier_of
from skitter.schedule.retry import RULES, attempts_allowed, wait_after
from skitter.settings import PolitenessSettings, RetrySettings

POLITE = PolitenessSettings(delay=1.0, max_crawl_delay=60.0, slow_factor=2.0)
SECONDS = st.floats(0, 1000, allow_nan=False)


def test_the_longest_of_setting_crawl_delay_and_slowness_is_the_delay() -> None:
    assert delay_for(POLITE, None, None, 0.0, 1.0) == 1.0
    assert delay_for(POLITE, None, 5.0, 0.1, 1.0) == 5.0
    assert delay_for(POLITE, None, 0.5, 0.1, 1.0) == 1.0
    assert delay_for(POLITE, None, 5.0, 4.0, 1.0) == 8.0


def test_a_crawl_delay_above_the_maximum_is_cut_to_it() -> None:
    assert delay_for(POLITE, None, 86_400.0, 0.0, 1.0) == 60.0


def test_an_operators_delay_replaces_all_but_the_penalty() -> None:
    policy = HostPolicy(delay=0.25)
    assert delay_for(POLITE, policy, 30.0, 10.0, 1.0) == 0.25
    assert delay_for(POLITE, policy, 30.0, 10.0, 4.0) == 4.0
    assert delay_for(POLITE, HostPolicy(delay=3.0), None, 0.0, 2.0) == 6.0
    assert delay_for(POLITE, HostPolicy(parallel=4), 30.0, 0.0, 1.0) == 30.0


@given(st.none() | SECONDS, SECONDS, st.floats(1, MAX_PENALTY))
def test_no_host_is_asked_more_often_than_the_setting_says(
    crawl_delay: float | None, response_time: float, penalty: float
) -> None:
    delay = delay_for(POLITE, None, crawl_delay, response_time, penalty)
    assert delay >= POLITE.delay
    assert delay >= min(crawl_delay or 0.0, 60.0)
    assert delay >= delay_for(POLITE, None, crawl_delay, response_time, 1.0)


def test_being_throttled_halves_the_rate_down_to_a_floor() -> None:
    penalties = [1.0]
    for _ in range(10):
        penalties.append(throttled(penalties[-1]))
    assert penalties[:4] == [1.0, 2.0, 4.0, 8.0]
    assert penalties[-1] == MAX_PENALTY


@given(st.floats(1, MAX_PENALTY))
def test_a_throttled_host_recovers_slowly_and_to_the_full_rate(penalty: float) -> None:
    better = recovered(penalty)
    assert 1.0 <= better <= penalty
    assert 1 / better <= 1 / penalty + 0.1 + 1e-9
    for _ in range(10):
        better = recovered(better)
    assert better == 1.0


@given(st.floats(0.001, 100), st.floats(0.001, 100))
def test_the_smoothed_response_time_moves_towards_the_latest_and_not_beyond(
    mean: float, latest: float
) -> None:
    between = smoothed(mean, latest)
    assert min(mean, latest) <= between <= max(mean, latest) or between == pytest.approx(latest)
    assert smoothed(0.0, latest) == latest


def test_every_kind_of_failure_has_a_row_that_says_why() -> None:
    assert set(RULES) == set(FailureKind)
    assert all(rule.why for rule in RULES.values())
    assert {rule.ends_as for rule in RULES.values()} == {UrlState.DEAD_LETTER, UrlState.REFUSED}


@pytest.mark.parametrize("kind", FailureKind)
@pytest.mark.parametrize("setting", [1, 2, 5, 100])
def test_no_failure_is_tried_more_often_than_the_setting_says(kind: FailureKind, setting: int) -> None:
    allowed = attempts_allowed(kind, setting)
    assert 1 <= allowed <= setting
    assert allowed == setting or allowed == RULES[kind].attempts


def test_what_cannot_get_better_is_tried_once() -> None:
    once = {kind for kind, rule in RULES.items() if rule.attempts == 1}
    assert once == {
        FailureKind.ADDRESS_REFUSED,
        FailureKind.HEADERS_TOO_LARGE,
        FailureKind.BAD_REDIRECT,
        FailureKind.ENDLESS_REDIRECT,
        FailureKind.TYPE_UNWANTED,
        FailureKind.GATED,
        # it might: but nobody knows whether it was sent
        FailureKind.OUTCOME_UNKNOWN,
    }


def test_waits_grow_and_the_last_one_repeats() -> None:
    backoff = RetrySettings().backoff
    lost = FailureKind.CONNECTION_LOST
    waits = [wait_after(lost, n, backoff) for n in (1, 2, 3, 4, 50)]
    assert waits == [60.0, 3600.0, 21600.0, 21600.0, 21600.0]
    assert wait_after(lost, 7, (0.5,)) == 0.5


def test_a_name_that_does_not_exist_is_asked_for_later_than_one_that_got_no_answer() -> None:
    kinds = (FailureKind.DNS_TIMEOUT, FailureKind.DNS_FAILED, FailureKind.DNS_NOT_FOUND)
    waits = [wait_after(kind, 1, (0.5,)) for kind in kinds]
    assert waits == sorted(set(waits))


def test_seeds_come_first_and_depth_lowers_the_priority_to_a_floor() -> None:
    priority_of = ByDepthAndLinks().priority
    priorities = [priority_of(Via.LINK, depth, 0) for depth in range(1, 40)]
    assert all(priority < SEED_PRIORITY for priority in priorities)
    assert priorities == sorted(priorities, reverse=True)
    assert priorities[-1] == priorities[-2] > 0
    assert priority_of(Via.REDIRECT, 0, 0) == priority_of(Via.SEED, 0, 0) == SEED_PRIORITY


def test_each_doubling_of_linking_hosts_raises_the_priority_but_never_above_a_seed() -> None:
    priority_of = ByDepthAndLinks().priority
    raised = [priority_of(Via.LINK, 6, hosts) for hosts in (0, 1, 2, 4, 8, 16, 32)]
    assert raised == [40, 40, 45, 50, 55, 60, 65]
    assert priority_of(Via.LINK, 1, 1 << 20) < SEED_PRIORITY


def test_tiers_cover_all_priorities_in_order() -> None:
    tiers = [tier_of(priority) for priority in range(101)]
    assert tiers == sorted(tiers, reverse=True)
    assert set(tiers) == set(range(TIERS))
    assert tier_of(SEED_PRIORITY) == 0


def serve(scheduler: TierScheduler, tiers: list[int], rounds: int) -> Counter[int]:
    served = Counter[int]()
    for _ in range(rounds):
        tier = scheduler.choose(tiers)
        scheduler.count_served(tier, 1)
        served[tier] += 1
    return served


def test_tiers_are_served_by_weight_and_none_starves() -> None:
    assert serve(TierScheduler((8, 4, 2, 1)), [0, 1, 2, 3], 1500) == {0: 800, 1: 400, 2: 200, 3: 100}


def test_a_tier_that_was_empty_gets_no_credit_for_it() -> None:
    scheduler = TierScheduler((8, 4, 2, 1))
    serve(scheduler, [0], 8000)
    scheduler.set_idle(3)
    assert serve(scheduler, [0, 3], 90)[3] == 10


def test_a_tier_that_is_alone_is_served_always() -> None:
    assert serve(TierScheduler((8, 4, 2, 1)), [3], 10) == {3: 10}
