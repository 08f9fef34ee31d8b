"""A crawl records what sites reserve, and keeps less where it is told to obey."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.e2e.command import said, serving_site, skitter

TDMREP = b'[{"location": "/photos", "tdm-reservation": 1, "tdm-policy": "http://a.test/terms"}]'


def answer(body: bytes, *headers: bytes) -> bytes:
    head = [b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


NAMES = ("plain", "signal", "archive", "index", "photos", "meta")
PAGES = {
    "/": b"".join(b"<a href=/%s>x</a>" % name.encode() for name in NAMES),
    "/robots.txt": answer(b"User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"),
    "/.well-known/tdmrep.json": answer(TDMREP),
    "/llms.txt": answer(b"# a site"),
    "/plain": b"<p>words of the plain page",
    "/signal": answer(b"<p>words of the signal page", b"Content-Signal: ai-train=yes"),
    "/archive": answer(b"<p>words of the archive page", b"X-Robots-Tag: noarchive"),
    "/index": b"<meta name=robots content='noindex, unavailable_after: 25 Jun 2090 15:00:00 GMT'><p>index",
    "/photos": b"<p>words of the photos page",
    "/meta": b'<meta name="tdm-reservation" content="1"><p>words of the meta page',
}
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n[traps]\nmode = 'off'\n"


def crawl(folder: Path, more: str) -> Path:
    (folder / "my.toml").write_text(CONFIG + more)
    with serving_site(PAGES) as server:
        said(skitter("crawl", f"{server.url}/", "--into", folder / "c", "--config", folder / "my.toml"))
    return folder / "c"


def rows(folder: Path, sql: str) -> dict[str, list[object]]:
    found = [
        json.loads(line) for line in said(skitter("query", folder, sql, "--format", "json")).splitlines()
    ]
    return {next(iter(row.values())): [*row.values()][1:] for row in found}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = '[opt_outs]\nfiles = ["tdmrep.json", "ai.txt", "llms.txt"]\n'
    return crawl(tmp_path_factory.mktemp("recorded"), files)


def test_what_sites_reserve_is_in_the_table_of_pages(recorded: Path) -> None:
    columns = "noindex, noarchive, unavailable_after is not null, content_signal, tdm_reservation, tdm_policy"
    found = rows(recorded, f"select path, {columns} from pages where kind = 'page' and status = 200")
    signal = "search=yes, ai-train=no"
    assert found["/plain"] == [False, False, False, signal, None, None]
    assert found["/signal"] == [False, False, False, "ai-train=yes", None, None]
    assert found["/archive"] == [False, True, False, signal, None, None]
    assert found["/index"] == [True, False, True, signal, None, None]
    assert found["/meta"] == [False, False, False, signal, "1", None]
    assert found["/photos"] == [False, False, False, signal, "1", "http://a.test/terms"]


def test_declarations_are_asked_for_once_and_archived(recorded: Path) -> None:
    found = rows(recorded, "select path, status from pages where kind = 'declaration'")
    assert found == {"/.well-known/tdmrep.json": [200], "/ai.txt": [404], "/llms.txt": [200]}
    texts = rows(recorded, "select url, text from text")
    assert any("words of the photos" in str(text) for text in texts.values())


def test_nothing_is_asked_for_unless_the_settings_say_so(tmp_path: Path) -> None:
    folder = crawl(tmp_path, "")
    assert rows(folder, "select path, 1 from pages where kind = 'declaration'") == {}


def test_what_is_obeyed_is_not_kept(tmp_path: Path) -> None:
    obeyed = """[opt_outs]
noarchive = "obey"
noindex = "obey"
tdm_reservation = "obey"
content_signal = "obey"
purpose = "ai-train"
files = ["tdmrep.json"]
"""
    folder = crawl(tmp_path, obeyed)
    texts = rows(folder, "select url, text from text")
    assert [text for (text,) in texts.values() if text] == ["words of the signal page"]
    (warc,) = (folder / "archive").glob("*.warc.gz")
    records = gzip.decompress(warc.read_bytes())
    assert b"words of the archive page" not in records
    assert b"words of the photos page" in records, "only its text is not kept"
    url = next(url for url in rows(folder, "select url, 1 from pages where noarchive") if url)
    assert "not kept, the site asks so: noarchive" in said(skitter("explain", url, "--in", folder))
    assert said(skitter("verify", folder))
