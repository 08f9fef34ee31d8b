"""Every column of every table, spelled once: its name, its type, where its value comes from, what it means.

Rows, Parquet files, the views of a reader and the documentation follow from the tables below. To add a fact of
a page, add a line here and set the fact where it is known (`facts.py`). A table of somebody else's is one more
`Table`; nothing treats the three of ours in another way. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from skitter.errors import SettingsError


class Kind(StrEnum):
    """The type of a column."""

    TEXT = "text"
    """An empty text is null."""
    EXACT = "exact"
    """A text that may be empty."""
    LONG = "long"
    """A text of which nobody asks for the least or the greatest; a row may hold it in UTF-8."""
    TIME = "time"
    """UTC, as microseconds since 1970."""
    BOOL = "bool"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    STRUCTS = "structs"
    """A list of structs of texts. A row holds a text for each field: the values of all structs, a line each."""


# Columns of a table that say where the record lies: known only when it is written.
PLACE = "place."
PLACES = ("segment", "offset", "length", "revisit_of")
# Columns that are made of the `url` column when a table is written (`tables/url_parts.py`).
URL_PART = "url."
# Columns of a table that somebody added: the item's value of the column's name.
ITEM = "item"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
# What the views of a reader are made of.
RESERVED = ("pages_in_parts", "pages_in_index", "index_lines", "index_domains", "items_all", "changes")


def is_table_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in RESERVED


class Column(msgspec.Struct, frozen=True):
    """`source` is an attribute of `facts.Answer`; after `url.` a part of the URL, after `place.` one of the
    record's place; or `item`. `short` is
    another name in the views. `fields` are those of STRUCTS. `repeats` says that values come again from row to
    row, so that a dictionary of them saves bytes."""

    name: str
    kind: Kind
    source: str
    doc: str = ""
    short: str = ""
    fields: tuple[str, ...] = ()
    repeats: bool = False


class Table(msgspec.Struct, frozen=True):
    """An answer has one row, or none where its attribute `when` is empty; of a table with columns from items, one
    for each item that `facts.items` has under the table's name. `also` are further names in the views, in SQL.
    Every table begins with `url` and `fetch_time`, which say of which answer a row is."""

    name: str
    columns: tuple[Column, ...]
    doc: str = ""
    when: str = ""
    also: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not is_table_name(self.name):
            raise ValueError(f"a table cannot be called {self.name!r}: small letters, digits and _")
        if not all(map(_NAME.fullmatch, names)) or len(set(names)) != len(names):
            raise ValueError(f"the columns of {self.name} need names of small letters, each once: {names}")
        if not {"url", "fetch_time"} <= set(names):
            raise ValueError(f"the table {self.name} needs the columns url and fetch_time")

    @property
    def has_items(self) -> bool:
        return any(column.source == ITEM for column in self.columns)


URL = Column("url", Kind.EXACT, "url", "What was asked for.")
FETCH_TIME = Column("fetch_time", Kind.TIME, "micros", "When the request was sent, in UTC.", "fetched_at")
_DIGEST = "SHA-256 of the body in base 32, as in the record."

PAGES = Table(
    "pages",
    doc="one answer in the archive",
    columns=(
        Column("url_surtkey", Kind.EXACT, "surt", "The key of the URL in the index, host first."),
        URL,
        Column("url_host_name", Kind.EXACT, "url.host", "The URL's host.", "host", repeats=True),
        Column(
            "url_host_tld",
            Kind.EXACT,
            "url.tld",
            "The last label of the host; null of an address.",
            repeats=True,
        ),
        Column(
            "url_host_registered_domain",
            Kind.EXACT,
            "url.domain",
            "The domain that somebody registered; null of an address.",
            "domain",
            repeats=True,
        ),
        Column("url_protocol", Kind.EXACT, "url.protocol", "http or https.", repeats=True),
        Column("url_port", Kind.INT32, "url.port", "The port, where the URL names one."),
        Column("url_path", Kind.EXACT, "url.path", "The URL's path.", "path"),
        Column("url_query", Kind.EXACT, "url.query", "The URL's query, without the question mark."),
        FETCH_TIME,
        Column("fetch_status", Kind.INT16, "exchange.status", "The HTTP status of the answer.", "status"),
        Column("fetch_redirect", Kind.TEXT, "facts.redirect", "Where a redirect leads.", "redirect"),
        Column("content_digest", Kind.TEXT, "digest", _DIGEST, "digest"),
        Column("content_mime_type", Kind.TEXT, "mime", "The media type by its headers.", repeats=True),
        Column(
            "content_mime_detected",
            Kind.TEXT,
            "facts.media_type",
            "The media type that the body turned out to be of.",
            repeats=True,
        ),
        Column("content_charset", Kind.TEXT, "facts.charset", "Its encoding.", "charset", repeats=True),
        Column("content_languages", Kind.TEXT, "facts.language", "Its language.", "language", repeats=True),
        Column(
            "content_truncated",
            Kind.TEXT,
            "truncated",
            "`length` where the body was cut off at the limit.",
            "truncated",
            repeats=True,
        ),
        Column(
            "warc_filename", Kind.EXACT, "place.segment", "The WARC file of its record.", "file", repeats=True
        ),
        Column("warc_record_offset", Kind.INT64, "place.offset", "Where its record begins there.", "offset"),
        Column(
            "warc_record_length", Kind.INT64, "place.length", "How long the record is, compressed.", "length"
        ),
        Column(
            "kind",
            Kind.EXACT,
            "facts.kind",
            "page, robots, requisite, rendered (what scripts left of a page) and so on.",
            repeats=True,
        ),
        Column("size", Kind.INT64, "size", "Bytes of the body as it came."),
        Column("title", Kind.TEXT, "facts.title", "The page's title."),
        Column("depth", Kind.INT16, "depth", "Links from a seed."),
        Column(
            "directives",
            Kind.TEXT,
            "facts.directives",
            "What the page forbids, such as noindex.",
            repeats=True,
        ),
        Column("etag", Kind.TEXT, "etag", "The ETag header."),
        Column("last_modified", Kind.TEXT, "last_modified", "The Last-Modified header."),
        Column("address", Kind.TEXT, "exchange.address", "The IP address that answered.", repeats=True),
        Column("http_version", Kind.TEXT, "exchange.http_version", "1.0, 1.1, 2 or 3.", repeats=True),
        Column("fetch_ms", Kind.FLOAT32, "fetch_ms", "Milliseconds from the request to the last byte."),
        Column(
            "revisit_of",
            Kind.TEXT,
            "place.revisit_of",
            "The URL whose record has the body, where this one has none.",
            repeats=True,
        ),
        Column("text_digest", Kind.TEXT, "text_digest", "SHA-256 of the main text in UTF-8, in hexadecimal."),
        Column("simhash", Kind.UINT64, "facts.simhash", "Fingerprint of the main text."),
        Column(
            "failure", Kind.TEXT, "facts.failure", "The kind of failure that this answer is.", repeats=True
        ),
        Column(
            "identity",
            Kind.TEXT,
            "facts.identity",
            "The table of `hosts` whose credentials it was fetched with; null for what anybody could fetch.",
            repeats=True,
        ),
        Column("noindex", Kind.BOOL, "facts.said.noindex", "It asks not to be found in an index."),
        Column("noarchive", Kind.BOOL, "facts.said.noarchive", "It asks that no copy be shown."),
        Column("nosnippet", Kind.BOOL, "facts.said.nosnippet", "It asks that no part of it be shown."),
        Column(
            "unavailable_after",
            Kind.TEXT,
            "facts.said.unavailable_after",
            "After when it asks not to be shown, as it says it.",
            repeats=True,
        ),
        Column(
            "content_signal",
            Kind.TEXT,
            "facts.said.signal",
            "Its Content-Signal, or that of its host's robots.txt, such as `search=yes, ai-train=no`.",
            repeats=True,
        ),
        Column(
            "tdm_reservation",
            Kind.TEXT,
            "facts.said.tdm",
            "1 where text and data mining is reserved, 0 where not: by header, meta element or tdmrep.json.",
            repeats=True,
        ),
        Column("tdm_policy", Kind.TEXT, "facts.said.tdm_policy", "Where the terms for it are.", repeats=True),
        Column(
            "score",
            Kind.FLOAT32,
            "facts.score",
            "Of a focused crawl: how much the page is about its topic, from 0 to 1.",
        ),
    ),
    also=(("mime", "coalesce(nullif(content_mime_detected, ''), content_mime_type)"),),
)
LINKS = Table(
    "links",
    doc="the links of one answer",
    when="links",
    columns=(
        URL,
        FETCH_TIME,
        Column(
            "links",
            Kind.STRUCTS,
            "links",
            "The page's links in its order, targets absolute and each once.",
            fields=("target", "text", "rel", "tag"),
            repeats=True,
        ),
        Column(
            "rendered", Kind.BOOL, "facts.rendered", "It is of the page as its scripts left it.", repeats=True
        ),
    ),
)
TEXT = Table(
    "text",
    doc="the text of one answer",
    when="text",
    columns=(
        URL,
        FETCH_TIME,
        Column("title", Kind.TEXT, "facts.title", "The page's title."),
        Column("language", Kind.TEXT, "facts.language", "Its language.", repeats=True),
        Column("text", Kind.LONG, "text", "The page's main text."),
        Column("content_digest", Kind.TEXT, "digest", _DIGEST, "digest"),
        Column(
            "rendered", Kind.BOOL, "facts.rendered", "It is of the page as its scripts left it.", repeats=True
        ),
    ),
)
TABLES = (PAGES, LINKS, TEXT)


def items_table(name: str, columns: Iterable[Column], doc: str = "") -> Table:
    """A table of somebody else's, a row an item: `columns` are the item's, after those of every table."""
    return Table(name, (URL, FETCH_TIME, *columns), doc)


# What users' code made of pages (`extend/`): added while a crawl has any such code.
ITEMS = items_table(
    "items",
    (
        Column("extractor", Kind.EXACT, ITEM, "The function or rule that made it.", repeats=True),
        Column("version", Kind.EXACT, ITEM, "Hash of the extractor's source.", repeats=True),
        Column("type", Kind.TEXT, ITEM, "The item's type.", repeats=True),
        Column("key", Kind.TEXT, ITEM, "What makes two items of a type one."),
        Column("n", Kind.INT32, ITEM, "Its place among the extractor's items of this answer, from 0."),
        Column("item", Kind.LONG, ITEM, "The item, in JSON."),
        Column("fault", Kind.TEXT, ITEM, "Why the extractor made nothing of this answer.", repeats=True),
        Column("made_at", Kind.TIME, ITEM, "When the extractor ran, in UTC."),
        Column("warc_filename", Kind.EXACT, "place.segment", "The WARC file of the record.", repeats=True),
        Column("warc_record_offset", Kind.INT64, "place.offset", "Where the record begins there."),
    ),
    doc="an item that an extractor made of one answer, or the fault that it had with it",
)


def choose_tables(names: Sequence[str], added: Sequence[Table] = ()) -> tuple[Table, ...]:
    """Those of ours that the settings name, and the added ones."""
    known = {table.name: table for table in TABLES}
    chosen = (*(table for name, table in known.items() if name in names), *added)
    if not set(names) <= set(known) or (chosen and PAGES not in chosen):
        raise SettingsError(
            f"archive.tables takes {', '.join(known)}, and no table without pages: {tuple(names)!r}"
        )
    return chosen
