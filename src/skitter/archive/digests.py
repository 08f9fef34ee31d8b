"""The two digests that a record has of one body: of its payload, and of its block, which is head and payload.

The first step for an answer, before it is read and packed: the frontier knows a body by the payload's. Pure.
Both at once by the kernel in C, where it was built and the processor has instructions for it; else one after the
other. The one kernel of the archive that stayed, and why: docs/adr/0019-one-schema-and-libraries.md.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from skitter.archive.warc.heads import response_head
from skitter.model import Exchange

_both_at_once: Callable[[bytes, bytes], tuple[bytes, bytes] | None] | None
try:
    from skitter.native._kernels import digests as _both_at_once
except ImportError:
    _both_at_once = None


class Digests(NamedTuple):
    """Of an exchange; `head` is the answer's as it is stored."""

    head: bytes
    payload: bytes
    block: bytes


def digests_of(exchange: Exchange) -> Digests:
    body = exchange.body
    head = response_head(exchange.head, exchange.status, len(body))
    return Digests(head, *digests_of_parts(head, body))


def digests_of_parts(head: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Of the payload, and of the block."""
    found = _both_at_once(head, body) if _both_at_once is not None else None
    return found or one_by_one(head, body)


def one_by_one(head: bytes, body: bytes) -> tuple[bytes, bytes]:
    block = sha256(head)
    block.update(body)
    return sha256(body).digest(), block.digest()
