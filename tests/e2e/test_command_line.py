"""The commands, from seeds to explanations, on a small site and on many seeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import ENVIRON, command, read_json, said, serving_site, skitter
from tests.raw_server import RawServer, page

COMMANDS = (
    "crawl",
    "stats",
    "explain",
    "hosts",
    "dead",
    "policy",
    "settings",
    "query",
    "show",
    "verify",
    "export",
)
HOME = b"""<title>Caf\xc3\xa9</title> <a href=/a>a</a> <a href=/denied/x>d</a> <a href=/pic.jpg>p</a>
<a href=/missing>m</a> <a href=/old>o</a> <a href=/bad>b</a> <a href=/video>v</a> <a href=http://other.test/>x</a>"""
SITE = {
    "/robots.txt": page(b"User-agent: *\nDisallow: /denied/\n"),
    "/": HOME,
    "/a": b"<a href=/>home</a>",
    "/old": page(b"", b"Location: /new", status=b"301 Moved"),
    "/new": b"moved here",
    "/bad": page(b"oops", status=b"500 Broken"),
    "/video": b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 3\r\n\r\nxxx",
}
# One attempt, so that a failing page is a dead letter at once and its host is not waited for.
CONFIG = "[retry]\nattempts = 1\nbackoff = [0.01]\n[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"


_ENDING = """
import atexit, sys, threading
from skitter.cli import run
atexit.register(print, "registered", file=sys.stderr)
def outlast():
    threading.main_thread().join()
    print("waited for", file=sys.stderr)
if sys.argv.pop() == "thread":
    threading.Thread(target=outlast).start()
run()
"""


@pytest.mark.parametrize(("threads", "last"), [("none", "registered"), ("thread", "waited for\nregistered")])
def test_a_command_ends_at_once_but_not_before_what_is_still_to_be_done(threads: str, last: str) -> None:
    asked = [sys.executable, "-c", _ENDING, "stats", "/nowhere", threads]
    done = subprocess.run(asked, capture_output=True, text=True, env=ENVIRON, timeout=60)
    assert done.returncode == 2
    assert done.stderr.endswith(f"\n{last}\n")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("config") / "my.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as running:
        yield running


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, server: RawServer, config: Path) -> Path:
    folder = tmp_path_factory.mktemp("crawled") / "crawl"
    said(skitter("crawl", server.url + "/", "--into", folder, "--config", config))
    return folder


def test_help_is_quick_and_lists_the_commands() -> None:
    """By the processor's time, which a busy machine does not stretch much: it loads neither store nor fetcher."""
    seconds = []
    for _ in range(3):
        before = os.times()
        text = said(skitter("--help"))
        after = os.times()
        seconds.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
        assert all(f"\n    {name} " in text for name in COMMANDS)
    assert 0 < min(seconds) < 0.5


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_help(name: str) -> None:
    assert f"usage: skitter {name} " in said(skitter(name, "--help"))


def test_the_figures_of_a_crawl_add_up(crawled: Path) -> None:
    stats = read_json("stats", crawled)
    assert stats["pages"] == 3
    assert stats["urls"]["completed"] == 4  # a redirect completes its URL as well
    assert (stats["urls"]["gone"], stats["urls"]["denied"], stats["urls"]["dead_letter"]) == (1, 1, 1)
    assert stats["failures"] == {"server_error": 1, "type_unwanted": 1}
    assert stats["statuses"] == {"2xx": 5, "3xx": 1, "4xx": 1, "5xx": 1}
    assert "3 pages from" in said(skitter("stats", crawled))


@pytest.mark.parametrize(
    ("path", "state", "words"),
    [
        ("/", "completed", ["given as a seed", "Café", "fetched 200", ".warc.gz at "]),
        ("/a", "completed", ["linked, 1 links from a seed", "allowed, no rule matches"]),
        ("/a#fragment", "completed", ["fetched 200"]),
        ("/denied/x", "denied", ["line 2: disallow: /denied/", "not yet"]),
        ("/missing", "gone", ["404"]),
        ("/new", "completed", ["a redirect led to it (hop 1)"]),
        ("/bad", "dead_letter", ["server_error", "500"]),
        ("/video", "refused", ["video/mp4"]),
        ("/pic.jpg", "refused", ["extension: .jpg is in crawl.skip_extensions", "not yet"]),
        ("/new.jpg", "unknown", ["would be refused (extension): .jpg is in crawl.skip_extensions"]),
        ("/never-seen", "unknown", ["it would be admitted"]),
        ("/denied/other", "unknown", ["denied by line 2"]),
    ],
)
def test_explain_says_what_became_of_a_url_and_why(
    crawled: Path, server: RawServer, path: str, state: str, words: list[str]
) -> None:
    text = said(skitter("explain", server.url + path, "--in", crawled))
    assert f"state       {state}" in text
    assert [word for word in words if word.lower() not in text.lower()] == []
    assert read_json("explain", server.url + path, "--in", crawled)["state"] == state


def test_explain_says_why_another_host_is_out_of_scope(crawled: Path) -> None:
    reason = "scope is host and no seed has this host (other.test)"
    linked = said(skitter("explain", "http://other.test/", "--in", crawled))
    assert f"refused: scope: {reason}" in linked
    unknown = said(skitter("explain", "http://other.test/x", "--in", crawled))
    assert f"would be refused (scope): {reason}" in unknown


def test_explain_says_where_a_queued_url_waits(tmp_path: Path, server: RawServer, config: Path) -> None:
    into = tmp_path / "c"
    said(skitter("crawl", server.url + "/", "--into", into, "--config", config, "--max-pages", 1))
    text = said(skitter("explain", server.url + "/a", "--in", into))
    assert "state       queued" in text
    assert "waits" in text
    assert "the host is asked every" in text
    assert "fetched     not yet" in text


def test_what_is_explained_reaches_a_terminal_of_any_encoding(crawled: Path, server: RawServer) -> None:
    done = skitter("explain", server.url + "/", "--in", crawled, environ={"PYTHONIOENCODING": "ascii"})
    assert "Caf\\xe9" in said(done)


def test_hosts_are_listed_with_how_they_stand(crawled: Path, server: RawServer) -> None:
    (host,) = read_json("hosts", crawled)
    assert (host["host"], host["denied"], host["robots"]) == (server.url, 1, "robots.txt read")
    assert host["delay"] < 0.5
    assert server.url in said(skitter("hosts", crawled))
    assert read_json("hosts", crawled, "--standing", "blocked") == []


def test_settings_say_where_each_value_came_from(crawled: Path, config: Path) -> None:
    environ = {"SKITTER_FETCH_CONCURRENCY": "7"}
    shown = json.loads(said(skitter("settings", "--in", crawled, "--json", environ=environ)))
    assert shown["fetch"]["concurrency"] == {"value": 7, "from": "SKITTER_FETCH_CONCURRENCY"}
    assert shown["retry"]["attempts"]["value"] == 1
    assert shown["retry"]["attempts"]["from"].startswith(str(crawled / "crawl.toml"))
    assert shown["crawl"]["max_depth"] == {"value": 15, "from": "default"}
    text = said(skitter("settings", "--config", config))
    assert f"{config} line 2" in text


def test_a_policy_is_set_shown_and_cleared(crawled: Path, server: RawServer) -> None:
    host = server.url
    assert "no policy" in said(skitter("policy", crawled, host))
    said(skitter("policy", crawled, host, "--delay", "0.5", "--parallel", "2", "--budget", "0"))
    assert f"{host}: delay 0.5 s, 2 requests in parallel, no budget limit" in said(
        skitter("policy", crawled, host)
    )
    assert read_json("hosts", crawled)[0]["delay"] == 0.5
    said(skitter("policy", crawled, host, "--max-age", "12h"))
    assert "copies at most 43200 s old" in said(skitter("policy", crawled, host))
    said(skitter("policy", crawled, host, "--max-age", "0"))
    assert "never visited again" in said(skitter("policy", crawled, host))
    said(skitter("policy", crawled, host, "--block"))
    assert read_json("policy", crawled, host)[host]["blocked"] is True
    assert "no policy" in said(skitter("policy", crawled, host, "--clear"))
    assert "not known" in said(skitter("policy", crawled, "never.test"))


def test_dead_letters_are_listed_and_queued_again(tmp_path: Path, config: Path) -> None:
    into, pages = tmp_path / "c", dict(SITE)
    with serving_site(pages) as server:
        said(skitter("crawl", server.url + "/", "--into", into, "--config", config))
        (letter,) = read_json("dead", into)
        assert (letter["url"], letter["kind"], letter["status"]) == (server.url + "/bad", "server_error", 500)
        assert f"skitter dead {into} --requeue" in said(skitter("dead", into))
        assert read_json("dead", into, "--host", "other.test") == []
        assert read_json("dead", into, server.url + "/a", "--requeue") == {"requeued": 0}
        assert read_json("dead", into, server.url + "/bad", "--requeue") == {"requeued": 1}
        pages["/bad"] = b"good now"
        said(skitter("crawl", "--into", into))
    assert read_json("dead", into) == []
    assert read_json("stats", into)["pages"] == 4
    assert said(skitter("dead", into)) == "no dead letters\n"


def test_a_second_run_of_a_complete_crawl_fetches_nothing(
    tmp_path: Path, server: RawServer, config: Path
) -> None:
    into = tmp_path / "c"
    said(skitter("crawl", server.url + "/", "--into", into, "--config", config))
    before, asked = read_json("stats", into), len(server.requests)
    for again in (("crawl", "--into", into), ("crawl", server.url + "/", "--into", into)):
        done = skitter(*again)
        assert f"Complete but for 1 dead letter: skitter dead {into}" in " ".join(done.stderr.split())
        said(done)
    assert len(server.requests) == asked
    assert read_json("stats", into) == before


def test_seeds_can_be_added_to_a_crawl(tmp_path: Path, server: RawServer, config: Path) -> None:
    into = tmp_path / "c"
    said(skitter("crawl", server.url + "/new", "--into", into, "--config", config))
    assert read_json("stats", into)["pages"] == 1
    said(skitter("crawl", "-", "--into", into, given=f"{server.url}/a\n".encode()))
    assert read_json("stats", into)["pages"] == 3
    assert read_json("explain", server.url + "/a", "--in", into)["found"] == "given as a seed"


def test_json_on_standard_output_is_one_object_a_line(
    tmp_path: Path, server: RawServer, config: Path
) -> None:
    done = skitter("crawl", server.url + "/", "--into", tmp_path / "c", "--config", config, "--json")
    events = [json.loads(line) for line in said(done).splitlines()]
    assert events[-1]["event"] == "summary"
    assert events[-1]["ended"] == "complete"
    assert done.stderr == ""


def test_a_crawl_with_retries_still_to_come_ends_with_code_3(tmp_path: Path, server: RawServer) -> None:
    arguments = ["--into", tmp_path / "c", "--allow-private", "--delay", "0"]
    done = skitter("crawl", server.url + "/bad", *arguments, environ={"SKITTER_CRAWL_LINGER": "0"})
    said(done, 3)
    assert read_json("stats", tmp_path / "c")["urls"]["failed"] == 1


def test_thirty_thousand_seeds_are_read_from_files_and_standard_input(
    tmp_path: Path, server: RawServer, config: Path
) -> None:
    lines = [f"{server.url}/seed/{number}\n" for number in range(30_000)]
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(lines[:20_000]))
    into = tmp_path / "c"
    arguments = [
        "crawl",
        server.url + "/new",
        seeds,
        "--into",
        into,
        "--config",
        config,
        "--max-pages",
        1,
        "-",
    ]
    said(skitter(*arguments, given="".join(lines[15_000:]).encode()))
    stats = read_json("stats", into)
    assert sum(stats["urls"].values()) == 30_001
    assert stats["pages"] == 1


def without_reader(*arguments: object) -> int:
    """The exit code of a command whose standard output nobody reads; it must not complain."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*arguments), env=ENVIRON, stdout=pipe, stderr=pipe) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == b""
    return running.returncode


@pytest.mark.parametrize("arguments", [("settings",), ("--help",), ("settings", "--json"), ("hosts", "{}")])
def test_a_reader_that_leaves_early_is_no_error(crawled: Path, arguments: tuple[str, ...]) -> None:
    words = [word.format(crawled) for word in arguments]
    assert without_reader(*words) == 0


def test_a_crawl_whose_reader_left_goes_on(tmp_path: Path, server: RawServer, config: Path) -> None:
    into = tmp_path / "c"
    assert without_reader("crawl", server.url + "/", "--into", into, "--config", config, "--json") == 0
    assert read_json("stats", into)["pages"] == 3


def test_output_that_cannot_be_written_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    for arguments in (("settings",), ("--help",)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                command(*arguments), env=ENVIRON, stdout=full, stderr=subprocess.PIPE, timeout=30
            )
        assert done.stderr == b"skitter: cannot write the output: No space left on device\n"
        assert done.returncode == 1
