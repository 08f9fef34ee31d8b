"""From bytes to text as browsers do it: byte order mark, header, what the document declares, a guess.

HTML is decoded by its parser, which prescans for `<meta>` as the standard says; this module names encodings
for it (WHATWG labels, never Python's codec registry: `utf-7` and `zlib` are no charsets of the web), guesses
where nothing is declared, and decodes what is not HTML. Decoding never fails; it replaces.
"""

from __future__ import annotations

import re
from functools import lru_cache

import turbohtml
from turbohtml.detect import detect

UTF_8 = "UTF-8"
FALLBACK = "windows-1252"
ISO_2022_JP = "ISO-2022-JP"

_LONGEST_LABEL = 40
# HTML 13.2.3.2: where a charset is looked for before parsing.
_PRESCANNED = 1_024
# Guessing reads this much: 10 MB of 0xFF took 1.4 s to guess about, 64 KB takes 10 ms.
_GUESSED_FROM = 65_536
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xfe\xff", "UTF-16BE"), (b"\xff\xfe", "UTF-16LE"))
_XML_DECLARATION = re.compile(rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")
# ISO-2022-JP is ASCII bytes throughout: a shift to two-byte characters, at least one of them, and back.
_JAPANESE = re.compile(rb"\x1b\$[@B](?:[\x21-\x7e]{2})++\x1b\([BJ]")


@lru_cache(maxsize=512)
def _lookup(label: str) -> str:
    try:
        return turbohtml.parse(b"", encoding=label).encoding or ""
    except LookupError:
        return ""


def encoding_name(label: str) -> str:
    """The WHATWG name of the encoding a label stands for; empty when it stands for none."""
    label = label.strip("\t\n\f\r ")
    if not label or len(label) > _LONGEST_LABEL or not label.isascii() or not label.isprintable():
        return ""
    return _lookup(label.lower())


def prescan(body: bytes) -> str:
    """The encoding that HTML declares in its first 1,024 bytes, as the parser finds it; empty when there is
    none."""
    document = turbohtml.parse(body[:_PRESCANNED], positions=False)
    return document.encoding or "" if document.encoding_confidence == "certain" else ""


def guess(body: bytes) -> str:
    """The likely encoding of a document that declares none; its first 64 KB decide."""
    start = body[:_GUESSED_FROM]
    if start.isascii():
        return ISO_2022_JP if _JAPANESE.search(start) else FALLBACK
    if _is_utf_8(start, cut=len(body) > len(start)):
        return UTF_8
    found = detect(start).encoding or FALLBACK
    return UTF_8 if found == "UTF-8-SIG" else found


def _is_utf_8(start: bytes, *, cut: bool) -> bool:
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return cut and wrong.reason == "unexpected end of data"
    return True


def decode(body: bytes, header_charset: str = "") -> tuple[str, str]:
    """The text of a body that is not HTML, and the name of the encoding it was read with."""
    for mark, name in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return _decode(body[len(mark) :], name), name
    name = encoding_name(header_charset) or _declared(body)
    if not name and b"\x1b$" in body and guess(body) == ISO_2022_JP:
        name = ISO_2022_JP
    if name in ("", UTF_8):
        # UTF-8 first: strict decoding is cheaper than guessing.
        try:
            return body.decode("utf-8"), UTF_8
        except UnicodeDecodeError:
            name = name or guess(body)
    return _decode(body, name), name


def _declared(body: bytes) -> str:
    """What the XML declaration says, if there is one. It is ASCII, so it cannot be true of UTF-16 without a
    mark."""
    found = _XML_DECLARATION.match(body)
    name = encoding_name(found[1].decode("ascii")) if found else ""
    return UTF_8 if name.startswith("UTF-16") else name


def _decode(body: bytes, name: str) -> str:
    if name == UTF_8:
        return body.decode("utf-8", "replace")
    # turbohtml registers the decoders of the Encoding Standard under these names; Python's own big5, gbk or
    # koi8-u are other tables.
    return body.decode(f"whatwg-{name.lower()}", "replace")
