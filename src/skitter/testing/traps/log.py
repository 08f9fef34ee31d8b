"""The request log of the trap web: JSON lines, the plan first, then a row for every answer.

Rows say what was shown, so that an audit need not ask the sites again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from skitter.errors import UsageError
from skitter.testing.traps.plan import TrapPlan


class Row(msgspec.Struct, frozen=True):
    """One answer. `site` is the name of the site that gave it, "" when none has that host; `meaning` is the
    honest content that was shown, "" where there was none."""

    host: str
    target: str
    status: int
    site: str = ""
    meaning: str = ""


def read_log(path: Path) -> tuple[TrapPlan, list[Row]]:
    """A last line that is only half written is left out."""
    lines = _lines(path)
    try:
        plan = msgspec.json.decode(next(lines, b""), type=TrapPlan)
        decoder = msgspec.json.Decoder(Row)
        return plan, [decoder.decode(line) for line in lines]
    except msgspec.DecodeError as fault:
        raise UsageError(f"{path} is no request log of a trap web: {fault}") from fault


def _lines(path: Path) -> Iterator[bytes]:
    try:
        text = path.read_bytes()
    except OSError as fault:
        raise UsageError(f"cannot read {path}: {fault.strerror}") from fault
    return iter(text.split(b"\n")[:-1])
