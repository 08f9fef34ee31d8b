"""The arithmetic of plans: what is left, how long it takes, what a target costs."""

from __future__ import annotations

import math

import pytest

from skitter.errors import UsageError
from skitter.plan.estimate import SoFar, estimate, time_left
from skitter.plan.finishing import Queue, finish
from skitter.plan.growth import Band, smoothed_in, urls_left
from skitter.plan.prices import Prices, parse_prices
from skitter.plan.target import Assumptions, target
from skitter.plan.workload import HostLeft, HostWork, Workload

NO_END = float("inf")
PRICES = Prices(
    name="test",
    currency="EUR",
    machine_hour=1.0,
    disk_gb_month=0.0,
    stored_gb_month=0.02,
    put_thousand=0.01,
    received_gb=0.1,
)


def seen(brought: list[int]) -> tuple[int, int, float]:
    """What a host's row says after answers that brought so many new URLs each."""
    recent = 0.0
    for number, new in enumerate(brought, 1):
        recent = smoothed_in(recent, number, new)
    return len(brought), sum(brought), recent


def a_host(urls: float, interval: float, *, name: str = "http://a.test", gap: float = 0.0) -> HostLeft:
    return HostLeft(
        host=name,
        count=1,
        urls=Band(urls, urls, urls),
        bytes=urls * 1000,
        interval=interval,
        gap=gap,
        opens_in=0.0,
        why="politeness.delay",
    )


# -- growth


def test_the_later_answers_weigh_more() -> None:
    assert smoothed_in(0.0, 1, 6) == 6
    # weights 1, 2, 3
    assert seen([6, 3, 0])[2] == pytest.approx((1 * 6 + 2 * 3) / 6)


def test_a_host_that_brings_nothing_new_has_what_is_queued() -> None:
    assert urls_left(40, 100, 0, 0.0, NO_END) == Band(40, 40, 40)


def test_a_host_whose_pages_bring_less_and_less_ends_where_the_decline_says() -> None:
    """Links at random among 1,000 pages, 10 a page: after 100 answers 1 - 1/e of them are known."""
    pages, each, known, brought = 1_000, 10, 1.0, []
    for _ in range(100):
        new = each * (1 - known / pages)
        known += new
        brought.append(round(new))
    left = urls_left(round(known) - 100, *seen(brought), NO_END)
    assert left.likely == pytest.approx(pages - 100, rel=0.1)
    assert left.low < left.likely < left.high


def test_a_host_that_brings_as_much_as_ever_is_not_taken_for_endless() -> None:
    left = urls_left(100, *seen([3] * 50), NO_END)
    assert 100 < left.likely < 300 < left.high < 1_000
    assert urls_left(100, *seen([3] * 50), 130).high == 130


# -- finishing


def test_hosts_are_asked_side_by_side_and_the_longest_ends_it() -> None:
    queues = [Queue(100, 1.0, 0.0, 1), Queue(30, 2.0, 0.0, 1)]
    assert finish(queues, NO_END) == (100.0, 0.0, 130.0)


def test_where_capacity_is_short_each_host_is_asked_the_slower_until_some_are_done() -> None:
    """20 hosts with 10 URLs and one with 100, one a second each, and 7 a second in all."""
    found = finish([Queue(10, 1.0, 0.0, 20), Queue(100, 1.0, 0.0, 1)], 7.0)
    assert found.seconds == pytest.approx(10 * 21 / 7 + 90)
    assert found.short == pytest.approx(30)


def test_a_limit_ends_it_earlier() -> None:
    assert finish([Queue(100, 1.0, 0.0, 10)], NO_END, most=50).seconds == pytest.approx(5.0)


def test_a_host_that_rests_is_waited_for() -> None:
    assert finish([Queue(1, 1.0, 600.0, 1)], NO_END).seconds == pytest.approx(601)


# -- estimates


def test_an_estimate_names_the_host_whose_politeness_takes_longest() -> None:
    found = estimate([a_host(500, 2.0), a_host(5, 1.0, name="http://b.test")], SoFar())
    assert found.seconds.likely == pytest.approx(1000)
    assert found.seconds.low < 1000 < found.seconds.high
    assert found.limits[0].what == "politeness"
    assert "http://a.test" in found.limits[0].words
    assert [host.host for host in found.hosts] == ["http://a.test", "http://b.test"]


def test_hosts_that_were_asked_far_more_slowly_than_allowed_show_that_workers_are_short() -> None:
    hosts = [a_host(100, 1.0, name=f"http://{number}.test", gap=4.0) for number in range(40)]
    found = estimate(hosts, SoFar())
    assert found.capacity == pytest.approx(10)
    assert found.seconds.likely == pytest.approx(400)
    assert found.limits[0].what == "workers"


def test_retries_and_failures_so_far_are_expected_to_go_on() -> None:
    found = estimate([a_host(100, 1.0)], SoFar(pages=80, settled=100, requests=150))
    assert found.pages.likely == pytest.approx(80)
    assert found.seconds.likely == pytest.approx(150)


def test_the_page_limit_is_what_is_left_to() -> None:
    found = estimate([a_host(10_000, 1.0)], SoFar(pages=50, settled=50, requests=50, max_pages=150))
    assert found.reaches_limit
    assert found.seconds.likely == pytest.approx(100)
    assert found.pages.likely == pytest.approx(100)


def test_nothing_is_said_of_the_end_of_a_crawl_that_has_none() -> None:
    assert time_left(estimate([a_host(10, 1.0)], SoFar(is_open=True)), 0.0) is None
    assert time_left(estimate([a_host(10, 1.0)], SoFar()), 4.0) == pytest.approx((10 * 0.8 - 4, 6, 8.0))


def test_a_million_hosts_take_no_more_memory_than_some_groups() -> None:
    work = Workload(named=10)
    for number in range(20_000):
        queued = number % 50 + 1
        work.add(
            HostWork(host=f"http://{number}.test", queued=queued, interval=1.0, answers=10, bytes=10_000)
        )
    left = work.result()
    assert len(left) < 200
    assert sum(one.urls.likely * one.count for one in left) == sum(n % 50 + 1 for n in range(20_000))
    assert sum(bool(one.host) for one in left) == 10


def test_hosts_that_nobody_has_seen_are_taken_for_what_the_others_are_like() -> None:
    work = Workload()
    for number in range(10):
        work.add(
            HostWork(
                host=f"http://{number}.test", queued=0, interval=1.0, answers=50, brought=49, bytes=5_000
            )
        )
    work.add(HostWork(host="http://new.test", queued=1, interval=1.0))
    (left,) = work.result()
    assert left.urls == Band(1, 50, 100)
    assert left.bytes == pytest.approx(50 * 100)


# -- targets


def test_a_billion_pages_a_week_are_the_sums_that_everybody_knows() -> None:
    found = target(1e9, 7 * 86_400, Assumptions())
    assert found.pages_a_second == pytest.approx(1_653, abs=1)
    assert found.bytes_a_second == pytest.approx(165e6, rel=0.01)
    assert found.received_bytes == pytest.approx(100e12)
    assert found.links_a_second == pytest.approx(82_672, abs=1)
    assert found.hosts_at_once == pytest.approx(1_653, abs=1)


def test_prices_are_the_operators() -> None:
    given = Assumptions(page_bytes=1e5, archived=0.5, pages_a_core=100, cores=1, segment_bytes=1e9)
    found = target(36e4, 3600, given, PRICES)
    cost = found.cost
    assert found.machines == 1
    assert cost is not None
    assert cost.machines == pytest.approx(1.0)
    assert cost.received == pytest.approx(3.6)
    assert cost.keeping == pytest.approx(18 * 0.02)
    assert cost.crawling == pytest.approx(1.0 + 3.6 + cost.requests)
    assert found.puts == math.ceil(18) * (4 + math.ceil(1e9 / 16e6))


@pytest.mark.parametrize("text", ["name = 3", "[", 'name = "x"', 'nmae = "x"'])
def test_a_table_of_prices_that_is_none_says_what_to_do(text: str) -> None:
    with pytest.raises(UsageError, match="--example-prices"):
        parse_prices(text, "prices.toml")
