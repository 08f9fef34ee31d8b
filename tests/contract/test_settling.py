"""What an outcome changes, once, and what a stale one cannot change."""

from __future__ import annotations

import msgspec

from skitter.frontier.base import Settled
from skitter.model import Host
from tests.frontier_kit import OK, Driver


def test_an_outcome_for_a_host_nobody_knows_makes_no_host(driver: Driver) -> None:
    driver.open_host("http://a.test/")
    lease = driver.lease_one()
    stray = msgspec.structs.replace(driver.outcome(lease, OK), host=Host("http://nobody.test"))
    assert driver.settle(stray)[0].settled is Settled.STALE
    assert sum(driver.stats().hosts.values()) == 1
