"""The engine admits links in runs and in batches, and knows many by their keys alone: all as if one by one."""

from __future__ import annotations

import pytest

from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.link_batches import count_links
from skitter.settings import Settings
from tests.contract.test_links_of_a_page import OPEN, TIGHT, crawl, pages, singly
from tests.engine_kit import engine_of
from tests.frontier_audit import Tables
from tests.frontier_fixtures import Start
from tests.frontier_kit import Driver


def one_by_one(frontier: EngineFrontier) -> None:
    admission = frontier._admission
    admission.admit_run = lambda tx, run: [admission.admit(tx, found) for found in run]  # type: ignore[method-assign]
    frontier._cache.known_keys.find_missing = lambda keys, ident: list(range(len(keys) // 16))  # type: ignore[assignment]
    frontier._cache.known_keys.find_news = lambda keys, *_: list(range(len(keys) // 16))  # type: ignore[assignment]


def what_is_known(driver: Driver) -> dict[str, object]:
    """Everything on disk. The row of a new URL may leave out what has its default: these are compared as read."""
    tables = Tables(engine_of(driver)._cache.store)
    return {**tables.raw, "urls": tables.urls}


@pytest.mark.parametrize("settings", [OPEN, TIGHT], ids=["open", "tight"])
def test_links_in_bundles_and_links_one_by_one_leave_the_same_frontier(
    start: Start, settings: Settings
) -> None:
    plain, packed = pages(60, singly), pages(60)
    assert [count_links(page) for page in plain] == [count_links(page) for page in packed]
    together, in_bundles, alone = start(settings), start(settings), start(settings)
    one_by_one(engine_of(alone))
    expected = crawl(alone, plain)
    assert sum(one.added for one in expected) > 30
    assert sum(one.known for one in expected) > 30
    for driver, answers in ((together, plain), (in_bundles, packed)):
        assert crawl(driver, answers) == expected
        assert what_is_known(driver) == what_is_known(alone)
