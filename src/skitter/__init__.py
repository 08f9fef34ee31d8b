"""skitter: a web crawler that is fast globally and polite locally.

What users' code needs is here by name (docs/plugins.md), and loaded when it is asked for. To import skitter, or
to crawl without plugins, loads none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skitter.collection.collection import Collection
    from skitter.extend.api import Article as Article
    from skitter.extend.api import Content as Content
    from skitter.extend.api import StructuredData as StructuredData
    from skitter.extend.api import correct as correct
    from skitter.extend.api import links as links
    from skitter.extend.api import number as number
    from skitter.extend.api import page as page
    from skitter.extend.api import reader as reader
    from skitter.extend.api import score as score
    from skitter.extend.page import Page as Page
    from skitter.extend.page import PageLink as PageLink
    from skitter.runtime.from_python import Pages

__version__ = "0.2.0.dev0"
_API = dict.fromkeys(
    ("Article", "Content", "StructuredData", "correct", "links", "number", "page", "reader", "score"),
    "skitter.extend.api",
) | dict.fromkeys(("Page", "PageLink"), "skitter.extend.page")


def open(folder: Path | str) -> Collection:
    """What a crawl has archived, for reading: pages, bodies, texts, links, records, SQL. See docs/reading.md."""
    # Here, because reading takes libraries that a crawl does without.
    from skitter.collection.collection import Collection

    return Collection.at(folder)


def crawl(
    *seeds: str,
    into: Path | str,
    max_pages: int | None = None,
    max_depth: int | None = None,
    scope: str | None = None,
    delay: float | None = None,
    contact: str | None = None,
    plugins: Sequence[str] | None = None,
    config: Path | str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Pages:
    """Crawls into a folder, or goes on with one; iterate over it with `async for` or `for`, and each page
    comes once, after its commit. `settings` are by name: {"fetch.allow_private": True}. See docs/plugins.md."""
    from skitter.runtime.from_python import crawl as crawled

    given = {
        "crawl.max_pages": max_pages,
        "crawl.max_depth": max_depth,
        "crawl.scope": scope,
        "politeness.delay": delay,
        "identity.contact": contact,
        "plugins.with": plugins,
        **(settings or {}),
    }
    return crawled(seeds, into, given, config)


def extract(page: Page, *plugins: str) -> list[Any]:
    """The items that plugins make of a page, as they yielded them. See docs/plugins.md."""
    from skitter.extend.try_out import extract_items

    return extract_items(page, plugins)


def __getattr__(name: str) -> Any:
    if name == "testing":
        from importlib import import_module

        return import_module("skitter.testing")
    if name not in _API:
        raise AttributeError(f"module 'skitter' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_API[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
