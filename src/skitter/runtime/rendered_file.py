"""Rendered pages as records of a WARC file of their own, and screenshots as files with a page to look at them.

Beside `render_archive.py`. A record is a `resource` called `urn:rendered:URL`: under the page's own URL replay
would show it instead of the page. It refers to the response that it was made of.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from skitter.archive.warc import records
from skitter.archive.warc.coding import GZIP
from skitter.clock import Clock
from skitter.collection.export.names import file_name
from skitter.collection.record import Record
from skitter.render.base import Rendered

_LEVEL = 2
_HTML = "text/html; charset=utf-8"
_SHEET = """<!DOCTYPE html><meta charset=utf-8><title>Screenshots</title>
<style>body{font:14px sans-serif;display:flex;flex-wrap:wrap;gap:16px}figure{margin:0;width:320px}
img{width:320px;height:240px;object-fit:cover;object-position:top;border:1px solid #ccc}
figcaption{overflow-wrap:anywhere}</style>
"""


class RenderedFile:
    """Open between `with`; each page is written whole."""

    def __init__(self, path: Path, name: str, clock: Clock) -> None:
        self._path, self._name, self._clock = path, name, clock
        self._ids = records.record_ids()
        self._compress = GZIP.coder(_LEVEL).page
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        about = {"description": "pages as scripts left them, rendered from an archive"}
        self._write(records.warcinfo(next(self._ids), self._now(), self._name, about))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, rendered: Rendered, record: Record) -> None:
        if not rendered.has_content:
            return
        made = [("rendered", _HTML, rendered.html.encode())]
        if (shots := rendered.screenshots) is not None:
            made.append(("view", shots.media_type, shots.whole))
            made.append(("thumbnail", shots.media_type, shots.thumbnail))
        origin = records.made_of(record.id, record.url, record.date)
        for kind, content_type, block in made:
            name = f"urn:{kind}:{records.target_uri(record.url)}"
            fields = f"WARC-Date: {self._now()}\r\nWARC-Target-URI: {name}\r\n{origin}"
            self._write(records.resource_record(next(self._ids), fields, content_type, block))

    def _now(self) -> str:
        return records.warc_date(self._clock.now())

    def _write(self, record: bytes) -> None:
        assert self._file is not None
        self._file.write(self._compress(record))


class ContactSheet:
    """Screenshots in a folder, one file a page and a small one, and `index.html` with all of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._figures: list[str] = []

    def add(self, rendered: Rendered, record: Record) -> None:
        if (shots := rendered.screenshots) is None:
            return
        whole, small = file_name(record.url, ".jpg"), file_name(record.url, ".small.jpg")
        for name, content in ((whole, shots.whole), (small, shots.thumbnail)):
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._figures.append(
            f'<figure><a href="{escape(whole)}"><img src="{escape(small)}" loading=lazy></a>'
            f"<figcaption>{escape(record.url)}</figcaption></figure>\n"
        )

    def finish(self) -> None:
        (self._folder / "index.html").write_text(_SHEET + "".join(self._figures))
