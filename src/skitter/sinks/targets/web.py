"""An HTTP server as a target: batches of JSON lines, each with a key that is the same whenever it is sent.

What was taken is noted in a file of this machine, after the server's answer. A kill in between sends the batch
once more: at least once, with `Idempotency-Key` and a `row_id` in each row by which a server can tell.
"""

from __future__ import annotations

import base64
import http.client
import os
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import certifi

from skitter import __version__
from skitter.clock import Clock
from skitter.errors import TargetFailed, TargetRefused, UsageError
from skitter.sinks.reading import Delivery
from skitter.sinks.target import json_rows, without_secrets

TOKEN = "SKITTER_SINK_TOKEN"
_SECONDS = 60.0
_ROWS, _BYTES = 500, 1_000_000
_MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 3600.0
_SHOWN = 200


class WebTarget:
    """`note` is the file of what was taken, a line a part."""

    def __init__(self, url: str, crawl: str, note: Path, clock: Clock) -> None:
        self._to = urlsplit(url)
        self._shown = without_secrets(url)
        self._crawl = crawl
        self._note = note
        self._clock = clock
        self._headers = _headers(self._to)
        self._connection = _connect(self._to)
        if not self._to.hostname:
            raise UsageError(f"{self._shown} names no host: write https://host/path")
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()
        except OSError as error:
            raise UsageError(
                f"{note} cannot be written ({error.strerror}): it keeps how far the sink is; "
                "name another with --note"
            ) from error
        self._ask_whether_it_is_there()

    def _ask_whether_it_is_there(self) -> None:
        """Before the first row: a wrong name or port is said at once."""
        try:
            self._connection.connect()
        except OSError as error:
            raise self._unreachable(error) from error

    def delivered(self) -> set[str]:
        lines = self._note.read_bytes().split(b"\n")
        return {line.decode("utf-8", "replace") for line in lines[:-1]}  # the last one may have broken off

    def deliver(self, delivery: Delivery) -> None:
        for number, batch in enumerate(_batches(json_rows(delivery))):
            key = sha256(f"{self._crawl}\0{delivery.name}\0{number}".encode()).hexdigest()[:32]
            self._post(batch, {"Idempotency-Key": key, "Skitter-Table": delivery.table})
        self._write_down(delivery.name)

    def _post(self, body: bytes, headers: dict[str, str]) -> None:
        path = (self._to.path or "/") + (f"?{self._to.query}" if self._to.query else "")
        try:
            self._connection.request("POST", path, body, {**self._headers, **headers})
            answer = self._connection.getresponse()
            said = answer.read(100_000)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise self._unreachable(error) from error
        if answer.will_close or len(said) >= 100_000:
            self._connection.close()
        if 200 <= answer.status < 300:
            return
        text = f"{self._shown} says {answer.status} {answer.reason}"
        if answer.status in _MAY_PASS:
            raise TargetFailed(text, self._asked_wait(answer.getheader("Retry-After", "")))
        words = " ".join(said.decode("utf-8", "replace").split())[:_SHOWN]
        raise TargetRefused(f"{text}{f': {without_secrets(words)}' if words else ''}")

    def _asked_wait(self, header: str) -> float:
        """In seconds, from either form of Retry-After."""
        if header.strip().isdigit():
            return min(float(header), _LONGEST_WAIT)
        try:
            until = parsedate_to_datetime(header)
        except ValueError:
            return 0.0
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - self._now()).total_seconds()
        return min(max(0.0, seconds), _LONGEST_WAIT)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _write_down(self, name: str) -> None:
        content = self._note.read_bytes()
        # A line that broke off in a power loss is of a part that is sent once more.
        whole = content[: content.rfind(b"\n") + 1]
        with self._note.open("r+b") as note:
            note.truncate(len(whole))
            note.seek(len(whole))
            note.write(name.encode() + b"\n")
            note.flush()
            os.fsync(note.fileno())

    def _unreachable(self, error: Exception) -> TargetFailed:
        return TargetFailed(
            f"{self._shown} does not answer ({without_secrets(str(error)) or type(error).__name__})"
        )

    def close(self) -> None:
        self._connection.close()


def _connect(to: SplitResult) -> http.client.HTTPConnection:
    host = to.hostname or ""
    try:
        port = to.port
    except ValueError:
        raise UsageError(
            f"{without_secrets(to.geturl())} has no port that can be: write https://host:8443/"
        ) from None
    if to.scheme == "https":
        context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())
        return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=_SECONDS)


def _headers(to: SplitResult) -> dict[str, str]:
    headers = {"Content-Type": "application/x-ndjson", "User-Agent": f"skitter/{__version__} (sink)"}
    if token := _token():
        headers["Authorization"] = f"Bearer {token}"
    elif to.username is not None:
        pair = f"{unquote(to.username)}:{unquote(to.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return headers


def _token() -> str:
    if file := os.environ.get(f"{TOKEN}_FILE"):
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            raise UsageError(f"{TOKEN}_FILE cannot be read ({error.strerror}): check the path") from error
    return os.environ.get(TOKEN, "")


def _batches(rows: list[bytes]) -> Iterator[bytes]:
    """The same ones whenever the part is sent: their keys depend on it."""
    batch: list[bytes] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == _ROWS or size + len(row) > _BYTES):
            yield b"".join(batch)
            batch, size = [], 0
        batch.append(row + b"\n")
        size += len(row)
    if batch:
        yield b"".join(batch)
