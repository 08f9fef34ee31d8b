"""Are the records of a parcel what a packer makes? Each is made again from what the parcel says, and compared.

Under `parcel_check.py`. What a worker packed goes into the archive byte by byte: a head that breaks off, a date
that is none or a digest that lies would be found by the next reader, or would stand for the body of another page.
Inflates within limits. Decides nothing about the page itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from skitter.archive.digests import digests_of_parts
from skitter.archive.packing import Parcel
from skitter.archive.warc import records
from skitter.archive.warc.coding import CODINGS, Coding

_ID = r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}>"
_FIELDS = re.compile(
    r"(?P<common>WARC-Date: (?P<date>[0-9T:.-]+Z)\r\n"
    r"WARC-Target-URI: (?P<uri>[\x21-\x7e]+)\r\n"
    r"(?:WARC-IP-Address: [0-9A-Fa-f.:]+\r\n)?)"
    rf"(?:WARC-Concurrent-To: (?P<request>{_ID})\r\n)?"
    r"(?:WARC-Protocol: (?:http/1\.[01]|h2|h3)\r\n)?"
    r"(?:WARC-Payload-Digest: (?P<digest>sha256:[A-Z2-7]{52}====)\r\n)?"
    r"(?:WARC-Identified-Payload-Type: [\w.+-]+/[\w.+-]+\r\n)?"
    r"(?:WARC-Truncated: length\r\n)?"
    r"Content-Type: application/http; msgtype=response\r\n",
    re.ASCII,
)
_HEAD = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")
_END = b"\r\n\r\n"
_NOT_MODIFIED = 304
_LONGEST_FIELDS = 20_000


class Fault(Exception):
    """What is wrong with a parcel."""


def want(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Fault(otherwise)


class Told(NamedTuple):
    """What the records say, once they are known to agree: as index line and rows must say it, too."""

    uri: str
    stamp: str
    micros: int
    digest: str


def check_reference(parcel: Parcel, most: int) -> Told:
    """What a revisit record would be made of, which is what the response record was made of."""
    reference = parcel.reference
    want(len(reference.fields) <= _LONGEST_FIELDS, "its fields are too long")
    found = _FIELDS.fullmatch(reference.fields)
    if found is None:
        raise Fault("its fields are none")
    date, stamp, micros = records.spell_time(parcel.sent_at)
    uri = records.target_uri(parcel.url)
    want(found["uri"] == uri, "its record is of another URL")
    want(found["date"] == date, "its record is of another time")
    want((found["digest"] or "") == reference.digest, "its record spells another digest")
    _check_ids(parcel, found["request"])
    want(len(reference.head) <= most, "its head is too long")
    head = _HEAD.match(reference.head)
    want(head is not None and int(head[1]) == parcel.status, "its record has another status")
    ends = reference.head.find(_END) == len(reference.head) - len(_END)
    want(ends, "the head of its answer breaks off")
    return Told(uri, stamp, micros, reference.digest)


def _check_ids(parcel: Parcel, request: str | None) -> None:
    """Three from one, by their last digit."""
    want(parcel.record_id.endswith("1"), "its record id is none")
    want(request == (f"<{parcel.record_id[:-1]}0>" if parcel.request else None), "it names another request")


def coding_of_parcel(parcel: Parcel) -> Coding:
    coding = next((one for one in CODINGS.values() if parcel.answer.startswith(one.magic)), None)
    if coding is None:
        raise Fault("its record is not compressed as any archive is")
    members = (parcel.request, parcel.metadata)
    is_alike = all(not member or member.startswith(coding.magic) for member in members)
    want(is_alike, "one of its records is compressed in another way")
    return coding


def check_records(parcel: Parcel, coding: Coding, most: int) -> None:
    """Inflates them, makes them again, and compares."""
    _check_response(parcel, inflated(parcel.answer, coding, most))
    found = _FIELDS.fullmatch(parcel.reference.fields)
    common = found["common"] if found else ""
    if parcel.request:
        record = inflated(parcel.request, coding, most)
        block = _block_of(record)
        is_whole = _END in block if block.startswith(b"POST ") else block.endswith(_END)
        want(is_whole, "its request breaks off")
        wanted = records.request_record(block, f"{parcel.record_id[:-1]}0", common)
        want(record == wanted, "its request record is none")
    if parcel.metadata:
        record = inflated(parcel.metadata, coding, most)
        block = _block_of(record)
        told = block.decode("utf-8", "replace")
        wanted = records.metadata_record(f"{parcel.record_id[:-1]}2", parcel.record_id, common, told)
        want(record == wanted, "its metadata record is none")


def _check_response(parcel: Parcel, record: bytes) -> None:
    """Later pages with the digest refer to this record: one that lies would take their bodies' place."""
    stored = parcel.reference.head
    body = record[max(0, len(record) - len(_END) - parcel.size) : -len(_END)]
    want(len(body) == parcel.size, "its body is of another size than it says")
    payload, block = digests_of_parts(stored, body)
    spelled, whole = records.digest_fields(payload, block)
    want(not body or payload == parcel.digest, "its body has another digest than it says")
    is_bare = parcel.status == _NOT_MODIFIED and not body
    want(parcel.reference.digest == ("" if is_bare else spelled), "its digest is spelled otherwise")
    wanted = records.response_record(stored, body, whole, parcel.record_id, parcel.reference.fields)
    want(record == wanted, "its response record is none")


def _block_of(record: bytes) -> bytes:
    return record.partition(_END)[2][: -len(_END)]


def inflated(member: bytes, coding: Coding, most: int) -> bytes:
    """Within the limit, and to the last byte of what was given."""
    try:
        record = coding.inflate(member, most)
    except coding.fault as error:
        raise Fault(f"its record cannot be inflated: {error}") from error
    if record is None:
        raise Fault("its record inflates beyond fetch.max_body, is not whole, or is more than one")
    return record
