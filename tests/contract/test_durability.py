"""What a crash, a restart or a failed write leaves behind."""

from __future__ import annotations

import pytest

from skitter.errors import StoreFailed
from skitter.frontier.rocks.store import Batch
from tests.frontier_kit import Driver, audit, robots


def break_next_write(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next batch fails as a full disk would make it; the ones after it succeed."""

    def fail(batch: Batch) -> None:
        monkeypatch.undo()
        raise StoreFailed("the test broke this write")

    monkeypatch.setattr(driver.frontier._store, "write", fail)


def test_rules_whose_write_failed_are_forgotten(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.open_host("http://a.test/private/1", body=robots("Allow: /"))
    driver.clock.advance(86_400)
    lease = driver.lease_one()
    break_next_write(driver, monkeypatch)
    with pytest.raises(StoreFailed):
        driver.answer(lease, robots("Disallow: /private/"))
    audit(driver.frontier)
    assert driver.explain("http://a.test/private/1").robots.startswith("allowed")
