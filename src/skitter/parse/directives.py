"""What a page asks of robots: `X-Robots-Tag`, `<meta name="robots">`, `Content-Signal` and the reservation of
text and data mining (TDMRep), as one small value.

Read with the page, obeyed by whoever follows its links. General directives and those for our own product
add up, so the strictest wins; directives for other agents are not ours. Dates are recorded, not judged:
nothing here knows the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_UNAVAILABLE = "unavailable_after"
_LONGEST_TEXT = 200
_LONGEST_VALUE = 2000
# A colon makes a piece either an agent's (`skitter: nofollow`) or one of these directives with a value.
_WITH_VALUE = frozenset((_UNAVAILABLE, "max-snippet", "max-image-preview", "max-video-preview"))
# The comma after a weekday, of `unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT`, separates no directives.
_WEEKDAY = re.compile(r"(:\s*(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}),", re.IGNORECASE)
_AGENT = re.compile(r"([^\s:,]+)\s*:\s*(.*)", re.DOTALL)


class Directives(msgspec.Struct, frozen=True):
    """`text` is all that applies to us, in the order it was said: what is recorded and explained.
    `unavailable_after` is the date as the page has it. `signal` is the `Content-Signal` header. `tdm` is 1 where
    text and data mining is reserved, 0 where it is not, empty where nothing is said; `tdm_policy` the URL of the
    terms."""

    nofollow: bool = False
    noindex: bool = False
    text: str = ""
    noarchive: bool = False
    unavailable_after: str = ""
    signal: str = ""
    nosnippet: bool = False
    tdm: str = ""
    tdm_policy: str = ""


NONE_SAID = Directives()


def read_directives(
    robots_tags: Iterable[str] = (),
    metas: Iterable[str] = (),
    *,
    product: str = "skitter",
    signal: str = "",
    tdm: str = "",
    tdm_policy: str = "",
) -> Directives:
    """`robots_tags` are header values; `metas` the contents of the meta elements that name robots or us;
    `signal` is what a `Content-Signal` header says; `tdm` and `tdm_policy` are values of `tdm-reservation` and
    `tdm-policy`, of a header or a meta element."""
    pieces: list[str] = []
    for value in robots_tags:
        pieces += _for_us(value[:_LONGEST_VALUE], product.lower())
    for content in metas:
        pieces += _split(content[:_LONGEST_VALUE])
    signal = " ".join(signal[:_LONGEST_VALUE].split())[:_LONGEST_TEXT]
    tdm = tdm.strip() if tdm.strip() in ("0", "1") else ""
    if not pieces and not signal and not tdm:
        return NONE_SAID
    # Words, since sites also write `noindex nofollow`; not those of a value: `max-image-preview: none`.
    words = {word for piece in pieces if ":" not in piece for word in piece.split()}
    return Directives(
        nofollow=not words.isdisjoint(("nofollow", "none")),
        noindex=not words.isdisjoint(("noindex", "none")),
        text=_recorded(pieces, signal, tdm),
        noarchive="noarchive" in words,
        unavailable_after=_date_after(pieces),
        signal=signal,
        nosnippet="nosnippet" in words or "max-snippet: 0" in pieces or "max-snippet:0" in pieces,
        tdm=tdm,
        tdm_policy=" ".join(tdm_policy.split())[:_LONGEST_TEXT] if tdm == "1" else "",
    )


def _recorded(pieces: list[str], signal: str, tdm: str) -> str:
    said = [*pieces, f"content-signal: {signal}"] if signal else pieces
    return ", ".join(dict.fromkeys([*said, f"tdm-reservation: {tdm}"] if tdm else said))[:_LONGEST_TEXT]


def _date_after(pieces: list[str]) -> str:
    dates = (piece.partition(":") for piece in pieces if piece.startswith(_UNAVAILABLE))
    return next((date.strip()[:100] for _, _, date in dates), "")


def _split(value: str) -> list[str]:
    pieces = _WEEKDAY.sub(r"\1", value).lower().split(",")
    return [collapsed for piece in pieces if (collapsed := " ".join(piece.split()))]


def _for_us(value: str, product: str) -> list[str]:
    """The pieces of one header value that are general or ours. An agent's name holds until the next one:
    proxies join several lines into `other: noindex, skitter: nofollow`."""
    ours = True
    pieces: list[str] = []
    for piece in _split(value):
        named = _AGENT.fullmatch(piece)
        if named and named[1] not in _WITH_VALUE:
            ours = named[1].partition("/")[0] in (product, "*")
            piece = named[2]
        if ours and piece:
            pieces.append(piece)
    return pieces
