"""What a scrape is told: well formed in both formats, cheap, and exactly what the crawl did."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from skitter.clock import SystemClock
from skitter.folder import CrawlFolder
from skitter.frontier.base import HostStanding, Stats
from skitter.model import Failed, FailureKind, Outcome
from skitter.schedule.priority import TIERS as TIER_COUNT
from skitter.seeds import read_seeds
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Access
from skitter.service.http.server import serving
from skitter.service.metrics.exposition import OPEN, PLAIN, prefers_open
from skitter.settings import (
    ArchiveSettings,
    CrawlSettings,
    FetchSettings,
    PolitenessSettings,
    RetrySettings,
    Settings,
)
from skitter.telemetry import METRICS, STANDINGS, TIERS, Ended, Kind, Metric
from skitter.testing.features import ROBOTS_SHARES, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from skitter.wiring import open_crawl
from tests.frontier_kit import seed
from tests.keys import KEYS
from tests.monitoring.promtool import needs_promtool, promtool
from tests.service_kit import Service, running_service

AS_PROMETHEUS_ASKS = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With some of everything: a page, failures, URLs of every kind."""
    with running_service(tmp_path_factory.mktemp("crawl")) as service:
        service.do(fail_once(service.context))
        yield service


async def fail_once(context: ApiContext) -> None:
    frontier = context.frontier
    await frontier.admit([seed("http://a.example/"), seed("http://b.example/")])
    now = context.clock.now()
    for lease in await frontier.lease("a-worker", 1, 60):
        task = lease.tasks[0]
        failed = Failed(kind=FailureKind.STALLED, detail='said "no"\n\\o/')
        outcome = Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=now,
            ended_at=now,
            result=failed,
        )
        await frontier.settle([outcome])


def figures(text: str) -> dict[str, float]:
    """Every series by name and label's value, as the reference parser reads them."""
    families = open_families(text) if text.endswith("# EOF\n") else plain_families(text)  # type: ignore[no-untyped-call]
    return {
        " ".join((sample.name, *sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


@needs_promtool
def test_prometheus_own_tool_finds_nothing_to_complain_of(service: Service) -> None:
    said = promtool("check", "metrics", given=service.get("/metrics").body.decode())
    assert said == ""


def test_both_formats_tell_the_same(service: Service) -> None:
    plain, opened = service.get("/metrics"), service.get("/metrics", accept=AS_PROMETHEUS_ASKS)
    assert (plain.headers["content-type"], opened.headers["content-type"]) == (PLAIN, OPEN)
    assert opened.body.endswith(b"\n# EOF\n")
    assert b"EOF" not in plain.body
    one, other = figures(plain.body.decode()), figures(opened.body.decode())
    assert set(one) == set(other)
    moving = ("process_", "skitter_disk_free", "skitter_unsynced", "skitter_worker_silence")
    assert {name: value for name, value in one.items() if not name.startswith(moving)} == {
        name: value for name, value in other.items() if not name.startswith(moving)
    }


def test_every_metric_of_the_table_is_told_with_all_its_labels(service: Service) -> None:
    told = figures(service.get("/metrics").body.decode())
    for metric, about in METRICS.items():
        if about.kind is Kind.HISTOGRAM:
            assert f"{metric}_count" in told
        elif about.label:
            assert {f"{metric} {label}" for label in about.labels} <= set(told)
        else:
            assert metric in told
    assert len(told) < 250


def test_what_is_told_is_what_happened(service: Service) -> None:
    told = figures(service.get("/metrics").body.decode())
    assert told["skitter_failures_total stalled"] == 1
    assert told["skitter_workers_live"] == 1
    assert told["skitter_paused"] == 0
    assert told["skitter_queued_urls F0"] + told["skitter_queued_urls F1"] == 2
    assert told["skitter_disk_free_bytes"] > 1e6
    assert told["process_resident_memory_bytes"] > 1e7
    assert told["process_cpu_seconds_total"] > 0
    # the kernel tells when we began in hundredths of a second after a boot it tells in whole ones
    assert 0 < service.context.clock.now() - told["process_start_time_seconds"] + 2 < 100_000


def test_hosts_in_trouble_are_told_with_kind_and_words(service: Service) -> None:
    answer = service.get("/v1/errors").json
    (host,) = answer["hosts"]
    assert host["failures"] == 1
    assert host["kinds"] == answer["kinds"] == {"stalled": 1}
    assert host["detail"] == 'said "no"\n\\o/'
    assert answer["since"] <= host["last"] <= service.context.clock.now()


def test_however_many_scrape_the_ledger_is_read_once_a_second(tmp_path: Path) -> None:
    reads = 0

    async def counted(context: ApiContext) -> None:
        original = context.frontier.stats

        async def stats() -> Stats:
            nonlocal reads
            reads += 1
            return await original()

        context.frontier.stats = stats  # type: ignore[method-assign]

    class Standing(SystemClock):
        def now(self) -> float:
            return 1_800_000_000.0

    with running_service(tmp_path, clock=Standing()) as service:
        service.do(counted(service.context))
        for _ in range(20):
            assert service.get("/metrics").status == 200
        assert reads == 1


def test_a_crawl_that_is_held_says_so(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        service.post("/v1/crawl/pause")
        assert figures(service.get("/metrics").body.decode())["skitter_paused"] == 1


def test_the_closed_sets_are_those_of_the_frontier() -> None:
    assert tuple(HostStanding) == STANDINGS
    assert len(TIERS) == TIER_COUNT
    assert all(str(label).replace("_", "").isalnum() for about in METRICS.values() for label in about.labels)


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        (AS_PROMETHEUS_ASKS, True),
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.2", False),
        ("APPLICATION/OpenMetrics-Text; version=1.0.0 ; Q=0.7, text/*;q=0.3", True),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=lots", False),
        ("application/openmetrics-text;q=nan", False),
    ],
)
def test_who_prefers_openmetrics_gets_it(accept: str, is_open: bool) -> None:
    assert prefers_open(accept) is is_open


@given(st.text(st.characters(max_codepoint=255)))
def test_no_accept_header_is_too_strange(accept: str) -> None:
    prefers_open(accept)


# -- a real crawl


class Hurried(SystemClock):
    """The service's own time, which a test may move on, so that the next reading is a fresh one."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


def scrape(where: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{where}/metrics", timeout=30) as answer:
        return figures(answer.read().decode())


def quick_settings(web: SyntheticWeb) -> Settings:
    return Settings(
        crawl=CrawlSettings(scope="any", linger=5.0),
        politeness=PolitenessSettings(delay=0.05),
        retry=RetrySettings(backoff=(0.1,), quarantine_after=10),
        fetch=FetchSettings(resolve=(web.resolve,), allow_private=True),
        archive=ArchiveSettings(tables=()),
    )


async def scraped_crawl(folder: CrawlFolder, web: SyntheticWeb) -> tuple[list[dict[str, float]], Stats]:
    """Crawls to the end while another scrapes; what that saw, the last one at the end, and the ledger then."""
    settings, time = quick_settings(web), Hurried()
    folder.lock()
    async with open_crawl(folder, settings) as crawl:
        context = ApiContext(
            frontier=crawl.frontier,
            settings=settings,
            folder=folder,
            telemetry=crawl.telemetry,
            clock=time,
            committer=crawl.committer,
        )
        async with serving(context, "127.0.0.1:0", Access()) as where:
            await crawl.frontier.admit(read_seeds(web.seeds, (), KEYS))
            running = asyncio.create_task(crawl.loop.run())
            seen = []
            while not running.done():
                time.ahead += 1
                seen.append(await asyncio.to_thread(scrape, where))
                await asyncio.wait((running,), timeout=0.1)
            assert await running is Ended.COMPLETE
            time.ahead += 1
            seen.append(await asyncio.to_thread(scrape, where))
            stats = await crawl.frontier.stats()
    folder.unlock()
    return seen, stats


@pytest.fixture(scope="module")
def crawled(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[dict[str, float]], Stats, int]:
    robots = {kind: share for kind, share in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE}
    plan = msgspec.structs.replace(WebPlan.demo(), robots=robots)
    folder = CrawlFolder(tmp_path_factory.mktemp("crawl"))
    with SyntheticWeb(plan, latency=(0.0, 0.03)) as web:
        seen, stats = asyncio.run(scraped_crawl(folder, web))
        web.stop()
        return seen, stats, len(web.requests())


def test_figures_move_while_a_crawl_runs_and_counters_never_go_back(
    crawled: tuple[list[dict[str, float]], Stats, int],
) -> None:
    seen, _, _ = crawled
    assert len({scrape["skitter_pages_total"] for scrape in seen}) > 5
    assert max(scrape["skitter_queued_urls F1"] + scrape["skitter_queued_urls F2"] for scrape in seen) > 0
    assert max(scrape["skitter_hosts active"] for scrape in seen) > 1
    counters = [name for name in seen[0] if name.split()[0].endswith(("_total", "_bucket", "_count"))]
    for before, after in pairwise(seen):
        assert [name for name in counters if after[name] < before[name]] == []


def test_at_the_end_the_figures_are_the_ledgers_and_the_webs(
    crawled: tuple[list[dict[str, float]], Stats, int],
) -> None:
    seen, stats, requests = crawled
    end = seen[-1]

    def labelled(metric: Metric) -> dict[str, float]:
        return {label: end[f"{metric} {label}"] for label in METRICS[metric].labels}

    assert end["skitter_pages_total"] == end["skitter_pages_held"] == stats.pages > 100
    assert {name: n for name, n in labelled(Metric.RESPONSES).items() if n} == stats.statuses
    assert {kind: n for kind, n in labelled(Metric.FAILURES).items() if n} == stats.failures
    assert sum(labelled(Metric.REFUSED).values()) == stats.urls["refused"]
    assert labelled(Metric.URLS) == stats.urls
    assert labelled(Metric.HOSTS) == stats.hosts
    assert end["skitter_received_bytes_total"] == stats.bytes > 100_000
    assert end["skitter_fetches_total"] == stats.fetches == requests
    assert end["skitter_fetch_seconds_count"] == sum(stats.statuses.values()) == end["skitter_requests_total"]
    assert end["skitter_near_duplicates_total"] == stats.near_duplicates
    assert labelled(Metric.QUEUED) == dict.fromkeys(TIERS, 0)
    assert end["skitter_leases_held"] == 0
    assert end["skitter_politeness_violations_total"] == 0
    assert end["skitter_politeness_gaps_total"] == stats.politeness.gaps > 100
    assert end["skitter_retries_total server_error"] > 0
