"""What pages need, from request to outcome, through the real fetcher and archive."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from skitter.frontier.link_batches import unpack
from skitter.model import Discovered, Fetched, Redirected, TaskKind, Via
from skitter.settings import CrawlSettings
from tests.integration.test_step import SETTINGS, redirect, run
from tests.pdfs import pdf
from tests.pictures import picture
from tests.raw_server import page

ASKED = msgspec.structs.replace(SETTINGS, crawl=CrawlSettings(requisites=True))
SHEET = b"@import 'more.css'; p { background: url(//far.test/i.png) }"


def typed(kind: bytes, body: bytes, *headers: bytes) -> bytes:
    return page(body, *headers).replace(b"text/html", kind, 1)


def fetched(folder: Path, response: bytes, requisite: int) -> Fetched:
    ((outcome, _),) = run(folder, response, requisite=requisite, settings=ASKED)
    assert (outcome.kind is TaskKind.REQUISITE) == bool(requisite)
    assert isinstance(outcome.result, Fetched)
    return outcome.result


def paths(found: Fetched) -> list[str]:
    return [link.url.partition("://")[2].partition("/")[2] for link in unpack(found.link_batches)]


def test_a_page_brings_its_links_first_and_then_what_it_needs(tmp_path: Path) -> None:
    html = b"<link rel=stylesheet href=s.css><a href=/p>p</a><img src=/p><img src=i.png>"
    found = fetched(tmp_path, page(html), 0)
    told = [(link.via, link.depth, link.nesting) for link in unpack(found.link_batches)]
    assert paths(found) == ["p", "s.css", "p", "i.png"]
    assert told == [(Via.LINK, 4, 0)] + [(Via.REQUISITE, 3, 1)] * 3


def test_a_page_that_forbids_to_follow_its_links_still_has_its_look(tmp_path: Path) -> None:
    html = b"<meta name=robots content=nofollow><a href=/p>p</a><img src=i.png>"
    assert paths(fetched(tmp_path, page(html), 0)) == ["i.png"]


def test_nothing_is_needed_unless_the_crawl_asks_for_it(tmp_path: Path) -> None:
    ((outcome, _),) = run(tmp_path, page(b"<a href=/p>p</a><img src=i.png>"))
    assert isinstance(outcome.result, Fetched)
    assert paths(outcome.result) == ["p"]


@pytest.mark.parametrize("kind", [b"image/png", b"application/octet-stream", b"nonsense", b"font/woff2"])
def test_a_requisite_is_archived_whatever_its_type(tmp_path: Path, kind: bytes) -> None:
    body = picture(9, 9, (1, 2, 3))
    found = fetched(tmp_path, typed(kind, body), 1)
    assert (found.status, found.size, found.link_batches) == (200, len(body), ())
    assert found.record is not None


def test_a_requisite_is_kept_up_to_the_limit_of_a_body(tmp_path: Path) -> None:
    found = fetched(tmp_path, typed(b"video/mp4", b"\0" * 200_000), 1)
    assert (found.size, found.truncated) == (100_000, True)


@pytest.mark.parametrize("body", [b"<a href=/p>p</a><img src=/i>", pdf("words")])
def test_a_requisite_that_is_a_document_is_not_read(tmp_path: Path, body: bytes) -> None:
    for number, kind in enumerate((b"text/html", b"application/pdf", b"text/css")):
        assert fetched(tmp_path / str(number), typed(kind, body), 1).link_batches == ()


@pytest.mark.parametrize(("level", "expected"), [(1, 2), (4, 2), (5, 0)])
def test_a_stylesheet_brings_what_it_needs_down_to_three_levels_of_imports(
    tmp_path: Path, level: int, expected: int
) -> None:
    packed = typed(b"text/css; charset=utf-8", gzip.compress(SHEET), b"Content-Encoding: gzip")
    found = fetched(tmp_path, packed, level)
    assert paths(found) == ["more.css", "i.png"][:expected]
    assert all(
        (link.kind, link.nesting, link.depth) == (TaskKind.REQUISITE, level + 1, 3)
        for link in unpack(found.link_batches)
    )


def test_where_a_requisite_redirects_to_is_a_requisite(tmp_path: Path) -> None:
    ((outcome, _),) = run(tmp_path, redirect(b"/x"), requisite=2, settings=ASKED)
    assert isinstance(outcome.result, Redirected)
    target: Discovered = outcome.result.target
    assert (target.via, target.nesting, target.depth, target.hops) == (Via.REDIRECT, 2, 3, 1)
