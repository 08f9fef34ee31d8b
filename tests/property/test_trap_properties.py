"""Whatever order things happen in, a verdict loses no URL and has none fetched twice.

A host with a calendar, a parameter that changes nothing and honest pages; links, seeds, undone verdicts and
crashes in any order. The driver audits every table after every call: each URL is in one state, and what a verdict
refused is listed under it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from skitter.frontier.engine.traps import novelty
from skitter.model import Result
from tests.frontier_kit import Driver, discovered, seed
from tests.frontier_stores import RocksDisk
from tests.trap_kit import SETTINGS, A, Web, crawl, in_force, number_in, prose

SHAPES = (A + "/calendar/{}", A + "/page/3?sid={}", A + "/story/{}", A + "/{}/x/{}/x/{}/")
numbers = st.lists(st.integers(0, 60), min_size=1, max_size=25)
steps = st.one_of(
    st.tuples(st.just("link"), st.sampled_from(SHAPES), numbers),
    st.tuples(st.just("seed"), st.sampled_from(SHAPES), st.lists(st.integers(0, 60), min_size=1, max_size=2)),
    st.tuples(st.just("work"), st.just(""), st.lists(st.integers(5, 40), min_size=1, max_size=1)),
    st.tuples(st.sampled_from(["undo", "crash"]), st.just(""), st.just([0])),
)


def answer(web: Web, url: str) -> Result:
    if "/story/" in url:
        return web.page(url, prose(number_in(url) + 10), title=f"Story {prose(number_in(url))[:20]}")
    if "/calendar/" in url:
        return web.page(url, f"{prose(1)} {number_in(url)}", title=f"Month {number_in(url)}")
    return web.page(url, prose(2), title="Home")


def act(driver: Driver, web: Web, what: str, shape: str, given_numbers: list[int]) -> list[str]:
    urls = [shape.format(number, number, number) for number in given_numbers]
    match what:
        case "link":
            driver.admit(*map(discovered, urls))
        case "seed":
            driver.admit(*map(seed, urls))
        case "undo":
            for view in in_force(driver):
                assert driver.run(driver.frontier.undo_trap(view.id)) == view.refused
        case "crash":
            driver.reopen()
        case "work":
            return crawl(driver, partial(answer, web), most=given_numbers[0])
    return []


@profile(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=4, max_size=10))
def test_no_verdict_loses_a_url_or_has_one_fetched_twice(plan: list[tuple[str, str, list[int]]]) -> None:
    web = Web()
    with tempfile.TemporaryDirectory(prefix="skitter-traps-") as folder:
        driver = Driver(RocksDisk(Path(folder) / "frontier"), SETTINGS)
        try:
            asked: list[str] = []
            for what, shape, given_numbers in plan:
                asked += act(driver, web, what, shape, given_numbers)
            asked += crawl(driver, partial(answer, web))
            assert max(Counter(asked).values(), default=1) == 1
            stats = driver.stats()
            assert stats.urls["queued"] == stats.urls["in_progress"] == 0
            assert stats.refusals.get("trap", 0) == sum(view.refused for view in in_force(driver))
        finally:
            driver.close()


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_a_titles_letters_are_the_same_by_the_table_as_by_the_pattern(title: str) -> None:
    assert novelty._letters(title) == novelty._NO_LETTERS.sub(" ", title).encode()
