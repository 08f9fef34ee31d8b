"""A catalogue of screws, as a user crawls it: none is lost, and a crawl that did lose something says so first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import complaint, read_json, said, serving_site, skitter
from tests.raw_server import RawServer

COMMON = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60))
SCREWS, MONTHS, PER_PAGE = 1000, 60, 25
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n[traps]\nprobe = false\n"


def screw(number: int) -> bytes:
    """Own name, price and table, and 60 words that all screws have."""
    name = f"Screw M{2 + number % 12} x {6 + number // 12}"
    rows = {"weight": number * 13 % 997, "stock": number * 7919 % 5003, "pack": number * 31 % 211}
    table = "".join(f"<tr><td>{row}</td><td>{value}</td></tr>" for row, value in rows.items())
    price = f"{number * 37 % 90}.{number * 71 % 100:02d}"
    return (
        f"<title>{name}</title><main><h1>{name}</h1><p>{COMMON}</p>"
        f"<p>{price}</p><table>{table}</table></main><a href=/>home</a>"
    ).encode()


def listing(page: int) -> bytes:
    numbers = range((page - 1) * PER_PAGE, page * PER_PAGE)
    items = "".join(f"<li><a href=/screw/{number}>Screw {number}</a>" for number in numbers)
    last = SCREWS // PER_PAGE
    further = "".join(f"<a href=/list?page={at}>{at}</a>" for at in (page + 1, page + 5, last) if at <= last)
    return f"<title>Screws, page {page}</title><main>{COMMON}<ul>{items}</ul></main>{further}".encode()


def month(number: int) -> bytes:
    later = "".join(f"<a href=/calendar/{at}>next</a>" for at in range(number + 1, min(number + 4, MONTHS)))
    return f"<title>Month {number}</title><main><p>{COMMON} {number}</p></main>{later}".encode()


SITE = {"/": b"<title>Home</title><a href=/list?page=1>all screws</a>"}
SITE |= {f"/list?page={page}": listing(page) for page in range(1, SCREWS // PER_PAGE + 1)}
SITE |= {f"/screw/{number}": screw(number) for number in range(SCREWS)}
SITE |= {f"/calendar/{number}": month(number) for number in range(MONTHS)}


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as running:
        yield running


def crawl(folder: Path, url: str, *more: str) -> str:
    config = folder.parent / "my.toml"
    config.write_text(CONFIG)
    done = skitter("crawl", url, "--into", folder, "--config", config, "--max-depth", "100", *more)
    assert done.returncode == 0
    return done.stdout + done.stderr


def test_a_catalogue_of_a_thousand_screws_is_fetched_whole(tmp_path: Path, server: RawServer) -> None:
    text = crawl(tmp_path / "crawl", server.url + "/")
    assert "Complete: nothing is left to fetch." in text
    stats = read_json("stats", tmp_path / "crawl")
    assert stats["pages"] == 1 + SCREWS // PER_PAGE + SCREWS
    assert "trap" not in stats["refusals"]


def test_a_crawl_that_took_pages_for_a_trap_says_so_first_and_how_to_undo_it(
    tmp_path: Path, server: RawServer
) -> None:
    folder = tmp_path / "crawl"
    text = crawl(folder, server.url + "/calendar/0")
    refused = read_json("stats", folder)["refusals"]["trap"]
    assert f"Complete but for {refused} pages of 1 kind taken for a trap: skitter traps {folder}" in text
    assert re.search(rf"^  skitter traps {re.escape(str(folder))} --undo ID$", text, re.MULTILINE)
    said(skitter("traps", folder, "--undo", "1"))
    assert "Complete: nothing is left to fetch." in crawl(folder, server.url + "/calendar/0")
    assert read_json("stats", folder)["pages"] == MONTHS


@pytest.mark.parametrize(("mode", "verdicts"), [("observe", 1), ("off", 0)])
def test_traps_can_be_observed_or_left_alone(
    tmp_path: Path, server: RawServer, mode: str, verdicts: int
) -> None:
    folder = tmp_path / "crawl"
    text = crawl(folder, server.url + "/calendar/0", "--traps", mode)
    assert "Complete: nothing is left to fetch." in text
    assert read_json("stats", folder)["pages"] == MONTHS
    found = read_json("traps", folder)
    assert [view["refused"] for view in found] == [0] * verdicts
    assert ("skitter traps" in text) is bool(verdicts)


def test_a_mode_that_there_is_not_names_those_that_there_are(tmp_path: Path) -> None:
    done = skitter("crawl", "http://a.test/", "--into", tmp_path / "crawl", "--traps", "sometimes")
    assert "--traps" in complaint(done, 2)
    assert "must be" in done.stderr
    assert all(mode in done.stderr for mode in ("off", "observe", "on"))
