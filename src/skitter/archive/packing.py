"""From one exchange to a parcel: everything that the archive takes, made where the page was read.

On the worker's side, between the step and the committer. Compression, the index line and the table rows are
nearly all of what archiving costs, and depend on the exchange alone; where a record comes to lie, and whether a
known body makes it a revisit, is decided by the process that writes (`record_place.py`). Pure but for the random
record ids; never names a segment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import msgspec

from skitter.archive.digests import Digests
from skitter.archive.facts import NO_FACTS, Answer, Facts, describe_answer
from skitter.archive.schema import Table, choose_tables
from skitter.archive.tables.rows import pack_rows
from skitter.archive.warc import records
from skitter.archive.warc.cdxj import line_middle, line_start
from skitter.archive.warc.coding import CODINGS
from skitter.archive.warc.heads import request_head
from skitter.archive.warc.metadata import metadata_block
from skitter.archive.warc.surt import posted, simple_surt, surt
from skitter.model import Exchange
from skitter.settings import ArchiveSettings

_NOT_MODIFIED = 304
RENDERED, VIEW, THUMBNAIL = "rendered", "view", "thumbnail"
"""What a resource record was made of a page: its URI is `urn:`, this, `:` and the page's URL."""


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """What a revisit record says beside the copy that it refers to: its fields, the stored head of the answer,
    and the payload digest as it is spelled."""

    fields: str
    head: bytes
    digest: str


class Beside(msgspec.Struct, frozen=True, array_like=True):
    """A further record of a parcel, with its own index line: a screenshot."""

    record: bytes
    line_start: bytes
    line_middle: bytes


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    """One exchange, ready to be placed. `digest` is of the body that the answer stands for: its own, or the one
    that a 304 says still holds; empty where there is none. `size` is of its own. `line_start` and `line_middle`
    are of the index line, `rows` of the tables; empty where there are none."""

    url: str
    sent_at: float
    status: int
    size: int
    digest: bytes
    record_id: str
    request: bytes
    answer: bytes
    metadata: bytes
    line_start: bytes
    line_middle: bytes
    rows: bytes
    reference: Reference
    beside: tuple[Beside, ...] = ()


class Packer:
    def __init__(self, settings: ArchiveSettings, added: Sequence[Table] = ()) -> None:
        """`added` are tables of somebody else's, whose rows are in `Facts.items`."""
        tables = choose_tables(settings.tables, added)
        sources = {column.source for table in tables for column in table.columns}
        self._ids = records.record_ids()
        self._coder = CODINGS[settings.compression].coder(settings.level)
        self._with_metadata = settings.metadata
        self._with_links = "links" in sources
        self._with_text = "text" in sources
        self._rows: Callable[[Answer], bytes] | None = pack_rows(tables) if tables else None

    def pack(
        self,
        exchange: Exchange,
        digests: Digests,
        *,
        media_type: str,
        facts: Facts = NO_FACTS,
        stands_for: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Parcel:
        """`facts` go into the metadata record and the tables. `stands_for` is the digest of the page which a 304
        speaks of. `headers` are the first of each name, where the caller has them already. What it costs:
        bench/archive.py."""
        status, body = exchange.status, exchange.body
        head, digest, block = digests
        payload, whole = records.digest_fields(digest, block)
        # The digest of a 304's absent body would say that the page is empty.
        payload = "" if status == _NOT_MODIFIED else payload
        uri, key = _spell_url(exchange.url)
        if exchange.request.startswith(b"POST "):
            key = surt(posted(uri, exchange.request.partition(b"\r\n\r\n")[2].decode("latin-1")))
        headers = dict(reversed(exchange.headers)) if headers is None else headers
        mime = records.media_type_of(headers.get("content-type", ""))
        detected = records.media_type_of(facts.media_type or media_type)
        date, stamp, micros = records.spell_time(exchange.sent_at)

        # Three ids from one, by their last digit: so a record that names another costs hardly a byte more.
        ident = next(self._ids)[:-1]
        record_id, request_id = f"{ident}1", f"{ident}0" if exchange.request else ""
        common = records.common_fields(exchange, uri, date)
        fields = records.response_fields(exchange, common, payload, detected, request_id)
        response = records.response_record(head, body, whole, record_id, fields)
        request = metadata = b""
        if exchange.request:
            request = records.request_record(request_head(exchange.request), request_id, common)
        if self._with_metadata:
            # Links are told once: by the table where there is one.
            told = metadata_block(exchange, facts, with_links=not self._with_links)
            metadata = records.metadata_record(f"{ident}2", record_id, common, told)
        rows = self._pack_rows(exchange, facts, headers, (uri, key), mime, payload, micros)
        short = self._coder.short
        return Parcel(
            exchange.url,
            exchange.sent_at,
            status,
            len(body),
            digest if body else stands_for,
            record_id,
            short(request) if request else b"",
            self._coder.page(response),
            short(metadata) if metadata else b"",
            line_start(key, stamp, uri),
            line_middle(mime or "unk", detected, status, payload),
            rows,
            Reference(fields, head, payload),
        )

    def _pack_rows(
        self,
        exchange: Exchange,
        facts: Facts,
        headers: Mapping[str, str],
        spelled: tuple[str, str],
        mime: str,
        digest: str,
        micros: int,
    ) -> bytes:
        """`spelled` is the URL as records spell it, and its key in the index."""
        if self._rows is None:
            return b""
        url, key = spelled
        answer = describe_answer(
            exchange,
            facts,
            headers,
            url=url,
            surt=key,
            mime=mime,
            digest=digest,
            micros=micros,
            with_links=self._with_links,
            with_text=self._with_text,
        )
        return self._rows(answer)

    def pack_rendered(
        self, exchange: Exchange, origin: str, facts: Facts, views: Sequence[tuple[str, str, bytes]] = ()
    ) -> Parcel:
        """A page as its scripts left it: `exchange` has no request, and its body is what they left. `origin` are
        the fields that name the record it was made of. `views` are pictures of it: kind, media type, bytes."""
        (page_uri, page_key), body = _spell_url(exchange.url), exchange.body
        date, stamp, micros = records.spell_time(exchange.sent_at)
        headers = dict(reversed(exchange.headers))
        mime = records.media_type_of(headers.get("content-type", ""))
        ident = next(self._ids)[:-1]
        made = [
            self._resource(f"{ident}{number}", kind, page_uri, date, stamp, origin, media_type, block)
            for number, (kind, media_type, block) in enumerate(
                ((RENDERED, headers.get("content-type", ""), body), *views), 1
            )
        ]
        digest = records.digest_field(sha256(body).digest())
        rows = self._pack_rows(exchange, facts, headers, (page_uri, page_key), mime, digest, micros)
        first = made[0]
        return Parcel(
            exchange.url,
            exchange.sent_at,
            exchange.status,
            len(body),
            b"",
            f"{ident}1",
            b"",
            first.record,
            b"",
            first.line_start,
            first.line_middle,
            rows,
            Reference(origin, b"", digest),
            tuple(made[1:]),
        )

    def _resource(
        self,
        ident: str,
        kind: str,
        page: str,
        date: str,
        stamp: str,
        origin: str,
        media_type: str,
        block: bytes,
    ) -> Beside:
        uri = f"urn:{kind}:{page}"
        digest = records.digest_field(sha256(block).digest())
        fields = f"WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\n{origin}WARC-Payload-Digest: {digest}\r\n"
        record = records.resource_record(ident, fields, media_type, block)
        mime = records.media_type_of(media_type)
        return Beside(
            self._coder.page(record), line_start(surt(uri), stamp, uri), line_middle(mime, "", 200, digest)
        )


def _spell_url(url: str) -> tuple[str, str]:
    """A URL as records spell it, and its key in the index."""
    if key := simple_surt(url):
        return url, key
    uri = records.target_uri(url)
    return uri, surt(uri)
