"""`skitter sink`: committed rows of a crawl to a database, a stream, a server or files, and how far that is.

Says on standard error what it does, and on standard output what it has done when it ends.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec

from skitter.clock import Clock, SystemClock
from skitter.collection.collection import Collection
from skitter.console.display.output import write
from skitter.console.display.wording import counted, plain, span
from skitter.errors import SkitterError, UsageError
from skitter.sinks.follow import TABLES, Sent, Sink
from skitter.sinks.opening import Address, open_target, url_of

_EVERY = 10.0


def run_sink(
    place: Path | str,
    to: str,
    tables: str,
    where: str,
    *,
    name: str,
    form: str,
    note: Path | None,
    once: bool,
    as_json: bool,
) -> None:
    chosen, crawl = _tables(tables), name or _crawl_name(place)
    with Collection.at(place):
        pass  # whether it is a crawl at all
    address = Address(url=url_of(to), crawl=crawl, form=form, note=note or _note(place, crawl))
    clock = SystemClock()
    sink = Sink(place, chosen, where, crawl, lambda: open_target(address, clock), clock, _Teller(clock))
    with _ending(sink):
        sent = sink.run(once=once)
    write((msgspec.json.encode(sent).decode() if as_json else _said(sent, address.shown)) + "\n")


def _tables(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in TABLES]
    if unknown or not names:
        raise UsageError(f"--tables takes {','.join(TABLES)}: {text!r}")
    return list(dict.fromkeys(names))


def _crawl_name(place: Path | str) -> str:
    return place.rstrip("/").rpartition("/")[2] if isinstance(place, str) else place.resolve().name


def _note(place: Path | str, crawl: str) -> Path:
    folder = place / "sinks" if isinstance(place, Path) else Path("sinks")
    return folder / f"{crawl}.parts"


def _said(sent: Sent, shown: str) -> str:
    rows = ", ".join(f"{counted(count, 'row')} of {table}" for table, count in sent.rows.items() if count)
    return f"{rows or 'nothing new'} sent to {plain(shown)}{_behind(sent)}"


def _behind(sent: Sent) -> str:
    if not sent.behind_parts:
        return ""
    rows = f", {counted(sent.behind_rows, 'row')}" if sent.behind_rows else ""
    return f"; {counted(sent.behind_parts, 'part')}{rows} behind"


class _Teller:
    """A line when the target has caught up after new rows, and every ten seconds while it has not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_at = clock.now()
        self._told_parts = 0

    def progress(self, sent: Sent) -> None:
        now = self._clock.now()
        is_news = sent.parts != self._told_parts and (not sent.behind_parts or now - self._told_at >= _EVERY)
        if not is_news:
            return
        self._told_at, self._told_parts = now, sent.parts
        age = f", the newest fetched {span(max(0.0, now - sent.newest))} ago" if sent.newest else ""
        behind = _behind(sent) or "; nothing behind"
        _tell(f"{counted(sum(sent.rows.values()), 'row')} sent{age}{behind}")

    def trouble(self, error: SkitterError, wait: float) -> None:
        _tell(f"{plain(' '.join(str(error).split()), 400)}; trying again in {span(wait)}")


def _tell(text: str) -> None:
    if sys.stderr is not None:
        print(f"skitter: {text}", file=sys.stderr, flush=True)


@contextmanager
def _ending(sink: Sink) -> Iterator[None]:
    """Ctrl-C and SIGTERM end it when the part under way is delivered; once more, at once."""

    def end(number: int, frame: FrameType | None) -> None:
        if sink.stop.is_set():
            raise KeyboardInterrupt
        sink.stop.set()

    before: Sequence[tuple[int, object]] = [
        (each, signal.signal(each, end)) for each in (signal.SIGINT, signal.SIGTERM)
    ]
    try:
        yield
    finally:
        for each, was in before:
            signal.signal(each, was)  # type: ignore[arg-type]
