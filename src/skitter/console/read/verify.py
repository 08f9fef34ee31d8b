"""`skitter verify`: everything in a crawl's archive read again and compared; a table of what is wrong.

Ends with exit code 0 for a sound archive and 1 for one with defects. Works while a crawl runs: what is
committed is looked at.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from skitter.clock import SystemClock
from skitter.collection.collection import Collection
from skitter.collection.verify.archive import total_bytes, verify
from skitter.collection.verify.findings import MOST_FINDINGS, Finding, Ledger, Report, Weight
from skitter.console.display.output import write
from skitter.console.display.progress import progress
from skitter.console.display.table import table
from skitter.console.display.wording import counted, size
from skitter.folder import CrawlFolder
from skitter.model import FailureKind

if TYPE_CHECKING:
    from skitter.settings import Settings

# Of these an answer came and was archived; of the next three it depends on where the fault lay.
_ARCHIVED = frozenset(
    (
        FailureKind.THROTTLED,
        FailureKind.SERVER_ERROR,
        FailureKind.ENDLESS_REDIRECT,
        FailureKind.TURNED_AWAY,
        FailureKind.GATED,
    )
)
_EITHER = frozenset((FailureKind.PROTOCOL, FailureKind.BAD_REDIRECT, FailureKind.BAD_CODING))


async def read_ledger(folder: CrawlFolder, settings: Settings) -> Ledger | None:
    from skitter.wiring import open_frontier

    if not folder.frontier.is_dir():
        return None
    running = is_running(folder)
    async with open_frontier(folder, settings, read_only=True) as frontier:
        marks = tuple(await frontier.marks())
        stats = await frontier.stats()
    failures = {FailureKind(kind): count for kind, count in stats.failures.items()}
    without = sum(n for kind, n in failures.items() if kind not in _ARCHIVED | _EITHER)
    either = sum(n for kind, n in failures.items() if kind in _EITHER)
    most = stats.fetches - stats.lost - without
    return Ledger(marks=marks, least=most - either, most=most + stats.stale_outcomes, running=running)


def is_running(folder: CrawlFolder) -> bool:
    """Whether a process holds the crawl's lock; asked for an instant, never kept."""
    try:
        fd = os.open(folder.path / "crawl.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def run_verify(folder: Path | str, ledger: Ledger | None, *, as_json: bool) -> int:
    clock = SystemClock()
    begun = clock.now()
    with Collection.at(folder) as collection:
        total = total_bytes(collection.layout, collection)
        with progress("verifying", total, in_bytes=True) as advance:
            report = verify(collection, ledger, advance)
    seconds = clock.now() - begun
    write((_json(report) if as_json else "\n".join(_lines(report, seconds))) + "\n")
    return 1 if report.defects else 0


def _json(report: Report) -> str:
    return msgspec.json.encode(
        {
            "sound": not report.defects,
            "defects": report.defects,
            "bytes": report.bytes,
            "records": report.records,
            "index_lines": report.index_lines,
            "rows": report.rows,
            "findings": report.findings,
        }
    ).decode()


def _lines(report: Report, seconds: float) -> Iterator[str]:
    if report.findings:
        rows = [("", "file", "at", "what"), *map(_row, report.findings)]
        yield from table(rows, right=(2,), most=300)
        if len(report.findings) == MOST_FINDINGS:
            yield f"({MOST_FINDINGS:,} shown of {report.defects:,} defects)"
        yield ""
    kinds = ", ".join(f"{count:,} {kind or 'of no type'}" for kind, count in sorted(report.records.items()))
    speed = f"{size(report.bytes)} in {seconds:.1f} s ({size(report.bytes / max(seconds, 0.001))}/s)"
    yield f"{sum(report.records.values()):,} records ({kinds}), {report.index_lines:,} index lines, {speed}"
    if report.rows:
        yield f"{report.rows:,} rows of the tables"
    yield f"{counted(report.defects, 'defect')} found" if report.defects else "no defects"


def _row(finding: Finding) -> tuple[str, str, str, str]:
    where = "" if finding.offset is None else str(finding.offset)
    return ("note" if finding.weight is Weight.NOTE else "DEFECT", finding.file, where, finding.what)
