"""skitter: a web crawler that is fast globally and polite locally."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from skitter.collection.collection import Collection

__version__ = "0.1.0"


def open(folder: Path | str) -> Collection:
    """What a crawl has archived, for reading: pages, bodies, texts, links, records, SQL. See docs/reading.md."""
    # Here, because reading takes libraries that a crawl does without.
    from skitter.collection.collection import Collection

    return Collection.at(folder)
