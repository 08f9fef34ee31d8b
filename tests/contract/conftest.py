from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from skitter.clock import Clock
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.settings import Settings
from tests.frontier_kit import Driver


def _rocks(folder: Path, settings: Settings, clock: Clock) -> RocksFrontier:
    return RocksFrontier(folder, settings, clock)


IMPLEMENTATIONS: dict[str, Callable[[Path, Settings, Clock], RocksFrontier]] = {"rocks": _rocks}


class Start(Protocol):
    def __call__(self, settings: Settings = ..., *, audited: bool = ...) -> Driver: ...


@pytest.fixture(params=IMPLEMENTATIONS)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Opens a frontier in a fresh folder, with the settings given; closed and audited at the end."""
    opened: list[Driver] = []

    def open_one(settings: Settings | None = None, *, audited: bool = True) -> Driver:
        folder = tmp_path / f"frontier-{len(opened)}"
        opener = partial(IMPLEMENTATIONS[request.param], folder)
        opened.append(Driver(opener, settings or Settings(), audited=audited))
        return opened[-1]

    yield open_one
    for driver in opened:
        driver.close()


@pytest.fixture
def driver(start: Start) -> Driver:
    return start()
