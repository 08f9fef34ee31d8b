"""Rows of text in columns, for people. Cells come from anywhere, so they pass `plain` here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from skitter.console.display.wording import plain


def table(rows: Iterable[Sequence[str]], right: Sequence[int] = (), most: int = 200) -> Iterator[str]:
    cells = [[plain(cell, most) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    for row in cells:
        padded = (
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()
