"""What `native/rowpieces.c` does, in Python: it defines what both say, works where no kernel was built. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from skitter.archive.rows import Pieces, Said, bare
from skitter.model import Exchange, Link

_DEEPEST = 32_767


def row_pieces(
    exchange: Exchange,
    said: Said,
    uri: str,
    surt: str,
    digest: str,
    mime: str,
    text: bytes,
    text_digest: bytes,
    with_links: bool,
    /,
) -> Pieces:
    # The first of a name counts, as `Exchange.header` has it.
    headers = dict(reversed(exchange.headers))
    before = (
        surt,
        uri,
        micros_of(exchange.sent_at),
        exchange.status,
        said.redirect,
        digest,
        mime,
        said.media_type,
        said.charset,
        said.language,
        "length" if exchange.truncated else "",
    )
    between = (
        said.kind,
        len(exchange.body),
        said.title,
        min(said.depth, _DEEPEST),
        said.directives,
        headers.get("etag", "")[:500],
        headers.get("last-modified", "")[:100],
        exchange.address,
        exchange.http_version,
        max(0.0, exchange.ended_at - exchange.sent_at) * 1000,
    )
    after = (
        said.simhash,
        said.near_duplicate_of,
        said.failure,
        text,
        *(_link_columns(said.links) if with_links else _NO_LINKS),
        f"sha256:{text_digest.hex()}" if text_digest else "",
    )
    return bare(before), bare(between), bare(after)


def _link_columns(links: Sequence[tuple[str, Link]]) -> tuple[str, str, str, str]:
    """In one pass: what a link consists of lies anywhere in memory, and is fetched from there once."""
    targets, texts, rels, tags = [], [], [], []
    for target, link in links:
        targets.append(target)
        texts.append(link.text)
        rels.append(link.rel)
        tags.append(link.tag)
    return _joined(targets), _joined(texts), _joined(rels), _joined(tags)


_NO_LINKS = ("", "", "", "")


def _joined(column: Sequence[str]) -> str:
    joined = "\n".join(column)
    if column and joined.count("\n") != len(column) - 1:
        joined = "\n".join([value.replace("\n", " ") for value in column])
    return joined


def micros_of(at: float) -> int:
    """The same instant as the record's WARC-Date, to the microsecond."""
    second = math.floor(at)
    return second * 1_000_000 + min(int((at - second) * 1e6), 999_999)


def utf8(text: str, /) -> bytes:
    """With `?` for what is no text: lone surrogates."""
    return text.encode("utf-8", "replace")
