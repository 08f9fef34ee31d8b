"""Who may talk to a host, for how long, and with how many URLs."""

from __future__ import annotations

from skitter.model import HostPolicy
from tests.frontier_kit import Driver, discovered


def test_a_parallel_lease_fits_its_duration_as_well(driver: Driver) -> None:
    driver.open_host("http://a.test/")
    driver.admit(*(discovered(f"http://a.test/{i}") for i in range(100)))
    driver.set_policy("http://a.test", HostPolicy(parallel=4))
    lease = driver.lease_one(duration=60)
    assert lease.parallel == 4
    assert 4 <= len(lease.tasks) <= 30
