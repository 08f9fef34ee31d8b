"""One request over libcurl, against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skitter.fetch.curl import CurlFetcher
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings
from skitter.urls.canonical import normalise
from tests.fetching import exchange, failure, fetch, fetching, run
from tests.raw_server import RawServer, page, sends, serving, silent

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
    async def use(fetcher: CurlFetcher) -> Exchange | Failed:
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


def test_escapes_are_sent_as_the_url_has_them_and_the_next_request_is_not_confused() -> None:
    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        paths = ("/%0a?%c3%9c", "/plain", "/%0A")
        return [await fetcher.fetch(server.url + path) for path in paths]

    with serving(sends(page(b"x"))) as server:
        found = run(use)
        targets = [request.raw.split(b" ")[1] for request in server.requests]
        assert targets == [b"/%0a?%c3%9c", b"/plain", b"/%0A"]
        assert [request.raw for request in server.requests] == [
            each.request for each in found if isinstance(each, Exchange)
        ]


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
    odd = b"X-Odd:  a \t\r\nx-odd: b\r\nEmpty:\r\nX-Bin: \xe9\xff\r\n"
    head = b"HTTP/1.1 200  Fine \xff\r\n" + odd + b"Content-Length: 6\r\n\r\n"
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
        found = exchange(server.url + "/")
    assert (found.body, found.http_version) == (b"until the end", "1.0")


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified", b"404 Not Found"])
def test_an_answer_without_a_body_is_an_answer(status: bytes) -> None:
    with serving(sends(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")) as server:
        found = exchange(server.url + "/")
    assert (found.status, found.body) == (int(status[:3]), b"")


def test_more_than_the_content_length_is_not_read_into_the_next_answer() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(page(raw[5:6]) + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
        return True

    async def use(fetcher: CurlFetcher) -> list[bytes]:
        found = [await fetcher.fetch(f"{server.url}/{name}") for name in "ab"]
        return [one.body for one in found if isinstance(one, Exchange)]

    with serving(answer) as server:
        assert run(use) == [b"a", b"b"]


# -- connections


def test_a_kept_connection_is_used_again() -> None:
    async def use(fetcher: CurlFetcher) -> list[bool]:
        found = [await fetcher.fetch(f"{server.url}/{number}") for number in range(3)]
        return [one.reused_connection for one in found if isinstance(one, Exchange)]

    with serving(sends(page(b"x"), keep=True)) as server:
        assert run(use) == [False, True, True]
        assert server.connections == 1


def test_a_kept_connection_that_was_closed_meanwhile_is_no_failure() -> None:
    async def use(fetcher: CurlFetcher) -> int:
        found = []
        for number in range(5):
            found.append(await fetcher.fetch(f"{server.url}/{number}"))
        return sum(isinstance(one, Exchange) for one in found)

    with serving(sends(page(b"x"))) as server:  # no Connection: close, yet it closes
        assert run(use) == 5
        assert len(server.requests) == 5


def test_a_connection_is_never_shared_between_hosts_on_one_address() -> None:
    async def use(fetcher: CurlFetcher) -> None:
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


# -- many at once


def test_two_hundred_requests_at_once_all_get_their_own_answer() -> None:
    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(page(raw.split()[1]))
        return True

    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
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

    async def use(fetcher: CurlFetcher) -> None:
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
