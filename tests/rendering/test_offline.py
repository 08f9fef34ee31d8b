"""`skitter render` over a crawl of a small app that was really crawled: as its users run it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from skitter.collection.members import Member, read_members
from skitter.collection.record import Record, parse_record
from skitter.collection.source import FolderSource
from tests.e2e.command import complaint, said, serving_site, skitter
from tests.raw_server import RawServer, page

SHELL = b"""<!DOCTYPE html><title>shop</title><img src=/api/list.json alt=''><div id=root></div>
<script src=/app.js></script>"""
APP = b"""fetch('/api/list.json').then((a) => a.json()).then((names) => {
  document.getElementById('root').innerHTML = '<h1>Our shop</h1>' + names.map((name) =>
    `<p><a href="/things/${name}">${name}: ${'a very good thing to have. '.repeat(5)}</a></p>`).join('');
  fetch('/api/absent.json').catch(() => 0);
});"""


def _typed(body: bytes, content_type: bytes, *headers: bytes) -> bytes:
    return page(body, *headers).replace(b"text/html", content_type, 1)


SITE = {
    "/robots.txt": page(b"User-agent: *\n"),
    "/": SHELL,
    "/about": b"<title>About</title><p>"
    + b"Words that need none. " * 30
    + b"<a href=/>1</a><a href=/a>2</a>",
    "/app.js": _typed(gzip.compress(APP), b"text/javascript", b"Content-Encoding: gzip"),
    "/api/list.json": _typed(b'["chair", "lamp"]', b"application/json"),
}
CONFIG = (
    "[retry]\nattempts = 1\n[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"
    "[crawl]\nrequisites = true\n[render]\nsoft_limit = 60.0\nhard_limit = 90.0\n"
)


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as running:
        yield running


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, server: RawServer) -> Path:
    folder = tmp_path_factory.mktemp("app") / "crawl"
    config = folder.with_name("my.toml")
    config.write_text(CONFIG)
    seeds = (server.url + "/", server.url + "/about")
    said(skitter("crawl", *seeds, "--into", folder, "--config", config))
    return folder


def _files(folder: Path) -> dict[str, str]:
    return {str(file): sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file()}


def _records(file: Path) -> list[Record]:
    members = read_members(FolderSource(file.parent), file.name, file.stat().st_size)
    found = [parse_record(member.content) for member in members if isinstance(member, Member)]
    return [record for record in found if isinstance(record, Record)]


def test_only_shells_are_rendered_from_the_archive_alone_and_the_crawl_is_as_it_was(
    crawled: Path, server: RawServer, tmp_path: Path
) -> None:
    before, asked = _files(crawled), len(server.requests)
    file, shots = tmp_path / "rendered.warc.gz", tmp_path / "shots"
    told = said(skitter("render", crawled, "--json", "--to", file, "--screenshots", shots))
    (one,) = map(json.loads, told.splitlines())
    assert (one["ending"], one["missing"]) == ("done", [f"{server.url}/api/absent.json"])
    assert one["new_links"] == [f"{server.url}/things/{name}" for name in ("chair", "lamp")]
    assert "a very good thing" in one["text"]
    assert len(server.requests) == asked
    assert _files(crawled) == before

    about, *made = _records(file)
    assert (about.kind, [record.kind for record in made]) == ("warcinfo", ["resource"] * 3)
    kinds = ("rendered", "view", "thumbnail")
    assert [record.url for record in made] == [f"urn:{kind}:{server.url}/" for kind in kinds]
    assert made[0].fields["warc-refers-to-target-uri"] == f"{server.url}/"
    assert made[0].fields["warc-block-digest"] == one["digest"]
    pictures = sorted(shots.rglob("*.jpg"))
    assert [picture.read_bytes()[:3] for picture in pictures] == [b"\xff\xd8\xff"] * 2
    assert pictures[0].name in (shots / "index.html").read_text()


def test_the_same_pages_have_the_same_digests_twice(crawled: Path) -> None:
    first, second = (
        {one["url"]: one["digest"] for one in map(json.loads, told.splitlines())}
        for told in (said(skitter("render", crawled, "--all", "--json")) for _ in range(2))
    )
    assert first == second
    assert len(first) == 2


def test_people_are_told_what_scripts_added_and_what_is_missing(crawled: Path, server: RawServer) -> None:
    told = said(skitter("render", crawled, server.url + "/"))
    assert "2 links, 2 of them by scripts" in told
    assert f"missing: {server.url}/api/absent.json" in told
    assert "1 page rendered, 1 of them changed by scripts, 1 without some of the answers" in told


def test_bad_input_gets_a_line_that_says_what_to_do(crawled: Path, tmp_path: Path, server: RawServer) -> None:
    assert "call it x.warc.gz" in complaint(skitter("render", crawled, "--to", tmp_path / "x"), 2)
    assert "is not in the archive" in complaint(skitter("render", crawled, server.url + "/no"), 2)
    assert "no page to render" in complaint(skitter("render", crawled, server.url + "/app.js"), 2)
    no_browser = skitter("render", crawled, environ={"SKITTER_RENDER_BROWSER": "no-such-browser"})
    assert "apt install chromium-headless-shell" in complaint(no_browser, 2)
