"""Who is served next: tiers by weight, hosts by readiness, URLs by priority then age."""

from __future__ import annotations

import time

from skitter.schedule.priority import TIERS, TierScheduler
from skitter.settings import FrontierSettings, PolitenessSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, seed

WEIGHTS = (8, 4, 2, 1)
PRIORITY = (90, 60, 30, 10)
ONE_BY_ONE = Settings(politeness=PolitenessSettings(delay=2.0), frontier=FrontierSettings(tasks_per_lease=1))


def _serve(scheduler: TierScheduler, tiers: list[int], times: int) -> list[int]:
    served = []
    for _ in range(times):
        tier = scheduler.choose(tiers)
        scheduler.count_served(tier, 1)
        served.append(tier)
    return served


def test_tiers_share_by_weight() -> None:
    served = _serve(TierScheduler(WEIGHTS), [0, 1, 2, 3], 1500)
    for tier, weight in enumerate(WEIGHTS):
        assert abs(served.count(tier) - 100 * weight) <= 10 * weight


def test_a_tier_that_was_idle_gets_no_credit_for_it() -> None:
    scheduler = TierScheduler(WEIGHTS)
    _serve(scheduler, [0], 8000)
    served = _serve(scheduler, [0, 3], 90)
    assert 72 <= served.count(0) <= 88


def test_a_tier_gets_no_credit_for_the_time_before_all_were_idle() -> None:
    scheduler = TierScheduler(WEIGHTS)
    _serve(scheduler, [3], 1000)
    scheduler.set_idle(3)
    assert _serve(scheduler, [0, 3], 90).count(3) >= 8


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


def test_pages_are_handed_out_by_tier_weight(start: Start) -> None:
    """One task a lease and always more hosts ready than are leased: only the weights decide."""
    driver = start(ONE_BY_ONE, audited=False)
    hosts = {f"http://h{tier}-{i}.test": tier for tier in range(TIERS) for i in range(12)}
    driver.admit(
        *(seed(f"{host}/{i}", priority=PRIORITY[tier]) for host, tier in hosts.items() for i in range(90))
    )
    for lease in driver.lease():
        driver.answer(lease, NO_RULES)
    served = [0] * TIERS
    for _ in range(1500):
        driver.clock.advance(2)
        lease = driver.lease_one(capacity=1)
        driver.answer(lease, OK)
        served[hosts[lease.host]] += len(lease.tasks)
    for tier, weight in enumerate(WEIGHTS):
        assert abs(served[tier] - 100 * weight) <= 10 * weight, served


def test_within_a_host_urgent_urls_go_first_and_then_old_ones(driver: Driver) -> None:
    driver.open_host("http://a.test/s")
    driver.fetch()
    urls = [("/old", 60), ("/urgent", 70), ("/new", 60), ("/least", 50)]
    driver.admit(*(seed(f"http://a.test{path}", priority=priority) for path, priority in urls))
    driver.clock.advance(1)
    paths = [task.url.removeprefix("http://a.test") for task in driver.lease_one().tasks]
    assert paths == ["/urgent", "/old", "/new", "/least"]


def test_a_host_with_fifty_thousand_urls_does_not_hold_up_the_others(start: Start) -> None:
    driver = start(Settings(politeness=PolitenessSettings(host_budget=0)), audited=False)
    others = [f"http://h{i}.test" for i in range(20)]
    driver.open_host("http://big.test/", *(host + "/" for host in others))
    driver.admit(*(seed(f"http://big.test/{i}", priority=95) for i in range(50_000)))
    driver.admit(*(seed(f"{host}/{i}", priority=10) for host in others for i in range(3)))
    spent = time.process_time()
    driver.serve(4)
    spent = time.process_time() - spent
    assert all(driver.explain(f"{host}/{i}").state == "completed" for host in others for i in range(3))
    assert driver.host("http://big.test").fetched == 4 * FrontierSettings().tasks_per_lease
    # 110 pages; measured 0.01 s, and walking over 50,000 rows in each of the four rounds would be a second
    assert spent < 0.3
