"""Every way a fetch can fail has its row, its waits and its end."""

from __future__ import annotations

import msgspec
import pytest

from skitter.frontier.base import DeadLetter
from skitter.model import FailureKind, Host, HostPolicy, UrlState
from skitter.schedule.retry import RULES, attempts_allowed, wait_after
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, RetrySettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, seed

A, B = "http://a.test", "http://b.test"
BACKOFF = (60.0, 3600.0, 21600.0)
ONE_BY_ONE = Settings(politeness=PolitenessSettings(delay=2.0), frontier=FrontierSettings(tasks_per_lease=1))
_K = FailureKind
# What the documentation promises, kept apart from the table it checks: attempts, blames the host?, end.
PROMISED = {
    _K.DNS_NOT_FOUND: (2, True, UrlState.DEAD_LETTER),
    _K.DNS_FAILED: (5, True, UrlState.DEAD_LETTER),
    _K.DNS_TIMEOUT: (5, True, UrlState.DEAD_LETTER),
    _K.ADDRESS_REFUSED: (1, False, UrlState.REFUSED),
    _K.CONNECT_REFUSED: (5, True, UrlState.DEAD_LETTER),
    _K.CONNECT_TIMEOUT: (5, True, UrlState.DEAD_LETTER),
    _K.TLS_EXPIRED: (3, True, UrlState.DEAD_LETTER),
    _K.TLS_UNTRUSTED: (2, True, UrlState.DEAD_LETTER),
    _K.TLS_NAME: (2, True, UrlState.DEAD_LETTER),
    _K.TLS_HANDSHAKE: (3, True, UrlState.DEAD_LETTER),
    _K.FIRST_BYTE_TIMEOUT: (5, True, UrlState.DEAD_LETTER),
    _K.STALLED: (5, True, UrlState.DEAD_LETTER),
    _K.TOTAL_TIMEOUT: (3, False, UrlState.DEAD_LETTER),
    _K.CONNECTION_LOST: (5, True, UrlState.DEAD_LETTER),
    _K.PROTOCOL: (2, False, UrlState.DEAD_LETTER),
    _K.HEADERS_TOO_LARGE: (1, False, UrlState.DEAD_LETTER),
    _K.BAD_CODING: (2, False, UrlState.DEAD_LETTER),
    _K.BAD_REDIRECT: (1, False, UrlState.DEAD_LETTER),
    _K.ENDLESS_REDIRECT: (1, False, UrlState.DEAD_LETTER),
    _K.TYPE_UNWANTED: (1, False, UrlState.REFUSED),
    _K.THROTTLED: (5, True, UrlState.DEAD_LETTER),
    _K.SERVER_ERROR: (5, True, UrlState.DEAD_LETTER),
    _K.PROXY_FAILED: (5, True, UrlState.DEAD_LETTER),
    _K.LOGIN_FAILED: (3, True, UrlState.DEAD_LETTER),
    _K.TURNED_AWAY: (3, True, UrlState.DEAD_LETTER),
    _K.GATED: (1, False, UrlState.DEAD_LETTER),
    _K.OUTCOME_UNKNOWN: (1, False, UrlState.DEAD_LETTER),
}
# Where the waits are not those of the setting.
WAITS = {
    _K.DNS_NOT_FOUND: (3600.0,),
    _K.DNS_FAILED: (600.0, 3600.0),
    _K.DNS_TIMEOUT: (60.0, 600.0, 3600.0),
    _K.TLS_EXPIRED: (21_600.0, 86_400.0),
    _K.TLS_UNTRUSTED: (86_400.0,),
    _K.TLS_NAME: (86_400.0,),
    _K.PROXY_FAILED: (60.0, 600.0, 3600.0),
    _K.LOGIN_FAILED: (3600.0, 21_600.0),
    _K.TURNED_AWAY: (21_600.0, 86_400.0),
}


def test_no_kind_of_failure_lacks_a_row() -> None:
    assert set(RULES) == set(FailureKind) == set(PROMISED)


def test_waits_follow_the_backoff_and_the_last_repeats() -> None:
    waits = [wait_after(_K.STALLED, n, BACKOFF) for n in (1, 2, 3, 4, 99)]
    assert waits == [60.0, 3600.0, 21600.0, 21600.0, 21600.0]


def test_the_setting_caps_what_the_table_allows() -> None:
    assert attempts_allowed(_K.TOTAL_TIMEOUT, 2) == 2
    assert attempts_allowed(_K.TOTAL_TIMEOUT, 9) == 3


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_failure_is_retried_after_its_waits_and_ends_as_its_row_says(
    driver: Driver, kind: FailureKind
) -> None:
    attempts, blames, end = PROMISED[kind]
    driver.open_host(A + "/")
    in_a_row = 0
    for attempt in range(1, attempts + 1):
        lease = driver.lease_one()
        if lease.tasks[0].url.endswith("robots.txt"):  # a day has passed
            driver.answer(lease, NO_RULES)
            in_a_row = 0
            driver.clock.advance(64)
            lease = driver.lease_one()
        assert lease.tasks[0].attempt == attempt
        (settlement,) = driver.answer(lease, failed(kind))
        in_a_row += blames
        assert driver.host(A).failures_in_a_row == in_a_row
        if attempt == attempts:
            assert settlement.state is end
            break
        assert settlement.state is UrlState.FAILED
        waits = WAITS.get(kind, BACKOFF)
        _waits(driver, waits[min(attempt, len(waits)) - 1])
    assert driver.stats().failures == {kind: attempts}
    assert [letter.kind for letter in _letters(driver)] == ([kind] if end is UrlState.DEAD_LETTER else [])
    assert driver.stats().refusals == ({kind: 1} if end is UrlState.REFUSED else {})
    driver.clock.advance(86_400 * 9)
    assert driver.promote() == 0


def _waits(driver: Driver, seconds: float) -> None:
    driver.clock.advance(seconds - 0.001)
    assert driver.promote() == 0
    driver.clock.advance(0.001001)
    assert driver.promote() == 1


def _letters(driver: Driver, host: str | None = None) -> list[DeadLetter]:
    return driver.ask(driver.frontier.dead_letters(limit=100, host=Host(host) if host else None))


def test_a_failing_host_backs_off_further_each_time_and_then_is_quarantined(start: Start) -> None:
    driver = start(msgspec.structs.replace(ONE_BY_ONE, retry=RetrySettings(quarantine_after=4)))
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(9)))
    waits = []
    for _ in range(5):
        driver.fetch(failed())
        waits.append(driver.host(A).next_start - driver.clock.now())
        assert driver.stats().hosts["backing_off"] == 1
        assert driver.lease() == []
        driver.clock.advance(waits[-1])
        if waits[-1] == 86_400:
            driver.fetch(NO_RULES)
            driver.clock.advance(2)
    assert waits == [60.0, 3600.0, 21600.0, 86_400.0, 60.0]


def test_a_good_answer_ends_the_backoff(start: Start) -> None:
    driver = start(ONE_BY_ONE)
    driver.open_host(A + "/")
    driver.admit(discovered(A + "/2"), discovered(A + "/3"))
    driver.fetch(failed())
    driver.clock.advance(60)
    driver.fetch(OK)
    assert driver.host(A).failures_in_a_row == 0
    driver.clock.advance(2)
    assert driver.lease_one().host == A


def test_one_hosts_failure_does_not_hold_up_another(driver: Driver) -> None:
    driver.open_host(A + "/", B + "/")
    driver.admit(discovered(B + "/2"))
    for lease in driver.lease():
        driver.answer(lease, failed() if lease.host == A else OK)
    driver.admit(discovered(B + "/3"))
    driver.clock.advance(1)
    assert driver.lease_one().host == B


def test_due_retries_are_promoted_once_in_a_restarted_crawl_too(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(_K.PROTOCOL))
    driver.reopen()
    driver.clock.advance(59)
    assert driver.promote() == 0
    driver.clock.advance(1)
    assert driver.promote() == 1
    assert driver.promote() == 0
    driver.reopen()
    assert driver.promote() == 0
    assert driver.stats().urls["queued"] == 1


def test_many_due_retries_are_promoted_in_bounded_steps_and_many_dead_letters_requeued(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(scope="any")), audited=False)
    driver.admit(*(seed(f"http://h{i}.test/") for i in range(2100)))
    for result in (NO_RULES, failed(_K.PROTOCOL)):
        leases = driver.lease(capacity=3000)
        driver.settle(*(driver.outcome(lease, result) for lease in leases))
        driver.clock.advance(60)
    assert [driver.promote() for _ in range(3)] == [2000, 100, 0]
    leases = driver.lease(capacity=3000)
    driver.settle(*(driver.outcome(lease, failed(_K.PROTOCOL)) for lease in leases))
    assert driver.stats().urls["dead_letter"] == 2100
    assert driver.requeue() == 2100


# -- dead letters and the operator


def with_dead_letters(driver: Driver) -> None:
    driver.open_host(A + "/1", A + "/2", B + "/1")
    for lease in driver.lease():
        driver.answer(lease, failed(_K.HEADERS_TOO_LARGE))
    driver.clock.advance(1)


def test_dead_letters_say_what_happened(driver: Driver) -> None:
    with_dead_letters(driver)
    letters = _letters(driver, A)
    assert sorted(letter.url for letter in letters) == [A + "/1", A + "/2"]
    assert {(le.kind, le.detail, le.attempts) for le in letters} == {
        ("headers_too_large", "as the test says", 1)
    }
    assert len(_letters(driver)) == 3


@pytest.mark.parametrize(
    ("host", "url", "moved"),
    [(None, A + "/1", 1), (A, None, 2), (None, None, 3), (None, A + "/9", 0), (None, "mailto:x", 0)],
)
def test_dead_letters_go_back_to_the_queue_when_asked(
    driver: Driver, host: str | None, url: str | None, moved: int
) -> None:
    with_dead_letters(driver)
    assert driver.requeue(host=host, url=url) == moved
    assert driver.requeue(host=host, url=url) == 0
    assert len(_letters(driver)) == 3 - moved
    tasks = [task for lease in driver.lease() for task in lease.tasks]
    assert len(tasks) == moved
    assert all(task.attempt == 1 for task in tasks)


def test_a_requeued_url_need_not_wait_out_its_hosts_backoff_but_keeps_the_delay(start: Start) -> None:
    driver = start(Settings(retry=RetrySettings(attempts=1)))
    driver.open_host(A + "/")
    driver.fetch(failed())
    assert driver.requeue() == 1
    driver.clock.advance(0.5)
    assert driver.lease() == []
    driver.clock.advance(0.5)
    assert driver.lease_one().host == A


def test_what_is_not_dead_is_not_requeued(driver: Driver) -> None:
    driver.open_host(A + "/")
    assert driver.requeue(url=A + "/") == 0
    driver.fetch(failed(_K.TYPE_UNWANTED))
    assert driver.requeue() == 0
    assert driver.explain(A + "/").state == "refused"


@pytest.mark.parametrize(("kind", "over"), [(_K.TLS_UNTRUSTED, True), (_K.CONNECT_REFUSED, False)])
def test_a_policy_not_to_mind_the_certificate_ends_the_wait_for_it(
    driver: Driver, kind: FailureKind, over: bool
) -> None:
    driver.admit(seed(A + "/"))
    driver.fetch(failed(kind))
    driver.clock.advance(1)
    driver.set_policy(A, HostPolicy(verify_tls=False))
    leases = driver.lease()
    assert [lease.verify_tls for lease in leases] == ([False] if over else [])
