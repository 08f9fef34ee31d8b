"""A crawl of 24 hours in simulated time: a real frontier, a polite worker, and a web that is a table.

Good, slow, failing, throttling and dead hosts are crawled side by side. At the end every URL stands where
`explain` can say why, and each host was asked at exactly the times its behaviour calls for.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from skitter.frontier.base import Explanation
from skitter.frontier.link_batches import pack
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    Outcome,
    Result,
    RobotsRead,
    Task,
)
from skitter.schedule.retry import RULES
from skitter.settings import Settings
from skitter.urls.canonical import host_of, target_of
from tests.frontier_fixtures import stores_for
from tests.frontier_kit import NO_RULES, Driver, discovered, robots, seed
from tests.frontier_stores import DISKS

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
PAGES = 12
_BUSY = Failed(kind=FailureKind.THROTTLED, detail="429", status=429, retry_after=5 * MINUTE)
_BROKEN = Failed(kind=FailureKind.SERVER_ERROR, detail="500", status=500)

Answer = tuple[float, Result]
Character = Callable[[str, int, float], Answer]
"""From the path asked for, how many requests came before, and the hour of the day: seconds taken, and result."""


def _page(url: str) -> Fetched:
    links: tuple[Discovered, ...] = ()
    if target_of(url) == "/":
        links = tuple(discovered(f"{host_of(url)}/{place}") for place in _places())
    return Fetched(status=200, content_type="text/html", size=100, link_batches=pack(links))


def _places() -> Iterator[str]:
    yield from (f"page/{number}" for number in range(PAGES))
    yield from ("private/a", "private/b")


def _good(url: str, before: int, hour: float, seconds: float = 0.1) -> Answer:
    return seconds, (NO_RULES if url.endswith("/robots.txt") else _page(url))


def _slow(url: str, before: int, hour: float) -> Answer:
    return _good(url, before, hour, seconds=4.0)


def _failing(url: str, before: int, hour: float) -> Answer:
    """Its first page is fine; after that nothing but 500."""
    return _good(url, before, hour) if before < 2 else (0.1, _BROKEN)


def _one_bad_page(url: str, before: int, hour: float) -> Answer:
    return (0.1, _BROKEN) if target_of(url) == "/page/3" else _good(url, before, hour)


def _throttling(url: str, before: int, hour: float) -> Answer:
    return (0.1, _BUSY) if before in (4, 5) else _good(url, before, hour)


def _robots_down_till_five(url: str, before: int, hour: float) -> Answer:
    if not url.endswith("/robots.txt"):
        return _good(url, before, hour)
    return (0.1, _BROKEN) if hour < 5 else (0.1, robots("Disallow: /private/"))


def _dead(url: str, before: int, hour: float) -> Answer:
    return 10.0, Failed(kind=FailureKind.CONNECT_TIMEOUT, detail="no connection in 10 s")


def _nameless(url: str, before: int, hour: float) -> Answer:
    return 0.5, Failed(kind=FailureKind.DNS_NOT_FOUND, detail="no such name")


CHARACTERS: dict[str, Character] = {
    "good": _good,
    "slow": _slow,
    "failing": _failing,
    "one-bad-page": _one_bad_page,
    "throttling": _throttling,
    "robots-down": _robots_down_till_five,
    "dead": _dead,
    "nameless": _nameless,
}


def _host(character: str) -> str:
    return f"http://{character}.test"


class Day:
    """One worker, as polite as the real one: a host's next request starts a delay after the last one started and
    after it was answered; when a failure is the host's own, the rest of the lease is given back."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.began = driver.clock.now()
        self.log: dict[str, list[tuple[float, str, Result]]] = {name: [] for name in CHARACTERS}
        self.delays: list[float] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def run(self) -> None:
        driver, end = self.driver, self.began + DAY
        driver.admit(*(seed(_host(name) + "/") for name in CHARACTERS))
        while driver.clock.now() < end:
            self._do_what_is_due()
            driver.promote()
            driver.reap()
            for lease in driver.lease():
                self._at(lease.not_before, partial(self._ask, lease, 0))
            self._wait(end)
        driver.promote()

    def _at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), act))

    def _do_what_is_due(self) -> None:
        while self._events and self._events[0][0] <= self.driver.clock.now():
            heapq.heappop(self._events)[2]()

    def _wait(self, end: float) -> None:
        """To the next event, the next ready host or the next retry; never less than a millisecond."""
        next_at = self.driver.ask(self.driver.frontier.horizon()).next_at
        moments = [end, *(event[0] for event in self._events[:1])] + ([next_at] if next_at else [])
        self.driver.clock.advance(max(0.001, min(moments) - self.driver.clock.now()))

    def _ask(self, lease: HostLease, place: int) -> None:
        now = self.driver.clock.now()
        task = lease.tasks[place]
        name = lease.host.removeprefix("http://").removesuffix(".test")
        seconds, result = CHARACTERS[name](task.url, len(self.log[name]), (now - self.began) / HOUR)
        self.log[name].append((now - self.began, task.url, result))
        self._at(now + seconds, partial(self._answered, lease, place, task, now, result))

    def _answered(self, lease: HostLease, place: int, task: Task, sent: float, result: Result) -> None:
        ended = self.driver.clock.now()
        self.driver.settle(
            Outcome(
                host=lease.host,
                token=lease.token,
                kind=task.kind,
                key=task.key,
                sent_at=sent,
                ended_at=ended,
                result=result,
            )
        )
        if lease.host == _host("throttling"):
            self.delays.append(self.driver.host(lease.host).delay)
        if isinstance(result, Failed) and RULES[result.kind].blames_host:
            self.driver.release(lease)
        elif place + 1 < len(lease.tasks):
            self._at(max(sent + lease.delay, ended), partial(self._ask, lease, place + 1))

    # what it left

    def times(self, character: str, kind: type[Result] | None = None) -> list[float]:
        return [at for at, _, result in self.log[character] if kind is None or isinstance(result, kind)]

    def explained(self, character: str) -> dict[str, Explanation]:
        """Every URL of a host that the frontier can know, by its path."""
        urls = [_host(character) + "/", *(f"{_host(character)}/{place}" for place in _places())]
        return {target_of(url): self.driver.explain(url) for url in urls}

    def hour(self, at: float | None) -> float:
        assert at is not None
        return (at - self.began) / HOUR


@pytest.fixture(scope="module", params=stores_for(__name__))
def day(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    disk = DISKS[request.param](tmp_path_factory.mktemp("day") / "frontier")
    driver = Driver(disk, Settings(), audited=False)
    lived = Day(driver)
    lived.run()
    yield lived
    driver.close()
    driver.check_replay()


def _gaps(times: list[float]) -> list[float]:
    return [round(later - earlier, 2) for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize("character", ["good", "slow", "throttling"])
def test_hosts_that_answer_are_crawled_to_the_end(day: Day, character: str) -> None:
    explained = day.explained(character)
    assert {each.state for each in explained.values()} == {"completed"}
    assert all(each.waits == "" and each.next_at is None for each in explained.values())


def test_a_slow_host_is_asked_no_more_often_than_it_answers(day: Day) -> None:
    assert min(_gaps(day.times("slow"))) >= 4.0
    assert min(_gaps(day.times("good"))) == pytest.approx(1.0, abs=0.01)


def test_a_failing_host_is_tried_after_a_minute_an_hour_and_six_and_then_left_for_a_day(day: Day) -> None:
    failed = day.times("failing", Failed)
    waits = [MINUTE, HOUR, 6 * HOUR, 6 * HOUR, 6 * HOUR]
    assert _gaps(failed) == pytest.approx([wait + 0.1 for wait in waits], abs=0.01)
    quarantined_until = (failed[-1] + 0.1 + DAY) / HOUR
    for path, each in day.explained("failing").items():
        if path == "/":
            assert each.state == "completed"
            continue
        assert each.state == "queued"
        assert "the host is backing off after 6 failures in a row (server_error: 500)" in each.waits
        assert day.hour(each.next_at) == pytest.approx(quarantined_until, abs=0.001)


def test_a_page_that_never_works_is_a_dead_letter_and_its_host_goes_on(day: Day) -> None:
    explained = day.explained("one-bad-page")
    bad = explained.pop("/page/3")
    assert {each.state for each in explained.values()} == {"completed"}
    assert (bad.state, bad.attempts, bad.reason) == ("dead_letter", 5, "server_error: 500")
    sent = [fetch.at - day.began for fetch in bad.fetches]
    assert sent == pytest.approx(day.times("one-bad-page", Failed), abs=0.001)
    first, *later = _gaps(sent)
    # when its minute is over, those that waited with it go first: they are older in the queue
    assert MINUTE < first < MINUTE + PAGES
    assert later == pytest.approx([wait + 0.1 for wait in (HOUR, 6 * HOUR, 6 * HOUR)], abs=0.01)


def test_a_throttled_host_is_asked_half_as_often_each_time_and_recovers_by_tenths(day: Day) -> None:
    busy = day.times("throttling", Failed)
    after = next(at for at in day.times("throttling") if at > busy[-1])
    assert busy[1] - busy[0] == pytest.approx(5 * MINUTE + 0.1, abs=0.01)
    assert after - busy[1] == pytest.approx(HOUR + 0.1, abs=0.01)
    rates = [1 / delay for delay in day.delays]
    assert rates[:6] == pytest.approx([1, 1, 1, 1, 0.5, 0.25])
    assert rates[6:15] == pytest.approx([0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1, 1])


def test_pages_wait_until_robots_can_be_read_and_its_rules_hold(day: Day) -> None:
    asked = [url for _, url, _ in day.log["robots-down"]]
    assert _gaps(day.times("robots-down", Failed)) == pytest.approx([MINUTE + 0.1, HOUR + 0.1], abs=0.01)
    assert all(url.endswith("/robots.txt") for url in asked[:4])
    assert isinstance(day.log["robots-down"][3][2], RobotsRead)
    for path, each in day.explained("robots-down").items():
        private = path.startswith("/private/")
        assert each.state == ("denied" if private else "completed")
        assert each.robots.startswith("denied by line 2" if private else "allowed")
    assert not any("/private/" in url for url in asked)


def test_a_host_that_never_answers_is_left_alone_and_its_seed_waits(day: Day) -> None:
    times = day.times("dead")
    waits = [MINUTE, HOUR, 6 * HOUR, 6 * HOUR, 6 * HOUR]
    assert _gaps(times) == pytest.approx([wait + 10.0 for wait in waits], abs=0.01)
    each = day.driver.explain(_host("dead") + "/")
    assert each.state == "queued"
    assert each.robots == "robots.txt has not been read yet"
    words = "connect_timeout: no connection in 10 s"
    assert f"the host is backing off after 6 failures in a row ({words})" in each.waits
    assert day.hour(each.next_at) == pytest.approx((times[-1] + 10.0 + DAY) / HOUR, abs=0.001)


def test_a_name_that_does_not_exist_is_given_up_within_hours(day: Day) -> None:
    assert _gaps(day.times("nameless")) == pytest.approx([HOUR + 0.5, HOUR + 0.5], abs=0.01)
    each = day.driver.explain(_host("nameless") + "/")
    assert (each.state, each.next_at) == ("dead_letter", None)
    assert each.reason == "its host is given up: 3 failures in a row, dns_not_found: no such name"
    assert day.driver.stats().hosts["given_up"] == 1


def test_nobody_was_asked_too_soon_and_nothing_is_unaccounted_for(day: Day) -> None:
    stats = day.driver.stats()
    assert stats.politeness.violations == 0
    requests = sum(len(log) for log in day.log.values())
    assert stats.fetches == requests
    assert stats.politeness.gaps == requests - len(CHARACTERS)
    reached = len(CHARACTERS) - 2
    assert sum(stats.urls.values()) == reached * (1 + len(list(_places()))) + 2
    assert stats.urls["in_progress"] == stats.urls["failed"] == stats.urls["refused"] == 0
    assert stats.leases_expired == stats.stale_outcomes == 0
