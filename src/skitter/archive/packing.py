"""From one exchange to a parcel: everything that the archive takes, made where the page was read.

On the worker's side, between the step and the desk. Digests, compression, the index line and the table row are
nearly all of what archiving costs, and depend on the exchange alone; where a record comes to lie, and whether a
known body makes it a revisit, is decided by the one who writes (`placing.py`). Pure but for the random record
ids; never names a segment.
"""

from __future__ import annotations

import msgspec

from skitter.archive import warc
from skitter.archive.coding import CODINGS
from skitter.archive.digests import Digests
from skitter.archive.heads import request_head
from skitter.archive.rowpieces import row_pieces
from skitter.archive.rows import NOTHING_SAID, Pieces, Said, outlinks_of
from skitter.archive.surt import surt, usual_surt
from skitter.archive.texts import texts
from skitter.model import Exchange
from skitter.settings import ArchiveSettings

_NOT_MODIFIED = 304


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """What a revisit record says beside the copy it refers to: fields, the head, the start of its index line."""

    fields: str
    head: bytes
    line: bytes


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    """One exchange, ready to be placed. `digest` is of the body that the answer stands for: its own, or the one
    that a 304 says still holds; empty where there is none. `size` is of its own."""

    url: str
    sent_at: float
    status: int
    size: int
    digest: bytes
    record_id: str
    request: bytes
    answer: bytes
    metadata: bytes
    line: bytes
    row: Pieces | None
    reference: Reference


def _types(exchange: Exchange, detected: str) -> tuple[str, str]:
    """What the server said, and what it is."""
    # Between hashing and compressing, a generator as `Exchange.header` has one takes 3 us.
    said = ""
    for name, value in exchange.headers:
        if name == "content-type":
            said = value
            break
    if len(said) < warc.LONG_TYPE and len(detected) < warc.LONG_TYPE:
        return warc.usual_types(said, detected)
    return warc.media_type_of(said), warc.media_type_of(detected)


class Packer:
    def __init__(self, settings: ArchiveSettings) -> None:
        self._ids = warc.record_ids()
        self._coder = CODINGS[settings.compression].coder(settings.level)
        self._with_metadata = settings.metadata
        self._with_rows = bool(settings.tables)
        self._with_links = "links" in settings.tables
        self._with_text = "text" in settings.tables

    def pack(
        self,
        exchange: Exchange,
        digests: Digests,
        *,
        media_type: str,
        said: Said = NOTHING_SAID,
        stands_for: bytes = b"",
    ) -> Parcel:
        """`stands_for` is the digest of the page which a 304 speaks of. `said` goes into the metadata record and
        the tables. What it costs: bench/archive.py."""
        status, body = exchange.status, exchange.body
        # The body was hashed first and is compressed last: both leave nothing else in the processor's caches, and
        # all that is between takes half as long as among them.
        head, digest, block = digests
        # The digest of a 304's absent body would say that the page is empty.
        payload = b"" if status == _NOT_MODIFIED else digest
        uri, unique = exchange.url, next(self._ids)[:-1]
        key = usual_surt(uri)
        if not key:
            uri = warc.target_uri(uri)
            key = surt(uri)
        mime, detected = _types(exchange, said.media_type or media_type)
        told = said if self._with_metadata else None
        # Once is enough.
        outlinks = "" if told is None or self._with_links else outlinks_of(told)
        sent = request_head(exchange.request) if exchange.request else b""
        request, answer, metadata, line, fields, reference_line, spelled = texts(
            exchange, head, sent, unique, uri, key, mime, detected, block, payload, told, outlinks
        )
        row = None
        if self._with_rows:
            row = row_pieces(exchange, said, uri, key, spelled, mime, self._with_links, self._with_text)
        short = self._coder.short
        request, metadata = short(request) if request else b"", short(metadata) if metadata else b""
        return Parcel(
            exchange.url,
            exchange.sent_at,
            status,
            len(body),
            digest if body else stands_for,
            f"{unique}1",
            request,
            self._coder.page(answer),
            metadata,
            line,
            row,
            Reference(fields, head, reference_line),
        )
