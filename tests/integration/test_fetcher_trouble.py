"""Servers that are too slow, too large or broken: each ends in a failure of its kind, and soon."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable

import pytest

from skitter.fetch.base import Judge
from skitter.fetch.curl import CurlFetcher
from skitter.fetch.idle_requests import IdleCheck, IdleRequests
from skitter.fetch.response_head import Headers
from skitter.fetch.timer_wheel import TimerWheel
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.fetching import SHORT, exchange, failure, fetch, run
from tests.raw_server import page, sends, serving, silent

# -- limits


@pytest.mark.parametrize(
    ("length", "truncated"), [(999, False), (1000, False), (1001, True), (300_000, True)]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_is_cut_at_exactly_the_limit(length: int, truncated: bool, chunked: bool) -> None:
    body = bytes(i % 251 for i in range(length))
    answer = page(body)
    if chunked:
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
            length,
            body,
        )
    with serving(sends(answer)) as server:
        found = exchange(server.url + "/", FetchSettings(max_body=1000))
    assert (found.body, found.truncated) == (body[:1000], truncated)


def test_the_body_of_an_unwanted_type_is_not_read_and_its_connection_closed() -> None:
    closed = threading.Event()
    sent = 0

    def answer(connection: socket.socket, raw: bytes) -> bool:
        nonlocal sent
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 1000000000\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            while True:
                sent += connection.send(b"x" * 65_536)
        closed.set()
        return False

    async def use(fetcher: CurlFetcher) -> Exchange | Failed:
        found = await fetcher.fetch(server.url + "/", unwanted=lambda status, headers, start: headers[0][1])
        assert await asyncio.to_thread(closed.wait, 5)
        return found

    with serving(answer) as server:
        found = run(use)
    assert found == Failed(kind=FailureKind.TYPE_UNWANTED, detail="video/mp4", status=200)
    assert sent < 20_000_000


def judged(*parts: bytes, unwanted: Judge) -> Exchange | Failed:
    """What becomes of an answer whose parts arrive one by one, each when the one before was judged."""
    seen = threading.Semaphore(1)

    def judge(status: int, headers: Headers, start: bytes) -> str:
        seen.release()
        return unwanted(status, headers, start)

    def answer(connection: socket.socket, raw: bytes) -> bool:
        for part in parts:
            seen.acquire(timeout=5)
            connection.sendall(part)
        return False

    with serving(answer) as server:
        return run(lambda fetcher: fetcher.fetch(server.url + "/", unwanted=judge))


def test_a_body_is_judged_by_its_final_head_and_what_has_come_of_it_so_far() -> None:
    asked: list[tuple[int, Headers, bytes]] = []

    def unwanted(status: int, headers: Headers, start: bytes) -> str:
        asked.append((status, headers, start))
        return ""

    hints = b"HTTP/1.1 103 Early Hints\r\nContent-Type: image/png\r\n\r\n"
    head = b"HTTP/1.1 404 No\r\ncontent-type:  text/x; q=1 \r\nConnection: close\r\n\r\n"
    judged(hints + head + b"ab", b"c" * 1442, b"d", b"never asked about", unwanted=unwanted)
    assert {(status, headers[0]) for status, headers, _ in asked} == {(404, ("content-type", "text/x; q=1"))}
    assert [start for _, _, start in asked] == [b"ab", b"ab" + b"c" * 1442, b"ab" + b"c" * 1442 + b"d"]


def test_an_objection_to_later_bytes_ends_the_transfer_as_well() -> None:
    found = judged(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab",
        b"cd",
        unwanted=lambda status, headers, start: "odd" if start == b"abcd" else "",
    )
    assert found == Failed(kind=FailureKind.TYPE_UNWANTED, detail="odd", status=200)


def many_headers(count: int, size: int) -> bytes:
    lines = [b"X-%d: " % number + b"v" * size for number in range(count)]
    return b"HTTP/1.1 200 OK\r\n" + b"\r\n".join(lines) + b"\r\nContent-Length: 1\r\n\r\nx"


@pytest.mark.parametrize(
    ("count", "size"), [(200, 1), (1, 70_000), (100, 1000), (100_000, 1), (1, 5_000_000)]
)
def test_too_many_or_too_large_headers_are_refused(count: int, size: int) -> None:
    with serving(sends(many_headers(count, size))) as server:
        assert failure(server.url + "/").kind is FailureKind.HEADERS_TOO_LARGE


def test_headers_at_the_limit_are_fine() -> None:
    with serving(sends(many_headers(199, 100))) as server:
        assert len(exchange(server.url + "/").headers) == 200


def test_interim_answers_without_end_are_refused() -> None:
    with serving(sends(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 10_000, page(b"x"))) as server:
        found = fetch(server.url + "/")
    assert isinstance(found, Failed)


def test_trailers_without_end_do_not_grow_anything() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    with serving(sends(head, *[b"X-%d: y\r\n" % number for number in range(50_000)])) as server:
        fetch(server.url + "/")


# -- time


def timed(url: str, limits: FetchSettings) -> tuple[FailureKind, float]:
    begun = time.monotonic()
    kind = failure(url, limits).kind
    return kind, time.monotonic() - begun


def test_a_connection_that_is_never_made_times_out() -> None:
    # a listener with a full backlog drops further connection requests, as a dead machine would
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as filling:
        for _ in range(4):
            client = filling.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        kind, seconds = timed(f"http://127.0.0.1:{listener.getsockname()[1]}/", SHORT)
    assert kind is FailureKind.CONNECT_TIMEOUT
    assert 0.9 < seconds < 4


def test_a_handshake_that_is_never_answered_times_out_as_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kind, seconds = timed(f"https://127.0.0.1:{listener.getsockname()[1]}/", SHORT)
    assert kind is FailureKind.CONNECT_TIMEOUT
    assert 0.9 < seconds < 4


def test_each_request_has_limits_of_its_own_whoever_began_before_it() -> None:
    limits = FetchSettings(first_byte_timeout=0.3, stall_timeout=0.3, total_timeout=3)

    async def use(fetcher: CurlFetcher) -> tuple[Exchange | Failed, Exchange | Failed]:
        first = asyncio.ensure_future(fetcher.fetch(server.url + "/"))
        await asyncio.sleep(0.2)
        return await asyncio.gather(first, fetcher.fetch(server.url + "/"))

    with serving(silent()) as server:
        found = run(use, limits)
    kinds = [each.kind for each in found if isinstance(each, Failed)]
    assert kinds == [FailureKind.FIRST_BYTE_TIMEOUT] * 2


def test_after_a_request_that_was_given_up_others_are_answered() -> None:
    limits = FetchSettings(first_byte_timeout=0.3, stall_timeout=0.3, total_timeout=3)

    async def use(fetcher: CurlFetcher) -> tuple[Exchange | Failed, Exchange | Failed]:
        return await fetcher.fetch(mute.url + "/"), await fetcher.fetch(server.url + "/")

    with serving(silent()) as mute, serving(sends(page(b"here"))) as server:
        given_up, answered = run(use, limits)
    assert isinstance(given_up, Failed)
    assert given_up.kind is FailureKind.FIRST_BYTE_TIMEOUT
    assert isinstance(answered, Exchange)
    assert answered.body == b"here"


@pytest.mark.parametrize("stall", [0.3, 1.0, 5.0])
def test_no_answer_is_a_first_byte_time_out_whatever_the_stall_limit(stall: float) -> None:
    limits = FetchSettings(connect_timeout=5.0, first_byte_timeout=1.0, stall_timeout=stall, total_timeout=20)
    with serving(silent()) as server:
        kind, seconds = timed(server.url + "/", limits)
    assert kind is FailureKind.FIRST_BYTE_TIMEOUT
    assert 0.9 < seconds < 3


def test_a_slow_page_gets_the_patience_for_its_first_byte() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        time.sleep(1.0)
        connection.sendall(page(b"late"))
        return False

    limits = FetchSettings(first_byte_timeout=4.0, stall_timeout=0.3, total_timeout=20)
    with serving(answer) as server:
        assert exchange(server.url + "/", limits).body == b"late"


def trickle(head: bytes, drop: bytes, gap: float) -> Callable[[socket.socket, bytes], bool]:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(head)
        while True:
            connection.sendall(drop)
            time.sleep(gap)

    return answer


def test_a_transfer_slower_than_the_stall_rate_is_given_up() -> None:
    with serving(trickle(b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.2)) as server:
        kind, seconds = timed(
            server.url + "/", FetchSettings(stall_timeout=1.0, stall_rate=100, total_timeout=20)
        )
    assert kind is FailureKind.STALLED
    assert seconds < 8


def test_a_head_that_never_ends_is_given_up() -> None:
    with serving(trickle(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.2)) as server:
        kind, _ = timed(server.url + "/", FetchSettings(stall_timeout=1.0, stall_rate=100, total_timeout=20))
    assert kind is FailureKind.STALLED


def test_a_transfer_that_takes_too_long_in_all_is_given_up() -> None:
    limits = FetchSettings(total_timeout=1.0, stall_rate=1, first_byte_timeout=5.0)
    with serving(trickle(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000, 0.05)) as server:
        kind, seconds = timed(server.url + "/", limits)
    assert kind is FailureKind.TOTAL_TIMEOUT
    assert 0.9 < seconds < 3


@pytest.mark.parametrize("at_once", [1, 20, 300])
def test_sent_at_is_never_before_the_server_had_the_request_and_not_after_the_end(at_once: int) -> None:
    # the server in a process of its own, with the kernel's times: a thread here would be late by its own wait
    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        found: list[Exchange | Failed] = []
        for turn in range(3):
            urls = [f"{web.plan.url(host, '/')}?{turn}" for host in range(at_once)]
            found += await asyncio.gather(*map(fetcher.fetch, urls))
        return found

    with SyntheticWeb(WebPlan.plain(hosts=at_once, pages=1)) as web:
        found = run(use, FetchSettings(resolve=(web.resolve,)))
        web.stop()
        starts = {f"http://{one.host}{one.path}": one.start for one in web.requests()}
    exchanges = [one for one in found if isinstance(one, Exchange)]
    assert len(exchanges) == 3 * at_once
    late = {
        one.url: (starts[one.url] - one.sent_at, one.ended_at - one.sent_at)
        for one in exchanges
        if not starts[one.url] - 0.001 <= one.sent_at <= one.ended_at
    }
    assert late == {}


# -- broken servers

LOST, BROKEN = FailureKind.CONNECTION_LOST, FailureKind.PROTOCOL


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", LOST),
        (b"HTTP/1.1 200 OK\r\nContent-", LOST),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", LOST),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", LOST),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", LOST),
        (b"just text, as in HTTP/0.9", BROKEN),
        (b"\x00\x01\x02garbage\r\n\r\n", BROKEN),
        (b"SSH-2.0-OpenSSH_9.2\r\n", BROKEN),
        (b"HTTP/1.1 banana\r\n\r\n", BROKEN),
        (b"HTTP/9.9 200 OK\r\n\r\n", BROKEN),
        (b"HTTP/2 200 OK\r\n\r\n", BROKEN),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx", BROKEN),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", BROKEN),
        (b"HTTP/1.1 200 OK\r\nX: y\r\n", LOST),
        (b"HTTP/1.1 100 Continue\r\n\r\n", LOST),
        (b"HTTP/1.1 100 Continue\r\nX: y", LOST),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", BROKEN),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n", BROKEN),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nab\r\n", BROKEN),
        (b"HTTP/1.1 200 OK\r\nX: \x00\r\nContent-Length: 1\r\n\r\nx", BROKEN),
    ],
)
def test_a_broken_answer_is_a_failure_of_its_kind(answer: bytes, kind: FailureKind) -> None:
    with serving(sends(answer)) as server:
        assert failure(server.url + "/").kind is kind


def test_a_reset_connection_is_a_lost_one() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return False

    with serving(answer) as server:
        assert failure(server.url + "/").kind is LOST


def test_a_failure_leaves_nothing_behind_for_the_next_request() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        if b"GET /bad" in raw:
            connection.sendall(b"HTTP/1.1 500 X\r\nX-Bad: 1\r\nContent-Length: 10\r\n\r\nbad")
            return False
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        return True

    async def use(fetcher: CurlFetcher) -> None:
        for _ in range(3):
            assert isinstance(await fetcher.fetch(server.url + "/bad", etag='"e"'), Failed)
            good = await fetcher.fetch(server.url + "/good")
            assert isinstance(good, Exchange)
            assert (good.status, good.body, good.header("x-bad")) == (200, b"", "")
            assert b"If-None-Match" not in good.request

    with serving(answer) as server:
        run(use)


def test_a_process_that_loses_its_processor_just_before_it_sends_dates_the_request_no_earlier() -> None:
    asked = 0

    def slowly() -> bool:
        """Asked a second time when the connection is there and libcurl has read its clock."""
        nonlocal asked
        asked += 1
        if asked % 2 == 0:
            time.sleep(0.1)
        return True

    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        return [await fetcher.fetch(server.url + "/", may_start=slowly) for _ in range(2)]

    def answer(connection: socket.socket, raw: bytes) -> bool:
        time.sleep(0.3)  # or the answer would tell when the request had arrived
        connection.sendall(page(b"here"))
        return True

    with serving(answer) as server:
        found = run(use)
        for one, received in zip(found, server.requests, strict=True):
            assert isinstance(one, Exchange)
            assert received.at - 0.02 <= one.sent_at <= one.ended_at - 0.25
        assert asked == 4


# -- requests that hardly move


def test_a_request_that_waits_is_quiet_until_it_ends() -> None:
    answered = threading.Event()

    def answer(connection: socket.socket, raw: bytes) -> bool:
        answered.wait(30)
        connection.sendall(page(b"late"))
        return False

    async def use(fetcher: CurlFetcher) -> None:
        fetching = asyncio.create_task(fetcher.fetch(server.url + "/"))
        while not fetcher.idle and not fetching.done():
            await asyncio.sleep(0.02)
        assert (fetcher.idle, fetcher.in_flight) == (1, 1)
        answered.set()
        assert isinstance(await fetching, Exchange)
        assert fetcher.idle == 0

    with serving(answer) as server:
        run(use, FetchSettings())


def test_a_request_that_moves_is_not_quiet() -> None:
    looks = 0
    quiet: list[int] = []

    def received() -> int:
        nonlocal looks
        looks += 1
        quiet.append(idle.count)
        return looks * 5000

    async def use() -> None:
        with IdleCheck(idle, received):
            while looks < 2:
                await asyncio.sleep(0.02)

    idle = IdleRequests(TimerWheel(0.05))
    asyncio.run(use())
    assert (quiet, idle.count) == ([0, 0], 0)
