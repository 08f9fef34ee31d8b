"""For archivists: a crawl says what it is, its packages are signed, and archives of others are taken on."""

from __future__ import annotations

import gzip
import json
import socket
import zipfile
import zlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.command import complaint, read_json, said, serving_site, skitter
from tests.foreign_archives import wget, write_warc
from tests.raw_server import page, serving

CONFIG = """\
[fetch]
allow_private = true
[politeness]
delay = 0.0
[traps]
mode = "off"
[about]
title = "Harbour records"
description = "Before the move"
publisher = "City archive"
is_part_of = "City web"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "my.toml"
    file.write_text(CONFIG)
    return file


def test_a_collection_says_what_it_is_and_is_signed(tmp_path: Path, config: Path) -> None:
    into, package, key = tmp_path / "crawl", tmp_path / "crawl.wacz", tmp_path / "key.pem"
    with serving_site({"/": b"<title>Home</title>"}) as server:
        assert skitter("crawl", f"{server.url}/", "--into", into, "--config", config).returncode == 0
    [segment] = (into / "archive").glob("*.warc.gz")
    info = gzip.decompress(segment.read_bytes())[:2000]
    for line in (b"title: Harbour records", b"description: Before the move", b"publisher: City archive"):
        assert line + b"\r\n" in info
    assert b"isPartOf: City web\r\n" in info
    private = ec.generate_private_key(ec.SECP384R1())
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(private.private_bytes(*pem))
    said(skitter("export", into, "--to", "wacz", package, "--sign-key", key))
    told = json.loads(zipfile.ZipFile(package).read("datapackage.json"))
    assert (told["title"], told["description"], told["isPartOf"]) == (
        "Harbour records",
        "Before the move",
        "City web",
    )
    assert told["contributors"] == [{"title": "City archive", "role": "publisher"}]
    checked = read_json("verify", package)
    assert (checked["sound"], checked["findings"]) == (True, [])
    refused = skitter("export", into, "--to", "jsonl", tmp_path / "x", "--sign")
    assert "only a WACZ package" in complaint(refused, 2)
    key.write_text("no key")
    assert "PEM" in complaint(
        skitter("export", into, "--to", "wacz", package, "--force", "--sign-key", key), 2
    )


class Site:
    """Pages with an ETag each, which are compared; `asked` are the paths of requests with their status."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, int]] = []

    def answer(self, connection: socket.socket, raw: bytes) -> bool:
        path = raw.split()[1].decode()
        body = self.pages.get(path)
        tag = f'"{zlib.crc32(body or b"")}"'.encode()
        if body is None:
            answer, status = page(b"nothing here", status=b"404 Not Found"), 404
        elif b"if-none-match: " + tag in raw.lower():
            answer, status = b"HTTP/1.1 304 Not Modified\r\nETag: %b\r\n\r\n" % tag, 304
        else:
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: %b\r\n" % tag
            answer, status = head + b"Content-Length: %d\r\n\r\n" % len(body) + body, 200
        self.asked.append((path, status))
        connection.sendall(answer)
        return True

    def taken(self) -> set[tuple[str, int]]:
        """What was asked for since the last time, but for robots.txt."""
        asked, self.asked = self.asked, []
        assert len(set(asked)) == len(asked)
        return {one for one in asked if one[0] != "/robots.txt"}


def prose(name: str) -> bytes:
    words = " ".join(f"{name}{n}" for n in range(60))
    return f"<title>{name}</title><p>{words}".encode()


PAGES = {
    "/": prose("home") + b"<a href=/one>1</a> <a href=/two>2</a> <a href=/three>3</a>",
    "/one": prose("one"),
    "/two": prose("two"),
    "/three": prose("three"),
}


def test_a_crawl_goes_on_from_an_archive_of_others_and_asks_for_what_is_new_or_changed(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    into = tmp_path / "crawl"
    site = Site(PAGES)
    with serving(site.answer) as server:
        made = wget(f"{server.url}/", tmp_path / "wget", "--reject-regex=three")
        assert site.taken() == {("/", 200), ("/one", 200), ("/two", 200)}
        taken = read_json("import", made, "--into", into, "--config", config)
        assert (taken["pages"], taken["links"], taken["unreadable"]) == (3, 1, 0)
        assert read_json("import", made, "--into", into)["known"] == 3
        assert site.taken() == set()
        assert skitter("crawl", "--into", into).returncode == 0
        assert site.taken() == {("/three", 200)}
        site.pages = {**PAGES, "/two": prose("other")}
        said(skitter("refresh", into))
        assert skitter("crawl", "--into", into).returncode == 0
        assert site.taken() == {("/", 304), ("/one", 304), ("/two", 200), ("/three", 304)}
        assert read_json("verify", into)["findings"] == []
        times = "select count(*) n from pages where url like '%/one' and kind = 'page'"
        assert read_json("query", into, times) == {"n": 2}
        assert read_json("stats", into)["politeness"]["violations"] == 0
        assert said(skitter("show", into, f"{server.url}/two")).encode() == prose("other")


def test_only_what_is_in_the_scope_of_a_seed_is_taken(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made, into = tmp_path / "made.warc.gz", tmp_path / "crawl"
    write_warc(made)
    told = read_json("import", made, "--into", into, "--config", config, "--seed", "http://other.test/")
    assert (told["pages"], told["out_of_scope"]) == (0, 3)
    into = tmp_path / "another"
    told = read_json("import", made, "--into", into, "--config", config, "--seed", "http://site.test/")
    assert told["pages"] == 3
    explained = read_json("explain", "http://site.test/chunked", "--in", into)
    assert explained["state"] == "completed"


@pytest.mark.parametrize("other", ["crawl", "cdxj", "wget"])
def test_a_body_that_another_archive_holds_is_not_stored_again(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    into, first = tmp_path / "crawl", tmp_path / "first"
    site = Site({path: body + b" " * 600 for path, body in PAGES.items()})
    with serving(site.answer) as server:
        if other == "wget":
            against = wget(f"{server.url}/", tmp_path / "wget", "--reject-regex=three")
        else:
            words = (f"{server.url}/", "--exclude", "three", "--config", config)
            assert skitter("crawl", *words, "--into", first).returncode == 0
            against = first / "archive" / "index.cdxj" if other == "cdxj" else first
        site.pages["/copy"] = site.pages["/one"]
        site.pages["/three"] += b"<a href=/copy>again</a>"
        flags = ("--dedup-against", against, "--config", config)
        assert skitter("crawl", f"{server.url}/", "--into", into, *flags).returncode == 0
        asked = "select url, revisit_of is not null as again from pages where kind = 'page' and status = 200"
        rows = [json.loads(line) for line in said(skitter("query", into, asked, "--json")).splitlines()]
        found = {row["url"].removeprefix(server.url): row["again"] for row in rows}
        assert found == {"/": True, "/one": True, "/two": True, "/three": False, "/copy": True}
        assert read_json("verify", into)["findings"] == []
        if other != "cdxj":
            shown = skitter("show", into, f"{server.url}/copy")
            assert said(shown).encode().rstrip() == PAGES["/one"].rstrip()
        assert skitter("crawl", "--into", into).returncode == 0


def test_an_archive_that_is_not_there_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    done = skitter("crawl", "http://a.test/", "--into", tmp_path / "x", "--dedup-against", tmp_path / "no")
    assert "does not exist" in complaint(done, 2)
    assert not (tmp_path / "x").exists()


def test_a_report_says_what_is_there_and_what_is_not(tmp_path: Path, config: Path) -> None:
    into, shown = tmp_path / "crawl", tmp_path / "report.html"
    home = prose("home") + b"<img src=/there.png><img src=/gone.png><a href=/bad>x</a><a href=/no/>y</a>"
    evil = b"<a href='/<script>alert(1)</script>'>z</a>"
    png = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 4\r\n\r\nPNG!"
    robots = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 27\r\n\r\n"
    pages = {"/": home + evil, "/there.png": png, "/robots.txt": robots + b"User-agent: *\nDisallow: /no"}
    pages["/bad"] = page(b"broken", status=b"500 Internal Server Error")
    with serving_site(pages) as server:
        config.write_text(CONFIG + "[retry]\nattempts = 1\nbackoff = [0.1]\n")
        skitter("crawl", f"{server.url}/", "--into", into, "--config", config, "--requisites")
        told = json.loads(said(skitter("report", into, "--json", "--to", shown)))
    archive = told["archive"]
    assert archive["pages"] == 1
    assert archive["missing"] == {"total": 1, "rows": [[f"{server.url}/gone.png", 1, 404]]}
    assert [row[1:] for row in archive["errors"]["rows"]] == [[404, 2], [500, 1]]
    assert ["image/png", 1, 4] in archive["types"]
    assert told["states"]["denied"] == 1
    assert [row[1] for row in told["dead"]["rows"]] == ["server_error"]
    text = shown.read_text()
    assert "Harbour records" in text
    assert "<script>" not in text
    assert "exists" in complaint(skitter("report", into, "--to", shown), 2)
    foreign = json.loads(said(skitter("report", next(into.glob("archive/*.warc.gz")), "--json")))
    assert foreign["archive"]["missing"]["total"] == 1
    assert not foreign["has_frontier"]
