"""A progress bar on a terminal's standard error while a command works; elsewhere nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(label: str, total: int, *, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    if total <= 0 or not sys.stderr.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        yield lambda amount: None
        return
    # rich takes 60 ms to import, and only a terminal needs it
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    amounts = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amounts, TimeLeft())
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)
