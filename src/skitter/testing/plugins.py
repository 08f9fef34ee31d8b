"""Plugins on saved pages, for users' own tests: no crawl, no process, no network.

    assert skitter.testing.run("shop.py", "fixtures/kettle.warc.gz") == [Product("Kettle", 19.5, "K-1")]

`skitter show DIR URL --to fixtures/kettle.warc.gz` saves a page. What an extractor raises, the test sees.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from skitter.collection.record import parse_record
from skitter.errors import UsageError
from skitter.extend.page import Page
from skitter.extend.try_out import extract_items


def run(plugin: str | Path, *pages: str | Path | Page) -> list[Any]:
    """The items that a plugin makes of pages, as it yielded them. A page is a `Page`, or a file that `skitter
    show` saved."""
    seen = [page if isinstance(page, Page) else saved_page(page) for page in pages]
    return [item for page in seen for item in extract_items(page, [str(plugin)])]


def saved_page(file: str | Path) -> Page:
    try:
        content = gzip.decompress(Path(file).read_bytes())
    except (OSError, EOFError) as error:
        raise UsageError(
            f"{file} cannot be read ({error}): save a page with skitter show DIR URL --to FILE"
        ) from None
    record = parse_record(content)
    if isinstance(record, str):
        raise UsageError(f"{file}: {record}; save a page with skitter show DIR URL --to FILE")
    return Page(record.url, record.decoded(), status=record.status, headers=record.headers())
