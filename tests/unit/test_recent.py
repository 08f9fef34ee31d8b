"""What is kept of the recent past: bounded, whatever the web and its workers do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skitter.recent import Histogram, LastFetch, LastFetches, Roster, Troubles


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True)))
def test_every_amount_is_in_one_bucket_and_the_sum_stays_a_number(amounts: list[float]) -> None:
    histogram = Histogram((0.1, 1.0))
    for amount in amounts:
        histogram.observe(amount)
    assert sum(histogram.counts) == len(amounts)
    assert 0 <= histogram.sum <= len(amounts) * Histogram.MOST


def test_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram((0.1, 1.0))
    for amount in (0.0, 0.1, 0.11, 1.0, 1.01):
        histogram.observe(amount)
    assert histogram.counts == [2, 2, 1]


def test_the_worst_hosts_are_told_by_kind_with_their_last_failure() -> None:
    troubles = Troubles()
    for second in range(3):
        troubles.record("http://a.example", "stalled", f"after {second} s", 5_000.0 + second)
    troubles.record("http://a.example", "dns_timeout", "no answer", 5_010.0)
    troubles.record("http://b.example", "tls_name", "x" * 1_000, 5_020.0)
    worst, other = troubles.worst(30, 5_030.0)
    assert worst == ("http://a.example", {"stalled": 3, "dns_timeout": 1}, 5_010.0, "no answer")
    assert (other.host, len(other.detail)) == ("http://b.example", Troubles.LONGEST_DETAIL)


def test_failures_of_both_halves_of_the_window_count_and_older_ones_do_not() -> None:
    troubles = Troubles()
    window = Troubles.WINDOW
    troubles.record("http://a.example", "stalled", "", 10 * window + 1)
    troubles.record("http://a.example", "stalled", "", 11 * window + 1)
    assert troubles.worst(1, 11 * window + 2)[0].kinds == {"stalled": 2}
    assert troubles.since(11 * window + 2) == 10 * window
    assert troubles.worst(1, 12 * window + 2)[0].kinds == {"stalled": 1}
    assert troubles.worst(1, 13 * window + 2) == []


def test_what_was_told_is_not_changed_by_what_comes_later() -> None:
    troubles = Troubles()
    troubles.record("http://a.example", "stalled", "", 1.0)
    told = troubles.worst(1, 2.0)[0].kinds
    troubles.record("http://a.example", "stalled", "", 3.0)
    assert told == {"stalled": 1}


def test_a_clock_that_was_set_back_leaves_no_failures_for_ever() -> None:
    troubles = Troubles()
    troubles.record("http://a.example", "stalled", "", 1_000_000.0)
    assert troubles.worst(1, 5_000.0) == []


def test_a_hundred_thousand_hosts_that_fail_once_do_not_hide_the_one_that_fails_always() -> None:
    troubles = Troubles()
    for number in range(100_000):
        troubles.record(f"http://{number}.example", "dns_not_found", "", 1_000.0)
        if number % 100 == 0:
            troubles.record("http://always.example", "stalled", "", 1_000.0)
    assert len(troubles._new) <= Troubles.KEPT
    assert troubles.worst(1, 1_001.0)[0].host == "http://always.example"


def test_workers_count_for_a_minute_and_their_silence_for_a_quarter_of_an_hour() -> None:
    roster = Roster()
    roster.record("a", 0.0)
    roster.record("b", 100.0)
    assert (roster.live(110.0), roster.longest_silence(110.0)) == (1, 110.0)
    roster.record("a", 120.0)
    assert (roster.live(130.0), roster.longest_silence(130.0)) == (2, 0.0)
    assert roster.longest_silence(999.0) == 899.0
    assert roster.longest_silence(1_000.0) == 880.0
    assert roster.longest_silence(1_020.0) == 0.0


def test_names_of_workers_do_not_fill_the_memory() -> None:
    roster = Roster()
    for number in range(3 * Roster.KEPT):
        roster.record(f"worker-{number}", number / 1_000)
    assert len(roster._heard) == Roster.KEPT
    assert roster.live(13.0) == Roster.KEPT


def test_the_latest_requests_are_kept_newest_first_and_the_last_failure_outlives_them() -> None:
    last = LastFetches()
    failed = LastFetch(0.0, b"k", "http://a.test", False, 0, 0, 1.0, "stalled", "x" * 1_000)
    last.record(failed)
    for number in range(1, 200):
        last.record(failed._replace(at=float(number), failure="", detail=""))
    assert [one.at for one in last.newest(3)] == [199.0, 198.0, 197.0]
    assert len(last.newest(1_000)) == LastFetches.KEPT
    assert last.failed is not None
    assert (last.failed.at, len(last.failed.detail)) == (0.0, LastFetches.LONGEST_DETAIL)
