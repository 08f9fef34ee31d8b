"""Chromium before a real server process over a real crawl. A page that logs an error fails its test."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.kept_fresh import kept_fresh
from tests.browser.served import Served
from tests.browser.small_web import crawled

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_CHROMIUM = shutil.which("chromium")
_PATIENCE_MS = 20_000


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if _CHROMIUM is None:
        pytest.skip("needs the Debian package chromium")
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    # for the package, not the session: as long as it runs, nothing else in this process can start an event loop
    api.expect.set_options(timeout=_PATIENCE_MS)
    with api.sync_playwright() as running:
        found = running.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="package")
def crawl(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished crawl, to be copied."""
    folder = tmp_path_factory.mktemp("dashboard") / "crawl"
    crawled(folder)
    return folder


@pytest.fixture(scope="package")
def server(crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Shared by tests that leave it as it was, but for the host or the letter each of them is about."""
    yield from _serving(crawl, tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="package")
def fresh_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Of a crawl that was kept fresh for two days."""
    folder = tmp_path_factory.mktemp("fresh") / "crawl"
    with ThreadPoolExecutor(1) as elsewhere:  # the browser's loop runs in this thread
        elsewhere.submit(kept_fresh, folder, time.time()).result()
    served = Served(folder)
    try:
        yield served.start()
    finally:
        served.stop()


@pytest.fixture
def own_server(crawl: Path, tmp_path: Path) -> Iterator[Served]:
    yield from _serving(crawl, tmp_path)


def _serving(crawl: Path, place: Path, tokens: str = "") -> Iterator[Served]:
    served = Served(shutil.copytree(crawl, place / "crawl"), tokens)
    try:
        yield served.start()
    finally:
        served.stop()


@pytest.fixture(scope="package")
def guarded_server(crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Knows two tokens."""
    tokens = "operator an-operators-long-token, read a-readers-long-token"
    yield from _serving(crawl, tmp_path_factory.mktemp("guarded"), tokens)


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    opened.set_default_timeout(_PATIENCE_MS)
    yield opened
    opened.close()


@pytest.fixture
def complaints() -> list[str]:
    """What a page logged as an error, and what was thrown and not caught."""
    return []


@pytest.fixture
def page(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    opened = context.new_page()
    opened.on(
        "console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    assert complaints == []
