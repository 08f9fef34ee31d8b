"""The extractors that come with skitter: `structured`, `json`, `article`, `tables` and `contacts`.

Named like a plugin in `plugins.with`. They are functions over a `Page` like those of users, and run where
those do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from skitter.extend.api import Hook, HookKind
from skitter.extend.contacts import contacts
from skitter.extend.page import Page

# Where frameworks leave the state that a page was made from.
_STATES = {
    "__NEXT_DATA__": "script#__NEXT_DATA__",
    "__NUXT_DATA__": "script#__NUXT_DATA__",
    "application/json": 'script[type="application/json"]:not(#__NEXT_DATA__):not(#__NUXT_DATA__)',
}
JSON_TYPES = ("application/json", "application/ld+json", "text/json")


def structured(page: Page) -> Iterator[dict[str, Any]]:
    """What a page says in JSON-LD, microdata, OpenGraph and RDFa: an item for each thing, by its type."""
    yield from page.data


def json_documents(page: Page) -> Iterator[dict[str, Any]]:
    """A document of JSON, or the JSON that a page of HTML holds: items of type `JsonDocument`, `value` is it."""
    if not page.is_html:
        yield {"@type": "JsonDocument", "name": "", "value": page.json()}
        return
    for name, selector in _STATES.items():
        for element in page.css(selector):
            if (value := _parsed(element.text)) is not None:
                yield {"@type": "JsonDocument", "name": element.attr("id") or name, "value": value}


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def article(page: Page) -> Iterator[dict[str, Any]]:
    """Title, author, date and text of a page that reads as an article, as Markdown."""
    found = page.tree.article()
    if found.element is None or not found.text.strip():
        return
    yield {
        "@type": "Article",
        "title": found.title,
        "author": found.byline,
        "date": found.date,
        "description": found.description,
        "language": found.lang,
        "site": found.site_name,
        "tags": [*found.tags],
        "image": found.image,
        "markdown": page.markdown,
    }


def tables(page: Page) -> Iterator[dict[str, Any]]:
    """Every row of every table that has a row of headings: an item with a field for each column."""
    for number, rows in enumerate(page.tables):
        names = _headings(rows[0]) if len(rows) > 1 else []
        for place, cells in enumerate(rows[1:] if names else ()):
            values = dict(zip(names, cells, strict=False))
            if any(cells):
                yield {"@type": "TableRow", "table": number, "row": place, "cells": values}


def _headings(cells: list[str]) -> list[str]:
    """Their names, each once; none where a cell is empty, because then it is no row of headings."""
    names = [" ".join(cell.split()) for cell in cells]
    return (
        [f"{name}_{place + 1}" if names.count(name) > 1 else name for place, name in enumerate(names)]
        if all(names)
        else []
    )


BUILT_IN: dict[str, tuple[Hook, Callable[[Page], Iterator[dict[str, Any]]]]] = {
    "structured": (Hook(kind=HookKind.PAGE), structured),
    "json": (
        Hook(kind=HookKind.PAGE, types=("text/html", "application/xhtml+xml", *JSON_TYPES)),
        json_documents,
    ),
    "article": (Hook(kind=HookKind.PAGE), article),
    "tables": (Hook(kind=HookKind.PAGE), tables),
    "contacts": (Hook(kind=HookKind.PAGE), contacts),
}
