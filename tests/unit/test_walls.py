"""Walls are told from pages, on seeds that were not looked at, and cost a page of some length nothing."""

from __future__ import annotations

import pytest

from skitter.parse.page import read_page
from skitter.parse.walls import NEEDED, Wall, WallKind, find_wall
from skitter.testing.walls import Sample, honest, walls


def found_in(sample: Sample) -> Wall | None:
    page = read_page(sample.html, url=sample.url, content_type="text/html", with_text=True)
    return find_wall(sample.html, url=sample.url, title=page.title, text=page.text, links=len(page.links))


def test_walls_are_found_and_honest_pages_are_not_lost() -> None:
    samples = [*walls(7_001, 20), *walls(7_002, 20)]
    missed = [sample for sample in samples if found_in(sample) is None]
    assert len(missed) <= 0.05 * len(samples), missed[:3]
    pages = [*honest(7_001, 20), *honest(7_002, 20)]
    lost = [sample for sample in pages if found_in(sample) is not None]
    assert len(lost) < 0.005 * len(pages) + 1, lost[:3]


def test_a_wall_says_what_gave_it_away() -> None:
    body = b"<title>Access Denied</title><h1>Access Denied</h1><p>Reference #18.abcdef</p>"
    wall = find_wall(body, url="http://a.test/", title="Access Denied", text="", links=0)
    assert wall is not None
    assert wall.kind is WallKind.BLOCK
    assert wall.points >= NEEDED
    assert "says 'access denied'" in wall.words()
    assert "characters, 0 links" in wall.words()


def test_one_word_alone_is_no_wall() -> None:
    for text in ("Please try again later.", "403 Forbidden is a status of HTTP.", "Is it a captcha?"):
        assert find_wall(f"<p>{text}".encode(), url="http://a.test/", title="", text=text, links=0) is None


@pytest.mark.parametrize(
    "body", [b"", b"<" * 50_000, b"<script>" * 5_000, b"\xff\xfe<p>access denied", b"<pre>" * 9_000]
)
def test_no_page_can_do_harm(body: bytes) -> None:
    find_wall(body, url="http://a.test/", title="", text="", links=0)


def test_a_page_of_some_length_is_never_a_wall() -> None:
    text = "You have been blocked. Access denied. Ray ID: 1. Solve the captcha. " * 40
    assert find_wall(f"<p>{text}".encode(), url="http://a.test/", title="", text=text, links=0) is None
    short = "You have been blocked. Access denied. Ray ID: 1."
    assert find_wall(f"<p>{short}".encode(), url="http://a.test/", title="", text=short, links=50) is None
