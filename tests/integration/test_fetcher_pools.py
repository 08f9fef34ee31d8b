"""Many hosts in turn: each finds its connection again, and no more stay open than the settings allow."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from skitter.fetch.curl import CurlFetcher
from skitter.model import Exchange
from skitter.settings import FetchSettings
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.fetching import run
from tests.raw_server import page, sends, serving

HOSTS, KEPT = 200, 128


@pytest.fixture(scope="module")
def web() -> Iterator[SyntheticWeb]:
    with SyntheticWeb(WebPlan.plain(HOSTS, 3)) as web:
        yield web


async def ask_all(fetcher: CurlFetcher, web: SyntheticWeb, hosts: int) -> int:
    """How many of them on a connection that was there."""
    reused = 0
    for host in range(hosts):
        found = await fetcher.fetch(web.plan.url(host, "/"))
        assert isinstance(found, Exchange)
        fetcher.release(found)
        reused += found.reused_connection
    return reused


def limits(web: SyntheticWeb, connections: int) -> FetchSettings:
    return FetchSettings(resolve=web.resolves, concurrency=1, connections=connections)


@pytest.mark.parametrize("connections", [HOSTS, 4096])
def test_every_host_keeps_its_connection_while_others_are_asked(web: SyntheticWeb, connections: int) -> None:
    """A pool of half as many would keep none for a host: the one that is closed is the next one wanted."""

    async def use(fetcher: CurlFetcher) -> list[int]:
        return [await ask_all(fetcher, web, HOSTS) for _ in range(2)]

    assert run(use, limits(web, connections)) == [0, HOSTS]


def test_no_more_connections_stay_open_than_are_allowed(web: SyntheticWeb) -> None:
    async def use(fetcher: CurlFetcher) -> int:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(2):
            await ask_all(fetcher, web, HOSTS)
        return len(os.listdir("/proc/self/fd")) - before

    assert KEPT // 2 <= run(use, limits(web, KEPT)) <= KEPT + 4


def test_a_host_that_comes_back_after_many_others_is_asked_on_a_new_connection(web: SyntheticWeb) -> None:
    async def use(fetcher: CurlFetcher) -> tuple[int, int]:
        await ask_all(fetcher, web, HOSTS)
        return await ask_all(fetcher, web, 1), await ask_all(fetcher, web, 1)

    assert run(use, limits(web, 64)) == (0, 1)


def test_a_kept_connection_that_the_host_closes_is_heard_of_once_and_replaced() -> None:
    async def use(fetcher: CurlFetcher) -> list[bool]:
        reused = []
        for _ in range(3):
            found = await fetcher.fetch(server.url + "/")
            assert isinstance(found, Exchange)
            reused.append(found.reused_connection)
            while fetcher._pools._registered:
                await asyncio.sleep(0.01)
        return reused

    with serving(sends(page(b"and then the host hangs up"))) as server:
        assert run(use) == [False, False, False]
        assert server.connections == 3


def test_a_new_connection_by_the_number_of_a_closed_one_is_watched() -> None:
    times = 20

    async def use(fetcher: CurlFetcher) -> int:
        for _ in range(times):
            assert isinstance(await fetcher.fetch(server.url + "/"), Exchange)
        return len(fetcher._pools._registered)

    with serving(sends(page(b"one answer", b"Connection: close"))) as server:
        assert run(use) < times, "no number was used again"
        assert server.connections == times
