"""Tables of traps: the evidence on each subject, the verdicts, and the URLs that a verdict refused.

    skeletons  host id, hash of a name (8)      -> Evidence on a skeleton, family, section, parameter or host
    skeletons  hash of a domain (8), zeros (8)  -> Evidence on a domain's new hosts
    traps      0, id (4)                        -> TrapRow, a verdict
    traps      1, id (4), UrlKey                -> nothing; a URL that the verdict refused
    traps      2, UrlKey without a parameter    -> UrlKey of the URL that claimed this page

Evidence goes through a bounded cache and is written by the transaction that changed it. Never decides anything.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from skitter.frontier.tables.layout import (
    encode,
)
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.url_patterns import subject_key
from skitter.model import UrlKey
from skitter.schedule.traps import Evidence, Level, TrapKind

VERDICT, REFUSED, CLAIM = b"\0", b"\1", b"\2"
_ID = 4
_KEY = 16
_decode_evidence = msgspec.msgpack.Decoder(Evidence).decode


class TrapRow(msgspec.Struct, array_like=True):
    """A verdict, with the figures of the moment when it was issued. `ended` says how it ended, if it did."""

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


def evidence(cache: RowCache, key: bytes) -> Evidence | None:
    found = cache.evidence.get(key)
    if found is None:
        raw = cache.store.get("skeletons", key)
        found = cache.evidence[key] = _decode_evidence(raw) if raw else False
    return found or None


def get_or_begin_evidence(cache: RowCache, key: bytes, name: str, level: Level, shape: int = 0) -> Evidence:
    """The evidence on a subject, to be changed and written; made if there is none."""
    found = evidence(cache, key) or begin_evidence(cache, key, name, level)
    found.shaped |= shape
    return found


def begin_evidence(cache: RowCache, key: bytes, name: str, level: Level) -> Evidence:
    """New evidence on a subject that has none."""
    found = cache.evidence[key] = Evidence(name=name, level=level)
    return found


def last_pages(seen: Evidence) -> list[UrlKey]:
    """The pages of the subject that were settled last, the latest first."""
    return [UrlKey(seen.last[at : at + _KEY]) for at in range(0, len(seen.last), _KEY)]


def write_evidence(tx: Transaction, key: bytes, seen: Evidence) -> None:
    """The commit will write the evidence, as it is then."""
    tx.learnt[key] = seen


def trap_row(cache: RowCache, number: int) -> TrapRow | None:
    raw = cache.store.get("traps", VERDICT + number.to_bytes(_ID, "big"))
    return _decode_trap(raw) if raw else None


def write_trap(tx: Transaction, number: int, row: TrapRow) -> None:
    tx.put("traps", VERDICT + number.to_bytes(_ID, "big"), encode(row))


def key_for(cache: RowCache, url: str) -> UrlKey:
    return cache.keys.key_of(url)


def claimant(tx: Transaction, stripped: bytes) -> bytes | None:
    """The URL that claimed this page, in this transaction or before."""
    return tx.claims.get(stripped) or tx.cache.store.get("traps", CLAIM + stripped)


def claim(tx: Transaction, stripped: bytes, key: bytes) -> None:
    tx.claims[stripped] = key
    tx.put("traps", CLAIM + stripped, key)
