from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skitter.settings import CrawlSettings, Settings
from tests.service.work_kit import Work, working


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    with working(tmp_path / "crawl", Settings(crawl=CrawlSettings(scope="any"))) as work:
        yield work
