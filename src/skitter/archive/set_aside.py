"""What cannot be read of an archive's journals and parts: kept in a folder of its own, so that the crawl goes on.

Beside `recovery.py` and the table writer. Nothing that was committed is thrown away: bytes that no reader of ours
understands lie in `set-aside/`, named after their segment and their place in it, and `skitter verify` names them.
Setting the same bytes aside twice leaves one file.
"""

from __future__ import annotations

import os
from pathlib import Path

from skitter.archive.tables.parts import write_part

FOLDER = "set-aside"


def set_rows_aside(folder: Path, stem: str, start: int, rows: bytes) -> None:
    """Of a segment's journal, from `start` on."""
    name = f"{stem}-{start:012d}-{start + len(rows):012d}.rows"
    write_part(folder / FOLDER / name, memoryview(rows))


def set_lines_aside(folder: Path, stem: str, lines: bytes) -> None:
    """Of a segment's index."""
    write_part(folder / FOLDER / f"{stem}.lines", memoryview(lines))


def set_part_aside(part: Path) -> None:
    """A file of a table."""
    folder = part.parent.parent / FOLDER
    folder.mkdir(exist_ok=True)
    os.rename(part, folder / f"{part.parent.name}-{part.name}.damaged")
