"""Which media types are read, and that a crawl can be given another reader."""

from __future__ import annotations

import pytest

from skitter.model import Link, Task, TaskKind, UrlKey
from skitter.parse.content import PageContent, Source
from skitter.parse.page import read_page
from skitter.parse.readers import STANDARD
from skitter.worker.reading.body_filter import PageFilter

JSON = "application/json"
PAGE = Task(kind=TaskKind.PAGE, key=UrlKey(bytes(16)), url="http://e.org/")


class JsonReader:
    def read(self, source: Source) -> PageContent:
        return PageContent(media_type=source.media_type, base=source.url, links=(Link("next.json"),))


@pytest.mark.parametrize(
    "essence",
    [
        "",
        "text/html",
        "application/xhtml+xml",
        "text/plain",
        "text/xml",
        "application/xml",
        "application/rss+xml",
        "application/pdf",
        "unknown/unknown",
    ],
)
def test_documents_and_untyped_bodies_are_wanted(essence: str) -> None:
    assert STANDARD.accepts(essence)


@pytest.mark.parametrize(
    "essence",
    ["application/octet-stream", "image/png", "image/svg+xml", "text/css", "font/woff"],
)
def test_what_is_not_read_is_not_wanted(essence: str) -> None:
    assert not STANDARD.accepts(essence)


def test_a_type_that_gets_a_reader_is_fetched_and_read_and_its_links_are_followed() -> None:
    readers = STANDARD.with_reader(JSON, JsonReader())
    headers = (("content-type", JSON),)
    assert PageFilter(STANDARD).judge(200, headers, b"{}") == JSON
    assert PageFilter(readers).judge(200, headers, b"{}") == ""
    page = read_page(b"{}", url="http://e.org/", content_type=JSON, readers=readers)
    assert [link.href for link in page.links] == ["next.json"]
    head = b"<link rel=alternate type=application/json href=a.json>"
    for given, followed in ((STANDARD, []), (readers, ["a.json"])):
        page = read_page(head, url="http://e.org/", content_type="text/html", readers=given)
        assert [link.href for link in page.links] == followed


def test_the_standard_readers_stay_as_they_are() -> None:
    STANDARD.with_reader(JSON, JsonReader())
    assert not STANDARD.accepts(JSON)
    assert read_page(b"{}", url="http://e.org/", content_type=JSON).links == ()
