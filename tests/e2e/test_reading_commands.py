"""The commands that read a crawl, as their users run them, on a small site that was really crawled."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skitter.cli import main
from tests.e2e.command import ENVIRON, Done, command, complaint, said, serving_site, skitter
from tests.raw_server import RawServer, page, serving

HOME = b"<html lang=de><title>Heim</title><main><h1>Heim</h1><p>Viele W\xc3\xb6rter.</p> <a href=/a>a</a>"
HOME += b" <a href=/twin>t</a> <a href=/packed>p</a> <a href=/missing>m</a> <a href=/esc>e</a></main>"
SITE = {
    "/robots.txt": page(b"User-agent: *\nDisallow: /denied/\n"),
    "/": HOME,
    "/a": b"<title>A</title><a href=/>home</a> the same words",
    "/twin": b"<title>A</title><a href=/>home</a> the same words",
    "/packed": page(gzip.compress(b"<title>Packed</title>unpacked words"), b"Content-Encoding: gzip"),
    "/esc": b"<title>\x1b[31mred\x07</title>\x1b[2J body",
}
CONFIG = "[retry]\nattempts = 1\n[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as running:
        yield running


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, server: RawServer) -> Path:
    folder = tmp_path_factory.mktemp("crawled") / "crawl"
    config = folder.with_name("my.toml")
    config.write_text(CONFIG)
    said(skitter("crawl", server.url + "/", "--into", folder, "--config", config))
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Done:
    """The command in this process: a start of Python saved, the same code otherwise."""
    capsys.readouterr()
    words = [str(argument) for argument in arguments]
    code = main(words)
    printed = capsys.readouterr()
    return Done(words, code, printed.out, printed.err)


def test_query_prints_a_table_csv_or_json_lines(crawled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select status, count(*) as n from pages where kind = 'page' group by all order by status"
    assert said(skitter("query", crawled, sql)).splitlines() == ["status  n", "   200  5", "   404  1"]
    rows = list(csv.reader(io.StringIO(said(run(capsys, "query", crawled, sql, "--format", "csv")))))
    assert rows == [["status", "n"], ["200", "5"], ["404", "1"]]
    lines = said(run(capsys, "query", crawled, sql, "--json")).splitlines()
    assert [json.loads(line) for line in lines] == [{"status": 200, "n": 5}, {"status": 404, "n": 1}]


def test_a_wrong_query_is_one_line(crawled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert '"hots" not found' in complaint(run(capsys, "query", crawled, "select hots from pages"), 2)
    assert "only select" in complaint(run(capsys, "query", crawled, "create table x (a int)"), 2)
    assert "has no archive" in complaint(run(capsys, "query", crawled / "frontier", "select 1"), 2)


def test_a_reader_who_leaves_early_ends_a_query_quietly(crawled: Path) -> None:
    sql = "select range, repeat('x', 100) from range(3000000)"
    running = subprocess.Popen(
        command("query", crawled, sql, "--format", "csv"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRON,
    )
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    assert (running.wait(60), running.stderr.read()) == (0, b"")
    running.stderr.close()


def test_show_prints_body_text_headers_or_all_as_json(
    crawled: Path, server: RawServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(run(capsys, "show", crawled, server.url + "/")).encode() == HOME
    assert "unpacked words" in said(run(capsys, "show", crawled, server.url + "/packed"))
    assert "Viele Wörter." in said(run(capsys, "show", crawled, server.url + "/", "--text"))
    head = said(run(capsys, "show", crawled, server.url + "/packed", "--headers"))
    assert head.startswith("HTTP/1.1 200 OK")
    assert "Content-Encoding: gzip" in head
    facts = json.loads(said(run(capsys, "show", crawled, server.url + "/twin", "--json")))
    assert facts["title"] == "A"
    twins = {facts["url"], facts["revisit_of"]}
    other = json.loads(said(run(capsys, "show", crawled, server.url + "/a", "--json")))
    assert twins | {other["url"], other["revisit_of"]} == {server.url + "/a", server.url + "/twin", None}


def test_an_unknown_page_says_how_to_find_out(
    crawled: Path, server: RawServer, capsys: pytest.CaptureFixture[str]
) -> None:
    told = complaint(run(capsys, "show", crawled, server.url + "/denied/x"), 2)
    assert f"skitter explain {server.url}/denied/x --in {crawled}" in told


def test_a_crawl_verifies_as_sound_and_damage_is_named(crawled: Path, tmp_path: Path) -> None:
    text = said(skitter("verify", crawled))
    assert text.endswith("no defects\n")
    copy = tmp_path / "crawl"
    shutil.copytree(crawled, copy)
    (segment,) = (copy / "archive").glob("*.warc.gz")
    raw = bytearray(segment.read_bytes())
    *_, last = (copy / "archive" / "index.cdxj").read_text().splitlines()
    place = json.loads(last.split(" ", 2)[2])
    raw[int(place["offset"]) + int(place["length"]) - 6] ^= 1
    segment.write_bytes(raw)
    text = said(skitter("verify", copy), 1)
    assert re.search(rf"DEFECT +{segment.name} +\d+ +gzip check sum", text)
    found = json.loads(said(skitter("verify", copy, "--format", "json"), 1))
    assert found["sound"] is False
    assert found["findings"][0]["file"] == segment.name
    assert any("the frontier counts" in finding["what"] for finding in found["findings"])


def test_a_crawl_that_goes_on_with_zstd_is_read_as_one(
    server: RawServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, config = tmp_path / "crawl", tmp_path / "my.toml"
    config.write_text(CONFIG)
    begin = ("crawl", server.url + "/", "--into", folder, "--config", config)
    said(skitter(*begin, "--max-pages", 2))
    config.write_text(CONFIG + "[archive]\ncompression = 'zstd'\n")
    done = skitter("crawl", "--into", folder, "--config", config, "--max-pages", 0)
    said(done)
    assert ".warc.zst" in done.stderr
    kinds = [path.name.partition(".")[2] for path in sorted((folder / "archive").glob("*.warc.*"))]
    assert kinds == ["warc.gz", "warc.zst"]
    assert said(run(capsys, "verify", folder)).endswith("no defects\n")
    for path in ("/", "/a", "/twin"):
        shown = said(run(capsys, "show", folder, server.url + path))
        assert shown.strip().encode() == SITE[path].strip()
    sql = "select count(distinct warc_filename) as files, count(*) filter (kind = 'page') as pages from pages"
    assert said(run(capsys, "query", folder, sql, "--format", "csv")).split() == ["files,pages", "2,6"]
    said(run(capsys, "export", folder, "--to", "wacz", tmp_path / "x.wacz"))


def test_export_writes_what_matches_and_says_how_much(
    crawled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(
        capsys, "export", crawled, "--to", "jsonl", tmp_path / "x.jsonl", "--where", "url like '%/packed'"
    )
    assert said(done) == f"1 page in {tmp_path / 'x.jsonl'}\n"
    assert json.loads((tmp_path / "x.jsonl").read_text())["title"] == "Packed"
    again = run(capsys, "export", crawled, "--to", "jsonl", tmp_path / "x.jsonl")
    assert "--force" in complaint(again, 2)
    wrong = run(capsys, "export", crawled, "--to", "jsonl", tmp_path / "y", "--where", "statis = 200")
    assert '"statis" not found' in complaint(wrong, 2)


def test_reading_goes_on_while_the_crawl_does(tmp_path: Path) -> None:
    asked = threading.Event()

    def answer(connection: socket.socket, raw: bytes) -> bool:
        name = raw.split()[1].decode().strip("/")
        number = int(name) if name.isdigit() else 0
        if number == 20:
            asked.set()
        body = b"" if name == "robots.txt" else b"<a href=/%d>next</a> page %d" % (number + 1, number)
        connection.sendall(page(body))
        return True

    folder, config = tmp_path / "crawl", tmp_path / "my.toml"
    config.write_text(CONFIG + '[traps]\nmode = "off"\n')
    with serving(answer) as server:
        crawl = command(
            "crawl", server.url + "/", "--into", folder, "--config", config, "--max-depth", 1_000_000
        )
        running = subprocess.Popen(crawl, stderr=subprocess.DEVNULL, env=ENVIRON)
        try:
            assert asked.wait(60)
            counted = said(skitter("query", folder, "select count(*) from pages"))
            assert int(counted.split()[-1]) > 15
            assert said(skitter("show", folder, server.url + "/1", "--text")).strip() == "next page 1"
            assert "no defects" in said(skitter("verify", folder))
            assert running.poll() is None
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(60)
    assert "no defects" in said(skitter("verify", folder))
