"""Forms are sent once: what may have been sent is not sent again, unless its hook says that it is safe."""

from __future__ import annotations

import pytest

from skitter.frontier.link_batches import pack
from skitter.model import Discovered, FailureKind, Fetched, Host, TaskKind
from skitter.urls.keys import form_key
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, failed, robots
from tests.keys import key_of

A = "http://a.test"
SEARCH = A + "/search"


def form(body: str = "q=kettle", *, kind: TaskKind = TaskKind.FORM, url: str = SEARCH) -> Discovered:
    return Discovered(
        url=url,
        key=form_key(key_of(url), body),
        host=Host(A),
        depth=1,
        parent=key_of(A + "/"),
        kind=kind,
        rel="search",
        form=body,
    )


def page_with(*forms: Discovered) -> Fetched:
    return Fetched(status=200, digest=b"p" * 32, size=10, link_batches=pack(forms))


def opened(start: Start, *forms: Discovered, rules: tuple[str, ...] = ()) -> Driver:
    driver = start()
    driver.open_host(A + "/", body=robots(*rules))
    driver.fetch(page_with(*forms))
    driver.clock.advance(10)
    return driver


def stands_for(body: str = "q=kettle") -> str:
    return f"{SEARCH}?__wb_method=POST&{body}"


def test_a_body_is_part_of_the_key_and_comes_with_the_task(start: Start) -> None:
    driver = opened(start, form(), form("q=pot"), form())
    bodies = set()
    for _ in range(2):
        lease = driver.lease_one()
        assert len(lease.tasks) == 1, "a form is the last task of its lease"
        bodies.add(lease.tasks[0].form)
        driver.answer(lease, OK)
        driver.clock.advance(10)
    assert bodies == {"q=kettle", "q=pot"}
    assert not driver.lease()
    assert driver.explain(stands_for()).state == "completed"
    assert driver.stats().pages == 3


@pytest.mark.parametrize("how", ["expired", "released", "died"])
def test_a_form_whose_worker_did_not_come_back_is_not_sent_again(start: Start, how: str) -> None:
    driver = opened(start, form())
    lease = driver.lease_one()
    if how == "released":
        driver.release(lease)
    elif how == "died":
        driver.reopen()
    driver.clock.advance(3600)
    driver.reap()
    assert not driver.lease()
    explained = driver.explain(stands_for())
    assert (explained.state, driver.stats().urls["dead_letter"]) == ("dead_letter", 1)
    assert explained.reason.startswith(FailureKind.OUTCOME_UNKNOWN)
    # the operator may say otherwise
    assert driver.requeue() == 1
    driver.clock.advance(10)
    driver.answer(driver.lease_one(), OK)
    assert driver.explain(stands_for()).state == "completed"


def test_a_safe_form_is_sent_again(start: Start) -> None:
    driver = opened(start, form(kind=TaskKind.SAFE_FORM))
    driver.lease_one()
    driver.clock.advance(3600)
    driver.reap()
    driver.answer(driver.lease_one(), failed(FailureKind.CONNECTION_LOST))
    assert driver.explain(stands_for()).state == "failed"


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (FailureKind.CONNECT_REFUSED, "failed"),
        (FailureKind.DNS_TIMEOUT, "failed"),
        (FailureKind.THROTTLED, "failed"),
        (FailureKind.CONNECTION_LOST, "dead_letter"),
        (FailureKind.FIRST_BYTE_TIMEOUT, "dead_letter"),
        (FailureKind.SERVER_ERROR, "dead_letter"),
    ],
)
def test_a_form_is_tried_again_only_where_nothing_can_have_been_done(
    start: Start, kind: FailureKind, state: str
) -> None:
    driver = opened(start, form())
    driver.answer(driver.lease_one(), failed(kind))
    assert driver.explain(stands_for()).state == state
    if state == "failed":
        driver.clock.advance(4 * 3600)
        driver.promote()
        assert driver.lease_one().tasks[0].form == "q=kettle"


def test_robots_txt_is_asked_about_the_url_itself(start: Start) -> None:
    driver = opened(start, form(), rules=("User-agent: *", "Disallow: /search$"))
    assert not driver.lease()
    assert driver.explain(stands_for()).state == "denied"
