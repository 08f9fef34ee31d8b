"""A calendar without end, from the wire to what the operator sees and undoes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import read_json, said, serving_site, skitter
from tests.raw_server import RawServer

COMMON = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60))
MONTHS = 60
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n[traps]\nprobe = false\n"


def month(number: int) -> bytes:
    following = "".join(
        f"<a href=/calendar/{later}>next</a>" for later in range(number + 1, min(number + 4, MONTHS))
    )
    return f"<title>Month {number}</title><main><p>{COMMON} {number}</p></main>{following}".encode()


SITE = {"/": b"<title>Home</title><a href=/calendar/0>calendar</a><a href=/about>about</a>"}
SITE |= {f"/calendar/{number}": month(number) for number in range(MONTHS)}
SITE |= {"/about": f"<title>About</title><main>{COMMON[::-1]}</main>".encode()}


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as running:
        yield running


def crawl(folder: Path, server: RawServer) -> None:
    config = folder.parent / "my.toml"
    config.write_text(CONFIG)
    said(skitter("crawl", server.url + "/", "--into", folder, "--config", config, "--max-depth", "100"))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, server: RawServer) -> Path:
    folder = tmp_path_factory.mktemp("traps") / "crawl"
    crawl(folder, server)
    return folder


def test_a_trap_is_listed_explained_and_undone(crawled: Path, server: RawServer) -> None:
    listed = said(skitter("traps", crawled))
    assert "/calendar/#" in listed
    stats = read_json("stats", crawled)
    refused = stats["refusals"]["trap"]
    assert stats["pages"] < 40
    assert re.search(rf"/calendar/# +\d+ +\d+ +\d+ +{refused} ", listed)
    (view,) = read_json("traps", crawled)
    assert (view["refused"], view["ended"]) == (refused, "")
    far = said(skitter("explain", f"{server.url}/calendar/{MONTHS - 1}", "--in", crawled))
    assert f"verdict {view['id']}" in far
    undone = said(skitter("traps", crawled, "--undo", str(view["id"])))
    assert f"{refused} URLs of /calendar/# are queued again" in undone
    crawl(crawled, server)
    assert read_json("stats", crawled)["pages"] == MONTHS + 2


def test_what_cannot_be_undone_says_so(crawled: Path) -> None:
    answer = skitter("traps", crawled, "--undo", "77")
    assert answer.returncode == 2
    assert "there is no verdict 77" in answer.stderr
