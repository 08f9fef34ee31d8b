"""Revisits: what visits teach, when a page is due, and what it costs to say so."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from skitter.parse.caching import promised_seconds
from skitter.schedule.change_rate import (
    FIRST_RATE,
    chance_of_change,
    expected_freshness,
    learn,
    learn_dated,
    prior_rate,
    rate_of,
)
from skitter.schedule.noise import is_noisy, needs_check
from skitter.schedule.price import FIRST_PRICE, lateness, moved_price
from skitter.schedule.revisit import (
    NOT_VISITED,
    Bounds,
    Visits,
    bounded,
    days_by_halving,
    days_by_news,
    days_by_value,
    days_until_asked_if_back,
    is_prompt,
    pack_visits,
    unpack_visits,
)
from skitter.schedule.signals import (
    Trust,
    agrees,
    days_until_due,
    days_when_promised,
    freshness_when_silent,
    freshness_when_told,
    lesson,
    odds_when_silent,
    odds_when_told,
)
from skitter.schedule.visit_value import due_changes, solve_expected_changes, weight_of, worth

NEVER_SIGNALLED = Trust()


def watched(
    rate: float, interval: float, visits: int, seed: int = 1, prior: float = FIRST_RATE
) -> tuple[float, float]:
    """What a page with that true rate has shown after so many visits."""
    randomly = random.Random(seed)
    changes = days = 0.0
    for _ in range(visits):
        changed = float(randomly.random() < chance_of_change(rate, interval))
        changes, days, _ = learn(changes, days, rate_of(changes, days, prior), interval, changed)
    return changes, days


@pytest.mark.parametrize(("rate", "interval"), [(0.02, 5.0), (0.2, 2.0), (1.0, 1.0), (5.0, 0.2)])
def test_the_rate_of_a_page_is_learnt_from_its_visits(rate: float, interval: float) -> None:
    for prior in (rate / 3, 3 * rate):
        found = [rate_of(*watched(rate, interval, 100, seed, prior), prior) for seed in range(30)]
        assert sum(found) / len(found) == pytest.approx(rate, rel=0.25)


def test_a_page_that_never_changes_is_expected_to_change_ever_less() -> None:
    rates = [rate_of(*watched(0.0, 3.0, visits), FIRST_RATE) for visits in (0, 1, 5, 20)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < FIRST_RATE / 4


def test_a_change_after_a_long_wait_teaches_little_and_none_teaches_much() -> None:
    rate = 1.0
    changed = rate_of(*learn(0.0, 0.0, rate, 30.0, 1.0)[:2], rate)
    unchanged = rate_of(*learn(0.0, 0.0, rate, 30.0, 0.0)[:2], rate)
    assert changed == pytest.approx(rate, rel=0.01)
    assert unchanged < rate / 20


def test_what_is_kept_of_a_page_fits_into_twelve_bytes_and_sixteen_if_it_was_told_of() -> None:
    changes, days = watched(0.2, 2.0, 200)
    visits = Visits(changes, days, 3.5, 1_800_000_000, 2, 1)
    packed = pack_visits(visits)
    assert len(packed) == 12
    again = unpack_visits(packed)
    assert again[2:] == visits[2:]
    assert rate_of(again.changes, again.days, 0.1) == pytest.approx(rate_of(changes, days, 0.1), rel=0.002)
    told = visits._replace(told_at=1_800_000_100)
    assert len(pack_visits(told)) == 16
    assert unpack_visits(pack_visits(told))[2:] == told[2:]
    assert is_prompt(pack_visits(told)) == is_prompt(packed)
    assert unpack_visits(b"") == NOT_VISITED
    assert unpack_visits(pack_visits(Visits(1e9, 1e9, 1e9))).days > 60_000


def test_half_floats_do_not_swallow_the_short_visits_of_a_page_that_was_long_quiet() -> None:
    changes, days = watched(0.0, 60.0, 400)
    for _ in range(400):
        rate = rate_of(changes, days, FIRST_RATE)
        changes, days, _ = learn(changes, days, rate, 0.05, 1.0)
        changes, days = unpack_visits(pack_visits(Visits(changes, days)))[:2]
    assert rate_of(changes, days, FIRST_RATE) > 2.0


def test_a_new_page_is_expected_to_do_as_its_pattern_does() -> None:
    everywhere = prior_rate(0.0, 0.0, FIRST_RATE)
    host = prior_rate(50.0, 100.0, everywhere)
    assert everywhere == pytest.approx(FIRST_RATE)
    assert prior_rate(0.0, 0.0, host) == pytest.approx(host)
    assert prior_rate(0.0, 1_000.0, host) < 0.005
    assert host == pytest.approx(0.28, rel=0.1)


def test_expected_freshness_falls_with_age_and_is_more_than_that_of_the_mean_rate() -> None:
    changes, days, prior = 2.0, 20.0, 0.1
    fresh = [expected_freshness(changes, days, prior, age) for age in (0.0, 1.0, 10.0, 1e6)]
    assert fresh[0] == 1.0
    assert fresh == sorted(fresh, reverse=True)
    assert fresh[2] > 1 - chance_of_change(rate_of(changes, days, prior), 10.0)


# -- worth and price


@pytest.mark.parametrize("target", [10**exponent for exponent in range(-9, 8)])
def test_a_page_is_due_when_its_visit_is_worth_the_price(target: float) -> None:
    x = due_changes(target)
    assert worth(1.0, x) == pytest.approx(target, rel=0.01)
    assert x == pytest.approx(solve_expected_changes(target), rel=0.002)


def test_dear_visits_wait_longer_and_important_pages_less() -> None:
    by_price = [days_by_value(0.3, 1.0, price) for price in (0.001, 0.1, 1.0, 10.0)]
    by_weight = [days_by_value(0.3, weight_of(priority), 0.1) for priority in (0, 50, 100)]
    assert by_price == sorted(by_price)
    assert by_weight == sorted(by_weight, reverse=True)
    assert weight_of(50) == 1.0


def test_a_page_that_changes_faster_than_anybody_can_follow_is_not_given_up_for_ever() -> None:
    assert days_by_value(1_000.0, 1.0, 1.0) < 30.0


def test_the_price_rises_when_pages_are_late_and_falls_when_they_are_early() -> None:
    assert moved_price(1.0, 0.5, 100) > 1.0 > moved_price(1.0, -0.5, 100)
    # one visit of a small crawl moves it a little
    assert moved_price(1.0, 1e6, 1) < 1.1
    price = FIRST_PRICE
    for _ in range(100_000):
        price = moved_price(price, 30.0, 1)
    assert math.isfinite(price)


def test_only_what_was_due_by_both_prices_is_late() -> None:
    assert lateness(10.0, planned=8.0, today=7.0) == 2.0
    assert lateness(10.0, planned=12.0, today=7.0) == 0.0
    assert lateness(10.0, planned=8.0, today=13.0) == -3.0


# -- bounds and other rules


def test_the_promise_wins_over_the_shortest_interval() -> None:
    assert bounded(5.0, Bounds(1.0, 3.0)) == 3.0
    assert bounded(0.1, Bounds(1.0, 3.0)) == 1.0
    assert bounded(0.5, Bounds(1.0, 0.25)) == 0.25


def test_halving_and_doubling_stays_between_an_hour_and_a_month() -> None:
    days = days_by_halving(0.0, changed=False)
    assert days == 7.0
    for _ in range(20):
        days = days_by_halving(days, changed=False)
    assert days == 30.0
    for _ in range(20):
        days = days_by_halving(days, changed=True)
    assert days == 1 / 24


def test_a_page_that_is_gone_is_asked_for_rarely_and_then_never() -> None:
    waits = [days_until_asked_if_back(times) for times in (1, 2, 3, 4, 9)]
    assert waits == [7.0, 30.0, 90.0, None, None]


def test_text_decides_where_most_checks_found_other_bytes_again() -> None:
    assert [needs_check(checked) for checked in range(5)] == [True, True, True, False, False]
    assert [is_noisy(3, noisy) for noisy in range(4)] == [False, False, True, True]
    assert not is_noisy(2, 2)


# -- what hosts say


def taught(host: str, visits: int, rate: float = 0.1, days: float = 3.0) -> Trust:
    """A host that tells the truth, lies about everything, or says nothing of its changes."""
    randomly = random.Random(7)
    trust = Trust()
    for _ in range(visits):
        changed = float(randomly.random() < chance_of_change(rate, days))
        told = {"honest": changed, "liar": 1.0, "mute": 0.0}[host]
        trust.learn(lesson(told, changed, rate, days, days))
    return trust


def test_the_word_of_an_honest_host_counts_and_so_does_its_silence() -> None:
    trust = taught("honest", 200)
    plain = 2.0 / 0.1
    assert days_until_due(2.0, 0.1, trust, told_after=1.0, listened=1.0) == pytest.approx(1.0, abs=1.5)
    assert days_until_due(0.2, 0.1, trust, told_after=None, listened=2.0) > 3.0
    assert days_until_due(2.0, 0.1, trust, told_after=None, listened=10.0) > 1.3 * plain


def test_a_host_that_dates_everything_today_has_no_effect_after_a_few_visits() -> None:
    trust = taught("liar", 40)
    assert odds_when_told(trust.told, trust.changed_told, trust.expected_told) == pytest.approx(1.0, abs=1.0)
    untold = 0.5 / 0.1
    assert days_until_due(0.5, 0.1, taught("liar", 400), 1.0, 1.0) == pytest.approx(untold, rel=0.25)


def test_the_silence_of_a_host_that_never_tells_says_nothing() -> None:
    trust = taught("mute", 400)
    assert odds_when_silent(trust.changed_untold, trust.expected_untold) == pytest.approx(1.0, abs=0.15)


def test_a_copy_is_less_likely_current_when_an_honest_host_tells_of_a_change_and_more_when_it_does_not() -> (
    None
):
    honest, liar = taught("honest", 200), taught("liar", 400)
    assert freshness_when_told(0.7, honest) < 0.1
    assert freshness_when_told(0.7, liar) == pytest.approx(0.7, abs=0.05)
    assert freshness_when_silent(0.6, 0.7, honest) > 0.8
    assert freshness_when_silent(0.6, 1.0, honest) == pytest.approx(0.6)


def test_a_header_agrees_if_it_lies_between_two_visits_that_saw_a_change_or_before_two_that_saw_none() -> (
    None
):
    assert agrees(150.0, 100.0, 900.0, changed=True)
    assert not agrees(899.0, 100.0, 900.0, changed=True), "it is dated by the clock"
    assert not agrees(50.0, 100.0, 900.0, changed=True)
    assert agrees(50.0, 100.0, 900.0, changed=False)
    assert not agrees(150.0, 100.0, 900.0, changed=False)
    trust = Trust()
    for _ in range(3):
        assert not trust.believes_headers
        trust.learn_header(agreed=True)
    assert trust.believes_headers
    trust.learn_header(agreed=False)
    assert not trust.believes_headers


def test_a_date_of_the_last_change_teaches_a_rate_from_few_visits() -> None:
    changes = days = 0.0
    for unchanged in (0.2, 4.0, 1.3, 2.5) * 5:
        changes, days, _ = learn_dated(changes, days, rate_of(changes, days, 0.1), 20.0, unchanged)
    assert rate_of(changes, days, 0.1) == pytest.approx(0.5, rel=0.2)


def test_a_file_is_read_again_sooner_the_more_it_brings() -> None:
    waits = [days_by_news(news, 0.1) for news in (0.1, 1.0, 100.0)]
    assert waits == sorted(waits, reverse=True)
    assert 1.0 * waits[1] ** 2 / 2 == pytest.approx(0.1)


def test_a_page_is_not_late_before_it_was_told_of() -> None:
    trust = taught("honest", 200)
    assert days_until_due(0.5, 0.1, trust, told_after=4.0, listened=4.0) >= 4.0


@pytest.mark.parametrize(
    ("rate", "days", "target"), [*itertools.product((1e-6, 0.1, 500.0), (0.0, 1.0, 1e5), (1e-9, 1.0, 1e6))]
)
def test_no_page_makes_the_arithmetic_fail(rate: float, days: float, target: float) -> None:
    for changed in (0.0, 1.0):
        assert all(map(math.isfinite, learn(1.0, 1.0, rate, days, changed)))
    for told_after in (None, days):
        assert math.isfinite(days_until_due(target, rate, NEVER_SIGNALLED, told_after, days))
    assert math.isfinite(days_by_value(rate, weight_of(0), target))
    assert 0.0 <= expected_freshness(1.0, days, FIRST_RATE, days) <= 1.0


def told_visits(visits: int, *, changed: bool) -> Trust:
    """Of pages that change in two of ten such intervals anyway."""
    trust, rate = Trust(), -math.log(0.8)
    for visit in range(visits):
        is_changed = float(changed or visit % 5 == 0)
        trust.learn(lesson(1.0, is_changed, rate, 1.0, 1.0))
    return trust


def test_a_few_visits_are_enough_to_see_through_a_liar() -> None:
    assert told_visits(0, changed=True).told_odds > 5
    assert told_visits(15, changed=False).told_odds < 1.02
    assert told_visits(15, changed=False).silent_odds > 0.98
    assert told_visits(15, changed=True).told_odds > 20


def test_a_liar_that_mends_its_ways_is_heeded_again() -> None:
    trust = told_visits(200, changed=False)
    for _ in range(40):
        trust.learn(lesson(1.0, 1.0, 0.2, 1.0, 1.0))
    assert trust.told_odds > 1.5


def test_max_age_is_worth_nothing_until_it_was_kept() -> None:
    rate, target = 0.1, 0.5
    kept, broken = Trust(), Trust()
    assert days_when_promised(target, rate, kept, 30.0) == pytest.approx(target / rate)
    for visit in range(100):
        kept.learn_promise(0.0, rate, 3.0, 30.0)
        broken.learn_promise(float(visit % 4 == 0), rate, 3.0, 30.0)
    assert days_when_promised(target, rate, kept, 30.0) > 2 * target / rate
    assert days_when_promised(target, rate, broken, 30.0) == pytest.approx(target / rate, rel=0.1)
    # never later than it ends
    assert days_when_promised(target, rate, kept, 6.0) <= 6.0


@pytest.mark.parametrize(
    ("cache_control", "expires", "promised"),
    [
        ("max-age=3600", "", 3600.0),
        ("public, Max-Age = 60, s-maxage=9", "", 60.0),
        ("s-maxage=9", "Thu, 01 Jan 1970 01:00:00 GMT", 3600.0),
        ("no-cache, max-age=3600", "", 0.0),
        ("max-age=0", "Thu, 01 Jan 1970 01:00:00 GMT", 0.0),
        ("max-age=999999999", "", 31_536_000.0),
        ("", "0", 0.0),
        ("max-age=x", "soon", 0.0),
    ],
)
def test_how_long_a_page_promises_to_stay(cache_control: str, expires: str, promised: float) -> None:
    assert promised_seconds(cache_control, expires, 0.0) == promised
