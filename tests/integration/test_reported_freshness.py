"""The freshness that is reported follows what visits found, beside what was forecast of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from skitter.frontier.rows import Forecasts, Lateness
from skitter.model import Fetched, TaskKind
from skitter.settings import PolitenessSettings, RevisitSettings, Settings, TrapSettings
from tests.frontier_kit import NO_RULES, Driver
from tests.frontier_stores import MemoryDisk

HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    settings = Settings(
        revisit=RevisitSettings(
            keep_fresh=True, audit=0.0, per_second=50.0, rule="fixed", interval=DAY, min_age=HOUR
        ),
        politeness=PolitenessSettings(address_rate=0.0),
        traps=TrapSettings(mode="off"),
    )
    opened = Driver(MemoryDisk(tmp_path / "frontier"), settings, audited=False)
    yield opened
    opened.close()


def serve(driver: Driver, body: int) -> None:
    """Every page says something else than before."""
    changed = Fetched(status=200, content_type="text/html", size=10, digest=body.to_bytes(32, "big"))
    for _ in range(5):
        driver.promote()
        for lease in driver.lease():
            driver.answer(lease, NO_RULES if lease.tasks[0].kind is TaskKind.ROBOTS else changed)
        driver.clock.advance(1)


def test_changes_that_nobody_expected_make_it_lower(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.open_host(*(f"http://h{number}.test/" for number in range(20)))
    for body in range(1, 5):
        serve(driver, body)
        driver.clock.advance(DAY)
    reported = driver.ask(driver.frontier.freshness()).expected_plain
    driver.reopen()
    assert driver.ask(driver.frontier.freshness()).expected_plain == reported
    monkeypatch.setattr("skitter.frontier.engine.explain.freshness.correction", lambda *_: 1.0)
    forecast = driver.ask(driver.frontier.freshness()).expected_plain
    assert reported is not None
    assert forecast is not None
    assert 1 - reported > 1.2 * (1 - forecast)


def test_a_correction_needs_more_than_a_few_visits() -> None:
    forecasts = Forecasts()
    assert forecasts.correction == 1.0
    forecasts.add(0.1, changed=True)
    assert 1.0 < forecasts.correction < 1.5
    for _ in range(2_000):
        forecasts.add(0.1, changed=False)
        forecasts.add(0.3, changed=True)
    assert forecasts.correction == pytest.approx(2.5, rel=0.02)


def test_a_correction_is_surer_the_more_was_seen() -> None:
    forecasts, errors = Forecasts(), [Forecasts().error]
    for visit in range(2_000):
        forecasts.add(0.3, changed=visit % 3 == 0)
        if visit in (20, 200, 1_999):
            errors.append(forecasts.error)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.06


def test_a_page_that_is_visited_often_counts_no_more_than_others() -> None:
    """Two pages for as many days: one is visited ten times as often, and forecast too low."""
    forecasts = Forecasts()
    for visit in range(4_400):
        is_rare = visit % 11 == 0
        forecasts.add(0.4, changed=is_rare and visit % 22 == 0, weight=10.0 if is_rare else 1.0)
    assert forecasts.correction == pytest.approx(0.25 / 0.4, rel=0.05)


def test_old_forecasts_count_less() -> None:
    forecasts = Forecasts()
    for changed in itertools.chain([True] * 3_000, [False] * 5_000):
        forecasts.add(0.5, changed=changed)
    assert forecasts.correction < 0.05


def test_audits_reach_as_far_as_visits_are_late() -> None:
    lateness = Lateness()
    assert lateness.stretch == 1.0
    for _ in range(3_000):
        lateness.add(planned=0.5, took=1.0)
    assert lateness.stretch == pytest.approx(2.0, rel=0.01)
