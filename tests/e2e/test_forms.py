"""A form that users' code posts, in a real crawl: sent once, archived with its body, found under pywb's key."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.e2e.command import said, skitter

PLUGIN = """
import skitter

@skitter.page("*/")
def ask(page):
    page.follow("/search", method="POST", form={"q": "a kettle", "n": ["1", "2"]})
    page.follow("/order", method="POST", form={"sku": "K-1"}, safe=True)

@skitter.page("*/search")
def found(page):
    yield {"title": page.title, "by": page.url}
    page.follow("/found-by-search")
"""


class Shop(BaseHTTPRequestHandler):
    """Every page is there; an order leads to thanks."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[tuple[str, bytes]]] = []

    def do_GET(self) -> None:
        self._answer(404 if self.path == "/robots.txt" else 200)

    def do_POST(self) -> None:
        self._answer(303 if self.path == "/order" else 200)

    def _answer(self, status: int) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append((f"{self.command} {self.path}", sent))
        body = f"<title>Page {self.path}</title><p>words of {self.path}".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        if status == 303:
            self.send_header("Location", "/thanks")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_form_is_posted_once_and_archived_with_its_body(shop: str, tmp_path: Path) -> None:
    plugin, folder = tmp_path / "forms.py", tmp_path / "crawl"
    plugin.write_text(PLUGIN)
    done = skitter("crawl", shop, "--into", folder, "--allow-private", "--delay", "0", "--with", plugin)
    assert done.returncode == 0, done.stderr
    posted = [request for request in Shop.asked if request[0].startswith("POST")]
    assert sorted(posted) == [("POST /order", b"sku=K-1"), ("POST /search", b"q=a+kettle&n=1&n=2")]
    assert {"GET /thanks", "GET /found-by-search"} <= {request for request, _ in Shop.asked}
    items = said(skitter("query", folder, "select item from items", "--format", "json")).splitlines()
    assert [json.loads(json.loads(line)["item"])["title"] for line in items] == ["Page /search"]
    kinds = "select kind, count(*) as n from pages where url like '%/search' group by 1"
    assert json.loads(said(skitter("query", folder, kinds, "--format", "json"))) == {"kind": "form", "n": 1}
    lines = (folder / "archive" / "index.cdxj").read_text().splitlines()
    line = next(line for line in lines if "/search?" in line)
    assert "/search?__wb_method=post&n=1&n=2&q=a+kettle " in line
    assert json.loads(line.split(" ", 2)[2])["url"] == f"{shop}/search"
    records = b"".join(gzip.decompress(file.read_bytes()) for file in folder.glob("archive/*.warc.gz"))
    assert b"POST /search HTTP/1.1\r\n" in records
    assert b"\r\nContent-Length: 18\r\n" in records
    assert b"\r\n\r\nq=a+kettle&n=1&n=2\r\n\r\nWARC/1.1" in records
    assert skitter("verify", folder).returncode == 0
    stands_for = f"{shop}/search?__wb_method=POST&q=a+kettle&n=1&n=2"
    assert "completed" in said(skitter("explain", stands_for, "--in", folder))
