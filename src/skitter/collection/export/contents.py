"""Exports of what pages say: JSON lines with the text, Markdown with front matter, bodies as files.

Of each URL the newest answer that the condition lets through, in the order of the records, so that the
archive is read from beginning to end. One page is in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from skitter.collection.collection import Collection, Page
from skitter.collection.export.csv_cells import harmless
from skitter.collection.export.markdown import markdown_of
from skitter.collection.export.names import file_name
from skitter.collection.record import Record
from skitter.parse.content import PageContent
from skitter.parse.media import HTML, TEXT, XHTML
from skitter.parse.page import read_page

Advance = Callable[[int], None]
_SUFFIXES = {
    HTML: ".html",
    XHTML: ".xhtml",
    TEXT: ".txt",
    "application/pdf": ".pdf",
    "application/json": ".json",
    "application/xml": ".xml",
    "text/xml": ".xml",
    "application/rss+xml": ".rss",
    "application/atom+xml": ".atom",
    "text/css": ".css",
    "text/csv": ".csv",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/svg+xml": ".svg",
}
# What is a page to read: not robots.txt, not an error, not a redirect.
READABLE = "kind = 'page' and status between 200 and 299"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the JSON export."""

    url: str
    fetched_at: str
    status: int
    mime: str
    title: str
    language: str
    charset: str
    digest: str
    text: str


def _pages(collection: Collection, where: str, advance: Advance) -> Iterator[tuple[Page, Record, Record]]:
    """Pages with the record of their own and the one that holds their body."""
    for page in collection.pages(where, newest=True):
        advance(1)
        own = collection.record(page.record)
        yield page, own, collection.whole(own)


def documents(collection: Collection, where: str, advance: Advance) -> Iterator[Document]:
    """What the pages say, of each URL the newest answer."""
    for page, own, whole in _pages(collection, where, advance):
        content = _read(own, whole)
        yield Document(
            url=page.url,
            fetched_at=page.fetched_at.isoformat(),
            status=page.status,
            mime=content.media_type,
            title=_storable(content.title),
            language=content.language or page.language,
            charset=content.charset,
            digest=page.digest,
            text=_storable(content.text),
        )


def write_jsonl(collection: Collection, target: Path, where: str, advance: Advance) -> int:
    encode, written = msgspec.json.Encoder().encode, 0
    with target.open("wb") as file:
        for document in documents(collection, where, advance):
            file.write(encode(document) + b"\n")
            written += 1
    return written


def write_markdown(collection: Collection, target: Path, where: str, advance: Advance) -> int:
    written = 0
    for page, own, whole in _pages(collection, where, advance):
        content = _read(own, whole)
        text = markdown_of(whole.decoded(), content)
        if text:
            _write(target / file_name(page.url, ".md"), _front_matter(page, content) + text)
            written += 1
    return written


def _read(own: Record, whole: Record) -> PageContent:
    """Of a body that is shared by several URLs, read as this one's."""
    return read_page(
        whole.decoded(),
        url=own.url,
        content_type=whole.header("content-type"),
        max_links=0,
        with_text=True,
        with_anchors=False,
    )


def _front_matter(page: Page, content: PageContent) -> str:
    facts = {
        "url": page.url,
        "title": content.title,
        "language": content.language,
        "fetched_at": page.fetched_at.isoformat(),
        "digest": page.digest,
    }
    # A JSON string is a YAML string as well, whatever a title holds.
    lines = "".join(f"{name}: {json.dumps(_storable(value))}\n" for name, value in facts.items() if value)
    return f"---\n{lines}---\n\n"


def write_files(collection: Collection, target: Path, where: str, advance: Advance) -> int:
    """Bodies in folders by host and path, and `files.csv` that says which URL is which file."""
    import csv

    written = 0
    with (target / "files.csv").open("w", newline="", encoding="utf-8") as listing:
        rows = csv.writer(listing)
        rows.writerow(("file", "url", "fetched_at", "status", "mime"))
        for page, own, whole in _pages(collection, where, advance):
            mime = page.mime or whole.header("content-type").partition(";")[0].strip().lower()
            name = file_name(page.url, _SUFFIXES.get(mime, ".bin"))
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole.decoded())
            cells = (name, _storable(own.url), page.fetched_at.isoformat(), page.status, mime)
            rows.writerow(map(harmless, cells))
            written += 1
    return written


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_storable(text), encoding="utf-8")


def _storable(text: str) -> str:
    """Without lone surrogates, which no encoding can write."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
