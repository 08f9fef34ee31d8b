"""Fixtures that open frontiers on each store; a conftest that imports them offers them to its folder."""

from __future__ import annotations

import os
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


# The rules are the same code on every store, and a log takes its time: over it the calls that write are tried
# here, and all of the contract with SKITTER_ALL_STORES=1.
_LOGGED = ("test_durability", "test_settling", "test_leasing", "test_holding")
_EVERYWHERE = bool(os.environ.get("SKITTER_ALL_STORES"))


def stores_for(module: str) -> list[str]:
    is_logged = _EVERYWHERE or module.rpartition(".")[2] in _LOGGED
    return [name for name in DISKS if name != "log" or is_logged]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "start" in metafunc.fixturenames:
        metafunc.parametrize("start", stores_for(metafunc.module.__name__), indirect=True)


@pytest.fixture
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
        driver.check_replay()


@pytest.fixture
def driver(start: Start) -> Driver:
    return start()
