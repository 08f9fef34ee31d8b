"""Seeds without a scheme: https first, http where the host cannot be connected; nothing is lost on the way."""

from __future__ import annotations

import msgspec
import pytest

from skitter.model import Discovered, FailureKind, VerdictKind
from skitter.settings import KeySettings, Settings
from skitter.urls.keys import Keys
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, robots, seed

_K = FailureKind
CANNOT_BE_CONNECTED = {
    _K.CONNECT_REFUSED,
    _K.CONNECT_TIMEOUT,
    _K.TLS_EXPIRED,
    _K.TLS_UNTRUSTED,
    _K.TLS_NAME,
    _K.TLS_HANDSHAKE,
}
HTTPS, HTTP = "https://a.test", "http://a.test"


def bare(path: str = "/") -> Discovered:
    return msgspec.structs.replace(seed(HTTPS + path), over_http=HTTP + path)


def fail_robots(driver: Driver, kind: FailureKind = FailureKind.CONNECT_REFUSED) -> None:
    driver.answer(driver.lease_one(), failed(kind))


@pytest.mark.parametrize("kind", sorted(CANNOT_BE_CONNECTED))
def test_a_bare_seed_whose_host_cannot_be_connected_is_asked_over_http(
    driver: Driver, kind: FailureKind
) -> None:
    driver.admit(bare(), bare("/deep/page?x=1"))
    fail_robots(driver, kind)
    assert driver.stats().refusals == {"no_https": 2}
    assert driver.stats().urls["queued"] == 2
    lease = driver.lease_one()
    assert lease.host == HTTP
    driver.answer(lease, robots())
    driver.clock.advance(60)
    assert {task.url for task in driver.lease_one().tasks} == {HTTP + "/", HTTP + "/deep/page?x=1"}
    assert driver.explain(HTTPS + "/").leads_to == HTTP + "/"


@pytest.mark.parametrize(
    "kind", sorted(set(FailureKind) - CANNOT_BE_CONNECTED - {FailureKind.ADDRESS_REFUSED})
)
def test_other_failures_leave_a_bare_seed_where_it_is(driver: Driver, kind: FailureKind) -> None:
    driver.admit(bare())
    fail_robots(driver, kind)
    assert driver.explain(HTTP + "/").state == "unknown"
    assert driver.explain(HTTPS + "/").state in ("queued", "dead_letter")


def test_links_and_seeds_with_a_scheme_wait_for_their_host(driver: Driver) -> None:
    driver.admit(bare(), seed(HTTPS + "/given"), discovered(HTTPS + "/linked"))
    fail_robots(driver)
    assert [driver.explain(HTTPS + path).state for path in ("/given", "/linked")] == ["queued", "queued"]
    assert driver.explain(HTTP + "/").state == "queued"


def test_a_host_that_ever_answered_over_https_is_not_asked_over_http(driver: Driver) -> None:
    driver.admit(bare())
    driver.answer(driver.lease_one(), robots())
    driver.clock.advance(10)
    driver.fetch(failed())
    driver.clock.advance(90_000)  # its robots.txt is old by now
    driver.promote()
    fail_robots(driver)
    assert driver.explain(HTTP + "/").state == "unknown"


def test_the_fallback_survives_a_restart_before_the_host_was_asked(driver: Driver) -> None:
    driver.admit(bare())
    driver.reopen()
    driver.clock.advance(10)
    fail_robots(driver)
    assert driver.explain(HTTP + "/").state == "queued"


def test_a_bare_seed_that_was_led_to_http_is_known_when_it_is_given_again(driver: Driver) -> None:
    driver.admit(bare())
    fail_robots(driver)
    assert driver.admit(bare())[0].kind is VerdictKind.KNOWN
    assert driver.explain(HTTPS + "/").state == "refused"
    # with its scheme it is meant as it stands
    assert driver.admit(seed(HTTPS + "/"))[0].kind is VerdictKind.ADDED


def test_where_schemes_make_no_other_page_the_same_url_is_asked_over_http(start: Start) -> None:
    keys = KeySettings(scheme=True)
    driver = start(Settings(keys=keys))
    driver.admit(msgspec.structs.replace(bare(), key=Keys(keys).key_of(HTTPS + "/")))
    fail_robots(driver)
    assert sum(driver.stats().urls.values()) == 1
    driver.answer(driver.lease_one(), robots())
    driver.clock.advance(60)
    driver.fetch(OK)
    assert driver.explain(HTTP + "/").state == "completed"
