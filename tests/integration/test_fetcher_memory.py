"""Bodies together take bounded memory, and what is neither head nor body is not read for long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

import pytest

from skitter.fetch.body_budget import BodyBudget
from skitter.fetch.curl import CurlFetcher
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings
from tests.fetching import fetch, run
from tests.raw_server import page, sends, serving

COUNT = 12
LENGTH = 1_000_000
BODY = b"x" * LENGTH
PATIENT = FetchSettings(body_memory=1_500_000, first_byte_timeout=30, stall_timeout=30, total_timeout=60)


def bodies_of(fetcher: CurlFetcher) -> BodyBudget:
    return fetcher._bodies


def test_more_than_memory_holds_arrives_whole_one_after_the_other() -> None:
    most = 0

    async def use(fetcher: CurlFetcher) -> None:
        async def one() -> None:
            nonlocal most
            found = await fetcher.fetch(server.url + "/")
            assert isinstance(found, Exchange), found
            assert found.body == BODY
            most = max(most, bodies_of(fetcher).held)
            fetcher.release(found)

        async with asyncio.timeout(50):
            await asyncio.gather(*(one() for _ in range(COUNT)))
        assert bodies_of(fetcher).held == 0

    with serving(sends(page(BODY))) as server:
        run(use, PATIENT)
    assert LENGTH <= most <= PATIENT.body_memory + LENGTH


def test_while_long_bodies_wait_for_memory_short_ones_are_fetched() -> None:
    async def use(fetcher: CurlFetcher) -> None:
        kept = [await fetcher.fetch(long.url + "/") for _ in range(2)]
        waiting = asyncio.create_task(fetcher.fetch(long.url + "/"))
        found = await fetcher.fetch(short.url + "/")
        assert isinstance(found, Exchange)
        assert not waiting.done()
        for exchange in kept:
            assert isinstance(exchange, Exchange)
            fetcher.release(exchange)
        assert isinstance(await waiting, Exchange)

    with serving(sends(page(BODY))) as long, serving(sends(page(b"short"))) as short:
        run(use, PATIENT)


def test_a_body_that_waits_for_memory_is_neither_stalled_nor_quiet() -> None:
    """Its host cannot help it; and as quiet ones do not count as requests in flight, ever more would come."""
    limits = FetchSettings(body_memory=1_500_000, first_byte_timeout=1, stall_timeout=1, total_timeout=4)
    quiet = 0

    async def use(fetcher: CurlFetcher) -> Exchange | Failed:
        nonlocal quiet
        for _ in range(2):
            await fetcher.fetch(server.url + "/")  # never let go
        waiting = asyncio.create_task(fetcher.fetch(server.url + "/"))
        while not waiting.done():
            quiet = max(quiet, fetcher.idle)
            await asyncio.sleep(0.02)
        return await waiting

    with serving(sends(page(BODY))) as server:
        found = run(use, limits)
    assert isinstance(found, Failed)
    assert (found.kind, quiet) == (FailureKind.TOTAL_TIMEOUT, 0)


def test_failed_and_cancelled_transfers_give_their_memory_back() -> None:
    async def use(fetcher: CurlFetcher) -> None:
        found = await fetcher.fetch(broken.url + "/")
        assert isinstance(found, Failed)
        assert bodies_of(fetcher).held == 0
        task = asyncio.create_task(fetcher.fetch(held.url + "/"))
        async with asyncio.timeout(20):
            while not bodies_of(fetcher).held:
                await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert bodies_of(fetcher).held == 0

    def holds(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(page(BODY)[:-1])
        with contextlib.suppress(OSError):
            connection.recv(1)
        return False

    with serving(sends(page(BODY)[:-1])) as broken, serving(holds) as held:
        run(use, PATIENT)


def test_a_handle_keeps_no_body_between_two_requests() -> None:
    async def use(fetcher: CurlFetcher) -> None:
        await fetcher.fetch(server.url + "/")
        assert [transfer.chunks for transfer in fetcher._free] == [[]]

    with serving(sends(page(BODY))) as server:
        run(use)


# -- what is neither head nor body


@pytest.mark.skipif(
    not hasattr(socket, "TCP_INFO"), reason="the kernel does not say what a connection received"
)
def test_a_chunk_extension_without_end_is_given_up_when_it_is_longer_than_a_body_may_be() -> None:
    closed = threading.Event()

    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14;x=")
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(b"y" * 65_536)
        closed.set()
        return False

    # The stall limit is far behind the total one: nothing but the bytes can have ended it.
    limits = FetchSettings(max_body=1_000_000, first_byte_timeout=1, stall_timeout=3600, total_timeout=600)
    with serving(answer) as server:
        found = fetch(server.url + "/", limits)
        assert closed.wait(10)
    assert isinstance(found, Failed)
    assert found.kind is FailureKind.STALLED


@pytest.mark.skipif(
    not hasattr(socket, "TCP_INFO"), reason="the kernel does not say what a connection received"
)
def test_framing_within_reason_is_no_flood() -> None:
    """Half as many bytes of framing as a body may have, held long enough for a glance."""
    first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x="
    limits = FetchSettings(max_body=1_000_000, first_byte_timeout=0.5, stall_timeout=30, total_timeout=60)

    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(first + b"y" * 500_000)
        threading.Event().wait(0.4)
        connection.sendall(b"\r\nhello\r\n0\r\n\r\n")
        return False

    with serving(answer) as server:
        found = fetch(server.url + "/", limits)
    assert isinstance(found, Exchange)
    assert found.body == b"hello"
