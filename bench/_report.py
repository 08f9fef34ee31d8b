"""How a benchmark speaks: progress on standard error, a table and one JSON object on standard output."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager


def progress(text: str) -> None:
    """One line that renews itself on a terminal, lines in a log."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{text:<100}", end=end, file=sys.stderr, flush=True)


def table(rows: Iterable[Sequence[object]]) -> str:
    """The first row is the heading; the first column is text, the others are figures."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(_aligned(row, widths)).rstrip() for row in cells)
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and value >= 10:
        return f"{value:,.0f}"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    first = row[0].ljust(widths[0])
    return [first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]


def last_line(result: Mapping[str, object]) -> None:
    print(json.dumps(result))


def trial(
    bench: str, seed: int, figures: Mapping[str, object], faults: Mapping[str, Sequence[str]], shown: int = 10
) -> None:
    """What a trial by kills counted, and what it found wrong: some lines of each kind."""
    print(table([("", "count"), *((name, str(value)) for name, value in figures.items())]))
    for kind, lines in faults.items():
        print(f"\n{kind} ({len(lines)}):", *lines[:shown], sep="\n    ")
    counts = {kind: len(lines) for kind, lines in faults.items()}
    last_line({"bench": bench, "seed": seed, **figures, "faults": counts})


@contextmanager
def ticking(words: str, every: float = 2.0) -> Iterator[None]:
    """Says every now and then that something long is still under way."""
    began, done = time.monotonic(), threading.Event()

    def tick() -> None:
        progress(words)
        while not done.wait(every):
            progress(f"{words}, {time.monotonic() - began:.0f} s")

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
