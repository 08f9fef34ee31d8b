"""What is known of an answer when its record is made: everything that a column of the tables is taken from.

Between the worker's step, which knows what a page says, and the rows. `schema.py` names these attributes as the
sources of its columns. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from skitter.model import Exchange, Link
from skitter.parse.directives import NONE_SAID, Directives

_DEEPEST = 32_767
_LONGEST_ETAG, _LONGEST_DATE = 500, 100
Item = Mapping[str, object]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What an exchange turned out to mean, beside its own bytes. `links` are resolved targets, each once, with
    the link as the page states it. `items` are rows of the tables that somebody added, by table."""

    kind: str = "page"
    depth: int = 0
    media_type: str = ""
    charset: str = ""
    language: str = ""
    title: str = ""
    directives: str = ""
    said: Directives = NONE_SAID
    """What the page and its host reserve."""
    redirect: str = ""
    failure: str = ""
    text: str = ""
    links: tuple[tuple[str, Link], ...] = ()
    simhash: int | None = None
    items: Mapping[str, Sequence[Item]] | None = None
    identity: str = ""
    """With which it was fetched; empty for what anybody could have."""
    score: float | None = None
    rendered: bool | None = None
    """It is of the page as its scripts left it."""


NO_FACTS = Facts()


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An exchange with its facts. `url`, `surt`, `mime` and `digest` are as its record and its index line spell
    them. `text` is in UTF-8; `links` are columns of lines. Both are empty where nobody wants them."""

    exchange: Exchange
    facts: Facts
    url: str
    surt: str
    mime: str
    digest: str
    micros: int
    truncated: str
    size: int
    depth: int
    etag: str
    last_modified: str
    fetch_ms: float
    text_digest: str
    text: bytes
    links: tuple[str, ...]


def describe_answer(
    exchange: Exchange,
    facts: Facts,
    headers: Mapping[str, str],
    *,
    url: str,
    surt: str,
    mime: str,
    digest: str,
    micros: int,
    with_links: bool,
    with_text: bool,
) -> Answer:
    """`headers` are the exchange's, the first of each name."""
    text = facts.text.encode("utf-8", "replace") if with_text else b""
    return Answer(
        exchange,
        facts,
        url,
        surt,
        mime,
        digest,
        micros,
        "length" if exchange.truncated else "",
        len(exchange.body),
        min(facts.depth, _DEEPEST),
        headers.get("etag", "")[:_LONGEST_ETAG],
        headers.get("last-modified", "")[:_LONGEST_DATE],
        max(0.0, exchange.ended_at - exchange.sent_at) * 1000,
        f"sha256:{sha256(text).hexdigest()}" if text else "",
        text,
        _link_columns(facts.links) if with_links and facts.links else (),
    )


def _link_columns(links: Sequence[tuple[str, Link]]) -> tuple[str, ...]:
    """Targets, texts, rels and tags, a line each: a row of four long texts costs less than one of many short
    ones, for the worker that writes it and for the process that reads it."""
    targets = _lines([target for target, _ in links])
    if not targets:
        return ()
    texts = _lines([link.text for _, link in links])
    return targets, texts, _lines([link.rel for _, link in links]), _lines([link.tag for _, link in links])


def _lines(column: Sequence[str]) -> str:
    joined = "\n".join(column)
    if joined.count("\n") != len(column) - 1:
        return "\n".join([value.replace("\n", " ") for value in column])
    return joined
