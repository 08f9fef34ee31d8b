"""Fixtures that open frontiers on each store; a conftest that imports them offers them to its folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from skitter.settings import Settings
from tests.cluster_kit import ClusterDriver, Disks
from tests.frontier_kit import Driver
from tests.frontier_stores import DISKS, Disk, LogDisk, MemoryDisk


class Start(Protocol):
    def __call__(
        self, settings: Settings = ..., *, audited: bool = ..., tell: Callable[[str], None] = ...
    ) -> Driver: ...


# The rules are the same code on every store, and a log takes its time: over it the calls that write are tried
# here, and all of the contract with SKITTER_ALL_STORES=1.
_LOGGED = ("test_durability", "test_settling", "test_leasing", "test_holding")
_EVERYWHERE = bool(os.environ.get("SKITTER_ALL_STORES"))


# What a cluster promises otherwise. Leases of workers elsewhere outlive their owner, since all are in the log.
_OTHERWISE = {
    "test_the_last_pages_under_a_limit_are_shared_among_many_hosts": "a page limit is granted in blocks",
    "test_the_page_limit_is_never_passed_however_many_leases_are_out": "a page limit is granted in blocks",
    "test_late_pages_cannot_push_a_crawl_over_its_page_limit": "a page limit is granted in blocks",
    "test_hosts_without_a_delay_that_are_leased_together_need_not_end_together": "each partition staggers",
    "test_an_outcome_of_the_wrong_kind_is_a_bug_and_leaves_nothing_behind": "each partition commits by itself",
    "test_while_a_settling_is_open_every_other_call_that_writes_waits": "each partition has its own lock",
    "test_a_host_leased_by_a_worker_elsewhere_rests_for_a_whole_lease_after_a_restart": "leases survive",
    "test_a_lease_that_was_asked_for_longer_is_waited_for_longer": "leases survive",
    "test_after_a_power_loss_the_longest_lease_that_anybody_elsewhere_had_is_waited_for": "leases survive",
}
# Where most of the post is. All of the contract through three partitions with SKITTER_ALL_STORES=1.
_CLUSTERED = ("test_robots", "test_redirects")
# Three partitions behind a router. Over the log with SKITTER_ALL_STORES=1.
CLUSTERS: dict[str, Callable[[Path], Disk]] = {"cluster": MemoryDisk, "cluster-log": LogDisk}


def stores_for(module: str) -> list[str]:
    is_logged = _EVERYWHERE or module.rpartition(".")[2] in _LOGGED
    is_clustered = module.rpartition(".")[2] in _CLUSTERED
    clusters = [*CLUSTERS] if _EVERYWHERE else ["cluster"] if is_clustered else []
    return [*(name for name in DISKS if name != "log" or is_logged), *clusters]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "start" in metafunc.fixturenames:
        metafunc.parametrize("start", stores_for(metafunc.module.__name__), indirect=True)


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Opens a frontier on a fresh disk, with the settings given; closed and audited at the end."""
    opened: list[Driver] = []
    name = getattr(request.node, "originalname", request.node.name)
    if request.param in CLUSTERS and name in _OTHERWISE:
        pytest.skip(f"in a cluster {_OTHERWISE[name]}")

    def open_one(
        settings: Settings | None = None,
        *,
        audited: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> Driver:
        folder = tmp_path / f"frontier-{len(opened)}"
        settings = settings or Settings()
        if make := CLUSTERS.get(request.param):
            opened.append(ClusterDriver(Disks(folder, make), settings, audited=audited, tell=tell))
        else:
            opened.append(Driver(DISKS[request.param](folder), settings, audited=audited, tell=tell))
        return opened[-1]

    yield open_one
    for driver in opened:
        driver.close()
        driver.check_replay()


@pytest.fixture
def driver(start: Start) -> Driver:
    return start()
