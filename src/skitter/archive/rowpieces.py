"""A row of the tables, made where the page was read: by the kernel in C where it was built, else by the Python
that defines it.

Between the texts of an exchange and its parcel. Pure. 8 us for a page of 34 links and 8 KB of text where the
Python takes 30, and 5 for the digest of the text.
"""

from __future__ import annotations

from hashlib import sha256

from skitter.archive.rows import Pieces, Said
from skitter.model import Exchange

__all__ = ["row_pieces"]

try:
    from skitter.native.rowpieces import row_pieces as _pieces
    from skitter.native.rowpieces import utf8
except ImportError:
    from skitter.archive.rowpieces_plain import row_pieces as _pieces
    from skitter.archive.rowpieces_plain import utf8


def row_pieces(
    exchange: Exchange,
    said: Said,
    uri: str,
    surt: str,
    digest: str,
    mime: str,
    with_links: bool,
    with_text: bool,
) -> Pieces:
    """`digest` is the payload's as it is spelled. That of the text is made here, not by the one process that
    writes for all."""
    text = utf8(said.text) if with_text else b""
    text_digest = sha256(text).digest() if text else b""
    return _pieces(exchange, said, uri, surt, digest, mime, text, text_digest, with_links)
