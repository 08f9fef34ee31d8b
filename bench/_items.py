"""Items of a crawl compared with what its archived pages give when the extractor runs over them again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

import skitter

PLUGIN = Path(__file__).with_name("_item_plugin.py")
_PAGES = "kind = 'page' and status = 200 and content_mime_detected in ('text/html', 'application/xhtml+xml')"


def compare_items(folder: Path) -> tuple[int, list[str]]:
    """How many items there are, and each that is missing, too many or wrong."""
    with skitter.open(folder) as crawl, crawl.duckdb() as database:
        found = Counter(
            database.execute("select url, fetch_time, item from items_all where fault is null").fetchall()
        )
        wanted: Counter[tuple[object, ...]] = Counter()
        for page in crawl.pages(_PAGES):
            for item in skitter.extract(crawl.page_of(crawl.record(page.record)), str(PLUGIN)):
                at = page.fetched_at.replace(tzinfo=None)
                wanted[page.url, at, msgspec.json.encode(item).decode()] += 1
        faults = database.execute("select url, fault from items_all where fault is not null").fetchall()
    missing, extra = wanted - found, found - wanted
    return found.total(), [
        *(f"missing: {row}" for row in missing),
        *(f"too many: {row}" for row in extra),
        *(f"fault: {row}" for row in faults),
    ]
