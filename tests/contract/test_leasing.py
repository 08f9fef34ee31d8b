"""Who may talk to a host, for how long, and with how many URLs."""

from __future__ import annotations

from skitter.model import HostPolicy
from skitter.settings import CrawlSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered


def test_a_parallel_lease_fits_its_duration_as_well(driver: Driver) -> None:
    driver.open_host("http://a.test/")
    driver.admit(*(discovered(f"http://a.test/{i}") for i in range(100)))
    driver.set_policy("http://a.test", HostPolicy(parallel=4))
    lease = driver.lease_one(duration=60)
    assert lease.parallel == 4
    assert 4 <= len(lease.tasks) <= 30


def test_late_pages_cannot_push_a_crawl_over_its_page_limit(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=1)))
    driver.open_host("http://a.test/")
    late = driver.lease_one()
    driver.clock.advance(61)
    driver.reap()
    driver.set_policy("http://a.test", HostPolicy(delay=1000.0))
    driver.open_host("http://b.test/")
    other = driver.lease_one()
    assert other.host == "http://b.test"
    driver.answer(late, OK)
    driver.answer(other, OK)
    assert driver.stats().pages == 1
