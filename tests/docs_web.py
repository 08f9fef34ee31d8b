"""The hosts that the tutorials and how-tos speak of, on loopback over http and https, so that their commands run
as they stand: docs.example, shop.example, news.example (new with every request), member.example (a login)."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs

import trustme

_PROSE = " ".join(f"word{n} of the guide" for n in range(80))
_PRODUCT = """<title>Kettle {0}</title><h1>Kettle {0}</h1><b class=price>EUR {1},50</b><i data-sku=K{0}></i>
<script type="application/ld+json">{{"@type": "Product", "name": "Kettle {0}", "sku": "K{0}"}}</script>
<p>Kettle {0} boils {1} litres of water, and it whistles tune number {0} when it is done."""
_FORM = "<form action=/login method=post><input name=user><input name=password type=password></form>"
_DOCS = {
    "/": "<title>Docs</title><link rel=stylesheet href=/s.css><a href=/guide>g</a><a href=/private/notes>n</a>",
    "/guide": f"<html lang=en><title>Guide</title><main><h1>Guide</h1><p>{_PROSE}</main>",
    "/s.css": "p { color: black }",
    "/robots.txt": "User-agent: *\nDisallow: /private/\n",
}
_SHOP = {
    "/": "<title>Shop</title>" + "".join(f"<a href=/products/{n}>{n}</a>" for n in range(4)),
    **{f"/products/{n}": _PRODUCT.format(n, 10 + n) for n in range(4)},
}
_TYPES = {".css": "text/css", ".txt": "text/plain"}
_today = count()


class _Hosts(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        found = getattr(self, f"_{host.partition('.')[0]}", self._other)()
        self._say(found or "nothing here", 200 if found else 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        is_right = sent == {"user": "me", "password": "secret"}
        self._say("<a class=logout href=/logout>out</a>" if is_right else _FORM, cookie=is_right)

    def _docs(self) -> str:
        return _DOCS.get(self.path, "")

    def _shop(self) -> str:
        return _SHOP.get(self.path, "")

    def _news(self) -> str:
        if self.path == "/":
            return "<title>News</title><a href=/today>today</a>"
        return f"<title>Today</title><p>news number {next(_today)}" if self.path == "/today" else ""

    def _member(self) -> str:
        if self.path == "/robots.txt":
            return ""
        if self.path == "/login" or "sid=known" not in self.headers.get("Cookie", ""):
            return _FORM
        return f"<title>Members {self.path}</title><a class=logout href=/logout>out</a><a href=/list>list</a>"

    def _example(self) -> str:
        return "<title>Example</title>" if self.path == "/" else ""

    def _other(self) -> str:
        return ""

    def _say(self, text: str, status: int = 200, *, cookie: bool = False) -> None:
        body = text.encode()
        self.send_response(status)
        if cookie:
            self.send_header("Set-Cookie", "sid=known; Path=/")
        self.send_header("Content-Type", _TYPES.get(self.path[-4:], "text/html"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def docs_web() -> Iterator[dict[str, str]]:
    """Yields the environment with which skitter finds these hosts, and hurries."""
    with _server(None) as plain, _server(_certificate()) as secure:
        yield {
            "SKITTER_FETCH_RESOLVE": f"*:80:127.0.0.1:{plain},*:443:127.0.0.1:{secure}",
            "SKITTER_FETCH_ALLOW_PRIVATE": "true",
            "SKITTER_FETCH_VERIFY_TLS": "false",
            "SKITTER_POLITENESS_DELAY": "0",
            "SKITTER_CRAWL_LINGER": "0.5",
            "SKITTER_TRAPS_MODE": "off",
        }


@contextmanager
def _server(tls: ssl.SSLContext | None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hosts)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    names = ("docs.example", "shop.example", "news.example", "member.example")
    trustme.CA().issue_cert(*names).configure_cert(context)
    return context
