"""What the engine keeps in memory and in its rows, where the contract does not tell: bounds, caches, fields."""

from __future__ import annotations

import pytest

from skitter.errors import SettingsError
from skitter.frontier.engine import addresses
from skitter.frontier.link_batches import pack
from skitter.frontier.rows import UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.url_patterns import pattern_of
from skitter.model import Discovered, FailureKind, Fetched, Host, NotModified, Redirected, Via
from skitter.settings import CrawlSettings, FrontierSettings, KeySettings, Settings
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import Keys
from tests.contract.test_addresses import name
from tests.contract.test_addresses import settings as address_settings
from tests.contract.test_refresh import LATER, visited
from tests.engine_kit import engine_of
from tests.frontier_fixtures import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, seed
from tests.keys import key_of

A = "http://a.test"


# -- memory is bounded


@pytest.mark.parametrize("cached_hosts", [1, 2, 100])
def test_no_more_hosts_are_cached_than_the_settings_say(start: Start, cached_hosts: int) -> None:
    driver = start(
        Settings(
            crawl=CrawlSettings(scope="any"),
            frontier=FrontierSettings(cached_hosts=cached_hosts, recent_keys=4),
        )
    )
    driver.admit(*(seed(f"http://h{number}.test/") for number in range(8)))
    driver.serve(3, capacity=5)
    driver.promote()
    assert len(engine_of(driver)._cache._hosts) <= cached_hosts


def test_what_was_heard_of_a_url_is_forgotten_when_there_is_room_for_few(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(scope="any"), frontier=FrontierSettings(recent_keys=16)))
    driver.open_host(A + "/")
    fan = key_of("http://fan.test/")
    urls = [f"{A}/{number}" for number in range(33)]
    driver.admit(*(discovered(url, depth=6, parent=fan, priority=None) for url in urls))
    assert engine_of(driver)._cache.recent.get(key_of(urls[0])) is None


def test_idle_addresses_are_forgotten_and_busy_ones_are_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_MOST_IDLE", 3)
    driver = start(address_settings(1.0))
    table = engine_of(driver)._leasing._addresses
    table._forget_at = 3
    driver.addresses = {name(i): f"93.184.216.{i}" for i in range(8)}
    driver.open_host(*(name(i) + "/" for i in range(8)))
    busy = driver.lease(capacity=2)
    for lease in driver.lease(capacity=3):
        driver.answer(lease, OK)
    driver.clock.advance(30)
    driver.admit(*(discovered(f"{lease.host}/2") for lease in busy))
    driver.lease()
    assert {driver.addresses[lease.host] for lease in busy} <= set(table._known)
    assert len(table._known) < 8


# -- what is cached follows the disk: the audit after every call compares them


def test_what_is_kept_of_a_large_hosts_new_urls_follows_what_other_hosts_say_of_them(start: Start) -> None:
    """The audit after every call compares it with the disk."""
    driver = start(Settings(crawl=CrawlSettings(scope="any")))
    hosts = [f"http://h{number}.test" for number in range(5)]
    large = hosts[0]
    driver.open_host(*(host + "/" for host in hosts))
    leases = {lease.host: lease for lease in driver.lease()}
    pages = [
        tuple(discovered(f"{large}/{number}", priority=None) for number in half)
        for half in (range(70), range(70, 140))
    ]
    driver.answer(leases[Host(large)], Fetched(status=200, link_batches=pack(pages[0])))
    driver.answer(leases[Host(hosts[1])], Fetched(status=200, link_batches=pack(pages[1])))
    assert key_of(large + "/139") in engine_of(driver)._cache._held
    before = driver.explain(large + "/139").priority
    for host in hosts[2:]:
        link = discovered(large + "/139", parent=key_of(host + "/"), priority=None)
        driver.answer(leases[Host(host)], Fetched(status=200, link_batches=pack([link])))
    assert driver.explain(large + "/139").priority > before
    driver.clock.advance(1)
    (lease,) = driver.lease()
    assert lease.tasks[0].url == large + "/139"


def test_the_pattern_of_a_page_that_moves_to_a_folded_host_follows_it(start: Start) -> None:
    driver = start(Settings(keys=KeySettings(scheme=True, www=True), crawl=CrawlSettings(scope="domain")))
    keys = Keys(driver.settings.keys)
    key = keys.key_of(A + "/")

    def folded(url: str, via: Via, hops: int = 0) -> Discovered:
        return Discovered(url=url, key=key, host=host_of(url), depth=0, via=via, hops=hops)

    driver.admit(folded(A + "/", Via.SEED))
    driver.fetch(NO_RULES)
    driver.clock.advance(1)
    # as a lease of a host that repeats itself does
    pattern_of(engine_of(driver)._cache, host_id(A), key, A + "/")
    there = folded("https://www.a.test/", Via.REDIRECT, 1)
    driver.fetch(Redirected(status=301, location=there.url, target=there))
    assert driver.explain(A + "/").url == "https://www.a.test/"


# -- rows


def row_of(driver: Driver) -> UrlRow:
    row = engine_of(driver)._cache.url(key_of(A + "/"))
    assert row is not None
    return row


def test_304_leaves_the_record_and_the_status_of_the_body(driver: Driver) -> None:
    visited(driver, again=NotModified(record=LATER))
    row = row_of(driver)
    assert (row.answer.status, row.answer.digest, row.answer.record, row.answer.title) == (
        200,
        b"d" * 32,
        ("s", 1, 2),
        "T",
    )
    assert (row.answer.etag, row.answer.last_modified) == ('"e1"', "then")


def test_the_same_body_again_leaves_its_record(driver: Driver) -> None:
    visited(driver, again=Fetched(status=200, size=10, digest=b"d" * 32, etag='"e2"', record=LATER))
    row = row_of(driver)
    assert (row.answer.record, row.answer.etag, row.answer.last_modified) == (("s", 1, 2), '"e2"', "")


def test_a_changed_body_has_its_own_record(driver: Driver) -> None:
    visited(driver, again=Fetched(status=200, size=11, digest=b"n" * 32, record=LATER))
    row = row_of(driver)
    assert (row.answer.digest, row.answer.record, row.answer.etag) == (b"n" * 32, ("s", 50, 2), "")


def test_a_failure_in_between_does_not_lose_the_status_of_the_body(driver: Driver) -> None:
    visited(driver)
    driver.refresh()
    driver.fetch(failed(FailureKind.SERVER_ERROR))
    driver.clock.advance(60)
    assert driver.promote() == 1
    driver.fetch(NotModified())
    assert row_of(driver).answer.status == 200


# -- earlier versions


def test_a_store_that_does_not_say_was_made_with_the_first_keys(driver: Driver) -> None:
    driver.open_host(A + "/")
    with Transaction.begin(engine_of(driver)._cache, driver.clock.now()) as tx:
        tx.delete("meta", b"keys")
    with pytest.raises(SettingsError, match="put back rules = 1"):
        driver.reopen()
    driver.reopen(Settings(keys=KeySettings(rules=1)))
    assert driver.explain(A + "/").known
