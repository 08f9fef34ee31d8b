"""A plugin whose items depend on nothing but the page: how many, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import skitter


@skitter.page("*", key="id")
def piece(page: skitter.Page) -> Iterator[dict[str, Any]]:
    for number in range(1 + len(page.body) % 3):
        yield {"id": f"{page.url}#{number}", "title": page.first("title"), "links": len(page.css("a"))}
