"""What one worker of a crawl may take, and how many processes there are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from skitter.runtime.worker_settings import has_own_worker, processes_for, settings_of_worker
from skitter.settings import Settings


@pytest.mark.parametrize(
    ("workers", "processes", "own"), [(0, 0, True), (1, 0, True), (2, 1, True), (3, 2, True), (4, 4, False)]
)
def test_the_own_process_is_a_worker_until_the_committer_keeps_it_busy(
    workers: int, processes: int, own: bool
) -> None:
    assert (processes_for(workers), has_own_worker(workers)) == (processes, own)


def test_limits_are_of_the_crawl_and_divided_among_its_workers() -> None:
    settings = Settings()
    fetch = replace(settings.fetch, concurrency=256, connections=2000, body_memory=1_000)
    settings = replace(settings, fetch=fetch, crawl=replace(settings.crawl, workers=3))
    own = settings_of_worker(settings)
    assert (own.fetch.concurrency, own.fetch.connections, own.fetch.body_memory) == (85, 666, 333)
    assert replace(own, fetch=settings.fetch, frontier=settings.frontier) == settings


def test_a_worker_has_at_least_one_of_everything() -> None:
    settings = Settings()
    fetch = replace(settings.fetch, concurrency=1, connections=1)
    own = settings_of_worker(replace(settings, fetch=fetch, crawl=replace(settings.crawl, workers=3)))
    assert (own.fetch.concurrency, own.fetch.connections) == (1, 1)


@pytest.mark.parametrize(("lease", "own"), [(2.0, 60.0), (300.0, 300.0)])
def test_leases_of_worker_processes_are_long_enough_for_an_overloaded_machine(
    lease: float, own: float
) -> None:
    settings = Settings()
    frontier = replace(settings.frontier, lease_duration=lease)
    settings = replace(settings, frontier=frontier, crawl=replace(settings.crawl, workers=2))
    assert settings_of_worker(settings).frontier.lease_duration == own
