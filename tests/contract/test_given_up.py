"""A host that can never be reached is given up in bounded time, with everything that waits for it."""

from __future__ import annotations

import msgspec
import pytest

from skitter.frontier.base import DeadLetter, HostStanding
from skitter.model import FailureKind, Host, HostPolicy, Result, TaskKind
from skitter.settings import CrawlSettings, PolitenessSettings, RetrySettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, redirected, seed

A, B, C = "http://a.test", "http://b.test", "http://c.test"
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
_K = FailureKind
QUICK = Settings(crawl=CrawlSettings(scope="any"), retry=RetrySettings(quarantine_after=1, quarantines=1))
# What the documentation promises, kept apart from the table it checks: the waits, after which it is given up.
USUAL = [MINUTE, HOUR, 6 * HOUR, 6 * HOUR, 6 * HOUR, DAY, DAY, DAY]
PROMISED = {
    _K.DNS_NOT_FOUND: [HOUR, HOUR],
    _K.DNS_FAILED: [10 * MINUTE, HOUR, HOUR, HOUR, HOUR],
    _K.DNS_TIMEOUT: [MINUTE, 10 * MINUTE, HOUR, *[HOUR] * 20],
    _K.TLS_EXPIRED: [6 * HOUR, DAY, DAY],
    _K.TLS_UNTRUSTED: [DAY, DAY],
    _K.TLS_NAME: [DAY, DAY],
    _K.TLS_HANDSHAKE: [MINUTE, HOUR, DAY],
    _K.PROXY_FAILED: [MINUTE, 10 * MINUTE, *[HOUR] * 23],
    _K.LOGIN_FAILED: [HOUR, 6 * HOUR, DAY],
    _K.TURNED_AWAY: [6 * HOUR, DAY, DAY],
}
# A host at an address that must not be dialled is not waited for at all.
WAITED_FOR = [kind for kind in FailureKind if kind is not _K.ADDRESS_REFUSED]


def letters(driver: Driver, host: str | None = None) -> list[DeadLetter]:
    return driver.ask(driver.frontier.dead_letters(limit=10_000, host=Host(host) if host else None))


def give_up(driver: Driver, *urls: str) -> None:
    """Both times robots.txt of the one host is asked for, nobody answers; the horizon is what is left."""
    driver.admit(*(seed(url) for url in urls))
    for _ in range(2):
        driver.fetch(failed(_K.CONNECT_REFUSED))
        driver.clock.advance(DAY)


@pytest.mark.parametrize("kind", WAITED_FOR)
def test_a_host_without_robots_txt_is_given_up_after_the_waits_of_its_kind(
    driver: Driver, kind: FailureKind
) -> None:
    driver.admit(seed(A + "/"), seed(A + "/2"))
    for wait in PROMISED.get(kind, USUAL):
        assert not driver.fetch(failed(kind)).gave_up
        assert driver.promote() == 0
        assert driver.host(A).next_start - driver.clock.now() == pytest.approx(wait)
        assert driver.host(A).standing == HostStanding.BACKING_OFF
        driver.clock.advance(wait)
    assert driver.fetch(failed(kind)).gave_up
    assert driver.host(A).standing == HostStanding.GIVEN_UP
    assert driver.promote() == 2
    assert driver.ask(driver.frontier.horizon()).next_at is None
    assert {(letter.url, letter.kind) for letter in letters(driver)} == {(A + "/", kind), (A + "/2", kind)}
    failures = len(PROMISED.get(kind, USUAL)) + 1
    explained = driver.explain(A + "/")
    assert explained.state == "dead_letter"
    assert explained.reason == f"its host is given up: {failures} failures in a row, {kind}: as the test says"


def test_one_failure_of_an_impatient_kind_does_not_end_the_patience_with_others(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    for kind in (_K.CONNECT_REFUSED, _K.CONNECT_TIMEOUT, _K.DNS_NOT_FOUND, _K.CONNECT_REFUSED):
        driver.fetch(failed(kind))
        assert driver.host(A).standing == HostStanding.BACKING_OFF
        driver.clock.advance(DAY)


def test_kinds_that_take_turns_add_up(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    for attempt in range(9):
        driver.fetch(failed((_K.CONNECT_REFUSED, _K.SERVER_ERROR)[attempt % 2]))
        driver.clock.advance(DAY)
    assert driver.host(A).standing == HostStanding.GIVEN_UP


def test_a_good_answer_in_between_starts_the_count_anew(start: Start) -> None:
    driver = start(QUICK)
    driver.open_host(*(f"{A}/{i}" for i in range(9)))
    for _ in range(3):
        lease = driver.lease_one()
        driver.settle(driver.outcome(lease, failed(_K.CONNECT_REFUSED)))
        driver.release(lease)
        driver.clock.advance(DAY)
        assert driver.host(A).standing == HostStanding.BACKING_OFF
        driver.fetch(NO_RULES)
        driver.clock.advance(1)


# -- what waits for it


def test_the_crawl_is_not_over_before_the_queue_of_a_given_up_host_is_empty(start: Start) -> None:
    driver = start(QUICK)
    give_up(driver, A + "/")
    horizon = driver.ask(driver.frontier.horizon())
    assert horizon.next_at is not None
    assert horizon.next_at <= driver.clock.now()
    assert "given up after 2 failures in a row" in driver.explain(A + "/").waits
    assert driver.lease() == []
    assert driver.promote() == 1
    assert driver.ask(driver.frontier.horizon()).next_at is None


def test_a_long_queue_is_emptied_in_bounded_steps_across_a_restart(start: Start) -> None:
    driver = start(QUICK, audited=False)
    give_up(driver, *(f"{A}/{i}" for i in range(4_500)))
    moved = [driver.promote()]
    assert sum(driver.stats().urls.values()) == 4_500
    assert driver.stats().urls["dead_letter"] == moved[0] == 2_000
    driver.reopen()
    moved += [driver.promote() for _ in range(3)]
    assert moved == [2_000, 2_000, 500, 0]
    assert driver.stats().urls["dead_letter"] == 4_500
    assert driver.requeue(host=A) == 4_500


def test_urls_found_later_for_a_host_that_is_given_up_are_dead_letters_too(start: Start) -> None:
    driver = start(QUICK)
    give_up(driver, A + "/")
    driver.promote()
    driver.admit(discovered(A + "/later"), seed(A + "/urgent"))
    assert driver.lease() == []
    assert driver.promote() == 2
    assert len(letters(driver, A)) == 3


def test_retries_that_come_due_after_their_host_was_given_up_are_dead_letters_too(start: Start) -> None:
    settings = msgspec.structs.replace(QUICK, politeness=PolitenessSettings(robots_ttl=9 * DAY))
    driver = start(settings)
    driver.open_host(A + "/", A + "/2")
    for _ in range(2):
        lease = driver.lease_one()
        driver.settle(driver.outcome(lease, failed(_K.CONNECT_REFUSED)))
        driver.release(lease)
        driver.clock.advance(DAY)
    assert driver.stats().urls["failed"] == 2
    assert [driver.promote() for _ in range(3)] == [2, 2, 0]
    assert {letter.url for letter in letters(driver)} == {A + "/", A + "/2"}


def test_retries_that_come_due_while_the_queue_of_their_host_is_emptied_are_not_passed_over(
    start: Start,
) -> None:
    settings = msgspec.structs.replace(QUICK, politeness=PolitenessSettings(robots_ttl=9 * DAY))
    driver = start(settings)
    driver.open_host(A + "/")
    driver.admit(*(seed(f"{A}/{number}", priority=80 - number) for number in range(3)))
    for _ in range(2):
        lease = driver.lease_one()
        driver.settle(driver.outcome(lease, failed(_K.CONNECT_REFUSED)))
        driver.release(lease)
        driver.clock.advance(DAY)
    before = driver.stats().urls
    assert before["failed"] == 2, "they are due, and more urgent than what is queued"
    assert before["queued"] == 2
    while driver.promote():
        pass
    assert len(letters(driver)) == 4


def test_a_lease_that_is_still_out_keeps_its_urls_until_it_ends(start: Start) -> None:
    driver = start(QUICK)
    driver.open_host(A + "/1", A + "/2", A + "/3")
    lease = driver.lease_one()
    driver.settle(*(driver.outcome(lease, failed(_K.CONNECT_REFUSED), task) for task in lease.tasks[:2]))
    assert driver.host(A).standing == HostStanding.ACTIVE
    assert driver.promote() == 0
    driver.settle(driver.outcome(lease, OK, lease.tasks[2]))
    assert driver.host(A).standing != HostStanding.GIVEN_UP, "it answered after all"


# -- the operator


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("scope", ["host", "url", "all"])
def test_requeueing_tries_the_host_again(start: Start, swept: bool, scope: str) -> None:
    driver = start(QUICK)
    give_up(driver, A + "/")
    if swept:
        driver.promote()
    asked = {"host": {"host": A}, "url": {"url": A + "/"}, "all": {}}[scope]
    moved = driver.requeue(**asked)
    if scope == "url" and not swept:
        return  # still queued: it is no dead letter yet
    assert moved == int(swept)
    assert driver.promote() == 0
    lease = driver.lease_one()
    assert lease.tasks[0].kind is TaskKind.ROBOTS
    driver.answer(lease, NO_RULES)
    driver.clock.advance(1)
    assert driver.lease_one().tasks[0].attempt == 1


def test_a_requeued_host_that_fails_again_is_given_up_again(start: Start) -> None:
    driver = start(QUICK)
    give_up(driver, A + "/")
    driver.promote()
    driver.requeue()
    for _ in range(2):
        driver.fetch(failed(_K.CONNECT_REFUSED))
        driver.clock.advance(DAY)
    assert driver.promote() == 1
    assert driver.explain(A + "/").state == "dead_letter"


# -- a robots.txt that lies with a host that is out of reach


def until_it_ends(driver: Driver, at_b: Result = NO_RULES) -> None:
    """Every robots.txt redirects to B, which answers so; in a few steps nothing is left to wait for."""
    for _ in range(60):
        driver.promote()
        for lease in driver.lease():
            driver.answer(lease, at_b if lease.host == B else redirected(B + "/shared.txt"))
        next_at = driver.ask(driver.frontier.horizon()).next_at
        if next_at is None:
            return
        driver.clock.advance(max(0.5, next_at - driver.clock.now()))
    raise AssertionError("something waits for ever")


@pytest.mark.parametrize("late", [True, False])
def test_a_robots_txt_at_a_blocked_host_does_not_make_the_asking_host_wait_for_ever(
    driver: Driver, late: bool
) -> None:
    driver.admit(seed(A + "/"))
    if late:
        driver.answer(driver.lease_one(), redirected(B + "/shared.txt"))
    driver.set_policy(B, HostPolicy(blocked=True))
    until_it_ends(driver)
    explained = driver.explain(A + "/")
    assert explained.state == "dead_letter"
    assert f"its robots.txt redirects to {B}, which the operator blocked" in explained.reason


def test_a_robots_txt_at_a_host_that_is_given_up_does_not_make_the_asking_host_wait_for_ever(
    start: Start,
) -> None:
    driver = start(QUICK)
    give_up(driver, B + "/")
    driver.promote()
    driver.admit(seed(A + "/"))
    until_it_ends(driver)
    assert f"redirects to {B}, which is given up" in driver.explain(A + "/").reason


def test_a_host_that_is_given_up_while_others_wait_for_its_answer_sends_them_back(start: Start) -> None:
    driver = start(QUICK)
    driver.admit(seed(A + "/"), seed(C + "/"))
    for lease in driver.lease():
        driver.answer(lease, redirected(B + "/shared.txt"))
    (lease,) = driver.lease(duration=2)
    assert len(lease.tasks) == 1
    driver.answer(lease, failed(_K.CONNECT_REFUSED))
    driver.clock.advance(DAY)
    until_it_ends(driver, failed(_K.CONNECT_REFUSED))
    assert {letter.url for letter in letters(driver)} == {A + "/", C + "/"}


def test_a_robots_txt_at_an_address_we_must_not_dial_ends_the_same_way(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    asked = 0
    while driver.ask(driver.frontier.horizon()).next_at is not None and asked < 30:
        driver.promote()
        for lease in driver.lease():
            asked += 1
            refused = failed(_K.ADDRESS_REFUSED)
            driver.answer(lease, refused if lease.host == B else redirected(B + "/shared.txt"))
        driver.clock.advance(HOUR)
    assert driver.explain(A + "/").state == "dead_letter"
    assert asked == 6


def test_a_blocked_hosts_own_urls_wait_for_the_operator(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.set_policy(A, HostPolicy(blocked=True))
    driver.clock.advance(400 * DAY)
    assert driver.promote() == 0
    assert driver.explain(A + "/").state == "queued"
    driver.set_policy(A, HostPolicy())
    assert driver.lease_one().host == A
