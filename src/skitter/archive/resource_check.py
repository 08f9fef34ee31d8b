"""Are the records of a rendered page what a packer makes? Each is made again from what it says, and compared.

Under `parcel_check.py`, beside `record_check.py`. A rendered page is a `resource` record called `urn:rendered:`
with the page's URL; pictures of it follow, each with an index line of its own. Inflates within limits.
"""

from __future__ import annotations

import re
from hashlib import sha256

from skitter.archive.packing import RENDERED, THUMBNAIL, VIEW, Beside, Parcel
from skitter.archive.record_check import Fault, Told, inflated, want
from skitter.archive.warc import records
from skitter.archive.warc.cdxj import line_middle, line_start
from skitter.archive.warc.coding import CODINGS, Coding
from skitter.archive.warc.surt import surt

_ORIGIN = re.compile(
    r"WARC-Refers-To: <urn:uuid:[0-9a-f-]{36}>\r\nWARC-Refers-To-Target-URI: (?P<uri>[\x21-\x7e]+)\r\n"
    r"WARC-Refers-To-Date: [0-9T:.-]+Z\r\n",
    re.ASCII,
)
_TYPES = {RENDERED: "text/html; charset=utf-8", VIEW: "image/jpeg", THUMBNAIL: "image/jpeg"}
_KINDS = (RENDERED, VIEW, THUMBNAIL)
_END = b"\r\n\r\n"


def check_resources(parcel: Parcel, most: int, *, inflates: bool) -> Told:
    origin = _ORIGIN.fullmatch(parcel.reference.fields)
    uri = records.target_uri(parcel.url)
    if origin is None or origin["uri"] != uri:
        raise Fault("it does not say which record it was made of")
    want(not parcel.request and not parcel.metadata, "a rendered page has no request")
    want(not parcel.digest and not parcel.reference.head, "a rendered page is no copy")
    want(len(parcel.beside) < len(_KINDS), "it has too many records")
    want(parcel.record_id.endswith("1"), "its record id is none")
    date, stamp, micros = records.spell_time(parcel.sent_at)
    first = Beside(parcel.answer, parcel.line_start, parcel.line_middle)
    for number, (kind, each) in enumerate(zip(_KINDS, (first, *parcel.beside), strict=False), 1):
        name = f"urn:{kind}:{uri}"
        want(each.line_start == line_start(surt(name), stamp, name), "its index line is not of its record")
        digest = parcel.reference.digest if kind == RENDERED else _digest_of(each)
        mime = records.media_type_of(_TYPES[kind])
        want(each.line_middle == line_middle(mime, "", 200, digest), "its index line is none")
        if inflates:
            fields = f"WARC-Date: {date}\r\nWARC-Target-URI: {name}\r\n{parcel.reference.fields}"
            _check_record(each, f"{parcel.record_id[:-1]}{number}", fields, _TYPES[kind], digest, most)
    return Told(uri, stamp, micros, parcel.reference.digest)


def _digest_of(each: Beside) -> str:
    found = re.search(rb'"digest": "(sha256:[A-Z2-7]{52}====)"', each.line_middle)
    return found[1].decode() if found else ""


def _check_record(each: Beside, ident: str, fields: str, media_type: str, digest: str, most: int) -> None:
    record = inflated(each.record, _coding_of(each.record), most)
    block = record.partition(_END)[2][: -len(_END)]
    want(records.digest_field(sha256(block).digest()) == digest, "its digest is not that of its record")
    wanted = records.resource_record(ident, f"{fields}WARC-Payload-Digest: {digest}\r\n", media_type, block)
    want(record == wanted, "its resource record is none")


def _coding_of(member: bytes) -> Coding:
    coding = next((one for one in CODINGS.values() if member.startswith(one.magic)), None)
    if coding is None:
        raise Fault("its record is not compressed as any archive is")
    return coding
