"""What each crawler does beside fetching: `bench/peers/duties.toml`, read and laid out as a table.

Crawlers that do less cost less, so no figure is shown without its duties. A word that is not in the closed sets
below stops the benchmark: a duty must not be lost to a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from bench._peers import SCRIPTS

FILE = SCRIPTS / "duties.toml"
HEADING = (
    "crawler",
    "written in",
    "writes",
    "robots.txt",
    "delay",
    "frontier",
    "goes on",
    "duplicates",
    "HTTP/2",
)


class Duties(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    language: str
    writes: Literal["WARC", "files", "nothing"]
    robots: bool
    delay: Literal["by host", "by site given", "by thread", "none"]
    frontier: Literal["disk", "memory"]
    goes_on: Literal["after kill -9", "after a clean stop", "from a checkpoint", "no"]
    duplicates: Literal["URLs and bodies", "URLs"]
    http2: bool
    note: str = ""

    @property
    def keeps_a_frontier(self) -> bool:
        """Others forget all that they know when they end."""
        return self.frontier == "disk"

    def row(self, name: str) -> tuple[str, ...]:
        words = (self.language, self.writes, _word(self.robots), self.delay, self.frontier, self.goes_on)
        return (name, *words, self.duplicates, _word(self.http2))


def _word(is_so: bool) -> str:
    return "yes" if is_so else "no"


def read_duties(text: str) -> dict[str, Duties]:
    """By name, in the order of the file."""
    return msgspec.toml.decode(text, type=dict[str, Duties])


def duties(path: Path = FILE) -> dict[str, Duties]:
    return read_duties(path.read_text("utf-8"))


def duties_of(name: str, known: Mapping[str, Duties]) -> Duties:
    """A name may say more, after a comma or in brackets: `wget2, 5 threads`."""
    short = name.partition(",")[0].partition(" (")[0]
    if short not in known:
        raise KeyError(f"{short} has no duties in {FILE.name}")
    return known[short]


def duty_rows(names: Iterable[str], known: Mapping[str, Duties]) -> list[tuple[str, ...]]:
    """One row a crawler, those with several forms once."""
    found = {name.partition(",")[0].partition(" (")[0]: duties_of(name, known) for name in names}
    return [HEADING, *(each.row(name) for name, each in found.items())]


def notes(names: Iterable[str], known: Mapping[str, Duties]) -> list[str]:
    found = {name.partition(",")[0].partition(" (")[0]: duties_of(name, known).note for name in names}
    return [f"{name}: {note}" for name, note in found.items() if note]


def first_of_those_with_a_frontier(cpu: Mapping[str, float], known: Mapping[str, Duties]) -> str:
    """Whose page is cheapest among all that keep one."""
    keeping = [name for name in cpu if duties_of(name, known).keeps_a_frontier]
    return min(keeping, key=lambda name: cpu[name])
