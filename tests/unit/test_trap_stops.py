"""The list of what a crawl stopped shows first what it should not have stopped."""

from __future__ import annotations

import msgspec
from bench._stops import Stop, site_of, stop_rows

from skitter.testing.traps.plan import TrapPlan

PLAN = TrapPlan(scale=0.001, kinds=("calendar", "subdomains", "shop"))


def stop(host: str, refused: int) -> Stop:
    return Stop(kind="alike", host=host, skeleton="/x", fetched=9, novel=0, refused=refused)


def test_stops_on_honest_hosts_come_first_and_are_marked() -> None:
    found = [
        stop("http://calendar-0.test", 900),
        stop("http://shop-0.test", 5),
        stop("http://shop-0.test", 7),
    ]
    rows = [(row[0], row[1], row[6]) for row in stop_rows(PLAN, found)[1:]]
    assert rows == [("shop-0.test", "honest", 7), ("shop-0.test", "honest", 5), ("calendar-0.test", "", 900)]


def test_a_stop_belongs_to_the_site_whose_domain_it_names() -> None:
    assert site_of(PLAN, stop("subdomains-1.test", 1)) == (True, "subdomains-1.test")
    assert site_of(PLAN, stop("http://w7.subdomains-1.test", 1)) == (True, "subdomains-1.test")
    assert site_of(PLAN, stop("http://else.example", 1)) == (False, "http://else.example")


def test_a_verdict_may_say_more_than_is_shown() -> None:
    raw = b'[{"id":1,"kind":"k","host":"h","skeleton":"s","fetched":1,"novel":0,"refused":2,"why":"alike"}]'
    assert msgspec.json.decode(raw, type=list[Stop])[0].refused == 2
