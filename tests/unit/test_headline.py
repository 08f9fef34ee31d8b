"""One sentence says how a crawl does: what it waits for, or what sets its pace."""

from __future__ import annotations

from typing import Any

import pytest

from skitter.frontier.base import HostOutlook, HostStanding, PolitenessLedger, Stats
from skitter.headline import LOOKED_AT, Doing, Seen, headline_of
from skitter.model import UrlState

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC
HOUR = 3600.0


def stats(*, queued: int = 0, active: int = 0, next_at: float | None = None, **more: Any) -> Stats:
    urls = {state.name.lower(): 0 for state in UrlState} | {"queued": queued, "completed": 5}
    hosts = {standing.value: 0 for standing in HostStanding} | {"active": active}
    return Stats(
        urls=urls | more.pop("urls", {}),
        hosts=hosts,
        tiers=(0, queued, 0, 0),
        pages=more.pop("pages", 5),
        stored=0,
        unstored=0,
        lost=0,
        fetches=0,
        robots_fetches=0,
        bytes=0,
        failures={},
        refusals=more.pop("refusals", {}),
        over_defaults=more.pop("over_defaults", {}),
        statuses={},
        leases_expired=0,
        stale_outcomes=0,
        politeness=PolitenessLedger(gaps=0, violations=0),
        next_at=next_at,
    )


def host(failure: str = "", *, of_robots: bool = False, **more: Any) -> HostOutlook:
    known: dict[str, Any] = {
        "host": "http://a.test",
        "is_leased": False,
        "queued": 1,
        "next_start": NOW + HOUR,
        "delay": 1.0,
        "delay_why": "politeness.delay",
    }
    return HostOutlook(**known | more, failure=failure, is_of_robots=of_robots)


def said(found: Stats, *hosts: HostOutlook, **more: Any) -> str:
    return headline_of(Seen(now=NOW, stats=found, hosts=hosts, **more)).sentence


DOWN = host("server_error: status 500", of_robots=True)
LEASED = host(is_leased=True, next_start=NOW)
READY = host(next_start=NOW - 1)


def test_a_crawl_that_waits_says_for_whom_why_and_until_when() -> None:
    found = stats(queued=9, next_at=NOW + HOUR)
    assert said(found, *[DOWN] * 9) == "Waiting: 9 hosts answer 500 to robots.txt; next at 09:00 UTC."
    assert headline_of(Seen(now=NOW, stats=found, hosts=[DOWN])).next_at == NOW + HOUR


@pytest.mark.parametrize(
    ("hosts", "sentence"),
    [
        ([DOWN], "Waiting: 1 host answers 500 to robots.txt; next at 09:00 UTC."),
        ([host("throttled: status 429")], "Waiting: 1 host answers 429; next at 09:00 UTC."),
        ([host("connect_refused: 127.0.0.1")] * 2, "Waiting: 2 hosts refuse connections; next at 09:00 UTC."),
        ([host("stalled")], "Waiting: 1 host does not answer in time; next at 09:00 UTC."),
        ([host("protocol: x")], "Waiting: 1 host backs off after a failure (protocol); next at 09:00 UTC."),
        ([host(is_crowded=True)], "Waiting: 1 host shares a busy address; next at 09:00 UTC."),
        (
            [host(), host(), host("stalled"), host("connect_refused"), host("connect_refused")],
            "Waiting: 2 hosts refuse connections, 1 host does not answer in time, 2 more for other reasons; "
            "next at 09:00 UTC.",
        ),
        ([DOWN] * LOOKED_AT, "Waiting: over 200 hosts answer 500 to robots.txt; next at 09:00 UTC."),
    ],
)
def test_every_reason_to_wait_has_its_words(hosts: list[HostOutlook], sentence: str) -> None:
    assert said(stats(queued=1, next_at=NOW + HOUR), *hosts) == sentence


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (0.2, "next in 1 s"),
        (42.0, "next in 42 s"),
        (61.0, "next at 08:01 UTC"),
        (30 * HOUR, "at 2027-01-16 14:00 UTC"),
    ],
)
def test_the_next_time_is_told_as_people_say_it(wait: float, words: str) -> None:
    assert words in said(stats(queued=1, next_at=NOW + wait), host())


def test_a_crawl_in_which_only_retries_are_left_says_so() -> None:
    found = stats(next_at=NOW + HOUR, urls={"failed": 3})
    assert said(found) == "Waiting: 3 URLs to be tried again; next at 09:00 UTC."


def test_a_crawl_that_runs_says_what_sets_its_pace() -> None:
    found = stats(queued=50, active=2, next_at=NOW)
    hosts = [LEASED, LEASED]
    assert said(found, *hosts, rate=1.94) == (
        "Crawling 1.9 pages a second: 2 hosts set the pace, asked every 1 s (politeness.delay)."
    )
    slow = host(is_leased=True, delay=30.0, delay_why="robots.txt asks for Crawl-delay 30")
    assert "most asked every 1 s" in said(found, *hosts, slow)
    unpaced = host(is_leased=True, delay=0.0)
    assert said(found, unpaced) == "Crawling: 2 hosts set the pace, asked one request after the other."
    full = said(found, *hosts, in_flight=8, concurrency=8)
    assert full == "Crawling: fetch.concurrency sets the pace, all 8 requests are in flight."
    busy = said(found, *hosts, *[READY] * 40)
    assert busy == "Crawling: the workers set the pace, 40 hosts are ready and wait for one."


def test_a_server_without_workers_says_that_nobody_asks() -> None:
    found = stats(queued=1_200, next_at=NOW - 5)
    assert said(found, READY, workers=0) == (
        "Idle: 1,200 URLs queued, and no worker asks for them (skitter worker --join)."
    )
    assert said(found, READY, workers=1).startswith("Crawling")


@pytest.mark.parametrize(
    ("found", "more", "doing", "sentence"),
    [
        (stats(urls={"completed": 0}), {}, Doing.EMPTY, "Nothing to do yet: the crawl has no seeds."),
        (stats(), {}, Doing.COMPLETE, "Complete: nothing is left to fetch."),
        (
            stats(urls={"dead_letter": 1}, refusals={"trap": 945}),
            {},
            Doing.COMPLETE,
            "Complete but for 1 dead letter and 945 URLs taken for a trap.",
        ),
        (
            stats(urls={"dead_letter": 1}, refusals={"trap": 2}, over_defaults={"depth": 3, "budget": 1}),
            {},
            Doing.COMPLETE,
            "Complete but for 1 dead letter, 2 URLs taken for a trap, 3 URLs further than 15 links from a seed "
            "and 1 URL over the budget of their hosts.",
        ),
        (
            stats(queued=3, next_at=NOW, pages=7),
            {"max_pages": 7},
            Doing.LIMIT,
            "Stopped at the limit of 7 pages; 3 URLs queued.",
        ),
        (
            stats(queued=3, next_at=NOW),
            {"pause": "by the operator"},
            Doing.PAUSED,
            "Paused: by the operator; 3 URLs queued.",
        ),
        (
            stats(queued=3, active=1, next_at=NOW),
            {"is_closing": True, "in_flight": 1},
            Doing.CLOSING,
            "Stopping: finishing 1 request in flight.",
        ),
        (
            stats(queued=3, next_at=NOW, urls={"failed": 2}),
            {"is_running": False, "folder": "here"},
            Doing.STOPPED,
            "Not running: 3 URLs are queued, 2 to be tried again; skitter crawl --into here goes on.",
        ),
    ],
)
def test_what_keeps_everything_from_being_asked_is_said_first(
    found: Stats, more: dict[str, Any], doing: Doing, sentence: str
) -> None:
    told = headline_of(Seen(now=NOW, stats=found, **more))
    assert (told.doing, told.sentence) == (doing, sentence)
