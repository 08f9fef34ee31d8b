"""What verification says: findings with their place, and the counts of what was looked at.

Values only. A defect is what a sound archive never has; a note is what an interrupted, running or partly
moved one may.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from skitter.model import SegmentMark

MOST_FINDINGS = 1000


class Weight(StrEnum):
    DEFECT = "defect"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True):
    file: str
    offset: int | None
    what: str
    weight: Weight = Weight.DEFECT


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What the frontier says of the archive. `least` and `most` answers must be in it: failures of some kinds
    come with and without a record, and outcomes that came too late are archived but not counted."""

    marks: tuple[SegmentMark, ...]
    least: int
    most: int
    running: bool = False


class Report:
    """Collects findings, with a limit: a ruined terabyte must not fill the memory as well."""

    def __init__(self, advance: Callable[[int], None] = lambda size: None) -> None:
        self.findings: list[Finding] = []
        self.defects = 0
        self.records: dict[str, int] = {}
        self.bytes = 0
        self.rows = 0
        self.index_lines = 0
        self._advance = advance

    def defect(self, file: str, offset: int | None, what: str) -> None:
        self.defects += 1
        self._keep(Finding(file, offset, what))

    def note(self, file: str, what: str) -> None:
        self._keep(Finding(file, None, what, Weight.NOTE))

    def count(self, kind: str, size: int) -> None:
        self.records[kind] = self.records.get(kind, 0) + 1
        self.advance(size)

    def advance(self, size: int) -> None:
        self.bytes += size
        self._advance(size)

    @property
    def answers(self) -> int:
        return self.records.get("response", 0) + self.records.get("revisit", 0)

    def _keep(self, finding: Finding) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
