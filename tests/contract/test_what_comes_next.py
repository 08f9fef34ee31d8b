"""Who is asked next and why not now, which URLs were seeds, and what a lifted ban on addresses brings back."""

from __future__ import annotations

from skitter.frontier.base import LookedAgain
from skitter.model import FailureKind, Fetched, NotModified
from tests.frontier_kit import OK, Driver, discovered, failed, redirected, robots, seed

A, B = "http://a.test", "http://b.test"


def test_a_host_that_backs_off_is_named_with_its_time_and_failure(driver: Driver) -> None:
    driver.admit(seed(A + "/"), seed(B + "/"))
    for lease in driver.lease():
        driver.answer(lease, failed() if lease.host == A else robots())
    b, a = driver.ask(driver.frontier.upcoming(limit=5))
    assert (b.host, a.host) == (B, A)
    assert a.at > b.at
    assert a.why.startswith("connect_refused")
    assert driver.stats().next_at == b.at
    assert [one.host for one in driver.ask(driver.frontier.upcoming(limit=1))] == [B]


def test_a_url_that_waits_for_its_retry_is_named(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.TOTAL_TIMEOUT))
    (one,) = driver.ask(driver.frontier.upcoming(limit=5))
    assert (one.url, one.host, one.at) == (A + "/", A, driver.stats().next_at)


def test_nobody_is_next_when_nothing_is_left(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(OK)
    assert driver.ask(driver.frontier.upcoming(limit=5)) == []


def test_seeds_are_told_apart_from_what_was_found(driver: Driver) -> None:
    driver.admit(seed(A + "/"), discovered(A + "/linked"), seed(B + "/"))
    assert set(driver.ask(driver.frontier.seeds(limit=5))) == {A + "/", B + "/"}
    assert len(driver.ask(driver.frontier.seeds(limit=1))) == 1


def allow(driver: Driver, allowed: bool) -> int:
    return driver.run(driver.frontier.allow_private(allowed))


def test_allowing_private_addresses_brings_back_what_was_refused_for_them_once(driver: Driver) -> None:
    refused = failed(FailureKind.ADDRESS_REFUSED)
    assert allow(driver, False) == 0
    driver.admit(seed(A + "/"), discovered(A + "/linked"), seed(B + "/"), discovered("http://far.test/"))
    for lease in driver.lease():
        driver.answer(lease, refused if lease.host == A else robots())
    driver.clock.advance(10)
    driver.lease()  # looks at what waits, and refuses it
    assert driver.stats().refusals == {"address_refused": 2, "scope": 1}
    driver.reopen()
    assert allow(driver, True) == 2
    assert driver.stats().refusals == {"scope": 1}
    assert driver.explain(A + "/").state == driver.explain(A + "/linked").state == "queued"
    assert allow(driver, True) == 0
    driver.reopen()
    driver.clock.advance(10)
    assert A in [lease.host for lease in driver.lease()]


def test_what_is_refused_again_stays_refused_until_the_ban_is_lifted_anew(driver: Driver) -> None:
    allow(driver, True)
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.ADDRESS_REFUSED))
    assert allow(driver, True) == 0
    assert allow(driver, False) == 0
    assert allow(driver, True) == 1


def test_another_look_says_what_it_showed(driver: Driver) -> None:
    page = Fetched(status=200, size=10, digest=b"d" * 20)
    other = Fetched(status=200, size=10, digest=b"e" * 20)
    driver.open_host(A + "/")
    assert driver.fetch(page).again is None
    for result, shown in (
        (page, LookedAgain.UNCHANGED),
        (NotModified(), LookedAgain.UNCHANGED),
        (other, LookedAgain.CHANGED),
        (redirected(A + "/to"), LookedAgain.REDIRECTED),
        (Fetched(status=404), LookedAgain.GONE),
        (failed(FailureKind.TOTAL_TIMEOUT), LookedAgain.FAILED),
    ):
        driver.refresh(url=A + "/")
        driver.clock.advance(60)
        lease = driver.lease_one()
        told = driver.answer(lease, *[result if task.url == A + "/" else OK for task in lease.tasks])
        (again,) = [one.again for one, task in zip(told, lease.tasks, strict=True) if task.url == A + "/"]
        assert again is shown


def test_a_retry_is_no_other_look(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.TOTAL_TIMEOUT))
    driver.clock.advance(90)
    driver.promote()
    told = driver.fetch(OK)
    assert told.again is None


def test_a_failure_is_told_with_its_url(driver: Driver) -> None:
    driver.open_host(A + "/?x=1")
    assert driver.fetch(failed(FailureKind.TOTAL_TIMEOUT)).url == A + "/?x=1"
