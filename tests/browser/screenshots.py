"""Pictures of every page, on a desktop, on a phone and in the dark: `python -m tests.browser.screenshots DIR`.

A small crawl is served, the synthetic web is given to it as seeds, and two workers of a few lines fetch it
through the API for a minute, so that there is something to see.
docs/dashboard.md shows those that are called docs-... here.
"""

from __future__ import annotations

import base64
import html
import http.client
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, sync_playwright

from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.browser.kept_fresh import kept_fresh
from tests.browser.served import Served
from tests.browser.small_web import BROKEN, crawled
from tests.browser.test_pages import host_page, url_page

SECONDS = 60
MODES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


class Worker(threading.Thread):
    """Leases one task at a time and asks the synthetic web for it, until it is told to stop."""

    def __init__(self, server: Served, port: int, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._server = server
        self._port = port
        self.over = threading.Event()

    def run(self) -> None:
        asked = {"worker_id": self.name, "batch_size": 8, "lease_duration_sec": 30}
        while not self.over.is_set():
            given = self._server.call("POST", "/v1/tasks/lease", asked)
            for task in given["tasks"]:
                self.over.wait(task["wait_ms"] / 1000)
                self._server.call("POST", f"/v1/tasks/{task['task_id']}/result", self._fetch(task))
            self.over.wait(given["retry_after_ms"] / 1000)

    def _fetch(self, task: dict[str, Any]) -> dict[str, Any]:
        url = urlsplit(task["url"])
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request(
            "GET", f"{url.path}?{url.query}" if url.query else url.path, headers={"host": url.netloc}
        )
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        report: dict[str, Any] = {
            "http_status": answer.status,
            "size": len(body),
            "content_type": "text/html",
        }
        if task["kind"] == "robots":
            return {**report, "body": body.decode("utf-8", "replace")}
        links = re.findall(r"""href=["']?([^"' >]+)""", html.unescape(body.decode("utf-8", "replace")))
        return {**report, "location": answer.getheader("location") or "", "extracted_urls": links[:500]}


def pictures(browser: Browser, server: Served, folder: Path) -> None:
    host = server.call("GET", "/v1/hosts?limit=1")["hosts"][0]["host"]
    fetched = server.call("GET", f"/v1/hosts/{host.replace('/', '%2F')}/explain")["fetches"][0]["url"]
    places = {"overview": "#/", "hosts": "#/hosts", "host": host_page(host), "url": url_page(fetched)}
    places |= {
        "dead": "#/dead",
        "broken": host_page(BROKEN),
        "copy": url_page(f"{BROKEN}/"),
        "traps": "#/traps",
    }
    for mode, options in MODES.items():
        context = browser.new_context(reduced_motion="reduce", **options)
        for name, place in places.items():
            page = context.new_page()
            page.goto(server.url + place)
            page.wait_for_selector("#link.good, #link.warn")
            page.wait_for_timeout(6000 if name == "overview" else 1500)  # two beats make a speed
            page.screenshot(path=folder / f"{name}-{mode}.png", full_page=True)
            page.close()
        context.close()


def overview(browser: Browser, server: Served, file: Path, mode: str, then: Callable[[], None]) -> None:
    """`then` is done before the picture is taken, with the page open."""
    context = browser.new_context(reduced_motion="reduce", **MODES[mode])
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("#link.good, #link.warn")
    page.wait_for_selector("#headline .sentence")
    then()
    page.wait_for_timeout(6000)
    page.screenshot(path=file, full_page=True)
    context.close()


def freshness(browser: Browser, server: Served, folder: Path) -> None:
    """Of a crawl that was kept fresh for two days."""
    for mode, options in MODES.items():
        context = browser.new_context(reduced_motion="reduce", **options)
        page = context.new_page()
        page.goto(server.url + "#/freshness")
        page.wait_for_selector("#stalest tbody tr")
        page.wait_for_selector("figure.chart .line")
        page.screenshot(path=folder / f"freshness-{mode}.png", full_page=True)
        context.close()


def waiting_server(folder: Path) -> Served:
    """A crawl of nine hosts that all answer 500 to their robots.txt."""
    server = Served(folder).start()
    server.call("POST", "/v1/seeds", {"urls": [f"http://127.0.0.1:{8000 + number}/" for number in range(9)]})
    given = server.call("POST", "/v1/tasks/lease", {"worker_id": "worker-1.example", "batch_size": 20})
    for task in given["tasks"]:
        server.call("POST", f"/v1/tasks/{task['task_id']}/result", {"http_status": 500})
    return server


def states(browser: Browser, place: Path, folder: Path) -> None:
    """When nothing is fetched: a crawl that waits, one without seeds, a server that is gone."""
    waiting, new = waiting_server(place / "news-sites"), Served(place / "new-crawl").start()
    for mode in MODES:
        overview(browser, waiting, folder / f"waiting-{mode}.png", mode, lambda: None)
        overview(browser, new, folder / f"empty-{mode}.png", mode, lambda: None)
    new.stop()
    for mode in MODES:
        overview(browser, waiting, folder / f"gone-{mode}.png", mode, waiting.stop)
        waiting.start()
    waiting.stop()


def pictures_of_docs(browser: Browser, folder: Path) -> None:
    """What docs/dashboard.md shows, put together from the others."""
    parts = {
        "docs-overview": (["overview-desktop"], 1280, 1310),
        "docs-waiting": (["waiting-desktop"], 1280, 700),
        "docs-host-dark": (["broken-dark"], 1280, 1330),
        "docs-freshness": (["freshness-desktop"], 1280, 1000),
        "docs-phone": (["waiting-phone", "hosts-phone", "host-phone"], 1120, 900),
    }
    for name, (names, width, height) in parts.items():
        page = browser.new_page(viewport={"width": width, "height": height})
        files = [base64.b64encode((folder / f"{one}.png").read_bytes()).decode() for one in names]
        images = "".join(f'<img src="data:image/png;base64,{file}">' for file in files)
        page.set_content(f'<body style="margin:0;display:flex;gap:20px;align-items:start">{images}</body>')
        page.screenshot(path=folder / f"{name}.png")
        page.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, SyntheticWeb(WebPlan(hosts=400), latency=(0.0, 0.05)) as web:
        crawled(Path(place) / "crawl")
        kept_fresh(Path(place) / "fresh", time.time())
        fresh = Served(Path(place) / "fresh").start()
        server = Served(Path(place) / "crawl").start()
        server.call("POST", "/v1/seeds", {"urls": list(web.seeds)})
        workers = [Worker(server, web.port, f"worker-{number}.example") for number in (1, 2)]
        for worker in workers:
            worker.start()
        workers[0].over.wait(SECONDS)
        with sync_playwright() as running:
            browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            pictures(browser, server, folder)
            freshness(browser, fresh, folder)
            fresh.stop()
            states(browser, Path(place), folder)
            pictures_of_docs(browser, folder)
            browser.close()
        for worker in workers:
            worker.over.set()
            worker.join()
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
