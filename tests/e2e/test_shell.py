"""`skitter shell`, `skitter crawl --header` and `skitter plugins --cost`, as their users run them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import complaint, said, serving_site, skitter
from tests.raw_server import RawServer, page

SHOP = b"<html><title>Shop</title><h1>A kettle</h1><b class=price>19,50</b><a href=/more>more</a></html>"
SITE = {
    "/": SHOP,
    "/more": b"<html><h1>More</h1></html>",
    "/moved": page(b"", b"Location: /more", status=b"302 Found"),
    "/gone": page(b"gone", status=b"404 Not Found"),
    "/robots.txt": page(b"User-agent: *\nDisallow: /no\n"),
}
PLUGIN = "import skitter\n@skitter.page\ndef product(page):\n    yield {'name': page.first('h1')}\n"


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as server:
        yield server


def shell(server: RawServer, path: str, *code: str) -> str:
    words = [word for line in code for word in ("-c", line)]
    return said(skitter("shell", server.url + path, "--allow-private", *words))


def paths(server: RawServer) -> list[str]:
    return [request.raw.split()[1].decode() for request in server.requests]


def test_one_page_is_fetched_politely_and_asked(server: RawServer) -> None:
    told = shell(
        server, "/", 'first("h1")', 'x = page.number(".price")', "x * 2", "[e.text for e in css('a')]"
    )
    assert told == "A kettle\n39.0\n['more']\n"
    assert paths(server) == ["/robots.txt", "/"]


def test_a_prompt_answers_until_its_end(server: RawServer) -> None:
    done = skitter("shell", server.url, "--allow-private", given=b"page.title\nfirst('h1')\n")
    assert done.returncode == 0, done.stderr
    assert "'Shop'" in done.stdout
    assert "'A kettle'" in done.stdout
    assert "<Page 200" in done.stderr


def test_a_redirect_is_followed(server: RawServer) -> None:
    assert shell(server, "/moved", "page.first('h1')") == "More\n"


@pytest.mark.parametrize(("path", "why"), [("/no", "robots.txt"), ("/gone", "404")])
def test_a_page_that_cannot_be_had_is_said_in_one_line(server: RawServer, path: str, why: str) -> None:
    done = skitter("shell", server.url + path, "--allow-private", "-c", "page")
    assert why in complaint(done, 2)


def test_a_wrong_line_is_said_in_one_line(server: RawServer) -> None:
    done = skitter("shell", server.url, "--allow-private", "-c", "page.nonsense")
    assert "AttributeError" in complaint(done, 2)


def test_an_archived_page_needs_no_request_and_plugins_can_be_tried(
    tmp_path: Path, server: RawServer
) -> None:
    plugin = tmp_path / "shop.py"
    plugin.write_text(PLUGIN)
    arguments = ("--into", tmp_path / "c", "--allow-private", "--delay", "0", "--with", plugin)
    said(
        skitter("crawl", server.url, *arguments, "--header", "X-Lang: de", "--header", "X-Token: env:ITS"), 2
    )
    said(
        skitter(
            *("crawl", server.url, *arguments, "--header", "X-Lang: de", "--header", "X-Token: env:ITS"),
            environ={"ITS": "of-this-host"},
        )
    )
    heads = [request.raw for request in server.requests if b"robots.txt" not in request.raw]
    assert heads
    assert all(b"X-Lang: de\r\n" in head and b"X-Token: of-this-host\r\n" in head for head in heads)
    before = len(server.requests)
    words = ("--in", tmp_path / "c", "--with", plugin, "-c", "items()")
    assert said(skitter("shell", f"{server.url}/more", *words)) == "[{'name': 'More'}]\n"
    costs = said(skitter("plugins", "--in", tmp_path / "c", "--cost"))
    assert costs.split("\n")[0].split()[-2:] == ["page", "on"]
    assert costs.rstrip().endswith("2 pages")
    assert len(server.requests) == before


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("Authorization: Bearer x", "gives Authorization as text"),
        ("nonsense", 'is "Name: value"'),
        ("Host: x", "names Host, which skitter sets itself"),
    ],
)
def test_a_header_that_cannot_be_is_said_and_never_shown(
    tmp_path: Path, server: RawServer, header: str, why: str
) -> None:
    done = skitter("crawl", server.url, "--into", tmp_path / "c", "--allow-private", "--header", header)
    told = complaint(done, 2)
    assert why in told
    assert "Bearer x" not in told
