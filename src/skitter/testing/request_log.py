"""The request log of the synthetic web: JSON lines, the plan first, then a row for every request.

A row that is still under way after half a second is written without an end, and once more when it ends; the
later row counts. The log must be able to grow while others read it, so lines are only ever appended whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec

from skitter.errors import UsageError
from skitter.testing.plan import WebPlan


class Request(msgspec.Struct, kw_only=True):
    """One request as the server saw it.

    `start` is when the kernel received its last byte. `end` is taken just before the last byte of the
    response is handed to the kernel, so what a client does because of the response is never before it; or it
    is when the client was found gone (`aborted`), or None while under way. `overlapped`: another request
    of the same host was in flight at `start`.
    """

    id: int
    start: float
    end: float | None = None
    host: str
    path: str
    status: int = 0
    size: int = 0
    connection: int
    aborted: bool = False
    overlapped: bool = False


class Opening(msgspec.Struct):
    """The first line of a log."""

    plan: WebPlan


class RequestLog:
    """Gathers rows and appends them to the file when flushed; without a file it forgets them."""

    def __init__(self, path: Path | None, plan: WebPlan) -> None:
        self._file: BinaryIO | None = path.open("wb", buffering=0) if path else None
        self._encoder = msgspec.json.Encoder()
        self._lines = [self._encoder.encode(Opening(plan))]

    def add(self, request: Request) -> None:
        if self._file:
            self._lines.append(self._encoder.encode(request))

    def flush(self) -> None:
        if self._file and self._lines:
            self._file.write(b"\n".join(self._lines) + b"\n")
        self._lines.clear()

    def close(self) -> None:
        self.flush()
        if self._file:
            self._file.close()


def read_log(path: Path | str) -> list[Request]:
    """The requests so far, by start; a last line that is only half written is left out."""
    decoder = msgspec.json.Decoder(Request)
    rows = {}
    for number, line in enumerate(_lines(path)[1:], start=2):
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as fault:
            raise UsageError(f"{path}:{number} is no row of a request log: {fault}") from fault
        rows[row.id] = row
    return sorted(rows.values(), key=lambda row: row.start)


def read_plan(path: Path | str) -> WebPlan:
    """The plan of the web that wrote the log."""
    lines = _lines(path)
    try:
        return msgspec.json.decode(lines[0] if lines else b"", type=Opening).plan
    except msgspec.DecodeError as fault:
        raise UsageError(f"{path} is no request log of a synthetic web: {fault}") from fault


def _lines(path: Path | str) -> list[bytes]:
    try:
        return Path(path).read_bytes().split(b"\n")[:-1]
    except OSError as fault:
        raise UsageError(f"cannot read {path}: {fault.strerror}") from fault
