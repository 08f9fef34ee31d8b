"""CDXJ: one line per stored response, sorted by key and time, so that a reader finds a page by bisection.

A segment's journal collects the lines as they come; finishing the segment sorts them into its index; closing
the archive merges the indexes of all segments. Never decides what is committed: it is given bytes that are.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import msgspec

TEMPORARY = ".tmp"
# Well below the usual limit of 1,024 open files, of which the crawl's sockets want most.
_MERGE_WIDTH = 128
_BUFFER = 1 << 20
_OFFSET = re.compile(rb'"offset": "(\d+)"')
_LINE = re.compile(rb'[^ ]+ \d{14} \{"url": .*"offset": "\d{1,18}", "filename": "[^"]*"\}\n')
_json = msgspec.json.encode


def index_line(
    *,
    key: str,
    uri: str,
    stamp: str,
    mime: str,
    detected: str,
    status: int,
    digest: str,
    offset: int,
    length: int,
    segment: str,
) -> bytes:
    """Names, order and strings for numbers as pywb's indexer writes them. `key` is the URL's surt, `stamp` its
    time in 14 digits."""
    rest = line_middle(mime, detected, status, digest) + line_end(offset, length, segment)
    return line_start(key, stamp, uri) + rest


def line_start(key: str, stamp: str, uri: str) -> bytes:
    """Only the URL can hold a character that JSON escapes: types, digests and names are checked before."""
    return b'%b %b {"url": %b, ' % (key.encode(), stamp.encode(), _json(uri))


def line_middle(mime: str, detected: str, status: int, digest: str) -> bytes:
    """What was found at the URL."""
    seen = f'"mime-detected": "{detected}", ' if detected else ""
    named = f'"digest": "{digest}", ' if digest else ""
    return f'"mime": "{mime}", {seen}"status": "{status}", {named}'.encode()


def line_end(offset: int, length: int, segment: str) -> bytes:
    return f'"length": "{length}", "offset": "{offset}", "filename": "{segment}"}}\n'.encode()


def write_sorted(journal: Path, length: int, index: Path) -> bytes:
    """Sort a committed journal into an index, in memory: a segment of 1 GB has about 25 MB of lines. Returns what
    is no line, and is left out."""
    with journal.open("rb") as source:
        lines = source.read(length).splitlines(keepends=True)
    sound = [line for line in lines if _LINE.fullmatch(line)]
    damaged = b"" if len(sound) == len(lines) else b"".join(n for n in lines if not _LINE.fullmatch(n))
    sound.sort()
    _replace(index, sound)
    return damaged


def write_journal(index: Path, length: int, journal: Path) -> None:
    """The reverse of `write_sorted`: the lines of a segment's first `length` bytes, in the order of records."""
    lines = index.read_bytes().splitlines(keepends=True)
    placed = ((int(_OFFSET.findall(line)[-1]), line) for line in lines if _LINE.fullmatch(line))
    _replace(journal, [line for offset, line in sorted(placed) if offset < length])


def write_merged(indexes: list[Path], merged: Path) -> None:
    """One index of all segments, whatever their number, with few files open at once."""
    level = 0
    while len(indexes) > _MERGE_WIDTH:
        level += 1
        groups = [indexes[at : at + _MERGE_WIDTH] for at in range(0, len(indexes), _MERGE_WIDTH)]
        indexes = [
            _merge(group, merged.with_name(f"{merged.name}.{level}-{number}{TEMPORARY}"))
            for number, group in enumerate(groups)
        ]
    _merge(indexes, merged)
    for leftover in merged.parent.glob(f"{merged.name}.*{TEMPORARY}"):
        leftover.unlink()


def _merge(indexes: list[Path], target: Path) -> Path:
    with ExitStack() as stack:
        _replace(target, heapq.merge(*(stack.enter_context(path.open("rb")) for path in indexes)))
    return target


def _replace(path: Path, lines: Iterable[bytes]) -> None:
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb", buffering=_BUFFER) as target:
            target.writelines(lines)
            target.flush()
            os.fsync(target.fileno())
    except OSError:
        # On a full disk the half-written file is what stands in the way of the next attempt.
        temporary.unlink(missing_ok=True)
        raise
    os.rename(temporary, path)
