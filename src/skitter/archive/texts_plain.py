"""What `native/texts.c` does, in Python: it defines what both say, and works where no kernel was built. Pure."""

from __future__ import annotations

from skitter.archive import warc
from skitter.archive.cdxj import line_start, what_was_found
from skitter.archive.rows import Said, described
from skitter.model import Exchange

Texts = tuple[bytes, bytes, bytes, bytes, str, bytes, str]
"""The records of the request, of the response and of what was found out; the start of the index line; of a
revisit record in the response's place the fields and the start of its line; the payload digest as spelled."""


def texts(
    exchange: Exchange,
    head: bytes,
    request: bytes,
    unique: str,
    uri: str,
    key: str,
    mime: str,
    detected: str,
    block: bytes,
    payload: bytes,
    said: Said | None,
    outlinks: str,
    /,
) -> Texts:
    """`head` and `request` as they are stored, the latter empty where there is none; `unique` is a record id but
    for its last digit; `block` and `payload` are digests, the latter empty when there is nothing to digest;
    `said` is what the metadata record tells, when there is to be one, and `outlinks` the end of it."""
    date, common = warc.warc_date(exchange.sent_at), warc.common_fields(exchange, uri)
    # Three ids from one, by their last digit: so a record that names another costs hardly a byte more.
    request_id, record_id = f"{unique}0" if request else "", f"{unique}1"
    digest = warc.digest_field(payload) if payload else ""
    fields = warc.response_fields(exchange, common, digest, detected, request_id)
    start = line_start(key=key, uri=uri, date=date)
    about = described(exchange, said, outlinks) if said is not None else None
    return (
        warc.request_record(request, request_id, date, common) if request else b"",
        warc.response_record(head, exchange.body, warc.digest_field(block), record_id, date, fields),
        warc.metadata_record(f"{unique}2", record_id, date, common, about) if about is not None else b"",
        start + what_was_found(mime or "unk", detected, exchange.status, digest),
        fields,
        start + what_was_found("warc/revisit", "", exchange.status, digest),
        digest,
    )
