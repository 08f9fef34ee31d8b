"""One hook of one plugin, ready to be called, and what came of a page.

Values between whoever loads plugins (`loading.py`), whoever calls them (`calling.py`) and the worker that asked.
`Described` and `PageResult` cross the pipe between a worker and the process that runs users' code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from skitter.extend.api import Content, Hook, HookKind
from skitter.extend.items import Row
from skitter.extend.patterns import Patterns
from skitter.model import FaultKind


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """An extractor without its code. `origin` says where it is written, `plugin` what the operator named."""

    name: str
    hook: Hook
    plugin: str
    version: str
    origin: str = ""


class Extractor(msgspec.Struct, frozen=True, kw_only=True):
    """`corrections` are of a built-in: functions that mend its items, each with its name, the type of the
    items that it is for, and its patterns."""

    described: Described
    function: Callable[..., Any]
    corrections: tuple[Extractor, ...] = ()

    @property
    def name(self) -> str:
        return self.described.name

    @property
    def kind(self) -> HookKind:
        return self.described.hook.kind


class Fault(msgspec.Struct, frozen=True, array_like=True):
    """`extractor` is the number of it, `name` of the function at fault: a correction is not its extractor."""

    extractor: int
    kind: FaultKind
    text: str
    name: str = ""


class PageResult(msgspec.Struct, array_like=True):
    """What came of one page; numbers are those of extractors. `chosen` are the links that a `links` hook kept,
    None where there was none. `score` is the greatest. Of each followed URL: its priority, and who follows it. Of
    each form that is to be posted: its URL, priority, body, whether it is safe, and who posts it."""

    items: list[tuple[int, Row]] = []
    faults: list[Fault] = []
    followed: list[tuple[str, int | None, int]] = []
    chosen: list[tuple[str, int | None]] | None = None
    score: float | None = None
    content: Content | None = None
    posted: list[tuple[str, int | None, str, bool, int]] = []

    def add(self, other: PageResult) -> None:
        """What another process or the inline ones made of the same page."""
        self.items += other.items
        self.faults += other.faults
        self.followed += other.followed
        self.posted += other.posted
        self.content = other.content or self.content
        self.chosen = self.chosen if other.chosen is None else other.chosen
        scores = [score for score in (self.score, other.score) if score is not None]
        self.score = max(scores, default=None)


def patterns_of(described: Sequence[Described]) -> Patterns:
    patterns = Patterns()
    for number, each in enumerate(described):
        patterns.add(number, each.hook.patterns, each.hook.types)
    return patterns
