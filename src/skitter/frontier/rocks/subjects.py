"""What traps are judged by, on disk: the evidence of each subject, verdicts, and what a verdict refused.

    skeletons  host id, hash of a name (8)      -> Evidence of a skeleton, a family, a parameter, or all of a host
    skeletons  hash of a domain (8), zeros (8)  -> Evidence of a domain's new hosts
    traps      0, id (4)                        -> TrapRow, a verdict
    traps      1, id (4), UrlKey                -> nothing; what the verdict refused
    traps      2, UrlKey without a parameter    -> UrlKey of the one URL that stands for all of these

Evidence is written through a bounded cache in the turn that saw it. Never decides anything.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.kinds import subject_key
from skitter.frontier.rocks.rows import encode
from skitter.frontier.rocks.turn import Turn
from skitter.model import UrlKey
from skitter.schedule.traps import Evidence, Level, TrapKind

VERDICT, REFUSED, CLAIM = b"\0", b"\1", b"\2"
# meta: verdicts that are over, whose URLs have yet to go back
RELEASE = b"release"
_ID = 4
_decode_evidence = msgspec.msgpack.Decoder(Evidence).decode


class TrapRow(msgspec.Struct, array_like=True):
    """A verdict, with its figures when it fell. `ended` says how it was revoked, if it was."""

    subject: bytes
    host: str
    name: str
    level: Level
    kind: TrapKind
    at: float
    fetched: int
    novel: int
    received: int
    deepest: int
    examples: list[str]
    why: str
    ended: str = ""
    released: int = 0


_decode_trap = msgspec.msgpack.Decoder(TrapRow).decode


def unseen_key(ident: bytes) -> bytes:
    return ident + b"\xff" * 7 + b"\0"


def host_key(ident: bytes) -> bytes:
    return ident + b"\xff" * 8


def domain_key(domain: str) -> bytes:
    return blake2b(b"domain " + domain.encode(), digest_size=8).digest() + bytes(8)


def parameter_key(ident: bytes, name: str) -> bytes:
    return subject_key(ident, "parameter " + name)


def evidence(book: Book, key: bytes) -> Evidence | None:
    found = book.evidence.get(key)
    if found is None:
        raw = book.store.get("skeletons", key)
        found = book.evidence[key] = _decode_evidence(raw) if raw else False
    return found or None


def evidence_of(book: Book, key: bytes, name: str, level: Level, shape: int = 0) -> Evidence:
    """To be changed and written; made if it is new."""
    found = evidence(book, key) or begin(book, key, name, level)
    found.shaped |= shape
    return found


def begin(book: Book, key: bytes, name: str, level: Level) -> Evidence:
    """Of a subject of which nothing was known."""
    found = book.evidence[key] = Evidence(name=name, level=level)
    return found


def write(turn: Turn, key: bytes, seen: Evidence) -> None:
    """As it is when the turn is committed."""
    turn.learnt[key] = seen


def trap_row(book: Book, number: int) -> TrapRow | None:
    raw = book.store.get("traps", VERDICT + number.to_bytes(_ID, "big"))
    return _decode_trap(raw) if raw else None


def write_trap(turn: Turn, number: int, row: TrapRow) -> None:
    turn.put("traps", VERDICT + number.to_bytes(_ID, "big"), encode(row))


def refused_by(number: int) -> bytes:
    """Where the URLs that a verdict refused begin."""
    return REFUSED + number.to_bytes(_ID, "big")


def key_for(book: Book, url: str) -> UrlKey:
    return book.keys.key_of(url)


def claimant(turn: Turn, stripped: bytes) -> bytes | None:
    """The URL that stands for all that mean this one; what this turn has written counts."""
    return turn.claims.get(stripped) or turn.book.store.get("traps", CLAIM + stripped)


def claim(turn: Turn, stripped: bytes, key: bytes) -> None:
    turn.claims[stripped] = key
    turn.put("traps", CLAIM + stripped, key)
