"""A crawl with an identity: it gets in by a login form, keeps its session, and leaves no secret anywhere."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, quote_plus

import pytest

from tests.e2e.command import Done, complaint, said, skitter

PASSWORD = "correct horse/battery+staple"
SESSION = "s3ss10n-0f-the-f0rum"
KEY = "the-api-key-of-the-forum"
ENVIRON = {"FORUM_PASSWORD": PASSWORD, "FORUM_KEY": KEY}
CONFIG = """
[politeness]
delay = 0.0
[crawl]
linger = 0.5
workers = 1
[fetch]
allow_private = true
resolve = ["forum.test:80:127.0.0.1:{port}"]
[hosts."http://forum.test"]
headers = {{ "X-Api-Key" = {{ env = "FORUM_KEY" }}, "Accept-Language" = "de" }}
login.url = "/login"
login.fields = {{ user = "me", password = {{ env = "FORUM_PASSWORD" }} }}
login.check = "a.logout"
"""
FORM = b"""<form method=post action=/login><input type=hidden name=csrf value=t0k3n><input name=user>
<input type=password name=password></form>"""


class _Forum(BaseHTTPRequestHandler):
    """Threads for those who are logged in, and its form for all others."""

    protocol_version = "HTTP/1.1"
    server: ForumServer

    def do_GET(self) -> None:
        self._note()
        if self.path == "/robots.txt":
            self._say(b"", status=404)
        elif self.path == "/login" or f"sid={SESSION}" not in self.headers.get("Cookie", ""):
            self._say(FORM)
        else:
            links = "".join(f"<a href=/t/{number}>t</a>" for number in range(3)) if self.path == "/" else ""
            body = f"<title>{self.path}</title><a class=logout href=/t/0>out</a>{links}"
            self._say(body.encode(), cookie=True)

    def do_POST(self) -> None:
        self._note()
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        if sent == {"csrf": "t0k3n", "user": "me", "password": PASSWORD}:
            self._say(b"", status=303, cookie=True)
        else:
            self._say(FORM)

    def _note(self) -> None:
        self.server.requests.append((f"{self.command} {self.path}", str(self.headers)))

    def _say(self, body: bytes, status: int = 200, *, cookie: bool = False) -> None:
        self.send_response(status)
        if cookie:
            self.send_header("Set-Cookie", f"sid={SESSION}; HttpOnly; Path=/")
        if status == 303:
            self.send_header("Location", "/")
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


class ForumServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Forum)
        self.requests: list[tuple[str, str]] = []

    @property
    def logins(self) -> int:
        return sum(line.startswith("POST") for line, _ in self.requests)


@pytest.fixture
def server() -> Iterator[ForumServer]:
    with ForumServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def crawl(server: ForumServer, folder: Path, environ: dict[str, str], config: str = CONFIG) -> Done:
    file = folder.with_suffix(".toml")
    file.write_text(config.format(port=server.server_port))
    return skitter("crawl", "http://forum.test/", "--into", folder, "--config", file, environ=environ)


def everything_in(folder: Path) -> bytes:
    found = b""
    for file in folder.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            found += raw + (gzip.decompress(raw) if file.name.endswith(".gz") else b"")
    return found


def pages_of(folder: Path) -> list[dict[str, str | None]]:
    told = said(skitter("query", folder, "select url, kind, title, identity from pages", "--json"))
    return [json.loads(line) for line in told.splitlines()]


def explained(folder: Path, url: str) -> str:
    return said(skitter("explain", url, "--in", folder))


def test_a_forum_is_crawled_behind_its_login_and_no_secret_is_left(
    server: ForumServer, tmp_path: Path
) -> None:
    folder = tmp_path / "forum"
    done = crawl(server, folder, ENVIRON)
    said(done)
    rows = pages_of(folder)
    pages = {row["url"]: row for row in rows if row["kind"] == "page"}
    assert set(pages) == {f"http://forum.test{path}" for path in ("/", "/t/0", "/t/1", "/t/2")}
    assert {row["title"] for row in pages.values()} == {"/", "/t/0", "/t/1", "/t/2"}
    assert {row["identity"] for row in pages.values()} == {"http://forum.test"}
    assert [row["identity"] for row in rows if row["kind"] == "robots"] == [None]
    robots = next(head for line, head in server.requests if line == "GET /robots.txt")
    assert KEY not in robots
    assert "Cookie" not in robots
    assert server.logins == 1
    left = (
        everything_in(folder)
        + (done.stdout + done.stderr + explained(folder, "http://forum.test/t/1")).encode()
    )
    for secret in (PASSWORD, SESSION, KEY):
        forms = (secret, quote(secret, safe=""), quote_plus(secret), b64encode(secret.encode()).decode())
        assert not [form for form in forms if form.encode() in left]
    assert b"X-Api-Key: redacted" in left
    assert b"Cookie: redacted" in left
    assert b"Set-Cookie: sid=redacted; HttpOnly" in left


def test_a_restart_goes_on_with_the_session_without_another_login(
    server: ForumServer, tmp_path: Path
) -> None:
    folder = tmp_path / "forum"
    said(crawl(server, folder, ENVIRON))
    said(skitter("refresh", folder))
    before = len(server.requests)
    said(skitter("crawl", "--into", folder, environ=ENVIRON))
    assert server.logins == 1
    assert len(server.requests) > before


def test_a_wrong_password_archives_no_page_and_the_host_waits(server: ForumServer, tmp_path: Path) -> None:
    folder = tmp_path / "forum"
    done = crawl(server, folder, {**ENVIRON, "FORUM_PASSWORD": "wrong"})
    assert done.returncode == 3, done
    assert "login_failed" in done.stderr
    assert server.logins == 1
    assert [row for row in pages_of(folder) if row["kind"] == "page"] == []
    assert "login_failed" in explained(folder, "http://forum.test/")


def test_a_missing_variable_stops_the_start(server: ForumServer, tmp_path: Path) -> None:
    words = complaint(crawl(server, tmp_path / "forum", {"FORUM_KEY": KEY}), 2)
    assert "the environment variable FORUM_PASSWORD is not set" in words
    assert server.requests == []


def test_a_proxy_that_is_not_there_is_the_reason_told(server: ForumServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    folder = tmp_path / "forum"
    done = crawl(server, folder, ENVIRON, CONFIG + f'proxies = ["socks5://127.0.0.1:{port}"]\n')
    assert done.returncode == 3, done
    assert "proxy_failed" in done.stderr
    assert server.requests == []
