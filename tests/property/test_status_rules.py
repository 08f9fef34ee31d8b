"""A status means the same whoever asked: our own worker's answer and a foreign worker's report of it."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.folder import CrawlFolder
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import (
    Exchange,
    Failed,
    Fetched,
    NotModified,
    Redirected,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Token,
)
from skitter.service.api_context import ApiContext
from skitter.service.foreign_reports import Report, outcome_of
from skitter.service.tickets import Ticket
from skitter.settings import Settings
from skitter.telemetry import Telemetry
from skitter.testing.clock import FakeClock
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader
from skitter.worker.kinds import KINDS, make_result
from skitter.worker.results import Reading, ResultMaker
from skitter.worker.step import answer_of
from tests.service_kit import open_committer

START = 1_800_000_000.0
URL = "http://a.test/dir/page"
KEYS = Keys(Settings().keys)
LOCATIONS = ("", "/next", "next?x=1", "http://b.test/", "http://[", "mailto:a@b.test", "//c.test/x", "#top")
WAITS = (None, 0, 1, 120, 3_600, 7 * 86_400)
BODIES = (b"", b"User-agent: *\nDisallow: /x\n", b"<p>not found")


@pytest.fixture(scope="module")
def context() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        clock = FakeClock(START)
        frontier = open_rocks_frontier(Path(folder) / "frontier", Settings(), clock)
        with open_committer(frontier, Path(folder), Settings(), clock) as committer:
            yield ApiContext(
                frontier=frontier,
                settings=Settings(),
                folder=CrawlFolder(Path(folder)),
                telemetry=Telemetry(START),
                clock=clock,
                committer=committer,
            )
        asyncio.run(frontier.close())


def by_our_worker(task: Task, status: int, location: str, wait: int | None, body: bytes) -> Result:
    headers = [("content-type", "application/octet-stream"), ("etag", '"e"')]
    headers += [("location", location)] if location else []
    headers += [("retry-after", str(wait))] if wait is not None else []
    exchange = Exchange(
        url=URL,
        request=b"",
        head=b"",
        status=status,
        headers=tuple(headers),
        body=body,
        sent_at=START,
        ended_at=START,
    )
    maker = ResultMaker(KEYS, LinkReader(KEYS), None)
    return make_result(KINDS[task.kind], maker, task, answer_of(exchange), Reading())


def by_a_foreign_worker(
    context: ApiContext, task: Task, status: int, location: str, wait: int | None, body: bytes
) -> Result:
    ticket = Ticket(
        kind=task.kind,
        token=Token(1),
        key=task.key,
        url=task.url,
        granted=START,
        depth=task.depth,
        hops=task.hops,
        nesting=task.nesting,
        conditional=bool(task.etag),
    )
    report = Report(
        http_status=status,
        content_type="application/octet-stream",
        content_hash=hashlib.sha256(body).hexdigest(),
        size=len(body),
        etag='"e"',
        location=location,
        retry_after_sec=wait,
        body=body.decode(),
    )
    return outcome_of(context, ticket, report).result


def task(kind: TaskKind, conditional: bool) -> Task:
    return Task(
        kind=kind,
        key=KEYS.key_of(URL),
        url=URL,
        depth=2,
        hops=1,
        etag='"e"' if conditional else "",
    )


TASKS = [task(kind, conditional) for kind in TaskKind for conditional in (False, True)]


@pytest.mark.parametrize("asked", TASKS, ids=lambda task: f"{KINDS[task.kind].name}-{bool(task.etag)}")
def test_every_status_means_the_same_by_both_doors(context: ApiContext, asked: Task) -> None:
    for status in range(200, 600):
        for location, wait, body in (("", None, b""), ("/next", 120, b"User-agent: *\nDisallow: /x\n")):
            answered = (status, location, wait, body)
            assert by_our_worker(asked, *answered) == by_a_foreign_worker(context, asked, *answered), status


@given(
    asked=st.sampled_from(TASKS),
    status=st.integers(200, 599),
    location=st.sampled_from(LOCATIONS) | st.text("abc/:?#[]@%. ", max_size=20),
    wait=st.sampled_from(WAITS),
    body=st.sampled_from(BODIES),
)
def test_every_header_means_the_same_by_both_doors(
    context: ApiContext, asked: Task, status: int, location: str, wait: int | None, body: bytes
) -> None:
    answered = (status, location, wait, body)
    assert by_our_worker(asked, *answered) == by_a_foreign_worker(context, asked, *answered)


def test_the_table_has_every_kind_of_result(context: ApiContext) -> None:
    found = {
        type(by_a_foreign_worker(context, asked, status, "/next", None, b""))
        for asked in TASKS
        for status in range(200, 600)
    }
    assert found == {Failed, Fetched, NotModified, Redirected, RobotsRead}
