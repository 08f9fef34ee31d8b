"""What one partition of a crawl tells another: links, errands for a robots.txt, and what came of them.

Values only. A post is committed to the outbox of its partition in the transaction that made it, and is taken by
the other in one of its own, once (`engine/posting.py`). Nothing is answered: what must come back is a post too.
"""

from __future__ import annotations

import msgspec

from skitter.model import Host, LinkBatch, Result


class PostedLinks(msgspec.Struct, frozen=True, array_like=True, tag="links"):
    """URLs that go through admission there."""

    link_batches: tuple[LinkBatch, ...]


class PostedListing(msgspec.Struct, frozen=True, array_like=True, tag="listing"):
    """What a sitemap names. It speaks for a host whose robots.txt names one of `names`: the sitemap and the
    indexes that led to it, by their keys. `is_trusted`: it speaks for all."""

    link_batch: LinkBatch
    names: tuple[bytes, ...]
    is_trusted: bool


class PostedErrand(msgspec.Struct, frozen=True, array_like=True, tag="errand"):
    """A robots.txt of `behalf` redirects to `url`, which is of host `to`."""

    to: Host
    behalf: Host
    url: str
    hops: int


class PostedAnswer(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    """What `asked` said when it was asked for the robots.txt of `behalf`, as the errand before it was told."""

    behalf: Host
    asked: Host
    hops: int
    result: Result


class PostedLoss(msgspec.Struct, frozen=True, array_like=True, tag="loss"):
    """The record of this host's robots.txt is gone: it is asked for again."""

    behalf: Host


Post = PostedLinks | PostedListing | PostedErrand | PostedAnswer | PostedLoss


class WaitingPost(msgspec.Struct, frozen=True, array_like=True):
    """One post in an outbox: for which partition, its number, which only grows, and its bytes."""

    part: int
    number: int
    body: bytes


encode_post = msgspec.msgpack.Encoder().encode
decode_post = msgspec.msgpack.Decoder(Post).decode
