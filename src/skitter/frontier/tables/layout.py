"""The frontier's tables on disk: their keys, which order them, and their rows as bytes.

    urls     UrlKey                                   -> UrlRow
    hosts    host id (8)                              -> HostRow
    queue    host id, lane (1), urgency (1), seq (8)  -> the key of a queued URL, or an errand
    ready    tier (1), microseconds (8), host id      -> nothing; hosts by when they may be asked next
    leases   host id                                  -> LeaseTasks of the live lease
    timers   microseconds (8), host id                -> nothing; leases by deadline
    due      microseconds (8), UrlKey                 -> nothing; URLs by when they are tried again
    due      1, microseconds (8), UrlKey              -> nothing; pages by when they must be visited again
    due      2, microseconds (8), UrlKey              -> nothing; pages by when they are worth another visit
    denied   UrlKey                                   -> nothing; judged again when robots.txt changes
    dead     UrlKey                                   -> nothing; dead letters
    robots   host id                                  -> body of robots.txt
    copies   SHA-256 of a body                        -> Copy
    ledger   UrlKey, microseconds (8)                 -> FetchRow, one per fetch
    near     see `near_index.py`                      -> fingerprints of pages, and their pages
    unstored segment, 0, UrlKey, microseconds (8)     -> Held; fetches whose segment is not stored elsewhere yet
    skeletons  16 bytes, 1                            -> Habits of a pattern's or a host's pages
    skeletons, traps  see `trap_tables.py`            -> evidence on traps, verdicts, refused URLs
    anchors  text                                     -> nothing; what the seeds bring into scope
    meta     name                                     -> Tally, segment marks, format, notes, the outbox
    meta     see `render_tables.py`                   -> renderings, their queue and what they wait for

A UrlKey begins with the id of its host, so that all URLs of a host lie together. Only this module and its
neighbours in `tables/` know the bytes of a key.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from skitter.frontier.rows import (
    Errand,
    FetchRow,
    Habits,
    Held,
    HostRow,
    LeasedTask,
    Tally,
    UrlRow,
    Walk,
)
from skitter.frontier.tables.slots import pack_slot
from skitter.model import Copy, Discovered, SegmentMark, UrlState
from skitter.schedule.priority import LANES

TABLES = """urls hosts queue ready leases timers due denied dead robots copies ledger near unstored anchors
    skeletons traps meta""".split()
# meta: hosts whose robots.txt changed: URLs that it denied are judged again
REJUDGE = b"rejudge"
# meta: walks over refused URLs: of a host, or of all where no host follows
WALK = b"walk"
# meta: hosts that are given up or blocked, and whose queue is not empty yet
ABANDON = b"abandon"
# meta: what renderings of a pattern have brought
RENDER_KIND = b"render-kind "
# meta: verdicts that have ended, and whose URLs are not all requeued yet
RELEASE = b"release"
# meta: how much of each segment is committed
MARK = b"mark "
# meta: hosts (8 bytes) and URLs (16) that were forgotten, by their hashes alone
FORGOTTEN = b"forgotten"
# meta: segments that were rewritten without what is forgotten, and whose files are to go
SPENT = b"spent "
# meta: segments that were lost before they were stored: whoever had them may yet upload them
LOST = b"lost "
# meta: the outbox: what other partitions are to be told, by partition (2 bytes) and number (8)
POST = b"post "
# meta: the number of the last post that was taken from a partition (2 bytes)
TAKEN = b"taken "
# due: what stands before pages that are visited again, by whether that must be on time. A time in microseconds
# begins with 0.
REVISIT = {True: b"\1", False: b"\2"}
# skeletons: what stands after the key of a pattern or host whose habits these are
HABITS = b"\1"
# Longer than any key, and sorted after all of them.
END_OF_KEYS = b"\xff" * 17
KEY, HOST_ID = 16, 8
# The format of all rows. It goes up when older folders cannot be read any more. Version 0.1 wrote none.
FORMAT = b"2"
_MICRO = 1_000_000
_QUEUED = UrlState.QUEUED


SharedFields = tuple[int, int, bytes, bytes, bytes]
"""The part that rows of new URLs share, encoded once: lane, priority, and the bytes before the URL, between the
URL and the slot, and after the slot."""


encode = msgspec.msgpack.Encoder().encode
# The msgpack head of a slot, and of rows that end with their slot or with their linkers.
_SLOT = b"\xc4\x12"
_SLOT_AT = UrlRow.__struct_fields__.index("slot")
_UP_TO_SLOT, _UP_TO_LINKERS = bytes((0x91 + _SLOT_AT,)), bytes((0x92 + _SLOT_AT,))
assert UrlRow.__struct_fields__[_SLOT_AT + 1] == "linkers"
decode_url = msgspec.msgpack.Decoder(UrlRow).decode
_decode_host = msgspec.msgpack.Decoder(HostRow).decode
decode_held = msgspec.msgpack.Decoder(Held).decode
decode_copy = msgspec.msgpack.Decoder(Copy).decode
decode_fetch = msgspec.msgpack.Decoder(FetchRow).decode
_decode_tally = msgspec.msgpack.Decoder(Tally).decode
decode_habits = msgspec.msgpack.Decoder(Habits).decode
decode_errand = msgspec.msgpack.Decoder(Errand).decode
decode_mark = msgspec.msgpack.Decoder(SegmentMark).decode
decode_walk = msgspec.msgpack.Decoder(Walk).decode
decode_tasks = msgspec.msgpack.Decoder(list[LeasedTask]).decode


def decode_host(raw: bytes) -> HostRow:
    row = _decode_host(raw)
    if len(row.queue.lengths) < LANES:
        _add_revisit_lane(row)
    return row


def _add_revisit_lane(row: HostRow) -> None:
    """A row that was written before there were revisits."""
    row.queue.lengths.append(0)
    row.queue.lows.append(b"")
    if row.lease is not None:
        row.lease.pages.append(0)


def decode_tally(raw: bytes) -> Tally:
    tally = _decode_tally(raw)
    tally.tiers += [0] * (LANES - len(tally.tiers))
    return tally


def after_host(ident: bytes) -> bytes:
    """The end of a host's range in tables whose keys begin with its id."""
    return ident + b"\xff" * 9


def start_of_segment(segment: str) -> bytes:
    return segment.encode() + b"\0"


def end_of_segment(segment: str) -> bytes:
    return segment.encode() + b"\1"


def refused_prefix(number: int) -> bytes:
    """The prefix of the URLs that a verdict refused, in `traps`."""
    return b"\1" + number.to_bytes(4, "big")


def post_key(part: int, number: int) -> bytes:
    return POST + part.to_bytes(2, "big") + number.to_bytes(8, "big")


def place_of_post(key: bytes) -> tuple[int, int]:
    """Its partition and its number."""
    at = len(POST)
    return int.from_bytes(key[at : at + 2], "big"), int.from_bytes(key[at + 2 :], "big")


def taken_key(part: int) -> bytes:
    return TAKEN + part.to_bytes(2, "big")


def micros(seconds: float) -> bytes:
    return max(0, int(seconds * _MICRO)).to_bytes(8, "big")


def seconds(stamp: bytes) -> float:
    return int.from_bytes(stamp, "big") / _MICRO


def encode_shared_fields(found: Discovered, priority: int, lane: int, linkers: bytes) -> SharedFields:
    """The shared part of rows of new URLs, of which `found` is one. Default values at the end of a row are left
    out: a third of the bytes that RocksDB logs, sorts and merges for each URL."""
    how: tuple[object, ...] = (found.depth, found.via, found.parent, found.hops)
    if found.nesting:
        how += (found.kind, found.nesting)
    between = encode(_QUEUED) + encode(priority) + encode(how) + _SLOT
    if linkers:
        return lane, priority, _UP_TO_LINKERS, between, encode(linkers)
    return lane, priority, _UP_TO_SLOT, between, b""


def encode_new_rows(
    links: Iterable[Discovered], alike: SharedFields, ident: bytes, seq: int
) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The slots of new URLs, numbered from `seq` on, and their encoded rows. No `UrlRow` is made for each."""
    lane, priority, head, between, behind = alike
    slots: list[bytes] = []
    rows: dict[bytes, bytes] = {}
    for number, link in enumerate(links, seq):
        slot = pack_slot(ident, lane, 255 - priority, number)
        slots.append(slot)
        rows[link.key] = b"".join((head, encode(link.url), between, slot, behind))
    return slots, rows


class _Place(msgspec.Struct, array_like=True, gc=False):
    """The first fields of a `UrlRow`, up to its slot, for decoding no more than these."""

    url: str
    state: int
    priority: int
    found: msgspec.Raw
    slot: bytes = b""


assert _Place.__struct_fields__ == UrlRow.__struct_fields__[: _SLOT_AT + 1]
_decode_place = msgspec.msgpack.Decoder(_Place).decode


def slots_of(rows: list[tuple[bytes, bytes]]) -> list[bytes]:
    """The slots of stored rows (key, row); empty for a URL that is not queued."""
    return [_decode_place(row).slot for _, row in rows]


class _Verdict(msgspec.Struct, array_like=True, gc=False):
    """The first fields of a `UrlRow`, up to its reason, for decoding no more than these."""

    url: msgspec.Raw
    state: int
    priority: int
    found: msgspec.Raw
    slot: bytes = b""
    linkers: bytes = b""
    reason: str = ""


assert _Verdict.__struct_fields__ == UrlRow.__struct_fields__[: len(_Verdict.__struct_fields__)]
_decode_verdict = msgspec.msgpack.Decoder(_Verdict).decode


def reason_refused(row: bytes) -> str:
    """Why the URL of a stored row is refused; empty when it is not."""
    verdict = _decode_verdict(row)
    return verdict.reason if verdict.state == UrlState.REFUSED else ""
