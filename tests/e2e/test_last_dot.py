"""A host written in full, with the dot that ends its name, is the same server: one queue, one robots.txt."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from tests.e2e.command import read_json, said, skitter
from tests.raw_server import page, serving

HOME = b"".join(
    b'<a href="http://site.test%b/%d">x</a>' % (dot, number) for dot in (b"", b".") for number in range(4)
)
DOTTED_BASE = b'<base href="http://site.test./in/"><a href=below>x</a>'


class Site:
    """Counts how many requests are with it at a time. It waits a moment for a second one before it answers."""

    def __init__(self) -> None:
        self.most = self._now = 0
        self._changed = threading.Condition()

    def answer(self, connection: socket.socket, raw: bytes) -> bool:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._now > 1, timeout=0.2)
        connection.sendall(self._page(raw.split()[1]))
        with self._changed:
            self._now -= 1
        return True

    def _page(self, path: bytes) -> bytes:
        if path == b"/robots.txt":
            return page(b"User-agent: *\nDisallow: /3\n")
        if path == b"/2":
            return page(b"", b"Location: http://site.test./moved", status=b"302 Found")
        return page({b"/": HOME, b"/1": DOTTED_BASE}.get(path, b"page " + path))


def test_a_host_and_its_name_with_a_dot_are_asked_as_one(tmp_path: Path) -> None:
    site = Site()
    with serving(site.answer) as server:
        pin = f"site.test:80:127.0.0.1:{server.port}"
        arguments = (
            "--into",
            tmp_path / "c",
            "--resolve",
            pin,
            "--delay",
            "0",
            "--contact",
            "me@example.org",
        )
        said(skitter("crawl", "http://site.test./", *arguments))
        asked = [one.raw.split()[1] for one in server.requests]
        assert sorted(asked) == [b"/", b"/0", b"/1", b"/2", b"/in/below", b"/moved", b"/robots.txt"]
        assert {one.raw.split(b"\r\n")[1] for one in server.requests} == {b"Host: site.test"}
    assert site.most == 1
    assert [host["host"] for host in read_json("hosts", tmp_path / "c")] == ["http://site.test"]
    for name in ("site.test", "site.test."):
        text = said(skitter("explain", f"http://{name}/3", "--in", tmp_path / "c"))
        assert "Disallow: /3" in text
