"""The end of a crawl says what it means: which seeds failed and why, what is waited for, what has changed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import ENVIRON, Done, command, complaint, read_json, said, serving_site, skitter
from tests.nameserver import serving_names
from tests.raw_server import page

ALLOWED = ("--allow-private", "--delay", "0")
# Long enough for what is due in milliseconds on a busy machine, and no time beside what waits for minutes.
NO_WAIT = {"SKITTER_CRAWL_LINGER": "2"}


@pytest.fixture
def nobody() -> str:
    """A URL where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}/"


def logged(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "skitter.log").read_text().splitlines()]
    return [line for line in lines if line["event"] == event]


def summary(done: Done) -> list[str]:
    """Without what a slow machine says before it."""
    return f"\n{done.stderr}".partition("\n\n")[2].splitlines()


# -- no seed was fetched


@pytest.mark.parametrize(
    ("pages", "code", "why"),
    [
        ({"/": page(b"", status=b"404 Not Found")}, 2, "gone: the host says 404"),
        (
            {"/robots.txt": page(b"User-agent: *\nDisallow: /\n")},
            2,
            "denied: robots.txt, line 2: Disallow: /",
        ),
        ({"/": page(b"x", b"Location: /b", status=b"301 Moved")}, 2, "/b, gone: the host says 404"),
        ({"/": page(b"", status=b"500 Broken")}, 3, "waits: for its retry after server_error"),
        ({"/robots.txt": page(b"", status=b"500 Broken")}, 3, "(server_error: status 500); next in 1 m"),
    ],
)
def test_seeds_of_which_none_was_fetched_are_named_with_their_reason_above_all(
    tmp_path: Path, pages: dict[str, bytes], code: int, why: str
) -> None:
    with serving_site(pages) as server:
        done = skitter("crawl", f"{server.url}/", "--into", tmp_path / "c", *ALLOWED, environ=NO_WAIT)
    said(done, code)
    first, seed, *rest = summary(done)
    assert (first, seed) == ("No seed could be fetched.", f"  {server.url}/")
    assert why in " ".join(" ".join(rest).split())
    assert "Complete" not in done.stderr


def test_a_second_run_without_seeds_still_names_them(tmp_path: Path) -> None:
    with serving_site({"/": page(b"", status=b"404 Not Found")}) as server:
        said(skitter("crawl", f"{server.url}/", "--into", tmp_path / "c", *ALLOWED), 2)
        again = skitter("crawl", "--into", tmp_path / "c")
    said(again, 2)
    assert "\n".join(summary(again)).startswith(
        f"No seed could be fetched.\n  {server.url}/\n    gone: the host"
    )
    assert logged(tmp_path / "c", "crawl_ended")[-1]["how"] == "no_seed_fetched"


def test_a_new_seed_that_fails_is_named_though_the_crawl_has_pages(tmp_path: Path) -> None:
    with serving_site({"/": b"fine"}) as server:
        said(skitter("crawl", f"{server.url}/", "--into", tmp_path / "c", *ALLOWED))
        more = skitter("crawl", f"{server.url}/missing", "--into", tmp_path / "c")
        both = skitter("crawl", f"{server.url}/", f"{server.url}/missing", "--into", tmp_path / "c")
        none = skitter("crawl", "--into", tmp_path / "c")
    said(more, 2)
    assert f"No seed could be fetched.\n  {server.url}/missing\n    gone: the host says 404" in more.stderr
    for complete in (both, none):
        said(complete)
        assert "Complete: nothing is left to fetch." in complete.stderr


def test_ten_seeds_are_named_and_no_more(tmp_path: Path) -> None:
    seeds = "".join(f"http://127.0.0.1:2/{number}\n" for number in range(30))
    done = skitter("crawl", "-", "--into", tmp_path / "c", *ALLOWED, given=seeds.encode(), environ=NO_WAIT)
    said(done, 3)
    assert done.stderr.count("\n  http://127.0.0.1:2/") == 10
    assert "\n  and 20 more\n" in done.stderr


# -- private addresses


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        ("http://127.0.0.1/", "loopback address 127.0.0.1"),
        ("http://10.1.2.3/", "private address 10.1.2.3"),
        ("http://[::1]:8000/", "loopback address ::1"),
        ("https://192.168.1.1/x", "private address 192.168.1.1"),
        ("http://2130706433/", "loopback address 127.0.0.1"),
        ("http://localhost:8000/", "loopback address 127.0.0.1"),
        ("http://169.254.169.254/", "cloud metadata address 169.254.169.254"),
    ],
)
def test_a_private_seed_is_an_error_at_once_that_names_the_flag(tmp_path: Path, seed: str, why: str) -> None:
    line = complaint(skitter("crawl", seed, "--into", tmp_path / "c"), 2)
    assert f"is at a {why}: add --allow-private if that is yours to crawl" in line
    assert not (tmp_path / "c").exists()


def test_a_metadata_service_is_refused_with_the_flag_too(tmp_path: Path) -> None:
    done = skitter("crawl", "http://169.254.169.254/", "--into", tmp_path / "c", "--allow-private")
    assert "which is never asked unless --resolve names it" in complaint(done, 2)


def test_the_flag_alone_brings_back_seeds_that_were_refused_for_their_address(tmp_path: Path) -> None:
    """Of a name nobody knows where it leads before it is looked up."""
    folder, config = tmp_path / "c", tmp_path / "my.toml"
    pages = {"/": b"<a href=/a>a</a>", "/a": b"b"}
    with serving_names({"inside.test": ["127.0.0.1"]}) as dns, serving_site(pages) as site:
        config.write_text(
            f'[fetch]\nnameservers = ["{dns}"]\ndns_timeout = 60\n[identity]\ncontact = "me@example.org"\n'
        )
        seed = f"http://inside.test:{site.port}/"
        first = skitter("crawl", seed, "--into", folder, "--config", config, "--delay", "0")
        said(first, 2)
        assert f"No seed could be fetched.\n  {seed}\n    refused: address_refused: loopback" in first.stderr
        assert not site.requests
        again = skitter("crawl", "--into", folder, "--allow-private")
        third = skitter("crawl", "--into", folder)
    said(again)
    assert "1 URLs refused for their address came back" in again.stderr
    assert read_json("stats", folder)["pages"] == 2
    assert "came back" not in third.stderr


# -- waiting


def test_a_refused_connection_is_not_waited_for_in_silence(tmp_path: Path, nobody: str) -> None:
    """Said at once: what is waited for, why and until when; Ctrl-C ends."""
    started = command("crawl", nobody, "--into", tmp_path / "c", *ALLOWED)
    with subprocess.Popen(started, env=ENVIRON, stderr=subprocess.PIPE) as crawl:
        assert crawl.stderr is not None
        line = crawl.stderr.readline().decode()
        crawl.send_signal(signal.SIGINT)
        crawl.communicate(timeout=60)
    assert crawl.returncode == 130
    assert line.startswith("nothing to do until the next is ready in ")
    assert f"Waiting for {nobody[:-1]} (connect_refused: " in line
    (waits,) = logged(tmp_path / "c", "crawl_waits")
    assert (waits["level"], waits["hosts"]) == ("info", [nobody[:-1]])


def test_a_crawl_that_ends_early_says_until_when_and_for_whom(tmp_path: Path) -> None:
    pages = {"/": b"<a href=/bad>b</a>", "/bad": page(b"", b"Retry-After: 7200", status=b"503 Busy")}
    with serving_site(pages) as server:
        done = skitter("crawl", f"{server.url}/", "--into", tmp_path / "c", *ALLOWED)
    said(done, 3)
    text = " ".join(done.stderr.split())
    assert "Ended early: all that is left has to wait. Come again in " in text
    assert "; then the next is ready: " in text
    assert f"{server.url}/bad (throttled: status 503)" in text


# -- what is missing


def test_a_crawl_without_some_of_its_pages_is_not_called_complete(tmp_path: Path) -> None:
    """Neither at its end nor by `stats`: what failed for good, and what lies deeper than a limit nobody chose."""
    chain = {f"/{n}": f"<title>{n}</title><a href=/{n + 1}>on</a>".encode() for n in range(30)}
    broken = {
        "/": b"<a href=/0>all</a><a href=/broken>b</a>",
        "/broken": page(b"", b"Location: //", status=b"301 M"),
    }
    folder = tmp_path / "c"
    with serving_site({**chain, **broken}) as server:
        done = skitter("crawl", f"{server.url}/", "--into", folder, *ALLOWED, "--traps", "off")
        said(done)
        assert summary(done)[:3] == [
            "Complete but for",
            f"  1 dead letter: skitter dead {folder}",
            f"  1 URL further than 15 links from a seed: skitter crawl --into {folder} --max-depth N",
        ]
        told = said(skitter("stats", folder))
        assert told.startswith("Complete but for 1 dead letter and 1 URL further than 15 links from a seed.")
        on = skitter("crawl", "--into", folder, "--max-depth", "50")
    said(on)
    assert "1 URL refused by depth came back" in on.stderr
    assert "further than" not in on.stderr
    assert read_json("stats", folder)["pages"] == 31


# -- another look


def test_another_look_reports_what_changed_what_did_not_and_what_is_gone(tmp_path: Path) -> None:
    tag = page(b"same", b'ETag: "1"')
    pages = {
        "/": b"<a href=/new>n</a><a href=/same>s</a><a href=/tag>t</a><a href=/gone>g</a><a href=/moved>m</a>",
        "/new": b"before",
        "/same": b"as ever, and long enough to be worth a revisit record" * 20,
        "/tag": tag,
        "/gone": b"here",
        "/moved": b"here too",
    }
    with serving_site(pages) as server:
        first = skitter("crawl", f"{server.url}/", "--into", tmp_path / "c", *ALLOWED)
        assert "looked at again" not in first.stderr
        assert read_json("refresh", tmp_path / "c") == {"refreshed": 6}
        pages["/new"] = b"after"
        pages["/tag"] = b"HTTP/1.1 304 Not Modified\r\n\r\n"
        pages["/moved"] = page(b"", b"Location: /same", status=b"301 Moved")
        del pages["/gone"]
        again = skitter("crawl", "--into", tmp_path / "c", "--json")
    summary = [json.loads(line) for line in said(again).splitlines()][-1]
    assert summary["last"]["looked_again"] == {"unchanged": 3, "changed": 1, "gone": 1, "redirected": 1}


def test_another_look_is_summed_up_in_a_line(tmp_path: Path) -> None:
    with serving_site({"/": b"a page" * 100}) as server:
        said(skitter("crawl", f"{server.url}/", "--into", tmp_path / "c", *ALLOWED))
        said(skitter("refresh", tmp_path / "c"))
        again = skitter("crawl", "--into", tmp_path / "c")
    said(again)
    assert "\n1 URL looked at again: 1 unchanged\n" in again.stderr
