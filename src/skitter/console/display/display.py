"""What a crawl shows while it runs: on a terminal, in a log, or to a program.

Fed with snapshots as often as the caller likes; each display decides by itself which ones to show. A
display that can no longer be written to goes silent: it must never stop, slow or fail the crawl.
"""

from __future__ import annotations

import json as json_text
import os
from typing import Protocol, TextIO

import msgspec

from skitter.clock import SystemClock
from skitter.console.display.summary import Summary, render_summary
from skitter.console.display.wording import (
    LONGEST_NOTE,
    TimeLeft,
    amounts,
    counted,
    phase_words,
    plain,
    rate,
    size,
    span,
)
from skitter.log import rfc3339
from skitter.telemetry import Level, Phase, Snapshot


class Display(Protocol):
    def update(self, snapshot: Snapshot) -> None: ...

    def note(self, text: str) -> None:
        """A line that stays."""

    def close(self, summary: Summary | None) -> None:
        """Show the summary, if there is one, and give the terminal back as it was."""


def choose_display(stream: TextIO, json: bool = False) -> Display:
    """JSON lines if asked for; else lines for people, live if `stream` is a terminal that can."""
    if json:
        return JsonDisplay(stream)
    if stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb"):
        from skitter.console.display.live import (
            LiveDisplay,  # rich takes 60 ms to import, and only a terminal needs it
        )

        return LiveDisplay(stream)
    return PlainDisplay(stream)


class Timetable:
    """When a display that leaves its lines behind writes one: after 1 s, every 10 s, every 60 s."""

    OFTEN_UNTIL = 120.0

    def __init__(self) -> None:
        self._due = 1.0

    def is_due(self, elapsed: float) -> bool:
        if elapsed < self._due:
            return False
        step = 10.0 if elapsed < self.OFTEN_UNTIL else 60.0
        self._due = (elapsed // step + 1) * step
        return True


class Lines:
    """A stream of lines that falls silent when its reader is gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


class PlainDisplay:
    """One readable line from time to time, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._lines = Lines(stream)
        self._timetable = Timetable()
        self._left = TimeLeft()

    def update(self, snapshot: Snapshot) -> None:
        self._left.seen(snapshot)
        if self._timetable.is_due(snapshot.elapsed):
            self._lines.write(plain_line(snapshot, self._left))

    def note(self, text: str) -> None:
        self._lines.write(plain(text, LONGEST_NOTE))

    def close(self, summary: Summary | None) -> None:
        if summary is not None:
            self._lines.write("\n" + render_summary(summary))


def plain_line(now: Snapshot, left: TimeLeft) -> str:
    errors = sum(now.errors.values())
    parts = [
        f"{span(now.elapsed)}: {counted(now.pages, 'page')}",
        f"{rate(now.rate_now)} now, {rate(now.rate_mean)} mean",
        size(now.bytes),
        f"{now.hosts_active:,} hosts active, {now.hosts_waiting:,} waiting",
        f"{now.queued:,} queued",
        f"errors {errors:,} ({amounts(now.errors, 3)})" if errors else "no errors",
        _what_it_does(now) if now.phase is not Phase.CRAWLING else f"time left {left.words(now)}",
    ]
    return "; ".join(parts)


def _what_it_does(now: Snapshot) -> str:
    return plain(now.headline.rstrip("."), 400) or phase_words(now)


class JsonDisplay:
    """One JSON object a line, ASCII only, so that any locale can carry it. Each begins as a line of the log does:
    with `--log-json` they are among those."""

    def __init__(self, stream: TextIO) -> None:
        self._lines = Lines(stream)
        self._timetable = Timetable()
        self._clock = SystemClock()

    def update(self, snapshot: Snapshot) -> None:
        if self._timetable.is_due(snapshot.elapsed):
            self._write("progress", msgspec.to_builtins(snapshot))

    def note(self, text: str) -> None:
        self._write("note", {"text": text})

    def close(self, summary: Summary | None) -> None:
        if summary is not None:
            self._write("summary", msgspec.to_builtins(summary))

    def _write(self, event: str, fields: dict[str, object]) -> None:
        stamp = {"time": rfc3339(self._clock.now()), "level": Level.INFO.value, "event": event}
        self._lines.write(json_text.dumps({**stamp, **fields}))
