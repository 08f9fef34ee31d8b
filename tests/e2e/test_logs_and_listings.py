"""Logs and listings name URLs: what failed, where, when, and what the host said."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import ENVIRON, command, complaint, read_json, said, serving_site, skitter
from tests.raw_server import RawServer, page
from tests.serving import served

PAGES = {
    "/": b"<a href=/bad>b</a><a href=/odd>o</a>",
    "/bad": page(b"oops", status=b"500 Broken"),
    "/odd": b"HTTP/1.1 nonsense\r\n\r\n",
}
CONFIG = "[retry]\nattempts = 1\nbackoff = [0.01]\n[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving_site(PAGES) as running:
        yield running


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, server: RawServer) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "my.toml").write_text(CONFIG)
    said(skitter("crawl", f"{server.url}/", "--into", folder / "c", "--config", folder / "my.toml"))
    return folder / "c"


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_failure_in_the_log_has_its_time_level_url_and_host(crawled: Path, server: RawServer) -> None:
    dead = {line["url"]: line for line in lines_of(crawled / "skitter.log") if line["event"] == "url_dead"}
    assert set(dead) == {f"{server.url}/bad", f"{server.url}/odd"}
    bad = dead[f"{server.url}/bad"]
    assert (bad["level"], bad["host"], bad["kind"]) == ("error", server.url, "server_error")
    assert (bad["status"], bad["detail"]) == (500, "status 500")
    at = datetime.fromisoformat(bad["time"])
    assert bad["time"].endswith("Z")
    assert abs((datetime.now(UTC) - at).total_seconds()) < 3600


def test_explain_takes_the_key_that_a_log_line_has(crawled: Path, server: RawServer) -> None:
    (bad,) = [one for one in lines_of(crawled / "skitter.log") if one.get("url") == f"{server.url}/bad"]
    text = said(skitter("explain", bad["key"], "--in", crawled))
    assert text.startswith(f"{server.url}/bad\n")
    assert text == said(skitter("explain", f"{server.url}/bad", "--in", crawled))
    by_url = read_json("explain", f"{server.url}/bad", "--in", crawled)
    assert read_json("explain", by_url["key"].upper(), "--in", crawled)["url"] == f"{server.url}/bad"


def test_explain_takes_what_was_given_as_a_bare_seed(crawled: Path, server: RawServer) -> None:
    found = read_json("explain", f"127.0.0.1:{server.port}/bad", "--in", crawled)
    assert (found["url"], found["state"]) == (f"{server.url}/bad", "dead_letter")
    assert read_json("explain", "bare.org", "--in", crawled)["state"] == "unknown"


def test_explain_says_so_of_a_key_that_nobody_has(crawled: Path) -> None:
    assert "no URL known to this crawl has the key" in complaint(
        skitter("explain", "0" * 32, "--in", crawled), 2
    )
    assert "nor a key of 32 hexadecimal digits" in complaint(skitter("explain", "0" * 31, "--in", crawled), 2)


def test_dead_letters_show_what_the_host_said(crawled: Path, server: RawServer) -> None:
    lines = said(skitter("dead", crawled)).splitlines()
    head, *letters = [re.split("  +", line) for line in lines[:3]]
    assert head == ["url", "failed as", "status", "what was said", "attempts", "last"]
    told = {letter[0]: letter[1:4] for letter in letters}
    assert told[f"{server.url}/bad"] == ["server error", "500", "status 500"]
    kind, status, detail = told[f"{server.url}/odd"]
    assert (kind, status) == ("protocol", "none")
    assert detail != "nothing"
    assert f"Try them again: skitter dead {crawled} --requeue" in lines


def test_a_complaint_is_json_too_where_the_log_is_asked_for(tmp_path: Path) -> None:
    """From the first line on: a collector never meets a line that it cannot read."""
    config = tmp_path / "log.toml"
    config.write_text("[log]\njson = true\n")
    for words in (
        ("crawl", "http://127.0.0.1:9/", "--into", tmp_path / "c", "--log-json"),
        ("crawl", "--into", tmp_path / "c", "--config", config),
        ("serve", tmp_path / "c", "--log-json"),
        ("crawl", "--into", tmp_path / "c", "--log-json", "--nonsense"),
    ):
        done = skitter(*words)
        assert done.returncode == 2
        (line,) = map(json.loads, done.stderr.splitlines())
        assert (line["level"], line["event"], line["code"]) == ("error", "command_failed", 2)
        assert line["message"]


def test_a_served_crawl_logs_json_to_the_last_line(tmp_path: Path) -> None:
    words = command("serve", tmp_path / "c", "--new", "--listen", "127.0.0.1:0", "--log-json")
    with subprocess.Popen(words, env=ENVIRON, stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        lines = [json.loads(child.stderr.readline())]
        while lines[-1]["event"] != "note":
            lines.append(json.loads(child.stderr.readline()))
        child.send_signal(signal.SIGTERM)
        lines += map(json.loads, child.communicate(timeout=60)[1].splitlines())
    assert child.returncode == 0
    assert any("serving" in line.get("text", "") for line in lines)
    assert all(line["time"].endswith("Z") and line["level"] for line in lines)


# -- workers


def test_a_worker_says_that_it_joined_lost_and_found_its_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place, log = ("--listen", f"127.0.0.1:{port}"), tmp_path / "worker.log"
    words = command("worker", "--join", f"http://127.0.0.1:{port}", "--log", log)
    with subprocess.Popen(words, env=ENVIRON, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        # On a slow machine it also says that it still waits.
        said_so = (line for line in iter(worker.stderr.readline, "") if "still no answer" not in line)
        assert "does not answer (" in next(said_so)
        with served(tmp_path / "c", *place) as server:
            assert f"skitter: joined http://127.0.0.1:{port} as " in next(said_so)
            server.process.kill()
            server.process.wait()
        assert "does not answer (" in next(said_so)
        with served(tmp_path / "c", *place):
            assert "answers again; 0 answers wait to be delivered" in next(said_so)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == 0
    events = [line["event"] for line in lines_of(log)]
    assert events == ["server_away", "server_joined", "server_away", "server_back"]
    assert {line["server"] for line in lines_of(log)} == {f"http://127.0.0.1:{port}"}


def test_a_worker_gives_up_a_server_that_is_silent_if_it_is_told_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        where = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        done = skitter("worker", "--join", where, "--give-up-after", "0.5")
    assert done.returncode == 1
    assert f"{where} did not answer for 0.5 s" in done.stderr
    for wrong in ("0", "-1", "nan", "soon"):
        assert skitter("worker", "--join", where, "--give-up-after", wrong).returncode == 2


def test_workers_of_a_crawl_log_json_with_it(tmp_path: Path, server: RawServer) -> None:
    (tmp_path / "my.toml").write_text(CONFIG)
    words = ("crawl", f"{server.url}/", "--into", tmp_path / "c", "--config", tmp_path / "my.toml")
    # so many that the crawl's own process fetches nothing: one of them has to join
    done = skitter(*words, "--workers", "4", "--log-json")
    said(done)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert "server_joined" in {line["event"] for line in lines}
    assert all({"time", "level", "event"} <= set(line) for line in lines)
