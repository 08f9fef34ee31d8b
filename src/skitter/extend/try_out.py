"""Extractors tried out on one page, in the process of whoever asks: notebooks, tests, `skitter.extract`.

No process of their own and no limits, so that a debugger and `print` work as anywhere. What an extractor
raises is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from skitter.extend.api import HookKind
from skitter.extend.calling import yielded_items
from skitter.extend.extractor import patterns_of
from skitter.extend.loading import load_extractors
from skitter.extend.page import Page


def extract_items(page: Page, plugins: Sequence[str | Path]) -> list[Any]:
    """Of every `page` hook that the page matches, the items as they were yielded."""
    return list(_items(page, plugins))


def _items(page: Page, plugins: Sequence[str | Path]) -> Iterator[Any]:
    extractors = load_extractors([str(name) for name in plugins], {})
    matching = patterns_of([each.described for each in extractors]).find(page.url, page.media_type)
    for number in matching:
        if extractors[number].kind is HookKind.PAGE:
            yield from yielded_items(page, extractors[number])
