"""The engine's index of fingerprints and the filter before it: their rows, their files and earlier versions."""

from __future__ import annotations

import pytest

from skitter.frontier.engine.answers.near_duplicates import remember
from skitter.frontier.tables import near_index
from skitter.frontier.tables.transaction import Transaction
from skitter.schedule.near import NEAR
from tests.contract.test_near_duplicates import HOSTS, TEXT, A, B, C, D, resemblance, text, visit
from tests.engine_kit import engine_of
from tests.frontier_fixtures import Start
from tests.frontier_kit import Driver


def near_rows(driver: Driver) -> dict[bytes, bytes]:
    return dict(engine_of(driver)._cache.store.scan("near", b"", b"\xff" * 10))


def test_a_page_repeated_often_adds_one_entry(driver: Driver) -> None:
    visit(driver, A, text())
    before = near_rows(driver)
    for number in range(5):
        visit(driver, f"{HOSTS[2 + number]}/", text(*range(number % (NEAR + 1))))
    assert near_rows(driver).keys() == before.keys()
    assert sum(map(len, near_rows(driver).values())) == sum(map(len, before.values()))
    assert driver.explain(A).resembling == 5


def test_a_filter_that_has_become_too_small_forgets_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_index, "_SMALLER", (8, 16))
    monkeypatch.setattr(near_index, "_LOOKED_AFTER", 1)
    driver = start()
    far_apart = [text(*range(number, 64, 7)) for number in range(6)]
    for number, page in enumerate(far_apart):
        visit(driver, f"{HOSTS[number]}/", page)
    assert len(engine_of(driver)._cache.near._sizes) == 1  # it has all of its room, and had a part before
    driver.restart()
    driver.clock.advance(1)
    visit(driver, f"{HOSTS[6]}/", text(*range(2, 64, 7), 1))
    assert resemblance(driver, f"{HOSTS[6]}/") == (C, 1)
    assert len(engine_of(driver)._cache.near._sizes) == 1
    driver.reopen()  # a death: it is learnt from the store
    driver.clock.advance(1)
    visit(driver, f"{HOSTS[7]}/", text(*range(3, 64, 7), 1))
    assert resemblance(driver, f"{HOSTS[7]}/") == (D, 1)


def test_the_filter_that_a_clean_end_left_is_believed_and_one_that_is_older_is_not(start: Start) -> None:
    driver = start()
    visit(driver, A, text())
    for _ in range(2):  # the second time nobody has asked it meanwhile
        driver.restart()
    assert engine_of(driver)._cache.near._stamp
    driver.clock.advance(1)
    visit(driver, B, text(1))
    visit(driver, C, text(*range(20)))
    assert resemblance(driver, B) == (A, 1)
    driver.reopen()  # a death: the file does not know C
    assert not engine_of(driver)._cache.near._stamp
    driver.clock.advance(1)
    visit(driver, D, text(*range(21)))
    assert resemblance(driver, D) == (C, 1)


def leave_as_an_earlier_version(driver: Driver) -> None:
    """What is known of fingerprints, by six shorter keys; then the frontier is opened again."""
    with Transaction.begin(engine_of(driver)._cache, driver.clock.now()) as tx:
        for key in near_rows(driver):
            if key[0]:
                tx.delete("near", key)
        for number in range(1, 7):
            tx.put("near", bytes((number, 0, 0, 0, number)), TEXT.to_bytes(8, "big"))
    driver.die()
    driver.open()
    driver.clock.advance(1)


def test_an_index_of_an_earlier_version_is_taken_over(driver: Driver) -> None:
    visit(driver, A, text())
    leave_as_an_earlier_version(driver)
    assert engine_of(driver)._cache.near.suspects([TEXT])
    visit(driver, B, text(40, 41))
    assert resemblance(driver, B) == (A, 2)
    assert {key[0] for key in near_rows(driver)} == {0, 7, 8}


def test_an_index_of_an_earlier_version_is_taken_over_before_anything_is_taken_out_of_it(
    driver: Driver,
) -> None:
    """Else what was read of it before would count as what is there."""
    visit(driver, A, text())
    visit(driver, C, text(0, 1, 2, 3))  # the same upper half
    leave_as_an_earlier_version(driver)
    with Transaction.begin(engine_of(driver)._cache, driver.clock.now()) as tx:
        key = next(key for key, raw in tx.cache.store.scan("urls", b"", b"\xff" * 17) if C.encode() in raw)
        row = tx.url(key)
        assert row is not None
        remember(tx, key, row, None)
        tx.put_url(key, row)
    visit(driver, B, text(4, 5))
    assert resemblance(driver, B) == (A, 2)
