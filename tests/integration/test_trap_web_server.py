"""The trap web over HTTP: what an exhaustive crawler finds on honest hosts is what the plan promises."""

from __future__ import annotations

from skitter.testing.traps.audit import tallies, whole
from skitter.testing.traps.plan import TrapPlan
from skitter.testing.traps.web import TrapWeb
from tests.naive_crawler import NaiveCrawler

PLAN = TrapPlan(scale=0.001)


def test_an_exhaustive_crawl_of_honest_hosts_finds_exactly_what_the_plan_promises() -> None:
    honest = [site for site in PLAN.sites if not site.trap]
    with TrapWeb(PLAN) as web:
        for site in honest:
            crawler = NaiveCrawler(web.port)
            crawler.crawl(f"http://{site.name}/")
            assert set(crawler.statuses.values()) == {200}
            assert max(crawler.depths.values()) <= 15
    found = tallies(PLAN, web.rows())
    assert {name for name, tally in found.items() if tally.seen != tally.honest and not tally.trap} == set()
    assert whole(found).wasted == whole(found).others == 0
    assert whole(found).repeats > 100


def test_the_log_has_every_request_of_a_web_that_was_stopped() -> None:
    with TrapWeb(TrapPlan(scale=0.001, kinds=("docs",))) as web:
        crawler = NaiveCrawler(web.port)
        crawler.crawl(web.plan.seeds[0])
    asked = [(row.host, row.target) for row in web.rows() if row.target != "/robots.txt"]
    assert sorted(asked) == sorted(
        ("docs-0.test", url.removeprefix("http://docs-0.test")) for url in crawler.requests
    )
