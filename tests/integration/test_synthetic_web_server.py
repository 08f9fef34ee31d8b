"""The synthetic web as a real process on a real socket, against its own plan and against rough clients."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from random import Random

import pytest

from skitter.testing.audit import ViolationKind, compare, violations
from skitter.testing.features import Feature, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request, read_plan
from skitter.testing.web import SyntheticWeb
from tests.naive_crawler import NaiveCrawler

ENTRY = "h00000.web.test"
SLOW = (0.3, 0.3)


@pytest.fixture(scope="module")
def demo() -> Iterator[SyntheticWeb]:
    with SyntheticWeb(WebPlan.demo()) as web:
        yield web


def connect(web: SyntheticWeb) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", web.port), timeout=10)
    client.settimeout(10)
    return client


def ask(client: socket.socket, path: str = "/", host: str = ENTRY) -> None:
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())


def answer(client: socket.socket) -> tuple[HTTPResponse, bytes]:
    response = HTTPResponse(client)
    response.begin()
    return response, response.read()


def get(web: SyntheticWeb, path: str, host: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", web.port, timeout=10)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers={"Host": host, **fields})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def await_rows(web: SyntheticWeb, wanted: Callable[[list[Request]], bool]) -> list[Request]:
    """The log as soon as it satisfies; fails after five seconds, 25 times what a flush may take."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        rows = web.requests()
        if wanted(rows):
            return rows
        time.sleep(0.01)
    pytest.fail(f"the log never showed it: {web.requests()}")


FULL = WebPlan(hosts=60, pages=7, fanout=20)


@pytest.mark.parametrize("plan", [WebPlan.demo(), FULL, WebPlan(seed=5, hosts=30, pages=12, fanout=3)])
@pytest.mark.parametrize("product", ["skitter", "another"])
def test_a_naive_crawler_requests_exactly_what_the_plan_expects(plan: WebPlan, product: str) -> None:
    with SyntheticWeb(plan) as web:
        crawler = NaiveCrawler(web.port, product=product)
        crawler.crawl(web.seeds[0])
    expected = plan.expected(product=product)
    assert crawler.requests == {url: row.requests(3) for url, row in expected.items()}
    assert crawler.statuses == {url: row.status for url, row in expected.items()}
    assert set(crawler.robots) == plan.expected_robots(product=product)
    assert not compare(web.requests(), plan, 3, product=product)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_whatever_order_a_crawl_goes_every_page_has_the_same_depth(seed: int) -> None:
    with SyntheticWeb(FULL) as web:
        crawler = NaiveCrawler(web.port, take=Random(seed).randrange)
        crawler.crawl(web.seeds[0])
    expected = FULL.expected()
    assert {url: crawler.depths[url] for url in crawler.requests} == {
        url: row.depth for url, row in expected.items()
    }


def test_a_sequential_crawl_is_logged_without_overlap_and_after_robots_txt() -> None:
    with SyntheticWeb(FULL) as web:
        NaiveCrawler(web.port).crawl(web.seeds[0])
    rows = web.requests()
    plan = read_plan(web.log_path)
    assert plan == FULL
    assert violations(rows, lambda host: 0.0, denied=denied_by(plan)) == []
    assert all(row.end is not None and row.start <= row.end and not row.aborted for row in rows)


def denied_by(plan: WebPlan) -> Callable[[str, str], bool]:
    return lambda host, path: not plan.allows(plan.index(host) or 0, path)


def test_two_requests_at_once_are_logged_as_overlapping() -> None:
    with SyntheticWeb(WebPlan.demo(), latency=SLOW) as web, connect(web) as first, connect(web) as second:
        ask(first, "/robots.txt")
        answer(first)
        ask(first)
        await_open(web, first)
        ask(second)
        answer(first)
        answer(second)
    rows = [row for row in web.requests() if row.host == ENTRY]
    assert [row.overlapped for row in rows] == [False, False, True]
    assert [one.kind for one in violations(rows, lambda host: 0.0)] == [ViolationKind.OVERLAP]


def await_open(web: SyntheticWeb, client: socket.socket) -> None:
    """Until the server has taken up what the client sent: another host's answer comes after it."""
    with connect(web) as other:
        ask(other, "/robots.txt", "nobody.test")
        answer(other)


def test_requests_that_reach_a_busy_server_together_overlap_though_it_answers_one_by_one() -> None:
    with SyntheticWeb(WebPlan.demo()) as web, connect(web) as first, connect(web) as second:
        ask(first, "/robots.txt")
        answer(first)
        assert web.pid
        os.kill(web.pid, signal.SIGSTOP)
        ask(first)
        ask(second)
        os.kill(web.pid, signal.SIGCONT)
        answer(first)
        answer(second)
    assert [one.kind for one in violations(web.requests(), lambda host: 0.0)] == [ViolationKind.OVERLAP]


def test_a_request_after_a_client_that_left_does_not_overlap() -> None:
    with SyntheticWeb(WebPlan.demo(), latency=SLOW) as web:
        with connect(web) as first:
            ask(first, "/robots.txt")
            answer(first)
            ask(first)
            await_open(web, first)
        with connect(web) as second:
            ask(second)
            answer(second)
    rows = [row for row in web.requests() if row.host == ENTRY]
    assert [row.aborted for row in rows] == [False, True, False]
    assert [row.overlapped for row in rows] == [False, False, False]
    assert violations(rows, lambda host: 0.0) == []


def test_a_request_counts_even_when_its_client_left_at_once() -> None:
    with SyntheticWeb(WebPlan.demo(), latency=SLOW) as web:
        with connect(web) as client:
            ask(client, "/left")
        rows = await_rows(web, lambda rows: bool(rows) and rows[0].end is not None)
    assert [(row.path, row.aborted) for row in rows] == [("/left", True)]


def test_the_start_of_a_request_is_when_the_kernel_got_it() -> None:
    with SyntheticWeb(WebPlan.demo()) as web, connect(web) as client:
        assert web.pid
        os.kill(web.pid, signal.SIGSTOP)
        before = time.time()
        ask(client)
        after = time.time()
        time.sleep(0.3)
        os.kill(web.pid, signal.SIGCONT)
        answer(client)
    [row] = web.requests()
    assert before - 0.001 <= row.start <= after + 0.001
    assert row.end is not None
    assert row.end - row.start >= 0.3


def test_a_request_under_way_is_in_the_log_before_it_ends_and_after_the_server_did() -> None:
    with SyntheticWeb(WebPlan.demo(), latency=(60, 60)) as web, connect(web) as client:
        ask(client)
        [row] = await_rows(web, bool)
        assert row.end is None
        web.stop()
        assert [row.end for row in web.requests()] == [None]


def test_a_row_is_on_disk_soon_after_the_answer() -> None:
    with SyntheticWeb(WebPlan.demo()) as web, connect(web) as client:
        ask(client)
        answer(client)
        [row] = await_rows(web, bool)
        assert (row.host, row.path, row.status) == (ENTRY, "/", 200)


def test_the_think_time_of_a_host_is_in_the_range() -> None:
    with SyntheticWeb(WebPlan.demo(), latency=(0.05, 0.2)) as web:
        hosts = [web.plan.name(host) for host in range(6)]
        for host in hosts:
            get(web, "/", host)
    taken = [(row.end or 0) - row.start for row in web.requests()]
    assert min(taken) >= 0.05
    assert len({round(seconds, 2) for seconds in taken}) > 2


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/3.0\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 16_500,
    ],
)
def test_what_is_no_request_is_answered_with_400_and_closed(demo: SyntheticWeb, sent: bytes) -> None:
    with connect(demo) as client:
        client.sendall(sent)
        response, _ = answer(client)
        assert response.status == 400
        assert response.headers["Connection"] == "close"
        assert client.recv(1) == b""


def test_other_methods_are_refused_and_unknown_hosts_have_nothing(demo: SyntheticWeb) -> None:
    with connect(demo) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: h00000.web.test\r\n\r\n")
        assert answer(client)[0].status == 405
    assert get(demo, "/", "nobody.test")[0].status == 404
    assert get(demo, "/nothing-here", ENTRY)[0].status == 404


def test_requests_that_are_sent_at_once_are_answered_in_order(demo: SyntheticWeb) -> None:
    with connect(demo) as client:
        client.sendall(b"".join(b"GET /%d HTTP/1.1\r\nHost: h00000.web.test\r\n\r\n" % n for n in range(20)))
        client.sendall(b"GET / HTTP/1.1\r\nHost: h00000.web.test\r\nConnection: close\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert received.count(b"HTTP/1.1 404") == 20
    assert received.count(b"HTTP/1.1 200") == 1
    assert b"</html>\n" in received[-40:]


def test_a_client_that_reads_slowly_gets_all_and_holds_up_nobody() -> None:
    plan = WebPlan(hosts=2, pages=2, features={Feature.IMAGE: 1.0})
    with SyntheticWeb(plan) as web, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(10)
        slow.connect(("127.0.0.1", web.port))
        for _ in range(40):
            ask(slow, "/files/photo")
        assert get(web, "/", ENTRY)[0].status == 200
        slow.sendall(b"GET /done HTTP/1.0\r\nHost: h00000.web.test\r\n\r\n")
        received = b"".join(iter(lambda: slow.recv(65536), b""))
    assert received.count(b"Content-Length: 250008\r\n") == 40
    assert received.endswith(b"404 Not Found\n")
    assert len(received) > 40 * 250_008


def test_the_absolute_form_names_the_host_as_for_a_proxy(demo: SyntheticWeb) -> None:
    with connect(demo) as client:
        client.sendall(b"GET http://H00001.web.test:80/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        response, body = answer(client)
    assert response.status == 200
    assert b"h00001.web.test" in body


def test_a_page_has_the_headers_of_a_page_and_304_when_unchanged(demo: SyntheticWeb) -> None:
    response, body = get(demo, "/", ENTRY)
    assert response.headers["Date"]
    assert response.headers["Server"]
    assert response.headers["Last-Modified"]
    assert response.headers.get_content_type() == "text/html"
    response, body = get(demo, "/", ENTRY, If_None_Match=response.headers["ETag"])
    assert (response.status, body) == (304, b"")
    assert get(demo, "/", ENTRY, If_None_Match='"other"')[0].status == 200


def test_gzip_and_chunks_carry_the_same_page() -> None:
    shares = {Feature.GZIP: 1.0, Feature.CHUNKED: 1.0}
    with SyntheticWeb(WebPlan(hosts=3, pages=7, features=shares)) as web:
        plain, body = get(web, "/", ENTRY)
        coded, packed = get(web, "/", ENTRY, Accept_Encoding="gzip, br")
    assert coded.headers["Content-Encoding"] == "gzip"
    assert plain.headers["Transfer-Encoding"] == coded.headers["Transfer-Encoding"] == "chunked"
    assert "Content-Length" not in plain.headers
    assert gzip.decompress(packed) == body
    assert coded.headers["ETag"] != plain.headers["ETag"]


def test_a_latin1_page_says_so_in_its_header_only() -> None:
    plan = WebPlan(hosts=3, pages=7, features={Feature.LATIN1: 1.0})
    with SyntheticWeb(plan) as web:
        response, body = get(web, "/s1/p1.html", ENTRY)
    assert response.headers.get_content_charset() == "iso-8859-1"
    assert "café" in body.decode("latin-1")
    assert b"charset" not in body


def test_an_untyped_page_has_no_content_type() -> None:
    with SyntheticWeb(WebPlan(hosts=1, pages=2, features={Feature.UNTYPED: 1.0})) as web:
        response, body = get(web, "/untyped/a", ENTRY)
    assert "Content-Type" not in response.headers
    assert body.startswith(b"<!doctype html>")


def test_an_aborted_failure_of_a_flaky_page_does_not_use_it_up() -> None:
    plan = WebPlan(hosts=1, pages=1, features={Feature.FLAKY: 1.0}, flaky_failures=1)
    with SyntheticWeb(plan, latency=SLOW) as web:
        with connect(web) as client:
            ask(client, "/flaky/a.html")
            await_open(web, client)
        assert [get(web, "/flaky/a.html", ENTRY)[0].status for _ in range(3)] == [500, 200, 200]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (RobotsKind.ABSENT, 404),
        (RobotsKind.FORBIDDEN, 403),
        (RobotsKind.UNAVAILABLE, 500),
        (RobotsKind.MOVED, 301),
    ],
)
def test_robots_txt_answers_as_planned(demo: SyntheticWeb, kind: RobotsKind, status: int) -> None:
    host = next(host for host in range(25) if demo.plan.robots_kind(host) is kind)
    assert get(demo, "/robots.txt", demo.plan.name(host))[0].status == status


def test_a_crawl_delay_is_what_the_plan_says(demo: SyntheticWeb) -> None:
    host = next(host for host in range(25) if demo.plan.robots_kind(host) is RobotsKind.DELAY)
    name = demo.plan.name(host)
    assert b"Crawl-delay: 0.1\n" in get(demo, "/robots.txt", name)[1]
    assert demo.plan.delay(name) == 0.1


def run(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "skitter.testing.web", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def test_the_command_announces_itself_and_ends_in_order_when_told(tmp_path: Path) -> None:
    log, expected = tmp_path / "log", tmp_path / "expected"
    with run("--preset", "demo", "--log", str(log), "--expected", str(expected)) as child:
        assert child.stdout is not None
        first, second = child.stdout.readline(), child.stdout.readline()
        child.terminate()
        assert child.wait(10) == 0
    assert first.startswith("listening on 127.0.0.1:")
    assert first.endswith("  seeds: http://h00000.web.test/\n")
    assert "--scope any --resolve '*:80:127.0.0.1:" in second
    assert read_plan(log) == WebPlan.demo()
    urls = [json.loads(line)["url"] for line in expected.read_text().splitlines()]
    assert urls == list(WebPlan.demo().expected())


def test_the_expected_set_can_be_printed_without_a_server() -> None:
    with run("--preset", "plain", "--hosts", "3", "--pages", "4", "--print-expected") as child:
        out, _ = child.communicate(timeout=20)
    assert len(out.splitlines()) == 12


def test_a_server_does_not_outlive_the_process_that_started_it() -> None:
    with run("--preset", "demo", "--with-parent") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        child.stdin.close()
        assert child.wait(10) == 0


@pytest.mark.parametrize(
    "wrong",
    [["--latency", "x"], ["--hosts", "0"], ["--share", "nothing=0.5"], ["--share", "flaky"], ["--plan", "{"]],
)
def test_a_web_that_cannot_be_is_a_usage_error(wrong: list[str]) -> None:
    with run(*wrong) as child:
        _, said = child.communicate(timeout=20)
    assert child.returncode == 2
    assert said.startswith("skitter.testing.web: ")
    assert said.count("\n") == 1
