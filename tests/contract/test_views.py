"""Every decision can be explained, and the numbers add up."""

from __future__ import annotations

import pytest

from skitter.frontier.base import Horizon, HostStanding
from skitter.frontier.link_batches import pack
from skitter.model import FailureKind, Fetched, Host, HostPolicy, RecordAt, Result
from skitter.settings import CrawlSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import NO_RULES, OK, Driver, discovered, failed, redirected, robots, seed

A, B = "http://a.test", "http://b.test"


# -- explain


def test_explain_says_of_a_fetched_url_how_it_was_found_and_what_came_back(driver: Driver) -> None:
    driver.open_host(A + "/")
    child = discovered(A + "/child", parent=seed(A + "/").key)
    driver.fetch(Fetched(status=200, link_batches=pack([child])))
    driver.clock.advance(1)
    lease = driver.lease_one()
    driver.clock.advance(0.25)
    page = Fetched(status=200, size=7, title="Hello", content_type="text/html", record=RecordAt("s1", 5, 50))
    driver.settle(driver.outcome(lease, page, took=0.25))
    said = driver.explain("http://A.test:80/child#here")
    assert (said.state, said.url, said.host, said.known) == ("completed", A + "/child", A, True)
    assert (said.found, said.trail) == ("linked, 1 links from a seed", (A + "/",))
    assert (said.title, said.content_type, said.attempts, said.tier) == ("Hello", "text/html", 1, "F1")
    (fetch,) = said.fetches
    assert (fetch.status, fetch.size, fetch.seconds, fetch.result) == (200, 7, 0.25, "fetched")
    assert fetch.record == "s1 at 5, 50 bytes"
    assert said.next_at is None


def test_explain_says_of_a_queued_url_what_goes_first_and_when(driver: Driver) -> None:
    driver.admit(seed(A + "/"), seed(A + "/2"))
    assert "robots.txt has not been read yet" in driver.explain(A + "/").waits
    driver.fetch(robots("Allow: /"))
    said = driver.explain(A + "/2")
    assert (said.state, said.next_at) == ("queued", driver.clock.now() + 1)
    assert said.waits == f"1 URLs of {A} go first; the host is asked every 1 s (politeness.delay)"
    assert said.robots == "allowed by line 2: Allow: / (robots.txt read)"
    assert said.found == "given as a seed"


def test_explain_says_of_a_url_in_progress_that_it_is(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.admit(*(discovered(f"{A}/{i}") for i in range(9)))
    lease = driver.lease_one(worker="w7")
    assert {driver.explain(task.url).state for task in lease.tasks} == {"in_progress"}
    assert "being asked now by w7" in driver.explain(A + "/8").waits


def test_explain_names_the_robots_line_that_denied_a_url(driver: Driver) -> None:
    driver.open_host(A + "/private/1", body=robots("Disallow: /private/"))
    driver.lease()
    said = driver.explain(A + "/private/1")
    assert said.state == "denied"
    assert said.reason == "robots.txt, line 2: Disallow: /private/"
    assert said.robots.startswith("denied by line 2")


def test_explain_names_the_rule_that_refused_a_url(driver: Driver) -> None:
    driver.admit(seed(A + "/"), discovered(B + "/"))
    said = driver.explain(B + "/")
    assert (said.state, said.reason.partition(":")[0]) == ("refused", "scope")


def test_explain_says_of_a_failed_url_when_it_is_tried_again(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.PROTOCOL))
    said = driver.explain(A + "/")
    assert (said.state, said.next_at) == ("failed", driver.clock.now() + 60)
    assert said.waits == "for its retry after protocol (attempt 1)"
    assert said.fetches[0].detail == "protocol: as the test says"


def test_explain_says_of_a_dead_letter_what_killed_it(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.fetch(failed(FailureKind.HEADERS_TOO_LARGE))
    said = driver.explain(A + "/")
    assert (said.state, said.reason) == ("dead_letter", "headers_too_large: as the test says")


def test_explain_says_of_an_unknown_url_what_admission_would_say(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    inside, outside, nonsense = (driver.explain(url) for url in (A + "/x", B + "/x", "mailto:me"))
    assert (inside.known, inside.state) == (False, "unknown")
    assert inside.reason.endswith("it would be admitted")
    assert "it would be refused (scope)" in outside.reason
    assert nonsense.reason == "this is not an http or https URL"
    assert sum(driver.stats().urls.values()) == 1, "a question does not write"


def test_explain_follows_a_redirect_back_to_its_seed(driver: Driver) -> None:
    driver.open_host(A + "/")
    target = discovered(A + "/to", parent=seed(A + "/").key, depth=0)
    moved = redirected(A + "/to", depth=0)
    driver.fetch(type(moved)(status=301, location="/to", target=target))
    assert driver.explain(A + "/").reason == "redirects to /to"
    assert driver.explain(A + "/to").trail == (A + "/",)


# -- horizon


def horizon(driver: Driver) -> Horizon:
    return driver.ask(driver.frontier.horizon())


def test_the_horizon_follows_a_crawl_to_its_end(driver: Driver) -> None:
    assert horizon(driver) == Horizon(leased_hosts=0, limit_reached=False, next_at=None)
    driver.admit(seed(A + "/"))
    ahead = horizon(driver).next_at
    assert ahead is not None
    assert ahead <= driver.clock.now()
    lease = driver.lease_one()
    assert horizon(driver) == Horizon(leased_hosts=1, limit_reached=False, next_at=None)
    driver.answer(lease, NO_RULES)
    assert horizon(driver).next_at == driver.clock.now() + 1
    driver.clock.advance(1)
    driver.fetch(failed(FailureKind.PROTOCOL))
    assert horizon(driver).next_at == driver.clock.now() + 60
    driver.clock.advance(60)
    driver.promote()
    driver.fetch(OK)
    assert horizon(driver) == Horizon(leased_hosts=0, limit_reached=False, next_at=None)


def test_a_blocked_host_is_not_on_the_horizon(driver: Driver) -> None:
    driver.open_host(A + "/")
    driver.set_policy(A, HostPolicy(blocked=True))
    assert horizon(driver).next_at is None


def test_the_horizon_says_when_the_page_limit_is_reached(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(max_pages=1)))
    driver.open_host(A + "/", A + "/2")
    assert not horizon(driver).limit_reached
    driver.fetch(OK)
    assert horizon(driver).limit_reached


# -- stats and hosts


def test_the_totals_survive_a_restart(driver: Driver) -> None:
    driver.open_host(A + "/", B + "/")
    driver.admit(discovered(A + "/2"), discovered("http://far.test/"))
    one, two = driver.lease()
    driver.answer(one, OK)
    driver.answer(two, failed(FailureKind.SERVER_ERROR))
    before = driver.stats()
    driver.reopen()
    assert driver.stats() == before
    assert before.statuses == {"2xx": len(one.tasks), "4xx": 2}
    assert before.robots_fetches == 2
    assert before.fetches == 2 + len(one.tasks) + len(two.tasks)


def test_every_known_url_is_counted_in_exactly_one_state(driver: Driver) -> None:
    driver.open_host(A + "/", B + "/", body=robots("Disallow: /private/"))
    urls = [f"{host}/{path}" for host in (A, B) for path in ("1", "2", "private/3", "x.jpg")]
    driver.admit(*(discovered(url) for url in urls))
    results: list[Result] = [
        OK,
        failed(FailureKind.PROTOCOL),
        failed(FailureKind.BAD_REDIRECT),
        Fetched(status=404),
    ]
    for _ in range(4):
        for lease in driver.lease():
            driver.settle(driver.outcome(lease, results.pop()) if results else driver.outcome(lease, OK))
            driver.release(lease)
        assert sum(driver.stats().urls.values()) == 10
        driver.clock.advance(1)
    assert {name for name, n in driver.stats().urls.items() if n} >= {"completed", "failed", "denied", "gone"}


@pytest.mark.parametrize("standing", list(HostStanding))
def test_hosts_can_be_listed_by_where_they_stand(driver: Driver, standing: HostStanding) -> None:
    names = {
        HostStanding.IDLE: "http://idle.test",
        HostStanding.WAITING: "http://waiting.test",
        HostStanding.ACTIVE: "http://active.test",
        HostStanding.BACKING_OFF: "http://failing.test",
        HostStanding.BLOCKED: "http://blocked.test",
        HostStanding.GIVEN_UP: "http://nameless.test",
    }
    driver.open_host(*(f"{host}/{i}" for host in names.values() for i in range(3)))
    for lease in driver.lease():
        match lease.host:
            case "http://idle.test":
                driver.answer(lease, OK)
            case "http://failing.test":
                driver.settle(driver.outcome(lease, failed()))
                driver.release(lease)
            case "http://nameless.test":
                driver.answer(lease, failed(FailureKind.DNS_NOT_FOUND))
            case "http://active.test":
                pass
            case _:
                driver.release(lease)
    driver.set_policy("http://blocked.test", HostPolicy(blocked=True))
    views = driver.ask(driver.frontier.hosts(limit=9, standing=standing))
    assert [view.host for view in views] == [names[standing]]
    assert driver.stats().hosts[standing] == 1


# -- one host, one key


def test_a_url_is_found_by_its_key(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    assert driver.ask(driver.frontier.url_of(seed(A + "/").key)) == A + "/"
    assert driver.ask(driver.frontier.url_of(seed(B + "/").key)) is None


def test_one_host_is_seen_as_the_list_of_hosts_shows_it(driver: Driver) -> None:
    driver.open_host(A + "/", B + "/")
    listed = driver.ask(driver.frontier.hosts(limit=10))
    assert [driver.ask(driver.frontier.host(Host(view.host))) for view in listed] == listed
    assert driver.ask(driver.frontier.host(Host("http://c.test"))) is None


def test_the_robots_txt_in_force_can_be_read(driver: Driver) -> None:
    rules = robots("Disallow: /private/")
    driver.open_host(A + "/", body=rules)
    driver.admit(seed(B + "/"))
    assert driver.ask(driver.frontier.robots_of(Host(A))) == rules.body
    assert driver.ask(driver.frontier.robots_of(Host(B))) is None


def test_hosts_are_found_by_a_part_of_their_names_however_many_there_are(driver: Driver) -> None:
    driver.audited = False
    driver.admit(*(seed(f"http://h{number}.test/") for number in range(1_200)))
    driver.admit(seed("http://h7.test/second"))
    found = driver.ask(driver.frontier.hosts(limit=3, matching="h7"))
    assert found[0].host == "http://h7.test", "the busiest first"
    assert len(found) == 3
    assert all("h7" in view.host for view in found)
    assert len(driver.ask(driver.frontier.hosts(limit=5_000))) == 1_200
