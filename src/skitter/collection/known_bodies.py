"""The bodies that another archive holds, by their SHA-256, and where: so that a crawl need not store them again.

Beside the readers. From an index where it has SHA-256; else the bodies are read. Never writes.
"""

from __future__ import annotations

from base64 import b32decode
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from skitter.archive.segments import INDEX
from skitter.collection.captures import Capture, parse_line, whole_lines
from skitter.collection.collection import Collection
from skitter.collection.source import FolderSource
from skitter.errors import UsageError
from skitter.model import Copy

_BYTES = 32


def known_bodies(place: str) -> Iterator[tuple[bytes, Copy]]:
    """`place` is an archive, or a CDXJ index."""
    if place.endswith(INDEX) and Path(place).is_file():
        yield from _of_index(Path(place))
        return
    with Collection.at(place) as collection:
        for name in collection.layout.indexes:
            for line in whole_lines(collection.source, name):
                capture = parse_line(line)
                if capture is not None and _has_body(capture):
                    digest = digest_bytes(capture.digest)
                    if digest is None:
                        digest = sha256(collection.record(capture.at).payload()).digest()
                    yield digest, _copy(capture)


def _of_index(path: Path) -> Iterator[tuple[bytes, Copy]]:
    source, lines, found = FolderSource(path.parent), 0, 0
    for line in whole_lines(source, path.name):
        capture = parse_line(line)
        if capture is None or not _has_body(capture):
            continue
        lines += 1
        digest = digest_bytes(capture.digest)
        if digest is not None:
            found += 1
            yield digest, _copy(capture)
    if lines and not found:
        raise UsageError(
            f"{path} has no SHA-256 of any body: name the archive itself, so that they can be read"
        )


def _has_body(capture: Capture) -> bool:
    return capture.mime != "warc/revisit" and 200 <= capture.status < 300


def digest_bytes(said: str) -> bytes | None:
    """Of a SHA-256 in base 32 or in hexadecimal; None for any other."""
    algorithm, _, value = said.partition(":")
    if algorithm.lower() != "sha256":
        return None
    try:
        found = bytes.fromhex(value) if len(value) == 2 * _BYTES else b32decode(value.upper())
    except ValueError:
        return None
    return found if len(found) == _BYTES else None


def _copy(capture: Capture) -> Copy:
    try:
        at = datetime.strptime(capture.stamp[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        at = 0.0
    return Copy(capture.url, at, "")
