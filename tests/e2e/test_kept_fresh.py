"""`skitter crawl --keep-fresh` as its users run it: pages are visited again, and what became of them is told."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections import Counter
from pathlib import Path

from tests.e2e.command import ENVIRON, command, complaint, read_json, said, skitter
from tests.raw_server import page, serving

STEADY = b"<p>a steady page of some words"


class ChangingSite:
    """The front page changes with each visit, one page goes away after its first; `enough` is set when the front
    page was asked for four times."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.enough = threading.Event()

    def answer(self, connection: socket.socket, raw: bytes) -> bool:
        path = raw.split()[1].decode()
        self.asked[path] += 1
        gone = path == "/robots.txt" or (path == "/old" and self.asked[path] > 1)
        body = STEADY
        if path == "/":
            body = b"<p>news number %d</p><a href=/old>o</a><a href=/steady>s</a>" % self.asked[path]
        connection.sendall(page(b"no", status=b"404 Not Found") if gone else page(body))
        if self.asked["/"] >= 4 and self.asked["/old"] > 1:
            self.enough.set()
        return True


def test_a_crawl_is_kept_fresh_until_it_is_stopped_and_tells_what_changed(tmp_path: Path) -> None:
    folder, site = tmp_path / "crawl", ChangingSite()
    with serving(site.answer) as server:
        url = server.url + "/"
        flags = ("--keep-fresh", "--fresh-within", "1s", "/(old)?$", "--never-revisit", "/steady")
        crawl = subprocess.Popen(
            command("crawl", url, "--into", folder, "--allow-private", "--delay", "0.1", *flags),
            env={**ENVIRON, "SKITTER_REVISIT_MIN_AGE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            assert site.enough.wait(100)
        finally:
            crawl.send_signal(signal.SIGINT)
            _, complaints = crawl.communicate(timeout=100)
    assert b"Traceback" not in complaints
    stats = read_json("stats", folder)
    assert (stats["pages"], stats["urls"]["gone"]) == (2, 1)
    assert stats["politeness"]["violations"] == 0
    assert stats["revisits"]["changed"] >= 1
    assert read_json("stats", folder, "--freshness")["pages"] == 2
    assert site.asked["/steady"] == 1
    explained = read_json("explain", url, "--in", folder)
    assert explained["next_at"] is not None
    sql = "select next_crawl_at is not null as dated from urls where url = '{}'"
    assert read_json("query", folder, sql.format(url), "--format", "json")["dated"] is True
    assert read_json("query", folder, sql.format(url + "steady"), "--format", "json")["dated"] is False
    assert read_json("explain", url + "steady", "--in", folder)["next_at"] is None
    history = read_json("history", url, "--in", folder)
    assert [visit["change"] for visit in history["visits"]][:2] == ["first", "changed"]
    assert any(line.startswith("+news number") for line in history["difference"])
    first = history["visits"][1]["at"].removesuffix(" UTC").replace(" ", "T")
    changes = said(skitter("changes", folder, "--since", first, "--format", "csv")).splitlines()[1:]
    assert {tuple(line.split(",")[:2]) for line in changes} >= {("gone", url + "old")}
    assert "new," in said(skitter("changes", folder, "--since", "1d", "--format", "csv"))


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    into = ("crawl", "http://127.0.0.1:9/", "--into", tmp_path / "x")
    assert "not a duration" in complaint(skitter(*into, "--max-age", "soon"), 2)
    assert "DURATION REGEX" in complaint(skitter(*into, "--fresh-within", "soon", "/a"), 2)
    assert "regular expression" in complaint(skitter(*into, "--fresh-within", "1h", "("), 2)
    assert "value, halve-double, fixed" in complaint(
        skitter(*into, environ={"SKITTER_REVISIT_RULE": "double"}), 2
    )
