"""What `native/placing.c` does, in Python: it defines what both say, works where no kernel was built. Pure."""

from __future__ import annotations

from skitter.archive.cdxj import line_end
from skitter.archive.rows import Pieces, framed_row
from skitter.model import RecordAt


def placed_texts(
    line: bytes, row: Pieces | None, offset: int, length: int, segment: str, revisit_of: str, /
) -> tuple[bytes, tuple[bytes, ...]]:
    """The index line to its end; the row with its place, in pieces, or nothing."""
    at = RecordAt(segment, offset, length)
    framed = framed_row(row, at, revisit_of) if row is not None else ()
    return line + line_end(offset, length, segment), framed
