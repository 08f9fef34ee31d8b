"""A second visit, by the server's own log and by what lies in the archive afterwards."""

from __future__ import annotations

import asyncio
import io
import re
import socket
import time
from pathlib import Path

import pytest
import uvloop
from warcio.archiveiterator import ArchiveIterator

from skitter.cli import main
from skitter.folder import CrawlFolder
from skitter.frontier.base import Explanation
from skitter.seeds import read_seeds
from skitter.settings import FetchSettings, PolitenessSettings, Settings
from skitter.wiring import open_crawl, open_frontier
from tests.keys import KEYS
from tests.raw_server import page, serving

ROBOTS_TTL = 1.5
SETTINGS = Settings(
    fetch=FetchSettings(allow_private=True),
    politeness=PolitenessSettings(delay=0.05, robots_ttl=ROBOTS_TTL),
)
BODY = {
    b"/tagged": b"<title>Tagged</title>as ever",
    b"/plain": b"plain as ever " * 40,
    b"/short": b"short as ever",
    b"/changing": b"one",
}
_INDEX = b"".join(b"<a href=%s>x</a>" % path for path in BODY)


class Site:
    """Answers conditionally where it gave a tag; `/changing` is not what it was on the second visit."""

    def __init__(self) -> None:
        self.visits = 0

    def answer(self, connection: socket.socket, raw: bytes) -> bool:
        path = raw.split()[1]
        if path == b"/robots.txt":
            connection.sendall(self._tagged(raw, b'"rules"', b"User-agent: *\nDisallow: /private"))
        elif path == b"/tagged":
            connection.sendall(self._tagged(raw, b'"page"', BODY[path]))
        elif path == b"/changing":
            self.visits += 1
            connection.sendall(page(BODY[path] * self.visits))
        else:
            connection.sendall(page(BODY.get(path, _INDEX)))
        return True

    def _tagged(self, raw: bytes, tag: bytes, body: bytes) -> bytes:
        if b"If-None-Match: " + tag in raw:
            return b"HTTP/1.1 304 Not Modified\r\nETag: " + tag + b"\r\n\r\n"
        return page(body, b"ETag: " + tag)


async def crawl(folder: CrawlFolder, url: str) -> dict[str, Explanation]:
    folder.lock()
    async with open_crawl(folder, SETTINGS) as parts:
        await parts.frontier.admit(read_seeds([url + "/"], [], KEYS))
        await parts.loop.run()
        found = {path.decode(): await parts.frontier.explain(url + path.decode()) for path in BODY}
    folder.unlock()
    return found


async def refresh(folder: CrawlFolder) -> int:
    async with open_frontier(folder, SETTINGS, read_only=False) as frontier:
        return await frontier.refresh()


def records(folder: CrawlFolder, path: str) -> list[dict[str, str]]:
    """The headers of what the archive has of a URL, in order."""
    found = []
    for file in sorted(folder.archive.glob("*.warc.gz")):
        for record in ArchiveIterator(io.BytesIO(file.read_bytes())):
            if record.rec_type in ("response", "revisit") and record.rec_headers["WARC-Target-URI"].endswith(
                path
            ):
                found.append(dict(record.rec_headers.headers))
    return found


def test_a_second_visit_is_conditional_and_a_304_is_a_revisit_record_of_what_it_stands_for(
    tmp_path: Path,
) -> None:
    folder = CrawlFolder(tmp_path / "crawl")
    with (
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        serving(Site().answer) as server,
    ):
        first = runner.run(crawl(folder, server.url))
        assert runner.run(refresh(folder)) == 1 + len(BODY)
        # robots.txt is to be asked for again: its reading is then too old
        time.sleep(max(0.0, server.requests[0].at + ROBOTS_TTL + 0.1 - time.time()))
        before = len(server.requests)
        second = runner.run(crawl(folder, server.url))
        again = {request.raw.split()[1]: request.raw for request in server.requests[before:]}
    assert set(again) == {b"/robots.txt", b"/", *BODY}
    assert b'If-None-Match: "rules"' in again[b"/robots.txt"]
    assert b'If-None-Match: "page"' in again[b"/tagged"]
    assert b"If-None-Match" not in again[b"/plain"]
    results = {path: [fetch.result for fetch in each.fetches] for path, each in second.items()}
    assert results == {
        "/tagged": ["fetched", "notmodified"],
        "/plain": ["fetched", "unchanged"],
        "/short": ["fetched", "unchanged"],
        "/changing": ["fetched", "fetched"],
    }
    assert {each.state for each in [*first.values(), *second.values()]} == {"completed"}
    assert second["/tagged"].title == "Tagged"
    for path, profile in (
        ("/tagged", "server-not-modified"),
        ("/robots.txt", "server-not-modified"),
        ("/plain", "identical-payload-digest"),
    ):
        original, revisit = records(folder, path)
        assert (original["WARC-Type"], revisit["WARC-Type"]) == ("response", "revisit")
        assert revisit["WARC-Profile"].endswith("/revisit/" + profile)
        assert revisit["WARC-Refers-To"] == original["WARC-Record-ID"]
        assert revisit["WARC-Refers-To-Target-URI"] == original["WARC-Target-URI"]
        assert revisit["WARC-Refers-To-Date"] == original["WARC-Date"]
    # a revisit record of a short body would be longer than the body
    for path in ("/changing", "/short"):
        assert [record["WARC-Type"] for record in records(folder, path)] == ["response", "response"]


def test_the_command_says_what_it_did_and_what_it_cannot_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = CrawlFolder(tmp_path / "crawl")
    with (
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        serving(Site().answer) as server,
    ):
        runner.run(crawl(folder, server.url))
        url = server.url
    folder.settings_file.write_text("[keys]\nrules = 2\n")
    into = str(folder.path)
    assert main(["refresh", into, url + "/tagged"]) == 0
    assert "1 URLs are queued again: skitter crawl --into" in capsys.readouterr().out
    assert main(["refresh", into, url + "/tagged"]) == 0
    assert capsys.readouterr().out == f"nothing to look at again: {url}/tagged is queued\n"
    assert main(["explain", url + "/tagged", "--in", into]) == 0
    assert "to be looked at again; next of " in capsys.readouterr().out
    assert main(["refresh", into, "--host", url, "--json"]) == 0
    assert re.sub(r"\s", "", capsys.readouterr().out) == f'{{"refreshed":{len(BODY)}}}'
    assert main(["refresh", into]) == 0
    assert capsys.readouterr().out == "nothing to look at again, all that was fetched is queued already\n"
    for wrong, complaint in (
        ([url + "/unheard-of"], "is not known to this crawl: give it to skitter crawl as a seed"),
        (["mailto:x"], "is not an http or https URL"),
        ([url + "/tagged", "--host", url], "give --host, --where or URLs, not several of them"),
    ):
        assert main(["refresh", into, *wrong]) == 2
        assert complaint in capsys.readouterr().err
