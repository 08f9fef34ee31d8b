"""Fixtures that open frontiers on each store; a conftest that imports them offers them to its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from skitter.settings import Settings
from tests.frontier_kit import Driver
from tests.frontier_stores import DISKS


class Start(Protocol):
    def __call__(
        self, settings: Settings = ..., *, audited: bool = ..., tell: Callable[[str], None] = ...
    ) -> Driver: ...


@pytest.fixture(params=DISKS)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Opens a frontier on a fresh disk, with the settings given; closed and audited at the end."""
    opened: list[Driver] = []

    def open_one(
        settings: Settings | None = None,
        *,
        audited: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> Driver:
        disk = DISKS[request.param](tmp_path / f"frontier-{len(opened)}")
        opened.append(Driver(disk, settings or Settings(), audited=audited, tell=tell))
        return opened[-1]

    yield open_one
    for driver in opened:
        driver.close()


@pytest.fixture
def driver(start: Start) -> Driver:
    return start()
