"""One request over libcurl, against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skitter.fetch.curl import Fetcher
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from skitter.urls.canonical import normalise
from tests.fetching import SHORT, fetching
from tests.raw_server import RawServer, page, sends, serving, silent

T = TypeVar("T")


def run(use: Callable[[Fetcher], Awaitable[T]], limits: FetchSettings = SHORT, **options: bool) -> T:
    async def main() -> T:
        async with fetching(limits, **options) as fetcher:
            return await use(fetcher)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def fetch(url: str, limits: FetchSettings = SHORT, **options: bool) -> Exchange | Failed:
    return run(lambda fetcher: fetcher.fetch(url), limits, **options)


def exchange(url: str, limits: FetchSettings = SHORT, **options: bool) -> Exchange:
    found = fetch(url, limits, **options)
    assert isinstance(found, Exchange), found
    return found


def failure(url: str, limits: FetchSettings = SHORT, **options: bool) -> Failed:
    found = fetch(url, limits, **options)
    assert isinstance(found, Failed), found
    return found


# -- the request


def test_the_recorded_request_is_what_the_server_received_byte_for_byte() -> None:
    with serving(sends(page(b"x"))) as server:
        found = exchange(f"{server.url}/a%20b/..c?d=e&f;=%7C")
        assert server.requests[0].raw == found.request
        assert found.request.startswith(b"GET /a%20b/..c?d=e&f;=%7C HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"(+me@example.org)" in found.request


@pytest.mark.parametrize(
    "etag", ['"abc"', 'W/"x y"', '"caf\xe9"', '"a\rX-Injected: 1"', '"\x00"', '"\t;"', '";"', ";"]
)
def test_a_conditional_request_is_recorded_as_it_was_sent_whatever_the_validators(etag: str) -> None:
    async def use(fetcher: Fetcher) -> Exchange | Failed:
        return await fetcher.fetch(server.url + "/", etag=etag, last_modified="Sat, 01 Jan 2000 00:00:00 GMT")

    with serving(sends(b"HTTP/1.1 304 Not Modified\r\n\r\n")) as server:
        found = run(use)
        assert isinstance(found, Exchange)
        assert found.status == 304
        assert server.requests[0].raw == found.request
        assert b"\r\nIf-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n" in found.request
        assert b"\rX-Injected" not in found.request
        assert b"\x00" not in found.request


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("/.?%&=;:@!$'()*+,|^`{}[]\"<>\\~a0é\u4e2d \t"), max_size=20))
def test_whatever_the_url_the_recorded_request_is_what_was_sent(echo: RawServer, path: str) -> None:
    url = normalise(f"{echo.url}/{path}")
    assert url is not None
    found = exchange(url)
    assert echo.requests[-1].raw == found.request
    assert found.request.startswith(f"GET {url[len(echo.url) :]} HTTP/1.1\r\n".encode())


@pytest.fixture(scope="module")
def echo() -> Iterator[RawServer]:
    with serving(sends(page(b"x"))) as server:
        yield server


@pytest.mark.parametrize(
    "name",
    [
        "example.org",
        "example.org.",
        "under_score.example",
        "xn--bcher-kva.example",
        "a-.b--c.test",
        "1.2.3.4.x",
    ],
)
def test_a_pinned_name_is_dialled_at_the_address_and_keeps_its_host_header(name: str) -> None:
    with serving(sends(page(b"x"))) as server:
        limits = FetchSettings(resolve=(f"*:80:127.0.0.1:{server.port}",))
        found = exchange(f"http://{name}/p", limits, allow_private=False)
        assert server.requests[0].raw == found.request
        assert f"\r\nHost: {name}\r\n".encode() in found.request
        assert found.address == "127.0.0.1"


# -- the answer


def test_head_and_body_are_kept_byte_for_byte() -> None:
    head = b"HTTP/1.1 200  Fine \xff\r\nX-Odd:  a \t\r\nx-odd: b\r\nEmpty:\r\nX-Bin: \xe9\xff\r\nContent-Length: 6\r\n\r\n"
    with serving(sends(head, b"\x00\xff\r\n\r\n")) as server:
        found = exchange(server.url + "/")
    assert found.head == head
    assert found.body == b"\x00\xff\r\n\r\n"
    assert (found.status, found.truncated, found.http_version) == (200, False, "1.1")
    assert found.headers[0] == ("x-odd", "a")
    assert found.header("x-odd") == "a"
    assert ("x-bin", "\xe9\xff") in found.headers


def test_a_coded_body_is_kept_as_it_came() -> None:
    with serving(sends(page(b"\x1f\x8bnot really gzip", b"Content-Encoding: gzip"))) as server:
        assert exchange(server.url + "/").body == b"\x1f\x8bnot really gzip"


def test_a_redirect_is_not_followed() -> None:
    with serving(sends(page(b"", b"Location: /elsewhere", status=b"302 Found"))) as server:
        found = exchange(server.url + "/")
        assert (found.status, found.header("location")) == (302, "/elsewhere")
        assert len(server.requests) == 1


def test_chunks_are_joined_and_trailers_are_not_part_of_the_head() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    chunks = b"3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 7\r\nContent-Type: image/png\r\n\r\n"
    with serving(sends(head, chunks, keep=True)) as server:
        found = exchange(server.url + "/")
    assert (found.head, found.body) == (head, b"abc0123456789")
    assert found.header("x-sum") == ""


@pytest.mark.parametrize(
    "interim", [b"100 Continue", b"103 Early Hints\r\nLink: </x>; rel=preload", b"102 Processing"]
)
def test_interim_answers_are_not_the_answer(interim: bytes) -> None:
    final = page(b"real", b"X-Last: 1")
    with serving(
        sends(b"HTTP/1.1 " + interim + b"\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", final)
    ) as server:
        found = exchange(server.url + "/")
    assert found.head + found.body == final
    assert found.header("link") == ""
    assert found.status == 200


def test_an_answer_may_end_with_the_connection() -> None:
    with serving(sends(b"HTTP/1.0 200 OK\r\n\r\n", b"until the end")) as server:
        assert exchange(server.url + "/").body == b"until the end"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified", b"404 Not Found"])
def test_an_answer_without_a_body_is_an_answer(status: bytes) -> None:
    with serving(sends(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")) as server:
        found = exchange(server.url + "/")
    assert (found.status, found.body) == (int(status[:3]), b"")


def test_more_than_the_content_length_is_not_read_into_the_next_answer() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(page(raw[5:6]) + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
        return True

    async def use(fetcher: Fetcher) -> list[bytes]:
        found = [await fetcher.fetch(f"{server.url}/{name}") for name in "ab"]
        return [one.body for one in found if isinstance(one, Exchange)]

    with serving(answer) as server:
        assert run(use) == [b"a", b"b"]


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
    closed = asyncio.Event()
    sent = 0

    def answer(connection: socket.socket, raw: bytes) -> bool:
        nonlocal sent
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 1000000000\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            while True:
                sent += connection.send(b"x" * 65_536)
        loop.call_soon_threadsafe(closed.set)
        return False

    async def use(fetcher: Fetcher) -> Exchange | Failed:
        nonlocal loop
        loop = asyncio.get_running_loop()
        found = await fetcher.fetch(
            server.url + "/", wanted=lambda status, kind: (status, kind) != (200, "video/mp4")
        )
        await asyncio.wait_for(closed.wait(), 5)
        return found

    loop: asyncio.AbstractEventLoop
    with serving(answer) as server:
        found = run(use)
    assert found == Failed(kind=FailureKind.TYPE_UNWANTED, detail="video/mp4", status=200)
    assert sent < 20_000_000


def test_a_wanted_type_is_asked_about_once_with_the_final_status() -> None:
    asked: list[tuple[int, str]] = []

    def wanted(status: int, content_type: str) -> bool:
        asked.append((status, content_type))
        return True

    head = b"HTTP/1.1 103 Early Hints\r\nContent-Type: image/png\r\n\r\nHTTP/1.1 404 No\r\ncontent-type:  text/x; q=1 \r\n"
    with serving(sends(head + b"Content-Length: 4\r\n\r\n", b"ab", b"cd")) as server:
        run(lambda fetcher: fetcher.fetch(server.url + "/", wanted=wanted))
    assert asked == [(404, "text/x; q=1")]


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


# -- connections


def test_a_kept_connection_is_used_again() -> None:
    async def use(fetcher: Fetcher) -> list[bool]:
        found = [await fetcher.fetch(f"{server.url}/{number}") for number in range(3)]
        return [one.reused_connection for one in found if isinstance(one, Exchange)]

    with serving(sends(page(b"x"), keep=True)) as server:
        assert run(use) == [False, True, True]
        assert server.connections == 1


def test_a_kept_connection_that_was_closed_meanwhile_is_no_failure() -> None:
    async def use(fetcher: Fetcher) -> int:
        found = []
        for number in range(5):
            found.append(await fetcher.fetch(f"{server.url}/{number}"))
        return sum(isinstance(one, Exchange) for one in found)

    with serving(sends(page(b"x"))) as server:  # no Connection: close, yet it closes
        assert run(use) == 5
        assert len(server.requests) == 5


def test_a_connection_is_never_shared_between_hosts_on_one_address() -> None:
    async def use(fetcher: Fetcher) -> None:
        for name in ("a.test", "b.test", "a.test"):
            assert isinstance(await fetcher.fetch(f"http://{name}/"), Exchange)

    with serving(sends(page(b"x"), keep=True)) as server:
        run(use, FetchSettings(resolve=(f"*:80:127.0.0.1:{server.port}",)))
        hosts = {(one.connection, one.raw.split(b"\r\n")[1]) for one in server.requests}
        assert len({connection for connection, _ in hosts}) == len(hosts)


def test_loopback_is_refused_and_not_dialled_unless_allowed() -> None:
    with serving(sends(page(b"x"))) as server:
        found = failure(server.url + "/", allow_private=False)
        assert found.kind is FailureKind.ADDRESS_REFUSED
        assert "127.0.0.1" in found.detail
        localhost = failure(f"http://localhost:{server.port}/", allow_private=False)
        assert localhost.kind is FailureKind.ADDRESS_REFUSED
        assert server.connections == 0


def test_ipv6_loopback_is_dialled_as_written() -> None:
    try:
        serving_v6 = serving(sends(page(b"x")), address="::1")
        with serving_v6 as server:
            found = exchange(server.url + "/")
            assert server.requests[0].raw == found.request
            assert (found.address, found.body) == ("::1", b"x")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")


def test_nobody_listening_is_a_refused_connection() -> None:
    with serving(sends(page(b"x"))) as server:
        pass
    assert failure(server.url + "/").kind is FailureKind.CONNECT_REFUSED


@pytest.mark.parametrize("url", ["http://127.0.0.1:0/", "ftp://127.0.0.1/", "http://", "nonsense", ""])
def test_what_cannot_be_dialled_is_a_failure(url: str) -> None:
    assert isinstance(fetch(url), Failed)


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


def test_sent_at_is_never_before_the_server_had_the_request_and_not_after_the_end() -> None:
    async def use(fetcher: Fetcher) -> list[Exchange | Failed]:
        return [await fetcher.fetch(f"{server.url}/{number}") for number in range(50)]

    def answer(connection: socket.socket, raw: bytes) -> bool:
        time.sleep(0.002)
        connection.sendall(page(b"x" * 20_000))
        return True

    with serving(answer) as server:
        found = run(use)
        received = {one.raw: one.at for one in server.requests}
    for one in found:
        assert isinstance(one, Exchange)
        assert received[one.request] - 0.001 <= one.sent_at <= one.ended_at


def test_sent_at_holds_with_many_requests_at_once() -> None:
    # the server in a process of its own, with the kernel's times: threads here would measure each other
    async def use(fetcher: Fetcher) -> list[Exchange | Failed]:
        found: list[Exchange | Failed] = []
        for turn in range(3):
            urls = [f"{web.plan.url(host, '/')}?{turn}" for host in range(300)]
            found += await asyncio.gather(*map(fetcher.fetch, urls))
        return found

    with SyntheticWeb(WebPlan.plain(hosts=300, pages=1)) as web:
        found = run(use, FetchSettings(resolve=(web.resolve,)))
        web.stop()
        starts = {f"http://{one.host}{one.path}": one.start for one in web.requests()}
    exchanges = [one for one in found if isinstance(one, Exchange)]
    assert len(exchanges) == 900
    late = [one.url for one in exchanges if not starts[one.url] - 0.001 <= one.sent_at <= one.ended_at]
    assert late == []


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
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", LOST),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n", LOST),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nab\r\n", LOST),
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

    async def use(fetcher: Fetcher) -> None:
        for _ in range(3):
            assert isinstance(await fetcher.fetch(server.url + "/bad", etag='"e"'), Failed)
            good = await fetcher.fetch(server.url + "/good")
            assert isinstance(good, Exchange)
            assert (good.status, good.body, good.header("x-bad")) == (200, b"", "")
            assert b"If-None-Match" not in good.request

    with serving(answer) as server:
        run(use)


# -- many at once


def test_two_hundred_requests_at_once_all_get_their_own_answer() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(page(raw.split()[1]))
        return True

    async def use(fetcher: Fetcher) -> list[Exchange | Failed]:
        return await asyncio.gather(*(fetcher.fetch(f"{server.url}/{number}") for number in range(200)))

    with serving(answer) as server:
        found = run(use, FetchSettings())
    assert [one.body for one in found if isinstance(one, Exchange)] == [b"/%d" % n for n in range(200)]


def test_a_cancelled_request_leaves_the_fetcher_usable() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        if b"GET /slow" in raw:
            return silent()(connection, raw)
        connection.sendall(page(b"fine"))
        return True

    async def use(fetcher: Fetcher) -> None:
        for _ in range(5):
            slow = asyncio.create_task(fetcher.fetch(server.url + "/slow"))
            while not any(b"GET /slow" in one.raw for one in server.requests):
                await asyncio.sleep(0.005)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            server.requests.clear()
            good = await fetcher.fetch(server.url + "/good")
            assert isinstance(good, Exchange)
            assert (good.body, fetcher.in_flight) == (b"fine", 0)

    with serving(answer) as server:
        run(use)


def test_closing_with_requests_under_way_ends_them() -> None:
    async def main() -> None:
        async with fetching() as fetcher:
            slow = [asyncio.create_task(fetcher.fetch(server.url + "/")) for _ in range(10)]
            while len(server.requests) < 10:
                await asyncio.sleep(0.005)
        await asyncio.wait_for(asyncio.gather(*slow, return_exceptions=True), 5)

    with serving(silent()) as server, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


# -- TLS


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=tls.test"
    )
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    try:
        subprocess.run([*command.split(), *files], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return folder


def context(folder: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return made


def test_a_self_signed_certificate_is_refused(self_signed: Path) -> None:
    with serving(sends(page(b"x")), tls=context(self_signed)) as server:
        found = failure(server.url + "/")
        assert found.kind is FailureKind.TLS
        assert "certificate" in found.detail.lower()
        assert server.requests == []


def test_certificates_can_be_left_unchecked_and_the_server_name_is_sent(self_signed: Path) -> None:
    with serving(sends(page(b"secret"), keep=True), tls=context(self_signed)) as server:
        limits = FetchSettings(verify_tls=False, resolve=(f"*:443:127.0.0.1:{server.port}",))
        found = exchange("https://tls.test/p", limits)
        assert (found.body, server.server_names) == (b"secret", ["tls.test"])
        assert server.requests[0].raw == found.request
        assert b"\r\nHost: tls.test\r\n" in found.request


def test_plain_text_where_tls_is_expected_is_a_tls_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(page(b"x"))
                connection.recv(65_536)

        threading.Thread(target=greet, daemon=True).start()
        assert failure(f"https://127.0.0.1:{listener.getsockname()[1]}/").kind is FailureKind.TLS
