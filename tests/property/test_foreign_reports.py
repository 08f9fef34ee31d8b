"""Whatever a foreign worker reports, it is refused or settled: never a fault of ours, never a broken account."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skitter.folder import CrawlFolder
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import FailureKind, Host, HostLease
from skitter.service.api_context import ApiContext
from skitter.service.foreign_reports import Failure, Report, outcome_of
from skitter.service.http.problem import Problem
from skitter.settings import CrawlSettings, Settings
from skitter.telemetry import Telemetry
from skitter.testing.clock import FakeClock
from tests.frontier_audit import audit
from tests.frontier_kit import seed
from tests.service_kit import open_committer

START = 1_800_000_000.0
TIMES = st.none() | st.floats(START - 10, START + 10) | st.floats(0, 1e11)
TEXT = st.text(max_size=40)
HREFS = (
    st.sampled_from(["/a", "b?x=1", "//other.test/", "http://[", "http://h.test:99999/", "?", "#", "\x00"])
    | TEXT
)
REPORTS = st.fixed_dictionaries(
    {
        "http_status": st.sampled_from(
            [200, 204, 206, 299, 300, 301, 304, 305, 308, 399, 404, 410, 429, 500, 503, 599]
        )
    },
    optional={
        "content_hash": st.sampled_from(["", "0" * 64, "sha256:" + "aB" * 32]),
        "size": st.integers(0, 1 << 40),
        "storage_path": TEXT,
        "etag": TEXT,
        "last_modified": TEXT,
        "title": TEXT,
        "location": HREFS,
        "extracted_urls": st.lists(HREFS, max_size=8),
        "base_url": HREFS,
        "body": st.none() | TEXT | st.just("User-agent: *\nDisallow: /\nCrawl-delay: 1e9\n"),
        "retry_after_sec": st.none() | st.floats(0, 7 * 86_400),
        "address": TEXT | st.just("192.0.2.1"),
        "sent_at": TIMES,
        "ended_at": TIMES,
    },
)
FAILURES = st.fixed_dictionaries(
    {"error": st.sampled_from([kind.value for kind in FailureKind])},
    optional={
        "http_status": st.integers(0, 599),
        "detail": TEXT,
        "retry_after_sec": st.none() | st.floats(0, 7 * 86_400),
        "sent_at": TIMES,
        "ended_at": TIMES,
    },
)
SAID = REPORTS | FAILURES
STEPS = st.lists(st.tuples(SAID, st.floats(0, 200)), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_every_report_is_refused_or_settled(steps: list[tuple[dict[str, Any], float]]) -> None:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        runner.run(_work(Path(folder), steps))


async def _work(folder: Path, steps: list[tuple[dict[str, Any], float]]) -> None:
    clock = FakeClock(START)
    configured = Settings(crawl=CrawlSettings(scope="any"))
    frontier = open_rocks_frontier(folder / "frontier", configured, clock)
    try:
        with open_committer(frontier, folder, configured, clock) as committer:
            context = ApiContext(
                frontier=frontier,
                settings=configured,
                folder=CrawlFolder(folder),
                telemetry=Telemetry(START),
                clock=clock,
                committer=committer,
            )
            await frontier.admit([seed("http://h.test/"), seed("http://h.test/2"), seed("http://i.test/")])
            for said, passed in steps:
                for lease in await committer.lease("w", 3, 60.0, most_tasks=1):
                    await _report(context, lease, said)
                clock.advance(passed)
                await frontier.reap(clock.now())
                await frontier.promote(clock.now())
            audit(frontier)
            assert await frontier.host(Host("http://h.test")) is not None
    finally:
        await frontier.close()


async def _report(context: ApiContext, lease: HostLease, said: dict[str, Any]) -> None:
    ticket = context.seal.read(context.seal.write(lease, lease.tasks[0], context.clock.now(), ""))
    assert ticket is not None
    raw = msgspec.json.encode(said)  # as it comes over the wire
    report = (
        msgspec.json.decode(raw, type=Failure) if "error" in said else msgspec.json.decode(raw, type=Report)
    )
    try:
        outcome = outcome_of(context, ticket, report)
    except Problem:
        return
    assert ticket.granted <= outcome.sent_at <= outcome.ended_at <= context.clock.now()
    await context.settle([outcome])
    await context.settle([outcome])
