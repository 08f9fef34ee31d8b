"""The child process that reads PDFs: bodies in on standard input, readings out on standard output.

Beside the path of a URL: `pdf.py` starts it at the first PDF, and kills it when it takes too long. It is
the only place where the C++ of pdfium meets bytes of strangers, so it must hold nothing that matters: no
environment, no sockets, no files but Python's own, a bounded address space, a life no longer than its parent's.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
import pypdfium2 as pdfium
from pypdfium2 import raw

from skitter.confinement import confine
from skitter.parse.pdf import PdfReading

LENGTH = 8  # bytes that say how long the message after them is
MOST_PAGES = 5000
MOST_CHARACTERS = 2_000_000
MOST_LINKS = 10_000
_LONGEST_LINK = 2048


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    while len(length := requests.read(LENGTH)) == LENGTH:
        body = requests.read(int.from_bytes(length, "big"))
        reply = msgspec.msgpack.encode(read_pdf(body))
        replies.write(len(reply).to_bytes(LENGTH, "big") + reply)
        replies.flush()


def read_pdf(body: bytes) -> PdfReading:
    try:
        document = pdfium.PdfDocument(body)
    except (pdfium.PdfiumError, MemoryError) as error:
        return PdfReading(reason=str(error)[:200] or "out of memory")
    try:
        return _read(document)
    finally:
        document.close()


def _read(document: pdfium.PdfDocument) -> PdfReading:
    texts: list[str] = []
    links: dict[str, None] = {}
    room, reason = MOST_CHARACTERS, ""
    pages = len(document)
    for number in range(min(pages, MOST_PAGES)):
        try:
            page = document[number]
            text = _text(page)
        except (pdfium.PdfiumError, MemoryError) as error:
            reason = reason or f"page {number + 1}: {error}"[:200]
            continue
        texts.append(text[:room])
        room -= len(text)
        links.update(dict.fromkeys(_links(document, page)))
        page.close()
        if room <= 0 or len(links) >= MOST_LINKS:
            reason = reason or f"only {number + 1} of {pages} pages were read"
            break
    return PdfReading(
        title=_title(document),
        text="\n".join(texts),
        links=tuple(links)[:MOST_LINKS],
        pages=pages,
        reason=reason,
    )


def _title(document: pdfium.PdfDocument) -> str:
    return str(document.get_metadata_value("Title"))[:1000]


def _text(page: pdfium.PdfPage) -> str:
    text_page = page.get_textpage()
    try:
        return str(text_page.get_text_range())
    finally:
        text_page.close()


def _links(document: pdfium.PdfDocument, page: pdfium.PdfPage) -> Iterator[str]:
    """The targets of URI annotations, which PDF 32000 12.6.4.7 wants in ASCII."""
    position, link = ctypes.c_int(0), raw.FPDF_LINK()
    buffer = ctypes.create_string_buffer(_LONGEST_LINK)
    for _ in range(MOST_LINKS):
        if not raw.FPDFLink_Enumerate(page, ctypes.byref(position), ctypes.byref(link)):
            return
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        length = raw.FPDFAction_GetURIPath(document, action, buffer, _LONGEST_LINK)
        if 1 < length <= _LONGEST_LINK:
            yield buffer.raw[: length - 1].decode("utf-8", "replace")


if __name__ == "__main__":
    confine(int(sys.argv[2]), memory=int(sys.argv[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)
