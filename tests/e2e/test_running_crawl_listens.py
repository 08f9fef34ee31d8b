"""A crawl that runs can be told things: every command that changes something reaches the process that works."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import socket
import stat
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from skitter.cli import _parse, dashboard_and_seeds
from tests.e2e.command import ENVIRON, Done, command, complaint, read_json, said, serving_site, skitter
from tests.e2e.test_traps import MONTHS
from tests.e2e.test_traps import SITE as CALENDAR
from tests.raw_server import RawServer, page, serving
from tests.serving import served

CONFIG = """\
[fetch]
allow_private = true
[politeness]
delay = 0.0
[retry]
attempts = 1
backoff = [3600.0]
[crawl]
linger = 7200
[traps]
probe = false
"""
FAULT = page(b"out of order", status=b"500 Internal Server Error")
LINKS = b'<a href="/one">1</a> <a href="/two">2</a> <a href="/bad">3</a>'


class Site:
    """While it `is_down` it answers its robots.txt with 500, so that a crawl of it waits an hour."""

    def __init__(self) -> None:
        self.is_down = True
        self.bad = FAULT
        self.server: RawServer

    def answer(self, connection: socket.socket, raw: bytes) -> bool:
        path = raw.split()[1].decode()
        pages = {"/": page(LINKS), "/one": page(b"one"), "/two": page(b"two"), "/bad": self.bad}
        found = pages.get(path, page(b"nothing", status=b"404 Not Found"))
        connection.sendall(FAULT if self.is_down and path == "/robots.txt" else found)
        return True

    def paths(self) -> list[str]:
        return [one.raw.split()[1].decode() for one in self.server.requests]


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    with serving(found.answer) as found.server:
        yield found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "my.toml"
    file.write_text(CONFIG)
    return file


@contextmanager
def crawling(into: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl in a process of its own, which is stopped at the end if it has not ended by itself."""
    asked = command("crawl", "--into", into, *arguments)
    with subprocess.Popen(asked, env=ENVIRON, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


@contextmanager
def waiting_crawl(site: Site, into: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """One that has nothing to do for an hour: its host answered 500 to its robots.txt."""
    with crawling(into, f"{site.server.url}/", *arguments) as process:
        while not _is_backing_off(into):
            assert process.poll() is None
        yield process


def _is_backing_off(into: Path) -> bool:
    done = skitter("stats", into, "--json")
    return done.returncode == 0 and json.loads(done.stdout)["hosts"]["backing_off"] == 1


def told(done: Done, process: subprocess.Popen[bytes]) -> str:
    """What a command said that was carried out by this process."""
    printed = said(done)
    assert done.stderr == f"told the crawl that is running (pid {process.pid})\n"
    return printed


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_hosts_retry_ends_a_robots_wait_and_the_crawl_goes_on_at_once(
    site: Site, config: Path, tmp_path: Path, workers: int
) -> None:
    into = tmp_path / "crawl"
    with waiting_crawl(site, into, "--config", config, "--workers", workers) as process:
        site.is_down, site.bad = False, page(b"mended")
        printed = told(skitter("hosts", into, "--retry", site.server.url), process)
        assert printed.startswith(f"{site.server.url} is asked ")
        assert process.wait(60) == 0
    assert {"/", "/one", "/two", "/bad"} <= set(site.paths())


def test_hosts_retry_also_works_when_nobody_crawls(site: Site, config: Path, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    short = [f"{site.server.url}/", "--into", into, "--config", config]
    ends_early = {"SKITTER_CRAWL_LINGER": "30"}
    assert skitter("crawl", *short, environ=ends_early).returncode == 3
    site.is_down, site.bad = False, page(b"mended")
    done = skitter("hosts", into, "--retry", site.server.url)
    assert "1 URL queued" in said(done)
    assert done.stderr == ""
    assert skitter("crawl", "--into", into, environ=ends_early).returncode == 0
    assert "/two" in site.paths()


def test_a_host_that_the_crawl_does_not_know_cannot_be_retried(
    site: Site, config: Path, tmp_path: Path
) -> None:
    with waiting_crawl(site, tmp_path / "crawl", "--config", config):
        line = complaint(skitter("hosts", tmp_path / "crawl", "--retry", "nobody.test"), 2)
        assert "not a host of this crawl" in line


def test_seeds_given_to_a_waiting_crawl_are_fetched_at_once(site: Site, config: Path, tmp_path: Path) -> None:
    into, other = tmp_path / "crawl", Site()
    other.is_down = False
    with (
        serving(other.answer) as other.server,
        waiting_crawl(site, into, "--config", config) as process,
    ):
        done = skitter("seeds", into, f"{other.server.url}/", f"{site.server.url}/")
        assert told(done, process).startswith("1 seed accepted, 1 known already, 0 refused: the crawl")
        while "/two" not in other.paths():
            assert process.poll() is None


def test_a_policy_set_while_a_crawl_runs_is_in_force_at_once(
    site: Site, config: Path, tmp_path: Path
) -> None:
    into = tmp_path / "crawl"
    with waiting_crawl(site, into, "--config", config) as process:
        printed = told(skitter("policy", into, site.server.url, "--delay", 7, "--block"), process)
        assert "delay 7 s, blocked" in printed
        (host,) = read_json("hosts", into)
        assert (host["standing"], host["delay"]) == ("blocked", 7)


def test_dead_letters_are_requeued_and_pages_looked_at_again_while_a_crawl_runs(
    site: Site, config: Path, tmp_path: Path
) -> None:
    into, well = tmp_path / "crawl", Site()
    well.is_down = False
    with serving(well.answer) as well.server:
        both = [f"{well.server.url}/", "--config", config]
        with waiting_crawl(site, into, *both) as process:
            while read_json("stats", into)["urls"]["dead_letter"] != 1:
                assert process.poll() is None
            well.bad = page(b"mended")
            printed = told(skitter("dead", into, "--requeue"), process)
            assert printed == "1 dead letters are queued again: the crawl that is running fetches them\n"
            while read_json("stats", into)["pages"] != 4:
                assert process.poll() is None
            again = told(skitter("refresh", into, f"{well.server.url}/one"), process)
            assert again == "1 URLs are queued again: the crawl that is running looks what changed\n"
            while well.paths().count("/one") != 2:
                assert process.poll() is None
            assert "is not known to this crawl" in complaint_of_told(
                skitter("refresh", into, f"{well.server.url}/never")
            )
            assert "there is no verdict 7" in complaint_of_told(skitter("traps", into, "--undo", 7))


def test_a_verdict_on_a_trap_is_undone_while_a_crawl_runs(site: Site, config: Path, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with serving_site(CALENDAR) as calendar:
        seeds = [f"{calendar.url}/calendar/0", "--config", config, "--max-depth", 100]
        with waiting_crawl(site, into, *seeds) as process:
            while (
                not (verdicts := read_json("traps", into)) or read_json("stats", into)["urls"]["queued"] > 1
            ):
                assert process.poll() is None
            refused = verdicts[0]["refused"]
            assert read_json("stats", into)["pages"] < MONTHS
            printed = told(skitter("traps", into, "--undo", verdicts[0]["id"]), process)
            assert f"{refused} URLs of /calendar/# are queued again" in printed
            while read_json("stats", into)["pages"] != MONTHS:
                assert process.poll() is None


def complaint_of_told(done: Done) -> str:
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_refresh_where_asks_the_archive_which_pages_are_meant(
    site: Site, config: Path, tmp_path: Path
) -> None:
    into = tmp_path / "crawl"
    site.is_down = False
    said(skitter("crawl", f"{site.server.url}/", "--into", into, "--config", config))
    assert "1 URLs are queued again" in said(skitter("refresh", into, "--where", "url like '%/two'"))
    assert "where:" in complaint(skitter("refresh", into, "--where", "nonsense = 1"), 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_paused_crawl_asks_nobody_until_it_is_resumed(
    site: Site, config: Path, tmp_path: Path, workers: int
) -> None:
    into = tmp_path / "crawl"
    with waiting_crawl(site, into, "--config", config, "--workers", workers) as process:
        assert told(skitter("pause", into), process).startswith("paused:")
        site.is_down, site.bad = False, page(b"mended")
        before = site.paths()
        told(skitter("hosts", into, "--retry", site.server.url), process)
        assert read_json("stats", into)["hosts"]["waiting"] == 1
        assert site.paths() == before
        assert told(skitter("resume", into), process) == "going on\n"
        assert process.wait(60) == 0
    assert "/two" in site.paths()


def test_a_crawl_that_nobody_runs_cannot_be_paused(site: Site, config: Path, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    site.is_down, site.bad = False, page(b"mended")
    said(skitter("crawl", f"{site.server.url}/", "--into", into, "--config", config))
    assert f"nobody crawls {into} now" in complaint(skitter("pause", into), 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_settings_that_can_change_do_and_the_others_say_to_restart(
    site: Site, config: Path, tmp_path: Path, workers: int
) -> None:
    into = tmp_path / "crawl"
    with waiting_crawl(site, into, "--config", config, "--workers", workers) as process:
        site.is_down = False
        changed = skitter(
            "settings", "--in", into, "--set", "crawl.max_pages=2", "--set", "fetch.concurrency=3"
        )
        assert told(changed, process) == "crawl.max_pages = 2, now\nfetch.concurrency = 3, now\n"
        line = complaint(skitter("settings", "--in", into, "--set", "crawl.scope=any"), 2)
        assert "crawl.scope cannot change while this crawl runs: stop it, and start it again" in line
        assert "fetch.concurrency" in line
        assert "is not a setting" in complaint(skitter("settings", "--in", into, "--set", "crawl.pages=2"), 2)
        told(skitter("hosts", into, "--retry", site.server.url), process)
        assert process.wait(60) == 0
    assert read_json("stats", into)["pages"] == 2
    assert "max_pages = 2" in (into / "crawl.toml").read_text()
    assert said(skitter("settings", "--in", into, "--set", "crawl.max_pages=0")) == (
        "crawl.max_pages = 0, from the next run on\n"
    )
    assert "max_pages" not in (into / "crawl.toml").read_text()


def test_a_served_crawl_is_told_by_the_same_commands_whatever_its_tokens(
    site: Site, config: Path, tmp_path: Path
) -> None:
    into = tmp_path / "crawl"
    tokens = {"SKITTER_TOKENS": "operator a-very-long-token-of-ours"}
    with served(into, f"{site.server.url}/", "--config", config, environ=tokens) as server:
        printed = told(skitter("policy", into, site.server.url, "--delay", 5), server.process)
        assert "delay 5 s" in printed
        told(skitter("pause", into), server.process)
        assert stat.S_IMODE(os.stat(into / "control.sock").st_mode) == 0o600
    assert not (into / "control.sock").exists()


def test_a_crawl_in_a_folder_with_a_long_name_is_reached_too(
    site: Site, config: Path, tmp_path: Path
) -> None:
    into = tmp_path / ("long-" * 40) / "crawl"
    with waiting_crawl(site, into, "--config", config) as process:
        told(skitter("pause", into), process)


def test_a_socket_that_a_killed_crawl_left_behind_stops_nobody(
    site: Site, config: Path, tmp_path: Path
) -> None:
    into = tmp_path / "crawl"
    with waiting_crawl(site, into, "--config", config) as process:
        process.kill()
        process.wait()
    assert (into / "control.sock").is_socket()
    done = skitter("policy", into, site.server.url, "--delay", 2)
    assert "delay 2 s" in said(done)
    assert done.stderr == ""
    with waiting_crawl(site, into) as again:
        told(skitter("pause", into), again)


def test_a_plain_crawl_serves_the_dashboard_when_asked(site: Site, config: Path, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with crawling(into, "--config", config, "--dashboard", "127.0.0.1:0", f"{site.server.url}/") as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert line.startswith("dashboard: http://127.0.0.1:")
        where = line.split()[1]
        with urlopen(where, timeout=60) as answer:
            assert b"<title>skitter</title>" in answer.read()
        with urlopen(f"{where}v1/stats", timeout=60) as answer:
            assert json.loads(answer.read())["stats"]["urls"]["queued"] == 1
        request = f"{where}v1/tasks/lease"
        with pytest.raises(OSError, match="404"):
            urlopen(request, b"{}", timeout=60)  # it has workers of its own


def test_a_dashboard_for_everybody_needs_a_token(site: Site, tmp_path: Path) -> None:
    asked = ("crawl", f"{site.server.url}/", "--into", tmp_path / "c", "--dashboard", "0.0.0.0:0")
    assert "without a token" in complaint(skitter(*asked), 2)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("words", "dashboard", "seeds"),
    [
        (["--dashboard", "https://a.test/"], "127.0.0.1:8600", ["https://a.test/"]),
        (["--dashboard", "seeds.txt", "https://a.test/"], "127.0.0.1:8600", ["seeds.txt", "https://a.test/"]),
        (["--dashboard", "[::1]:80", "https://a.test/"], "[::1]:80", ["https://a.test/"]),
        (["https://a.test/", "--dashboard"], "127.0.0.1:8600", ["https://a.test/"]),
        (["https://a.test/"], "", ["https://a.test/"]),
    ],
)
def test_a_seed_behind_the_dashboard_flag_is_a_seed(
    words: list[str], dashboard: str, seeds: list[str]
) -> None:
    assert dashboard_and_seeds(_parse(["crawl", "--into", "x", *words])) == (dashboard, seeds)


def test_stats_says_in_a_sentence_what_a_crawl_waits_for_and_when_nobody_runs_it(
    site: Site, config: Path, tmp_path: Path
) -> None:
    into = tmp_path / "crawl"
    with waiting_crawl(site, into, "--config", config):
        first = said(skitter("stats", into)).splitlines()[0]
        assert first.startswith("Waiting: 1 host answers 500 to robots.txt; next at ")
    first = said(skitter("stats", into)).splitlines()[0]
    assert first == f"Not running: 1 URL is queued; skitter crawl --into {into} goes on."


def test_the_live_display_says_what_it_waits_for_and_shows_the_last_url_and_the_last_error(
    site: Site, config: Path, tmp_path: Path
) -> None:
    terminal, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    asked = command("crawl", f"{site.server.url}/", "--into", tmp_path / "crawl", "--config", config)
    environ = {**ENVIRON, "TERM": "xterm"}
    with subprocess.Popen(asked, env=environ, stderr=its_end, stdout=its_end) as process:
        os.close(its_end)
        shown = b""
        try:
            while b"Waiting: 1 host answers 500 to robots.txt" not in shown:
                shown += os.read(terminal, 65_536)
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(OSError):  # the other end is closed
                while os.read(terminal, 65_536):
                    pass
            process.wait(60)
            os.close(terminal)
    robots = f"server error {site.server.url}/robots.txt".encode()
    assert shown.count(robots) >= 2
    assert b"last error" in shown
