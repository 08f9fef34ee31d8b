"""A page whose text resembles that of a page known before is recorded with that page and the distance."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from skitter.model import FailureKind, Fetched, NotModified, Result, VerdictKind
from tests.frontier_kit import OK, Driver, failed, redirected, seed

HOSTS = [f"http://{name}.test" for name in "abcdefgh"]
A, B, C, D = (f"{host}/" for host in HOSTS[:4])
TEXT = 0x0123_4567_89AB_CDEF


def text(*flipped: int) -> Fetched:
    """A page whose fingerprint differs from that of `TEXT` in these bits."""
    bits = TEXT
    for bit in flipped:
        bits ^= 1 << bit
    return replace(OK, digest=bits.to_bytes(32, "big"), simhash=bits)


def visit(driver: Driver, url: str, result: Result) -> None:
    if not driver.explain(url).known:
        driver.open_host(url)
    else:
        assert driver.refresh(url=url) == 1
    driver.fetch(result)
    driver.clock.advance(1)


def resemblance(driver: Driver, url: str) -> tuple[str, int | None]:
    found = driver.explain(url)
    return found.resembles, found.distance


NOTHING = ("", None)


@pytest.mark.parametrize(
    ("flipped", "expected"),
    [((), (A, 0)), ((63,), (A, 1)), ((0, 32), (A, 2)), ((0, 1, 2), (A, 3)), ((5, 16, 40), (A, 3))],
)
def test_a_page_within_three_bits_resembles_the_earlier_one(
    driver: Driver, flipped: tuple[int, ...], expected: tuple[str, int]
) -> None:
    visit(driver, A, text())
    visit(driver, B, text(*flipped))
    assert resemblance(driver, A) == NOTHING
    assert resemblance(driver, B) == expected
    assert driver.explain(A).resembling == 1
    assert driver.stats().near_duplicates == 1


@pytest.mark.parametrize("flipped", [(0, 1, 2, 3), (0, 20, 40, 60), tuple(range(64))])
def test_a_page_further_away_resembles_nothing(driver: Driver, flipped: tuple[int, ...]) -> None:
    visit(driver, A, text())
    visit(driver, B, text(*flipped))
    assert resemblance(driver, B) == NOTHING
    assert driver.stats().near_duplicates == 0


@pytest.mark.parametrize("url", [A, B], ids=["original", "resemblance"])
def test_a_page_whose_type_became_unwanted_resembles_nothing_once_it_is_a_seed(
    driver: Driver, url: str
) -> None:
    visit(driver, A, text())
    visit(driver, B, text(1))
    visit(driver, url, failed(FailureKind.TYPE_UNWANTED))
    assert driver.explain(url).state == "refused"
    assert [verdict.kind for verdict in driver.admit(seed(url))] == [VerdictKind.ADDED]
    assert driver.explain(url).simhash == ""
    assert driver.stats().near_duplicates == (1 if url == A else 0)
    driver.fetch(text(1))
    assert resemblance(driver, url) == (NOTHING if url == A else (A, 1))


def test_pages_without_a_fingerprint_resemble_nothing(driver: Driver) -> None:
    visit(driver, A, OK)
    visit(driver, B, OK)
    assert resemblance(driver, B) == NOTHING
    assert driver.explain(B).simhash == ""


def test_pages_of_one_settle_see_each_other(driver: Driver) -> None:
    driver.open_host(A, B)
    first, second = driver.lease()
    driver.settle(driver.outcome(first, text()), driver.outcome(second, text(7)))
    one, other = first.tasks[0].url, second.tasks[0].url
    assert (resemblance(driver, one), resemblance(driver, other)) == (NOTHING, (one, 1))


def test_settling_twice_counts_once(driver: Driver) -> None:
    visit(driver, A, text())
    driver.open_host(B)
    outcome = driver.outcome(driver.lease_one(), text(1))
    assert driver.settle(outcome)[0].near == 1
    assert driver.settle(outcome)[0].near is None
    assert driver.settle(outcome, outcome)[1].near is None
    assert (driver.explain(A).resembling, driver.stats().near_duplicates) == (1, 1)


def test_fingerprints_survive_the_death_of_the_process(driver: Driver) -> None:
    visit(driver, A, text())
    driver.reopen()
    driver.clock.advance(1)
    visit(driver, B, text(1, 2))
    driver.reopen()
    assert resemblance(driver, B) == (A, 2)
    assert driver.stats().near_duplicates == 1


def test_what_resembles_a_resemblance_alone_is_an_original(driver: Driver) -> None:
    """A and C differ in four bits; B lies between them. Only originals are named."""
    visit(driver, A, text())
    visit(driver, B, text(0, 1))
    visit(driver, C, text(0, 1, 2, 3))
    assert [resemblance(driver, url) for url in (A, B, C)] == [NOTHING, (A, 2), NOTHING]


def test_of_several_originals_the_nearest_is_named(driver: Driver) -> None:
    visit(driver, A, text())
    visit(driver, B, text(0, 1, 2, 3))
    visit(driver, C, text(0, 1, 2))
    assert resemblance(driver, C) == (B, 1)


@pytest.mark.parametrize("again", [text(), text(9), text(9, 10, 11), NotModified(), failed()])
def test_a_page_does_not_resemble_itself(driver: Driver, again: Result) -> None:
    visit(driver, A, text())
    visit(driver, A, again)
    assert resemblance(driver, A) == NOTHING
    assert driver.stats().near_duplicates == 0


def test_a_changed_page_is_found_by_its_new_fingerprint_alone(driver: Driver) -> None:
    visit(driver, A, text())
    visit(driver, A, text(*range(20)))
    visit(driver, B, text())
    visit(driver, C, text(*range(21)))
    assert [resemblance(driver, url) for url in (A, B, C)] == [NOTHING, NOTHING, (A, 1)]


def test_a_page_that_became_different_is_no_longer_counted(driver: Driver) -> None:
    visit(driver, A, text())
    visit(driver, B, text(1))
    visit(driver, B, text(*range(20)))
    assert resemblance(driver, B) == NOTHING
    assert (driver.explain(A).resembling, driver.stats().near_duplicates) == (0, 0)


def test_a_resemblance_that_is_still_there_is_counted_once(driver: Driver) -> None:
    visit(driver, A, text())
    for flipped in ((1,), (1,), (1, 2), ()):
        visit(driver, B, text(*flipped))
    assert resemblance(driver, B) == (A, 0)
    assert (driver.explain(A).resembling, driver.stats().near_duplicates) == (1, 1)


def test_what_resembled_an_original_that_changed_says_so_still(driver: Driver) -> None:
    visit(driver, A, text())
    visit(driver, B, text(1))
    visit(driver, A, text(*range(20)))
    assert resemblance(driver, B) == (A, 1)
    assert driver.explain(A).resembling == 0
    visit(driver, B, text(*range(30, 50)))
    assert driver.stats().near_duplicates == 0


def test_an_original_that_stays_the_same_keeps_what_resembles_it(driver: Driver) -> None:
    visit(driver, A, text())
    visit(driver, B, text(1))
    visit(driver, A, text())
    assert driver.explain(A).resembling == 1


@pytest.mark.parametrize("end", [redirected(D), Fetched(status=404, size=3), Fetched(status=410)])
def test_a_page_that_has_gone_or_moved_is_resembled_no_more(driver: Driver, end: Result) -> None:
    visit(driver, A, text())
    visit(driver, A, end)
    visit(driver, B, text())
    assert resemblance(driver, B) == NOTHING


def test_a_failure_leaves_the_fingerprint_as_it_was(driver: Driver) -> None:
    visit(driver, A, text())
    visit(driver, A, failed(FailureKind.SERVER_ERROR))
    visit(driver, B, text())
    assert resemblance(driver, B) == (A, 0)


def test_of_many_originals_that_share_a_half_the_same_text_is_always_found(driver: Driver) -> None:
    """As the pages of a huge template may: no look-up reads more than 64 of them."""
    spread = random.Random(1)
    shared = [(TEXT >> 32 << 32) | spread.getrandbits(32) for _ in range(128)]
    driver.open_host(*(f"{A}page{number}" for number in range(len(shared))))
    left = shared.copy()
    while left:
        lease = driver.lease_one()
        driver.answer(lease, *(replace(OK, simhash=left.pop()) for _ in lease.tasks))
        driver.clock.advance(10)
    assert driver.stats().near_duplicates == 0
    for number, one in enumerate(sorted(shared)[-3:]):
        visit(driver, f"{HOSTS[number + 1]}/", replace(OK, simhash=one))
    assert driver.stats().near_duplicates == 3


@pytest.mark.parametrize("shared", [range(20), range(32, 52)])
def test_an_original_is_still_found_after_others_with_the_same_half(driver: Driver, shared: range) -> None:
    visit(driver, A, text())
    visit(driver, B, text(*shared))
    visit(driver, C, text(*shared[:3]))
    assert resemblance(driver, B) == NOTHING
    assert resemblance(driver, C) == (A, 3)
