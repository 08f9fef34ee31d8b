"""What an outcome changes, once, and what a stale one cannot change."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from skitter.frontier.base import Settled
from skitter.frontier.link_batches import pack
from skitter.model import (
    Copy,
    FailureKind,
    Fetched,
    Host,
    HostLease,
    HostPolicy,
    NotModified,
    RecordAt,
    SegmentMark,
    TaskKind,
    UrlState,
)
from skitter.settings import FrontierSettings
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, redirected, robots, seed, token_of

A = "http://a.test"
COPY = Copy(url=A + "/", fetched_at=1.0, record_id="urn:uuid:1")
PAGE = Fetched(
    status=200,
    content_type="text/html",
    digest=b"d" * 32,
    size=11,
    record=RecordAt("s1", 0, 99),
    copy=COPY,
    link_batches=pack([discovered(A + "/linked"), discovered("http://far.test/"), discovered(A + "/linked")]),
)


def expired(driver: Driver) -> HostLease:
    """A page lease whose time ran out; its URL waits again and its host may be asked."""
    driver.open_host(A + "/")
    lease = driver.lease_one()
    driver.clock.advance(61)
    driver.reap()
    return lease


def counters(driver: Driver) -> dict[str, object]:
    """All that an outcome could change, but for the count of stale ones, when the host may be asked, and the
    politeness ledger: a request was made, whatever its outcome is worth."""
    stats = msgspec.to_builtins(driver.stats())
    del stats["stale_outcomes"], stats["next_at"], stats["politeness"]
    url = msgspec.structs.replace(driver.explain(A + "/"), next_at=None)
    return {**stats, "host": driver.host(A).fetched, "url": url}


def test_a_page_brings_its_links_its_copy_and_its_mark_in_one_act(driver: Driver) -> None:
    driver.open_host(A + "/")
    mark = SegmentMark("s1", 99, 9)
    (settlement,) = driver.settle(driver.outcome(driver.lease_one(), PAGE), marks=[mark])
    assert settlement.settled is Settled.ACCEPTED
    assert settlement.state is UrlState.COMPLETED
    assert (settlement.added, settlement.known, settlement.refused) == (1, 1, 1)
    assert driver.ask(driver.frontier.first_copies([b"d" * 32, b"x" * 32])) == [COPY, None]
    assert driver.ask(driver.frontier.marks()) == [mark]
    driver.reopen()
    assert driver.ask(driver.frontier.first_copies([b"d" * 32])) == [COPY]
    assert driver.ask(driver.frontier.marks()) == [mark]


def test_a_mark_moves_forward_with_its_segment(driver: Driver) -> None:
    for length in (10, 20):
        driver.settle(marks=[SegmentMark("s2", length, length), SegmentMark("s1", 5, 5)])
    assert driver.ask(driver.frontier.marks()) == [SegmentMark("s1", 5, 5), SegmentMark("s2", 20, 20)]


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_not_there_is_gone(driver: Driver, status: int) -> None:
    driver.open_host(A + "/")
    assert driver.fetch(Fetched(status=status)).state is UrlState.GONE
    assert driver.stats().pages == 0


@pytest.mark.parametrize("result", [NotModified(), Fetched(status=403), redirected(A + "/2")])
def test_an_answer_that_is_no_page_completes_its_url_and_counts_no_page(
    driver: Driver, result: NotModified
) -> None:
    driver.open_host(A + "/")
    assert driver.fetch(result).state is UrlState.COMPLETED
    assert driver.stats().pages == 0


# -- twice


@pytest.mark.parametrize("result", [PAGE, failed(), failed(FailureKind.PROTOCOL), redirected(A + "/2")])
@pytest.mark.parametrize("others", [0, 2])
def test_settling_twice_changes_nothing_the_second_time(driver: Driver, result: Fetched, others: int) -> None:
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/other{i}") for i in range(others)))
    lease = driver.lease_one()
    outcome = driver.outcome(lease, result)
    once, twice = driver.settle(outcome, outcome)
    assert (once.settled, twice.settled) == (Settled.ACCEPTED, Settled.STALE)
    before = counters(driver)
    assert driver.settle(outcome)[0].settled is Settled.STALE
    assert counters(driver) == before
    driver.reopen()
    assert driver.settle(outcome)[0].settled is Settled.STALE


def test_settling_robots_txt_twice_changes_nothing_the_second_time(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    lease = driver.lease_one()
    first, again = driver.outcome(lease, robots("Crawl-delay: 5")), driver.outcome(lease, robots())
    assert [s.settled for s in driver.settle(first, again)] == [Settled.ACCEPTED, Settled.STALE]
    assert driver.settle(again)[0].settled is Settled.STALE
    assert driver.host(A).delay == 5.0
    assert driver.stats().robots_fetches == 1


def test_a_failure_settled_again_after_its_retry_was_queued_changes_nothing(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.admit(discovered(A + "/2"))
    lease = driver.lease_one()
    failure = driver.outcome(lease, failed(FailureKind.PROTOCOL))
    driver.settle(failure)
    driver.renew(lease, 1000)
    driver.clock.advance(60)
    assert driver.promote() == 1
    before = counters(driver)
    good = driver.outcome(lease, OK)
    assert [s.settled for s in driver.settle(failure, good)] == [Settled.STALE] * 2
    assert counters(driver) == before


# -- stale and late


@pytest.mark.parametrize("change", [-1, 1, 1000])
@pytest.mark.parametrize("result", [PAGE, failed()])
def test_a_token_that_is_not_the_leases_changes_nothing(driver: Driver, change: int, result: Fetched) -> None:
    driver.open_host(A + "/")
    lease = driver.lease_one()
    before = counters(driver)
    wrong = msgspec.structs.replace(driver.outcome(lease, result), token=token_of(lease, change))
    assert driver.settle(wrong)[0].settled is Settled.STALE
    assert counters(driver) == before
    assert driver.stats().stale_outcomes == 1
    assert driver.settle(driver.outcome(lease, OK))[0].settled is Settled.ACCEPTED


def test_an_outcome_for_a_url_that_was_not_leased_changes_nothing(driver: Driver) -> None:
    driver.open_host(A + "/")
    lease = driver.lease_one()
    other = msgspec.structs.replace(driver.outcome(lease, PAGE), key=discovered(A + "/never").key)
    before = counters(driver)
    assert driver.settle(other)[0].settled is Settled.STALE
    assert counters(driver) == before


def test_an_outcome_for_a_host_nobody_knows_makes_no_host(driver: Driver) -> None:
    driver.open_host(A + "/")
    lease = driver.lease_one()
    stray = msgspec.structs.replace(driver.outcome(lease, OK), host=Host("http://nobody.test"))
    assert driver.settle(stray)[0].settled is Settled.STALE
    assert sum(driver.stats().hosts.values()) == 1


def test_an_outcome_that_names_another_known_host_changes_nothing(driver: Driver) -> None:
    driver.open_host(A + "/", "http://b.test/")
    lease, other = driver.lease()
    stray = msgspec.structs.replace(driver.outcome(lease, OK), host=other.host, token=other.token)
    assert driver.settle(stray)[0].settled is Settled.STALE


@pytest.mark.parametrize("result", [PAGE, redirected(A + "/2"), NotModified()])
def test_a_late_answer_for_an_unfetched_url_is_kept_once(driver: Driver, result: Fetched) -> None:
    lease = expired(driver)
    outcome = driver.outcome(lease, result)
    assert [s.settled for s in driver.settle(outcome, outcome)] == [Settled.LATE, Settled.STALE]
    assert driver.settle(outcome)[0].settled is Settled.STALE
    assert driver.explain(A + "/").state == "completed"
    assert driver.stats().fetches == 2


def test_a_late_page_is_kept_after_a_restart(driver: Driver) -> None:
    driver.open_host(A + "/")
    lease = driver.lease_one()
    driver.reopen()
    assert driver.settle(driver.outcome(lease, PAGE))[0].settled is Settled.LATE


def test_a_late_failure_changes_nothing(driver: Driver) -> None:
    lease = expired(driver)
    before = counters(driver)
    assert driver.settle(driver.outcome(lease, failed()))[0].settled is Settled.STALE
    assert counters(driver) == before


def test_a_late_page_does_not_come_in_between_a_newer_lease_on_that_url(driver: Driver) -> None:
    old = expired(driver)
    driver.clock.advance(1)
    new = driver.lease_one()
    before = counters(driver)
    assert driver.settle(driver.outcome(old, PAGE))[0].settled is Settled.STALE
    assert counters(driver) == before
    assert driver.settle(driver.outcome(new, OK))[0].settled is Settled.ACCEPTED


def test_a_late_page_is_dropped_when_the_url_was_fetched_since(driver: Driver) -> None:
    old = expired(driver)
    driver.clock.advance(1)
    driver.fetch(OK)
    before = counters(driver)
    assert driver.settle(driver.outcome(old, PAGE))[0].settled is Settled.STALE
    assert counters(driver) == before


def test_a_late_page_is_kept_while_a_newer_lease_is_out_on_other_urls(driver: Driver) -> None:
    old = expired(driver)
    usual = FrontierSettings().tasks_per_lease
    driver.admit(*(seed(f"{A}/{i}", priority=95) for i in range(usual)))
    driver.clock.advance(1)
    new = driver.lease_one()
    assert A + "/" not in [task.url for task in new.tasks]
    assert driver.settle(driver.outcome(old, PAGE))[0].settled is Settled.LATE
    assert {s.settled for s in driver.answer(new, OK)} == {Settled.ACCEPTED}


def test_a_late_robots_txt_is_not_obeyed_over_a_newer_one(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    old = driver.lease_one()
    driver.clock.advance(61)
    driver.reap()
    driver.clock.advance(1)
    driver.fetch(robots())
    driver.settle(driver.outcome(old, robots("Disallow: /")))
    driver.clock.advance(1)
    assert driver.lease_one().tasks[0].kind is TaskKind.PAGE


def test_an_outcome_of_the_wrong_kind_is_a_bug_and_leaves_nothing_behind(driver: Driver) -> None:
    driver.open_host(A + "/", "http://b.test/")
    one, two = driver.lease()
    before = driver.stats()
    with pytest.raises(TypeError):
        driver.settle(driver.outcome(one, OK), driver.outcome(two, robots()))
    assert driver.stats() == before
    assert driver.settle(driver.outcome(one, OK))[0].settled is Settled.ACCEPTED


def test_while_a_settling_is_open_every_other_call_that_writes_waits(driver: Driver) -> None:
    driver.admit(seed("http://a.test/"), seed("http://b.test/"))
    lease, other = driver.lease()
    host = [(other.host, other.token)]

    async def settle_slowly() -> None:
        frontier, outcomes = driver.frontier, [driver.outcome(lease, NO_RULES)]
        async with frontier.settling(outcomes) as settling:
            calls = [
                frontier.admit([seed("http://c.test/")]),
                frontier.lease("w2", 10, 60.0),
                frontier.renew(host, 90.0),
                frontier.release(host),
                frontier.settle([]),
                frontier.reap(driver.clock.now()),
                frontier.promote(driver.clock.now()),
                frontier.stored("a.warc.gz"),
                frontier.set_policy(other.host, HostPolicy(delay=5.0)),
                frontier.requeue(),
                frontier.refresh(),
            ]
            tasks = [asyncio.ensure_future(call) for call in calls]
            for _ in range(50):
                await asyncio.sleep(0)
            assert not any(task.done() for task in tasks)
            (settled,) = await settling.commit(outcomes)
            assert settled.settled is Settled.ACCEPTED
        await asyncio.gather(*tasks)

    driver.run(settle_slowly())


def test_a_settling_that_is_left_without_a_commit_changes_nothing(driver: Driver) -> None:
    driver.admit(seed("http://a.test/"))
    (lease,) = driver.lease()
    before = driver.stats()

    async def leave() -> None:
        with pytest.raises(RuntimeError):
            async with driver.frontier.settling([driver.outcome(lease, NO_RULES)]):
                raise RuntimeError

    driver.run(leave())
    assert driver.stats() == before
    (settled,) = driver.settle(driver.outcome(lease, NO_RULES))
    assert settled.settled is Settled.ACCEPTED


def test_what_another_archive_holds_is_known_as_if_it_lay_here_and_takes_the_place_of_nothing(
    driver: Driver,
) -> None:
    elsewhere = Copy("http://other.test/", 5.0, "")
    known = [(b"d" * 32, elsewhere), (b"e" * 32, elsewhere)]
    assert driver.ask(driver.frontier.remember_copies(known)) == 2
    assert driver.ask(driver.frontier.remember_copies([(b"d" * 32, COPY)])) == 0
    driver.restart()
    assert driver.ask(driver.frontier.first_copies([b"d" * 32, b"x" * 32])) == [elsewhere, None]
