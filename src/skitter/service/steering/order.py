"""An order: one thing that an operator asks of a crawl, in a form that can be carried out in two ways.

A command makes an order. If a process works in the crawl's folder, the order is sent to it and one of the API's
routes carries it out; if none does, the command opens the folder and calls `act` itself (`console/steer`). The
routes call the same functions, so what an order does is written once. Loads no web framework: commands are quick.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from skitter.frontier.base import Frontier
from skitter.settings import Settings
from skitter.urls.keys import Keys

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """What an order may touch of a crawl."""

    frontier: Frontier
    settings: Settings
    keys: Keys
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Generic[Answer]):
    """`act` is None for what only a running crawl can do."""

    method: str
    path: str
    answer: type[Answer]
    body: msgspec.Struct | None = None
    act: Callable[[Steered], Awaitable[Answer]] | None = None
