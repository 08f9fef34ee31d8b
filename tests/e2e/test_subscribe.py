"""`skitter subscribe` as its users run it, with a hub of a few lines that does what the standard asks of one."""

from __future__ import annotations

import hmac
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote

from tests.e2e.command import complaint, read_json, said, skitter
from tests.serving import served

CONFIG = "[fetch]\nallow_private = true\n"


class Hub:
    """Takes subscriptions, asks back, and can tell subscribers of a topic."""

    def __init__(self) -> None:
        self.subscribers: dict[str, dict[str, str]] = {}
        self.asked_back = threading.Semaphore(0)

    def take(self, form: dict[str, str]) -> None:
        self._verify(form)
        self.asked_back.release()

    def _verify(self, form: dict[str, str]) -> None:
        topic = quote(form["hub.topic"], safe="")
        asked = f"hub.mode={form['hub.mode']}&hub.topic={topic}&hub.challenge=4711&hub.lease_seconds=864000"
        with urllib.request.urlopen(f"{form['hub.callback']}?{asked}", timeout=60) as answer:
            if answer.read() != b"4711":
                return
        if form["hub.mode"] == "subscribe":
            self.subscribers[form["hub.topic"]] = form
        else:
            del self.subscribers[form["hub.topic"]]

    def publish(self, topic: str, body: bytes) -> int:
        form = self.subscribers[topic]
        digest = hmac.new(form["hub.secret"].encode(), body, "sha256").hexdigest()
        request = urllib.request.Request(form["hub.callback"], body)
        request.add_header("x-hub-signature", f"sha256={digest}")
        request.add_header("content-type", "application/atom+xml")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)


@contextmanager
def running(hub: Hub) -> Iterator[str]:
    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            self.wfile.flush()
            hub.take({name: values[0] for name, values in parse_qs(body).items()})

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_hub_is_asked_confirms_and_its_news_are_queued(tmp_path: Path) -> None:
    folder, config, hub = tmp_path / "crawl", tmp_path / "my.toml", Hub()
    config.write_text(CONFIG)
    topic = "http://127.0.0.1:81/feed.xml"
    with running(hub) as at_hub, served(folder, "http://127.0.0.1:81/", "--config", config) as server:
        where = ("--hub", at_hub, "--callback", server.where)
        assert "accepted with 202" in said(skitter("subscribe", folder, topic, *where))
        assert hub.asked_back.acquire(timeout=60)
        (listed,) = read_json("subscribe", folder)
        assert (listed["state"], listed["secret"]) == ("confirmed", None)
        assert "none is due" in said(skitter("subscribe", folder, "--renew"))
        news = b'<feed><entry><link href="/story"/><updated>2030-01-01T00:00:00Z</updated></entry></feed>'
        assert hub.publish(topic, news) == 202
        assert read_json("explain", "http://127.0.0.1:81/story", "--in", folder)["state"] == "queued"
        assert "1 notifications" in said(skitter("subscribe", folder))
        assert "accepted with 202" in said(skitter("subscribe", folder, topic, "--end"))
        assert hub.asked_back.acquire(timeout=60)
        assert read_json("subscribe", folder) == []
    assert hub.subscribers == {}


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    folder, config = tmp_path / "crawl", tmp_path / "my.toml"
    config.write_text(CONFIG)
    with served(folder, "http://127.0.0.1:81/", "--config", config):
        pass
    assert "give --hub" in complaint(skitter("subscribe", folder, "http://127.0.0.1:81/f"), 2)
    where = ("--hub", "http://127.0.0.1:9/", "--callback", "http://127.0.0.1:8600")
    failed = skitter("subscribe", folder, "http://127.0.0.1:81/f", *where)
    assert "port 9 is never dialled" in complaint(failed, 1)
