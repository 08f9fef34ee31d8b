"""One segment, read from its first byte to its last: members, framing, fields, digests.

What index lines and table rows are then compared with is kept for this segment alone, about 300 bytes an
answer. Every check here was taught by a file that some other validator called valid.
"""

from __future__ import annotations

import re
from base64 import b32encode
from hashlib import new as new_hash
from hashlib import sha256

import msgspec

from skitter.archive.warc.records import digest_field
from skitter.collection.layout import SegmentAt
from skitter.collection.members import Broken, Member, read_members
from skitter.collection.record import Record, excess_fault, parse_record
from skitter.collection.source import Source
from skitter.collection.verify.findings import Report
from skitter.collection.verify.identities import Identities, Role

_DATE = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?Z"
)
_ID = re.compile(r"<[a-zA-Z][a-zA-Z0-9+.-]*:[^\s<>]+>")
# WARC 1.1, 5.5.
_KINDS = frozenset("warcinfo response resource request metadata revisit conversion continuation".split())
_WITH_TARGET = frozenset("response resource request revisit conversion continuation".split())
# Requests have none, as in Common Crawl's files; the compression's own check sum guards them.
_WITH_DIGEST = frozenset(("warcinfo", "response", "revisit"))
_ALGORITHMS = frozenset(("sha1", "sha256", "sha512", "md5"))


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A response or revisit record, as its index lines and rows must describe it."""

    length: int
    url: str
    stamp: str
    status: int
    digest: str


def check_segment(
    source: Source,
    segment: SegmentAt,
    end: int,
    identities: Identities,
    report: Report,
    *,
    foreign: bool = False,
) -> dict[int, Answer]:
    """Of a `foreign` file what the standard leaves open is no defect."""
    answers: dict[int, Answer] = {}
    number = identities.file(segment.file)
    if end == 0:
        report.defect(segment.file, 0, "the file is empty")
    for member in read_members(source, segment.file, end):
        if isinstance(member, Broken):
            report.defect(segment.file, member.offset, f"{member.what} ({member.length:,} bytes unreadable)")
            report.advance(member.length)
            continue
        record = parse_record(member.content)
        if isinstance(record, str):
            report.defect(segment.file, member.offset, record)
            report.advance(member.length)
            continue
        report.count(record.kind, member.length)
        found = _foreign_faults(record) if foreign else _faults(record, segment, member.offset)
        for fault in filter(None, found):
            report.defect(segment.file, member.offset, fault)
        if record.kind == "response" and not (foreign or record.fields.get("warc-concurrent-to")):
            # So is what was imported from somebody who kept no requests.
            report.note(
                segment.file, f"the response at {member.offset} names no request (WARC-Concurrent-To)"
            )
        _add_identity(identities, record, number, member.offset)
        if record.kind in ("response", "revisit") or (record.kind == "resource" and not foreign):
            answers[member.offset] = _answer(record, member)
    return answers


def _faults(record: Record, segment: SegmentAt, offset: int) -> list[str]:
    found = [
        excess_fault(record.excess),
        *_field_faults(record),
        *_digest_faults(record),
    ]
    if offset == 0 and record.kind != "warcinfo":
        found.append(f"the file begins with a {record.kind} record, not with warcinfo")
    if record.kind == "warcinfo" and record.fields.get("warc-filename", segment.name) != segment.name:
        found.append(f"warcinfo says that this file is {record.fields['warc-filename'][:100]}")
    if record.kind in ("response", "revisit") and not record.status:
        found.append("the block does not begin with an HTTP status line")
    return [fault for fault in found if fault]


def _foreign_faults(record: Record) -> list[str]:
    """What breaks the standard itself: framing, mandatory fields, digests that are not those of the bytes."""
    found = [excess_fault(record.excess), *_digest_faults(record)]
    optional = ("names no original", "no WARC-Block-Digest", "no WARC-Payload-Digest")
    found += _field_faults(record)
    is_http = record.url.startswith("http") and record.kind == "response"
    if is_http and not record.status:
        found.append("the block does not begin with an HTTP status line")
    return [fault for fault in found if not any(word in fault for word in optional)]


def _field_faults(record: Record) -> list[str]:
    fields, found = record.fields, []
    date, ident = record.date, fields.get("warc-record-id", "")
    if not date:
        found.append("no WARC-Date")
    elif _DATE.fullmatch(date) is None:
        found.append(f"WARC-Date is {date[:40]!r}")
    if not ident:
        found.append("no WARC-Record-ID")
    elif _ID.fullmatch(ident) is None:
        found.append(f"WARC-Record-ID is {ident[:80]!r}")
    if record.kind not in _KINDS:
        found.append(f"WARC-Type is {record.kind[:40]!r}" if record.kind else "no WARC-Type")
    if record.kind in _WITH_TARGET and not record.url:
        found.append("no WARC-Target-URI")
    if record.kind == "revisit" and not (
        fields.get("warc-refers-to") or fields.get("warc-refers-to-target-uri")
    ):
        found.append("the revisit names no original (WARC-Refers-To)")
    return found


def _digest_faults(record: Record) -> list[str]:
    block, payload = record.fields.get("warc-block-digest", ""), record.fields.get("warc-payload-digest", "")
    found = []
    if block:
        found.append(_wrong(block, record.block, "block"))
    elif record.kind in _WITH_DIGEST:
        found.append("no WARC-Block-Digest")
    # The payload of a revisit is its original's: compared with that.
    if record.kind == "response":
        found.append(_payload_fault(record, payload) if payload else "no WARC-Payload-Digest")
    return found


def _payload_fault(record: Record, said: str) -> str:
    """The standard does not say whether transfer coding is part of a payload; both are found."""
    fault = _wrong(said, record.body, "payload")
    return fault and _wrong(said, record.payload(), "payload")


def _wrong(said: str, content: bytes, what: str) -> str:
    if said == digest_field(sha256(content).digest()):
        return ""
    algorithm, _, value = said.partition(":")
    if algorithm.lower() not in _ALGORITHMS:
        return f"the {what} digest is of an unknown kind: {said[:40]!r}"
    digest = new_hash(algorithm.lower(), content, usedforsecurity=False).digest()
    spellings = (b32encode(digest).decode().rstrip("="), digest.hex().upper())
    return "" if value.upper().rstrip("=") in spellings else f"the {what} digest is wrong"


def _add_identity(identities: Identities, record: Record, number: int, offset: int) -> None:
    fields = record.fields
    digest = fields.get("warc-payload-digest", "") if record.kind in ("response", "revisit") else ""
    if record.id:
        role = Role.REQUEST if record.kind == "request" else Role.GIVEN
        identities.add(role, record.id, number, offset, digest)
    if concurrent := fields.get("warc-concurrent-to"):
        identities.add(Role.CONCURRENT, concurrent.strip("<>"), number, offset)
    if original := fields.get("warc-refers-to"):
        role = Role.ORIGINAL if record.kind == "revisit" else Role.CONCURRENT
        identities.add(role, original.strip("<>"), number, offset, digest)


def _answer(record: Record, member: Member) -> Answer:
    stamp = re.sub(r"[-:T]", "", record.date.partition(".")[0].removesuffix("Z"))
    digest = record.fields.get("warc-payload-digest", "")
    return Answer(member.length, record.url, stamp, record.status, digest)
