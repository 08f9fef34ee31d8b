"""Finding a page's records by bisection of the CDXJ indexes, and in the journals of growing segments.

Between a URL that somebody asks for and the record that answers. Reads a few kilobytes of each sorted index,
however large; a journal is not sorted and is read whole (25 MB in a segment of 1 GB).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from skitter.archive.warc.coding import OPEN
from skitter.archive.warc.surt import surt
from skitter.collection.layout import Layout
from skitter.collection.source import Source
from skitter.model import RecordAt

_BLOCK = 8192


class Capture(msgspec.Struct, frozen=True):
    """One index line: `stamp` is 14 digits."""

    key: str
    stamp: str
    url: str
    mime: str
    status: int
    digest: str
    at: RecordAt


class _Line(msgspec.Struct):
    url: str = ""
    mime: str = ""
    detected: str = msgspec.field(name="mime-detected", default="")
    status: str = "0"
    digest: str = ""
    length: str = "0"
    offset: str = "0"
    filename: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def parse_line(line: bytes) -> Capture | None:
    """None for a line that is no index line of ours."""
    key, _, rest = line.partition(b" ")
    stamp, _, body = rest.partition(b" ")
    try:
        found = _decode(body)
        at = RecordAt(found.filename, int(found.offset), int(found.length))
        status = int(found.status)
        return Capture(
            key.decode(), stamp.decode(), found.url, found.detected or found.mime, status, found.digest, at
        )
    except (msgspec.DecodeError, ValueError):
        return None


def captures_of(source: Source, layout: Layout, url: str) -> list[Capture]:
    """Every capture under the key of this URL, oldest first; the URL itself if it is there, else its kin."""
    prefix = surt(url).encode() + b" "
    lines: set[bytes] = set()
    # The merged index is a copy of the others; it alone is left where somebody kept nothing else.
    for name in layout.indexes or ((layout.merged,) if layout.merged else ()):
        lines.update(_bisected(source, name, prefix))
    for segment in layout.segments:
        if segment.is_growing and segment.index:
            lines.update(line for line in whole_lines(source, segment.index) if line.startswith(prefix))
    found = [capture for line in sorted(lines) if (capture := parse_line(line)) is not None]
    exact = [capture for capture in found if capture.url == url]
    return sorted(exact or found, key=lambda capture: (capture.stamp, capture.at.segment, capture.at.offset))


def whole_lines(source: Source, name: str, end: int | None = None) -> Iterator[bytes]:
    """The lines of an index in blocks; what follows the last line end is still being written."""
    position, rest = 0, b""
    end = source.size(name) if end is None else end
    while position < end:
        block = source.read(name, position, min(1 << 20, end - position))
        if not block:
            return
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        yield from lines


def segment_file(layout: Layout, name: str) -> str:
    """The file that a segment's records are in now; its own name when it is not here at all."""
    growing = name + OPEN
    return growing if any(segment.file == growing for segment in layout.segments) else name


def _bisected(source: Source, name: str, prefix: bytes) -> Iterator[bytes]:
    low, high = 0, source.size(name)
    # The first line that is not below the prefix begins in low..high.
    while high - low > _BLOCK:
        middle = (low + high) // 2
        line = _line_after(source, name, middle)
        if line is not None and line < prefix:
            low = middle
        else:
            high = middle
    position = low
    first = position > 0
    rest = b""
    while block := source.read(name, position, _BLOCK):
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        if first and lines:
            lines, first = lines[1:], False
        for line in lines:
            if line.startswith(prefix):
                yield line
            elif line > prefix:
                return


def _line_after(source: Source, name: str, position: int) -> bytes | None:
    """The first line that begins after `position`."""
    block, size = b"", _BLOCK
    while True:
        block = source.read(name, position, size)
        start = block.find(b"\n") + 1
        stop = block.find(b"\n", start) if start else -1
        if stop >= 0:
            return block[start:stop]
        if len(block) < size:
            return None
        size *= 2
