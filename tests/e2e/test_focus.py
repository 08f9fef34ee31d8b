"""A crawl about a topic, as users see it: its pages first, what is too far from it refused, its harvest told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import said, serving_site, skitter
from tests.raw_server import RawServer

QUICK = """
[politeness]
delay = 0.0
[frontier]
tasks_per_lease = 1
[crawl]
linger = 1.0
[traps]
mode = "off"
"""
ON, OFF = (
    "A kettle boils water, and every kettle whistles.",
    "Of other things, there is a lot to be said here.",
)


def page(text: str, *links: str) -> bytes:
    anchors = "".join(f'<a href="{link}">more</a> ' for link in links)
    return f"<html><title>Page</title><p>{text}</p>{anchors}</html>".encode()


SITE = {
    "/": page(OFF, "/poor", "/good"),
    "/poor": page(OFF, "/poor/1"),
    "/poor/1": page(OFF, "/poor/2"),
    "/poor/2": page(OFF, "/poor/3"),
    "/poor/3": page(OFF),
    "/good": page(ON, "/good/1"),
    "/good/1": page(ON, "/good/2"),
    "/good/2": page(ON),
}


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as server:
        yield server


def crawl(server: RawServer, folder: Path, *more: object, focus: str = "tunnel = 3\nfloor = 0.5") -> None:
    file = folder.with_suffix(".toml")
    file.write_text(f"{QUICK}[focus]\n{focus}\n")
    said(skitter("crawl", server.url, "--into", folder, "--allow-private", "--config", file, *more))


def asked(server: RawServer) -> list[str]:
    paths = [request.raw.split()[1].decode() for request in server.requests]
    return [path for path in paths if path != "/robots.txt"]


def check(server: RawServer, folder: Path) -> None:
    """Three pages in seven are about kettles; four pages off the topic lead to `/poor/3`."""
    assert asked(server)[1] in ("/poor", "/good")
    assert asked(server).index("/good/2") < asked(server).index("/poor/2")
    assert "/poor/3" not in asked(server)
    why = said(skitter("explain", f"{server.url}/poor/3", "--in", folder))
    assert "4 pages off the topic in a row lead to it, focus.tunnel is 3" in why
    assert "3 of 7 pages are about the topic: a harvest of 43%" in said(skitter("stats", folder))
    found = said(skitter("query", folder, "select url from pages where score >= 0.5", "--format", "csv"))
    assert sorted(found.split()[1:]) == [f"{server.url}/good{end}" for end in ("", "/1", "/2")]


def test_pages_about_the_words_and_what_they_link_come_first(tmp_path: Path, server: RawServer) -> None:
    crawl(server, tmp_path / "c", "--focus", "kettle")
    check(server, tmp_path / "c")


def test_a_score_function_does_the_same_with_floor_and_tunnel(tmp_path: Path, server: RawServer) -> None:
    plugin = tmp_path / "topic.py"
    plugin.write_text("import skitter\n@skitter.score\ndef about(page):\n    return page.density('kettle')\n")
    crawl(server, tmp_path / "c", "--with", plugin)
    check(server, tmp_path / "c")


def test_a_model_of_example_pages_does_the_same(tmp_path: Path, server: RawServer) -> None:
    for side, text in (("good", ON), ("bad", OFF)):
        (tmp_path / side).mkdir()
        for number in range(3):
            (tmp_path / side / f"{number}.html").write_bytes(page(text))
    model = tmp_path / "topic.json"
    told = said(skitter("focus", "train", tmp_path / "good", tmp_path / "bad", "--to", model))
    assert "6 of 6 are told apart by what the others teach" in told
    scores = json.loads(
        said(skitter("focus", "score", tmp_path / "good", tmp_path / "bad", "--model", model, "--json"))
    )
    assert [score > 0.5 for score in scores.values()] == [True] * 3 + [False] * 3
    crawl(server, tmp_path / "c", "--focus-model", model)
    check(server, tmp_path / "c")


def test_what_several_workers_fetch_keeps_to_the_tunnel_too(tmp_path: Path, server: RawServer) -> None:
    crawl(server, tmp_path / "c", "--focus", "kettle", "--workers", "2")
    assert "/good/2" in asked(server)
    assert "/poor/3" not in asked(server)
    assert "3 of 7 pages are about the topic" in said(skitter("stats", tmp_path / "c"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "nowhere", "nowhere"), "nowhere is no folder: put example pages"),
        (("train", "nowhere"), "train takes two folders"),
        (("score", "x.html", "--model", "nowhere.json"), "model nowhere.json cannot be read"),
    ],
)
def test_wrong_use_is_said_in_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = skitter("focus", *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


def test_a_model_that_is_not_there_stops_the_start(tmp_path: Path, server: RawServer) -> None:
    done = skitter(
        "crawl", server.url, "--into", tmp_path / "c", "--allow-private", "--focus-model", "no.json"
    )
    assert done.returncode == 2
    assert "no.json cannot be read" in done.stderr
    assert not (tmp_path / "c").exists()
