"""What of rendering needs no browser: rules for requests, the clock of a page, when it is done, the filter."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from skitter.confinement import child_environment
from skitter.errors import UsageError
from skitter.render.base import Answer, Asked, PageToRender
from skitter.render.browser import find_program
from skitter.render.done_rule import FIRST_MS, ROUND_MS, Seen, until_done
from skitter.render.page_requests import PageRequests
from skitter.render.rules import headers_for_page, refusal
from skitter.render.stopwatch import Stopwatch
from skitter.settings.rendering import RenderSettings
from skitter.testing.clock import FakeClock

# -- requests

REFUSED = [
    (Asked(url="file:///etc/passwd"), "scheme"),
    (Asked(url="ftp://a.test/"), "scheme"),
    (Asked(url="http://a.test/", method="POST"), "method POST"),
    (Asked(url="http://a.test/", kind="Image"), "image"),
    (Asked(url="http://a.test/", kind="Ping"), "ping"),
    (Asked(url="http://a.test/", headers={"Sec-Purpose": "prefetch;prerender"}), "prefetch"),
    (Asked(url="http://a.test/", headers={"purpose": "prefetch"}), "prefetch"),
    (Asked(url="http://a.test/", headers={"Next-Router-Prefetch": "1"}), "prefetch"),
    (Asked(url="http://a.test/", kind="XHR"), ""),
    (Asked(url="https://a.test/", kind="Script", method="HEAD"), ""),
]


@pytest.mark.parametrize(("asked", "why"), REFUSED)
def test_what_only_looks_guesses_or_changes_something_is_refused(asked: Asked, why: str) -> None:
    assert refusal(asked, with_looks=False) == why


def test_pictures_are_asked_for_only_when_somebody_looks() -> None:
    assert refusal(Asked(url="http://a.test/", kind="Image"), with_looks=True) == ""


def test_headers_that_speak_of_the_wire_or_start_requests_do_not_reach_the_page() -> None:
    told = (
        ("Content-Encoding", "gzip"),
        ("Link", "</x>; rel=preload"),
        ("Content-Type", "a/b"),
        ("X", "a\nb"),
    )
    assert headers_for_page(told) == [{"name": "Content-Type", "value": "a/b"}]


class Having:
    def __init__(self, body: bytes) -> None:
        self.body = body

    async def find(self, asked: Asked) -> Answer | None:
        return Answer(status=200, body=self.body) if "absent" not in asked.url else None


def _requests(body: bytes = b"x", **limits: int) -> PageRequests:
    page = PageToRender(url="http://a.test/", answer=Answer(status=200), fetched_at=0.0)
    return PageRequests(page, Having(body), RenderSettings(**limits), lambda: None)  # type: ignore[arg-type]


def test_a_page_has_so_many_requests_and_bytes_and_each_missing_url_once() -> None:
    async def ask(requests: PageRequests, *urls: str) -> list[bool]:
        return [await requests.answer(Asked(url=url, kind="XHR")) is not None for url in urls]

    few = _requests(max_requests=2)
    assert asyncio.run(ask(few, "http://a.test/1", "http://a.test/2", "http://a.test/3")) == [
        True,
        True,
        False,
    ]
    assert few.refused["http://a.test/3"].why == "requests"
    small = _requests(b"xx", max_answer=3, max_answers=3)
    assert asyncio.run(ask(small, "http://a.test/1", "http://a.test/2")) == [True, False]
    gaps = _requests()
    asyncio.run(ask(gaps, "http://a.test/absent", "http://a.test/absent"))
    assert list(gaps.missing) == ["http://a.test/absent"]


def test_the_main_frame_is_the_page_once_and_whatever_else_it_wants_is_a_link() -> None:
    requests = _requests()
    assert requests.navigate("http://a.test/", "GET") is requests.page.answer
    assert requests.navigate("http://a.test/", "GET") is None
    assert requests.navigate("http://b.test/", "GET") is None
    assert list(requests.leads_to) == ["http://b.test/"]


# -- time


def test_a_stopwatch_counts_only_what_is_not_paused() -> None:
    clock = FakeClock(100.0)
    watch = Stopwatch(clock)
    clock.advance(2.0)
    watch.pause()
    clock.advance(30.0)
    watch.go_on()
    clock.advance(1.0)
    assert (watch.ran, watch.rested) == (3.0, 30.0)


class Played:
    """A page that grows until its clock shows so much, and moves by real time until then."""

    def __init__(self, until: int, real: float = 0.0) -> None:
        self.until, self.real = until, real
        self.clock, self.slept = 0, 0.0

    async def grant(self, milliseconds: int) -> None:
        self.clock += milliseconds

    async def look(self) -> tuple[Seen, bool]:
        size = min(self.clock, self.until) + (1000 if self.slept >= self.real > 0 else 0)
        return (size, 0, 0), self.real > self.slept

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds


def test_a_quiet_page_is_done_after_three_rounds_and_a_lively_one_later() -> None:
    quiet, lively, endless = Played(0), Played(FIRST_MS + 3 * ROUND_MS), Played(10**9)
    for page in (quiet, lively, endless):
        asyncio.run(until_done(page, page.sleep))
    assert quiet.clock == FIRST_MS + 3 * ROUND_MS
    assert lively.clock == FIRST_MS + 6 * ROUND_MS
    assert endless.clock == FIRST_MS + 10 * ROUND_MS


def test_a_page_that_moves_by_real_time_gets_some_and_a_still_one_none() -> None:
    moving, still = Played(0, real=1.0), Played(0)
    for page in (moving, still):
        asyncio.run(until_done(page, page.sleep))
    assert moving.slept > 1.0 > still.slept


# -- the browser and the kernel

TRIED = """
import socket, sys
from skitter.confinement.seccomp import forbid_network
if not forbid_network():
    sys.exit(77)
def tried(family, kind):
    try:
        socket.socket(family, kind).close()
        return "made"
    except PermissionError:
        return "refused"
print(*(tried(family, socket.SOCK_STREAM) for family in (2, 10, 17, 16, 40, 38, 1)))
socket.socketpair()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_the_filter_lets_no_family_through_but_that_of_the_machine_itself() -> None:
    told = subprocess.run(
        [sys.executable, "-c", TRIED], capture_output=True, text=True, env=child_environment(), check=False
    )
    if told.returncode == 77:
        pytest.skip("this kernel has no seccomp filters")
    assert (told.stdout.split(), told.stderr) == (["refused"] * 6 + ["made"], "")


def test_without_a_browser_there_is_a_line_that_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="apt install chromium-headless-shell"):
        find_program(RenderSettings(browser="no-such-browser"))


def test_a_crawl_that_does_not_render_loads_nothing_of_it() -> None:
    code = (
        "import sys, skitter.cli, skitter.console.run.crawl, skitter.wiring, skitter.runtime.worker_process;"
    )
    told = subprocess.run(
        [sys.executable, "-c", code + "print(*sys.modules)"], check=True, capture_output=True, text=True
    )
    loaded = {
        name for name in told.stdout.split() if name.startswith(("skitter.render", "skitter.parse.shell"))
    }
    assert loaded == set()
