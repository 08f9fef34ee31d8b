"""A page that was crawled with what it needs is replayed as the live one looked: pywb and Chromium judge.

The live site is gone when the replay begins, so that nothing can come from it.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.command import read_json, said, serving_site, skitter
from tests.pictures import Colour, picture, pixels
from tests.raw_server import page

RED, GREEN, BLUE, YELLOW = (255, 0, 0), (0, 160, 0), (0, 0, 255), (255, 255, 0)
PATHS = ("/", "/inline", "/sheet")
CONFIG = "[retry]\nattempts = 1\n[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"
SIZE = (300, 200)
_PATIENCE = 30.0


def typed(kind: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (kind, len(body), body)


def png(colour: Colour) -> bytes:
    return typed(b"image/png", picture(50, 50, colour))


ELSEWHERE = {
    "/robots.txt": page(b""),
    "/look.css": typed(b"text/css", b'@import "more.css"; #box { width: 90px; height: 60px }'),
    "/more.css": typed(b"text/css", b"body { background: red; margin: 0 } #box { background: url(tile) }"),
    "/tile": png(BLUE),
    "/moved-here": png(GREEN),
}


def pages(elsewhere: bytes) -> dict[str, bytes]:
    start = b"<!doctype html><title>t</title>"
    return {
        "/robots.txt": page(b""),
        "/": start
        + b"<link rel=stylesheet href=%s/look.css><div id=box></div><img src=/moved>" % elsewhere
        + b"<p><a href=/inline>two</a> <a href=/sheet>three</a> <script src=/line.js></script>",
        "/inline": start + b"<body style='margin:0; background:url(&quot;i.png&quot;)'><h1>inline</h1>",
        "/sheet": start
        + b"<style>body{margin:0;background:red}</style><img srcset='/i.png 1x' alt=x>"
        + b"<script src=line.js></script>",
        "/line.js": typed(b"text/javascript", b"document.write('<p>a line by a script</p>')"),
        "/moved": b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s/moved-here\r\n\r\n" % elsewhere,
        "/i.png": png(YELLOW),
    }


class Site(NamedTuple):
    """A site that was crawled, with and without what its pages need, and how it looked while it lived."""

    url: str
    elsewhere: str
    full: Path
    bare: Path
    looked: dict[str, bytes]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Site:
    work = tmp_path_factory.mktemp("replay")
    config = work / "my.toml"
    config.write_text(CONFIG)
    full, bare = work / "full", work / "bare"
    with (
        serving_site(ELSEWHERE) as elsewhere,
        serving_site(pages(elsewhere.url.encode())) as server,
    ):
        asked = ("crawl", server.url + "/", "--config", config, "--into")
        said(skitter(*asked, full, "--requisites"))
        said(skitter(*asked, bare))
        looked = {path: screenshot(server.url + path, work) for path in PATHS} if chromium() else {}
        return Site(server.url, elsewhere.url, full, bare, looked)


def chromium() -> str | None:
    return shutil.which("chromium")


def screenshot(url: str, work: Path) -> bytes:
    """What Chromium shows; time inside the page runs ahead, so that nothing is waited for but the network."""
    shot = work / "shot.png"
    shot.unlink(missing_ok=True)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    options += ["--virtual-time-budget=3000", f"--window-size={SIZE[0]},{SIZE[1]}"]
    options += [f"--user-data-dir={work / 'chromium'}", f"--screenshot={shot}"]
    done = subprocess.run([chromium() or "chromium", *options, url], capture_output=True, timeout=_PATIENCE)
    assert shot.exists(), done.stderr.decode(errors="replace")[-1000:]
    return shot.read_bytes()


@contextmanager
def replaying(work: Path, **collections: Path) -> Iterator[str]:
    """pywb over the archives as they lie there, without frame and banner."""
    places = {
        name: {"index": str(folder / "archive/index.cdxj"), "archive_paths": f"{folder}/archive/"}
        for name, folder in collections.items()
    }
    (work / "config.yaml").write_text(json.dumps({"framed_replay": False, "collections": places}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = "from pywb.apps.cli import wayback; wayback()"
    asked = ["-b", "127.0.0.1", "-p", str(port), "-d", str(work)]
    with (work / "pywb.log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-c", start, *asked], stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/", server, work / "pywb.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while server.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.URLError:
            time.sleep(0.05)
    raise AssertionError(f"pywb does not answer: {log.read_text()[-1000:]}")


def unlike(one: bytes, other: bytes) -> float:
    """The share of pixels that differ."""
    pairs = [
        (a, b)
        for left, right in zip(pixels(one), pixels(other), strict=True)
        for a, b in zip(left, right, strict=True)
    ]
    return sum(a != b for a, b in pairs) / len(pairs)


@pytest.mark.skipif(chromium() is None, reason="needs the Debian package chromium")
def test_replayed_pages_look_as_the_live_ones_did(crawled: Site, tmp_path: Path) -> None:
    with replaying(tmp_path, full=crawled.full, bare=crawled.bare) as wayback:
        shown = {p: screenshot(f"{wayback}/full/mp_/{crawled.url}{p}", tmp_path) for p in PATHS}
        words_only = screenshot(f"{wayback}/bare/mp_/{crawled.url}/", tmp_path)
    for path in PATHS:
        assert unlike(shown[path], crawled.looked[path]) < 0.002, path
    home = pixels(shown["/"])
    assert (home[10][10], home[10][200], home[80][20]) == (BLUE, RED, GREEN)
    assert pixels(shown["/inline"])[150][250] == YELLOW
    assert pixels(shown["/sheet"])[20][20] == YELLOW
    assert pixels(shown["/sheet"])[20][250] == RED
    assert unlike(words_only, crawled.looked["/"]) > 0.5


def test_requisites_are_archived_and_told_apart_from_pages(crawled: Site) -> None:
    found = said(skitter("query", crawled.full, "select kind, url from pages", "--format", "csv"))
    kinds: dict[str, set[str]] = {}
    for line in found.splitlines()[1:]:
        kind, url = line.split(",")
        kinds.setdefault(kind, set()).add(url)
    parts = {crawled.url + path for path in ("/line.js", "/i.png", "/moved")}
    parts |= {crawled.elsewhere + path for path in ELSEWHERE if path != "/robots.txt"}
    assert kinds["page"] == {crawled.url + path for path in PATHS}
    assert kinds["requisite"] == parts
    figures = read_json("stats", crawled.full)
    assert (figures["pages"], figures["requisites"]) == (3, 6)
    told = read_json("explain", crawled.elsewhere + "/tile", "--in", crawled.full)
    assert told["found"] == f"needed by {crawled.elsewhere}/more.css"


def test_a_crawl_that_does_not_ask_for_requisites_fetches_none(crawled: Site) -> None:
    figures = read_json("stats", crawled.bare)
    assert (figures["pages"], figures["requisites"], figures["fetches"]) == (3, 0, 4)


def test_the_wacz_of_such_a_crawl_lists_pages_and_holds_all(crawled: Site, tmp_path: Path) -> None:
    path = tmp_path / "x.wacz"
    said(skitter("export", crawled.full, "--to", "wacz", path))
    with zipfile.ZipFile(path) as package:
        _, *listed = map(json.loads, package.read("pages/pages.jsonl").splitlines())
        assert {one["url"] for one in listed} == {crawled.url + p for p in PATHS}
        warcs = [one for one in package.infolist() if one.filename.startswith("archive/")]
        assert warcs
        assert {one.compress_type for one in warcs} == {zipfile.ZIP_STORED}
    validator = os.environ.get("SKITTER_WACZ") or shutil.which("wacz")
    if validator is not None:
        done = subprocess.run([validator, "validate", "-f", path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
