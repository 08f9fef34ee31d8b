"""What a benchmark is to reach, and whether it did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bench._report import table


class Target(msgspec.Struct, frozen=True):
    """Met when `value` is neither above `most` nor below `least`."""

    words: str
    value: float
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool:
        above = self.most is not None and self.value > self.most
        below = self.least is not None and self.value < self.least
        return not above and not below

    def row(self) -> list[object]:
        return [round(self.value, 3), self.limit, self.met]

    @property
    def limit(self) -> str:
        return f"{self.most:g} at most" if self.most is not None else f"{self.least:g} at least"


def judged(targets: Iterable[Target]) -> bool:
    return all(target.met for target in targets)


def show_targets(targets: Sequence[Target]) -> None:
    rows = [[t.words, round(t.value, 2), t.limit, "PASS" if t.met else "FAIL"] for t in targets]
    print(table([["target", "measured", "limit", ""], *rows]))
