"""PDFs made by hand: honest ones, and such as no honest program writes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


def assemble(objects: Sequence[bytes], *, trailer: bytes = b"") -> bytes:
    """Objects numbered from 1, the first of which is the catalogue, with a true cross-reference table."""
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        trailer,
        start,
    )
    return bytes(out)


def stream(content: bytes, *, filters: int = 1) -> bytes:
    for _ in range(filters):
        content = zlib.compress(content, 9)
    names = b"/FlateDecode " * filters
    return b"<</Length %d/Filter[%s]>>\nstream\n%s\nendstream" % (len(content), names, content)


def with_content(content: bytes, annotations: bytes = b"", title: bytes = b"") -> bytes:
    """One page that shows a content stream object."""
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Annots[%s]"
        b"/Resources<</Font<</F 5 0 R>>/XObject<</X 4 0 R>>>>>>" % annotations
    )
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        page,
        content,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Title(%s)>>" % title,
    ]
    return assemble(objects, trailer=b"/Info 6 0 R")


def pdf(text: str, *, title: str = "", links: Sequence[str] = ()) -> bytes:
    annotations = b"".join(
        b"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(%s)>>>>" % link.encode() for link in links
    )
    content = stream(b"BT /F 12 Tf 50 700 Td (%s) Tj ET" % text.encode())
    return with_content(content, annotations, title.encode())
