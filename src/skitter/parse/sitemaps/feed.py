"""JSON Feed (https://jsonfeed.org/version/1.1): the items that it names. Pure.

Under `SitemapReader`, beside the XML formats. JSON cannot be read by halves: a feed is kept until it is whole, up
to a limit that no honest one reaches. Never raises but `Problem`.
"""

from __future__ import annotations

import msgspec

from skitter.parse.dates import parse_w3c
from skitter.parse.sitemaps.sitemap import Entry, Format, Limits, PieceReader, Problem

_MOST_CHARACTERS = 5_000_000


class _Item(msgspec.Struct):
    url: object = ""
    id: object = ""
    date_modified: object = ""
    date_published: object = ""


class _Feed(msgspec.Struct):
    version: str = ""
    items: list[_Item] = []


_decode = msgspec.json.Decoder(_Feed).decode


class JsonFeedReader(PieceReader):
    format = Format.JSON_FEED

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._pieces: list[str] = []
        self._size = 0

    def feed(self, text: str) -> None:
        self._size += len(text)
        if self._size > _MOST_CHARACTERS:
            self._pieces = []
            raise Problem(f"a JSON Feed of more than {_MOST_CHARACTERS:,} characters")
        self._pieces.append(text)

    def close(self) -> None:
        try:
            feed = _decode("".join(self._pieces))
        except (msgspec.DecodeError, RecursionError) as error:
            raise Problem(f"no JSON Feed: {str(error)[:100]}") from None
        if "jsonfeed.org" not in feed.version:
            raise Problem("JSON, but no JSON Feed")
        for item in feed.items:
            self.add(_entry(item))


def _entry(item: _Item) -> Entry:
    loc = _text(item.url)
    if not loc and _text(item.id).startswith(("http://", "https://")):
        loc = _text(item.id)
    return Entry(loc.strip(), parse_w3c(_text(item.date_modified) or _text(item.date_published)))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
