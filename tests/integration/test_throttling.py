"""429 and 503 as hosts see them: by each server's own log, through the real loop and the real fetcher.

All hosts are crawled side by side in one run. Each has three pages, of which some are refused at first.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import NamedTuple

import pytest
import uvloop

from skitter.folder import CrawlFolder
from skitter.frontier.base import HostView, Stats
from skitter.seeds import read_seeds
from skitter.settings import CrawlSettings, FetchSettings, PolitenessSettings, RetrySettings, Settings
from skitter.wiring import open_crawl
from tests.keys import KEYS
from tests.raw_server import Answer, RawServer, page, serving

SETTINGS = Settings(
    crawl=CrawlSettings(linger=20.0),
    fetch=FetchSettings(allow_private=True),
    politeness=PolitenessSettings(delay=0.2, slow_factor=0.0),
    retry=RetrySettings(backoff=(0.3,)),
)
# The worker spaces requests by when they left; the server notes when they have come in, so on a busy machine a
# gap may be seen shorter by what the first of the two took to be read. All gaps required are far longer.
GRAIN = 0.3
PAGES = 3
# A host that throttles us is slowed down from a second at least: half of that rate.
HALVED, QUARTERED = 2.0, 4.0
DATE_IN = 5


def refusal(retry_after: str, status: bytes = b"429 Too Many Requests") -> bytes:
    extra = [b"Retry-After: " + retry_after.encode("latin-1")] if retry_after else []
    return page(b"slow down", *extra, status=status)


MEANINGLESS = {"none": "", "zero": "0", "negative": "-5", "words": "soon", "float": "1.5e3", "digit": "\xb2"}


def scenarios() -> dict[str, tuple[bytes, ...]]:
    """What each host refuses with before it lets us in."""
    at = formatdate(time.time() + DATE_IN, usegmt=True)
    return {
        "seconds": (refusal("3"),),
        "seconds 503": (refusal("3", b"503 Busy"),),
        "date": (refusal(at),),
        "huge": (refusal("1" * 400),),
        "twice": (refusal(""), refusal("")),
        **{name: (refusal(value),) for name, value in MEANINGLESS.items()},
    }


def throttling(refusals: tuple[bytes, ...]) -> Answer:
    """robots.txt is missing, the first page links the others, then come the refusals, and then all is well."""
    left: Iterator[bytes] = iter(refusals)

    def answer(connection: socket.socket, raw: bytes) -> bool:
        path = raw.split()[1]
        if path == b"/robots.txt":
            connection.sendall(page(b"", status=b"404 No"))
        elif path == b"/":
            connection.sendall(page(b"".join(b"<a href=/%d>x</a>" % i for i in range(PAGES))))
        else:
            connection.sendall(next(left, page(b"fine " + path)))
        return True

    return answer


class Seen(NamedTuple):
    """What a server saw, and what the frontier says of it."""

    server: RawServer
    host: HostView

    def gaps(self) -> list[float]:
        """From the first refusal on: robots.txt and the first page come before."""
        times = [request.at for request in self.server.requests[2:]]
        return [later - before for before, later in itertools.pairwise(times)]


async def crawl(folder: CrawlFolder, servers: dict[str, RawServer]) -> tuple[list[HostView], Stats]:
    async with open_crawl(folder, SETTINGS) as parts:
        await parts.frontier.admit(read_seeds([server.url + "/" for server in servers.values()], [], KEYS))
        await parts.loop.run()
        return await parts.frontier.hosts(limit=99), await parts.frontier.stats()


class Run(NamedTuple):
    began: float
    seen: dict[str, Seen]
    stats: Stats


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = CrawlFolder(tmp_path_factory.mktemp("throttled"))
    began = time.time()
    with contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(serving(throttling(refusals))) for name, refusals in scenarios().items()
        }
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            views, stats = runner.run(crawl(folder, servers))
    hosts = {view.host: view for view in views}
    return Run(began, {name: Seen(server, hosts[server.url]) for name, server in servers.items()}, stats)


@pytest.mark.parametrize("name", ["seconds", "seconds 503"])
def test_no_request_comes_before_the_seconds_asked_for_and_the_rate_is_halved_right_after(
    run: Run, name: str
) -> None:
    waited, halved, recovering = run.seen[name].gaps()
    assert waited >= 3.0 - 0.001, "it counts from the answer, which comes after the request was read"
    assert halved >= HALVED - GRAIN
    # two good answers, a tenth of the full rate each
    assert recovering >= 1 / 0.7 - GRAIN


def test_no_request_comes_before_the_date_asked_for(run: Run) -> None:
    assert run.seen["date"].server.requests[3].at >= int(run.began + DATE_IN)


def test_a_retry_after_without_end_is_obeyed_for_a_day_and_nothing_else_is_asked_meanwhile(run: Run) -> None:
    seen = run.seen["huge"]
    assert len(seen.server.requests) == 3
    assert seen.host.next_start - seen.server.requests[2].at == pytest.approx(86_400, abs=1)
    assert seen.host.queued == PAGES - 1


@pytest.mark.parametrize("name", MEANINGLESS)
def test_a_retry_after_that_means_nothing_leaves_the_halved_rate(run: Run, name: str) -> None:
    gaps = run.seen[name].gaps()
    assert len(gaps) == PAGES
    assert all(gap >= least - GRAIN for gap, least in zip(gaps, (HALVED, HALVED, 1 / 0.7), strict=True))


def test_a_second_refusal_halves_the_rate_again(run: Run) -> None:
    gaps = run.seen["twice"].gaps()
    least = (HALVED, QUARTERED, 1 / 0.35, 1 / 0.35)
    assert all(gap >= required - GRAIN for gap, required in zip(gaps, least, strict=True))


def test_the_rate_recovers_by_tenths_with_each_good_answer(run: Run) -> None:
    rates = {name: 1 / seen.host.delay for name, seen in run.seen.items()}
    assert rates.pop("huge") == pytest.approx(0.5)
    assert rates.pop("twice") == pytest.approx(0.25 + PAGES * 0.1)
    assert list(rates.values()) == pytest.approx([0.5 + PAGES * 0.1] * len(rates))


def test_by_the_frontiers_own_ledger_nobody_was_asked_too_soon(run: Run) -> None:
    assert run.stats.politeness.violations == 0
    assert run.stats.fetches == sum(len(seen.server.requests) for seen in run.seen.values())
    assert run.stats.urls["completed"] == len(run.seen) * (1 + PAGES) - PAGES
