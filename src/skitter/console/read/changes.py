"""`skitter changes` and `skitter history`: what became of pages between visits, as the archive has it.

Both read the archive alone, so they work on a crawl under way and on an archive in an object store.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from skitter.clock import SystemClock
from skitter.collection.captures import Capture
from skitter.collection.changes import select_since
from skitter.collection.collection import Collection
from skitter.console.display.output import write
from skitter.console.read.query import run_query
from skitter.errors import UsageError
from skitter.settings.durations import seconds_of


class Visit(msgspec.Struct, frozen=True):
    """One visit of a page. `change` is first, changed, same or gone."""

    at: str
    status: int
    change: str
    digest: str


def run_changes(folder: Path | str, since: str, form: str) -> None:
    """New, changed and gone pages since then; a page that changed twice is listed once."""
    stamp = _moment(since).strftime("%Y-%m-%d %H:%M:%S.%f")
    run_query(folder, select_since(stamp), form)


def run_history(folder: Path | str, url: str, *, as_json: bool) -> None:
    """The visits of a page, and what its text lost and gained with the last change."""
    with Collection.at(folder) as collection:
        captures = collection.captures(url)
        if not captures:
            raise UsageError(f"{url} is not in this archive")
        visits = list(_visits(captures))
        difference = _difference(collection, captures)
    if as_json:
        write(msgspec.json.encode({"url": url, "visits": visits, "difference": difference}).decode() + "\n")
        return
    for visit in visits:
        write(f"{visit.at}  {visit.status or '-':>3}  {visit.change}\n")
    if difference:
        write("\n" + "\n".join(difference) + "\n")


def _visits(captures: list[Capture]) -> Iterator[Visit]:
    before = ""
    for capture in sorted(captures, key=lambda each: each.stamp):
        at = datetime.strptime(capture.stamp, "%Y%m%d%H%M%S").strftime("%Y-%m-%d %H:%M:%S UTC")
        if capture.status in (404, 410):
            change = "gone"
        elif capture.status == 304 or capture.digest == before:
            change = "same"
        else:
            change = "changed" if before else "first"
        if change in ("first", "changed"):
            before = capture.digest
        yield Visit(at, capture.status, change, capture.digest)


def _difference(collection: Collection, captures: list[Capture]) -> list[str]:
    """Of the texts of the last two different bodies, a line each."""
    good = [each for each in sorted(captures, key=lambda each: each.stamp) if 200 <= each.status < 300]
    last = next(reversed(good), None)
    other = next((each for each in reversed(good) if last is not None and each.digest != last.digest), None)
    if last is None or other is None:
        return []
    old, new = (collection.read(collection.record(each.at)).text.splitlines() for each in (other, last))
    return list(difflib.unified_diff(old, new, other.stamp, last.stamp, lineterm="", n=1))


def _moment(text: str) -> datetime:
    """A date, a time, or so long ago."""
    if (seconds := seconds_of(text)) is not None:
        return datetime.fromtimestamp(SystemClock().now(), UTC) - timedelta(seconds=seconds)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time: write 7d, 2026-01-31 or 2026-01-31T12:00:00") from None
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
