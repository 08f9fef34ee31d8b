"""The log file: one JSON object a line, in a few files of bounded size.

Events are named in `telemetry.py`. A crawl must not end because its log cannot be written, so nothing here
raises: lines that cannot be written (full disk, lost folder) are counted as dropped.
"""

from __future__ import annotations

import json
import os
import select
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from skitter.clock import Clock
from skitter.telemetry import LEVELS, Event, Level

_STANDARD_ERROR = 2


def rfc3339(at: float) -> str:
    """A time in UTC, to the millisecond: 2026-11-18T04:05:06.789Z."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamped(at: float, event: Event) -> dict[str, object]:
    """How every line of a log begins."""
    return {"time": rfc3339(at), "level": LEVELS.get(event, Level.INFO).value, "event": event.value}


class Log:
    """Lines wait in `_lines` for `FLUSH_BYTES` or `FLUSH_SECONDS`, then are written together.

    `PATH` is the newest file; `PATH.1` and `PATH.2` are the ones before it. One process writes a log. With `echo`
    each line goes to standard error too, unless its reader is too slow to take it: a crawl waits for nobody.
    """

    LIMIT = 10_000_000
    KEPT = 2
    FLUSH_BYTES = 65_536
    FLUSH_SECONDS = 1.0
    LONGEST_FIELD = 2_000

    def __init__(self, path: Path, clock: Clock, limit: int = LIMIT, *, echo: bool = False) -> None:
        self._path = path
        self._echo = echo
        self._clock = clock
        self._limit = limit
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._lines: list[bytes] = []
        self._waiting = 0
        self._flushed_at = clock.now()
        self._file: int | None = None
        self._size = 0
        self._untold = 0
        self.dropped = 0

    def write(self, event: Event, **fields: object) -> None:
        now = self._clock.now()
        line = self._encode({**stamped(now, event), **fields})
        self._lines.append(line)
        self._waiting += len(line)
        if self._waiting >= self.FLUSH_BYTES or now - self._flushed_at >= self.FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Hand the waiting lines to the system. They survive the process from here on, not a power loss."""
        lines, self._lines, self._waiting = self._lines, [], 0
        self._flushed_at = self._clock.now()
        if not lines:
            return
        if self._echo:
            self.dropped += sum(not _echo_line(line) for line in lines)
        if self._untold:
            lines.insert(0, self._resumed_line())
        try:
            self._append(b"".join(lines))
            self._untold = 0
        except OSError:
            lost = len(lines) - bool(self._untold)
            self.dropped += lost
            self._untold += lost
            self._close()

    def close(self) -> None:
        self.flush()
        self._close()

    def _resumed_line(self) -> bytes:
        return self._encode({**stamped(self._flushed_at, Event.LOG_RESUMED), "dropped": self._untold})

    def _encode(self, record: dict[str, object]) -> bytes:
        for name, value in record.items():
            if isinstance(value, str) and len(value) > self.LONGEST_FIELD:
                record[name] = value[: self.LONGEST_FIELD] + "..."
        try:
            return self._encoder.encode(record) + b"\n"
        except (UnicodeEncodeError, TypeError, OverflowError, RecursionError):
            # Lone surrogates, integers beyond 64 bits, keys that are no text: rare, so the slow way is fine.
            return json.dumps({str(k): repr(v) for k, v in record.items()}).encode() + b"\n"

    def _append(self, block: bytes) -> None:
        """All of the block or none of it: half a line would spoil the next one as well."""
        file = self._open(len(block))
        written = os.write(file, block)
        if written < len(block):
            os.ftruncate(file, self._size)
            raise OSError("no room for the whole block")
        self._size += written

    def _open(self, more: int) -> int:
        if self._file is not None and self._size and self._size + more > self._limit:
            self._close()
            self._rotate()
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._size = os.fstat(self._file).st_size
        return self._file

    def _rotate(self) -> None:
        for age in range(self.KEPT, 0, -1):
            older = f"{self._path}.{age}"
            newer = f"{self._path}.{age - 1}" if age > 1 else str(self._path)
            if os.path.exists(newer):
                os.replace(newer, older)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _echo_line(line: bytes) -> bool:
    """pipe(7): a pipe that can be written to takes PIPE_BUF bytes at once, and without a wait."""
    if len(line) > select.PIPE_BUF:
        return False
    poll = select.poll()
    poll.register(_STANDARD_ERROR, select.POLLOUT)
    try:
        ready = any(events & select.POLLOUT for _, events in poll.poll(0))
        return ready and os.write(_STANDARD_ERROR, line) == len(line)
    except OSError:
        return False
