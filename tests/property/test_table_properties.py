"""Whatever pages say, the tables tell it: no text breaks a row, a part, or the rows beside it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile

from skitter.archive.facts import Facts, describe_answer
from skitter.archive.schema import ITEM, TABLES, Column, Kind, items_table
from skitter.archive.tables.journal import entries, entry, heading, whole_frames
from skitter.archive.tables.parquet_files import write_stretch
from skitter.archive.tables.parts import part_path
from skitter.archive.tables.rows import pack_rows
from skitter.archive.tables.table_writer import Stretch
from skitter.model import Link, RecordAt
from tests.exchanges import SENT_AT, exchange

# With lone surrogates, NUL, line ends of every kind, and lengths at which encodings change.
TEXT = st.text(alphabet=st.characters(), max_size=12) | st.sampled_from(
    ["x" * 31, "\xe9" * 16, "\0", "\r\n", "\u2028", "'; drop table pages; --", "\u2019 " * 128]
)
LINKS = st.lists(st.tuples(TEXT, st.builds(Link, TEXT, TEXT, TEXT, TEXT)), max_size=4).map(tuple)
ITEMS = items_table(
    "items",
    (
        Column("name", Kind.TEXT, ITEM),
        Column("price", Kind.FLOAT64, ITEM),
        Column("count", Kind.INT64, ITEM),
        Column("sold", Kind.BOOL, ITEM),
    ),
)
ITEM_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXT,
        "price": st.floats(allow_nan=False),
        "count": st.integers(-(2**63), 2**63 - 1),
        "sold": st.booleans(),
    },
)
FACTS = st.builds(
    Facts,
    kind=TEXT,
    depth=st.integers(0, 10**6),
    media_type=TEXT,
    charset=TEXT,
    language=TEXT,
    title=TEXT,
    directives=TEXT,
    redirect=TEXT,
    failure=TEXT,
    text=TEXT | st.just("y\xe9" * 40_000),
    links=LINKS,
    simhash=st.none() | st.integers(0, 2**64 - 1),
    items=st.none() | st.fixed_dictionaries({"items": st.lists(ITEM_VALUES, max_size=3)}),
)
URLS = TEXT.map(lambda text: f"http://a.test/{text}") | TEXT
SCHEMA = (*TABLES, ITEMS)
PACK = pack_rows(SCHEMA)
Told = dict[str, list[dict[str, Any]]]


def frame(url: str, facts: Facts, status: int, etag: str = "") -> bytes:
    answer = describe_answer(
        exchange(url, status=status),
        facts,
        {"etag": etag},
        url=url,
        surt="test,a)/",
        mime="text/html",
        digest="",
        micros=int(SENT_AT * 1e6),
        with_links=True,
        with_text=True,
    )
    return b"".join(entry(PACK(answer), RecordAt("s", 1, 2), ""))


def written(folder: Path, journal: bytes) -> dict[str, Path]:
    (folder / "rows").write_bytes(journal)
    end = len(journal)
    stretch = Stretch(str(folder / "rows"), 0, end, end, str(folder), "s.warc.gz", "s", SCHEMA)
    assert write_stretch(stretch) == end
    return {table.name: part_path(folder, table.name, "s", 0, end) for table in SCHEMA}


def by_duckdb(path: Path) -> list[dict[str, Any]]:
    with duckdb.connect(":memory:") as database:
        database.execute("set TimeZone = 'UTC'")
        found = database.execute(f"select * replace (fetch_time::timestamp as fetch_time) from '{path}'")
        names = [column[0] for column in found.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return [{**row, "fetch_time": row["fetch_time"].replace(tzinfo=UTC)} for row in rows]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "pyarrow": lambda path: ParquetFile(path).read().to_pylist(),
    "duckdb": by_duckdb,
    "polars": lambda path: polars.read_parquet(path).to_dicts(),
}


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(URLS, FACTS, st.integers(100, 999), TEXT), max_size=4))
def test_every_page_is_told_as_it_spoke_to_every_reader(pages: list[tuple[str, Facts, int, str]]) -> None:
    journal = heading(SCHEMA) + b"".join(frame(*page) for page in pages)
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), journal)
        told = [{name: read(path) for name, path in paths.items()} for read in READERS.values()]
    assert told[0] == told[1] == told[2]
    check_pages(told[0], pages)
    check_links_and_texts(told[0], pages)
    check_items(told[0], pages)


def check_pages(told: Told, pages: list[tuple[str, Facts, int, str]]) -> None:
    for row, (url, facts, status, etag) in zip(told["pages"], pages, strict=True):
        assert (row["url"], row["kind"], row["fetch_status"]) == (clean(url), clean(facts.kind), status)
        assert (row["depth"], row["simhash"]) == (min(facts.depth, 32_767), facts.simhash)
        assert row["fetch_time"] == datetime.fromtimestamp(SENT_AT, UTC)
        assert (row["warc_filename"], row["warc_record_offset"], row["warc_record_length"]) == (
            "s.warc.gz",
            1,
            2,
        )
        assert row["etag"] == (clean(etag) or None)
        for column, fact in {
            "title": facts.title,
            "content_mime_detected": facts.media_type,
            "content_charset": facts.charset,
            "content_languages": facts.language,
            "directives": facts.directives,
            "fetch_redirect": facts.redirect,
            "failure": facts.failure,
        }.items():
            assert row[column] == (clean(fact) or None), column


def check_links_and_texts(told: Told, pages: list[tuple[str, Facts, int, str]]) -> None:
    texts = [clean(facts.text) for _, facts, _, _ in pages if facts.text]
    assert [row["text"] for row in told["text"]] == texts
    links = [[as_told(*link) for link in facts.links] for _, facts, _, _ in pages if has_links(facts)]
    assert [row["links"] for row in told["links"]] == links


def as_told(target: str, link: Link) -> dict[str, str]:
    values = {"target": target, "text": link.text, "rel": link.rel, "tag": link.tag}
    return {name: clean(value.replace("\n", " ")) for name, value in values.items()}


def has_links(facts: Facts) -> bool:
    """A single link to nowhere is none."""
    return "\n".join(target.replace("\n", " ") for target, _ in facts.links) != ""


def check_items(told: Told, pages: list[tuple[str, Facts, int, str]]) -> None:
    items = [(url, item) for url, facts, _, _ in pages for item in (facts.items or {}).get("items", ())]
    for row, (url, item) in zip(told["items"], items, strict=True):
        name = item.get("name")
        assert row["url"] == clean(url)
        assert row["name"] == (clean(name) or None if isinstance(name, str) else None)
        assert [row[each] for each in ("price", "count", "sold")] == [
            item.get(each) for each in ("price", "count", "sold")
        ]


@given(st.lists(st.tuples(URLS, FACTS, st.just(200)), min_size=1, max_size=3), st.integers(0, 400))
def test_a_journal_cut_anywhere_still_yields_its_whole_rows(
    pages: list[tuple[str, Facts, int]], cut: int
) -> None:
    frames = [frame(*page) for page in pages]
    journal = b"".join(frames)[:cut]
    whole = whole_frames(journal)
    assert len(list(entries(journal[:whole]))) == sum(
        sum(map(len, frames[: number + 1])) <= cut for number in range(len(frames))
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(URLS, FACTS, st.just(200)), min_size=1, max_size=3), st.data())
def test_a_damaged_journal_is_a_fault_or_makes_tables_and_never_anything_else(
    pages: list[tuple[str, Facts, int]], data: st.DataObject
) -> None:
    journal = bytearray(b"".join(frame(*page) for page in pages))
    journal[data.draw(st.integers(0, len(journal) - 1))] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError):
        paths = written(Path(folder), bytes(journal))
        assert len(ParquetFile(paths["pages"]).read()) <= len(pages) + 1


def test_text_that_is_no_utf_8_makes_no_row_and_is_set_aside(tmp_path: Path) -> None:
    good = frame("http://a.test/good", Facts(title="cafe"), 200)
    bad = frame("http://a.test/", Facts(title="caf\xe9"), 200).replace("\xe9".encode(), b"\xe9?")
    paths = written(tmp_path, bad + good)
    assert ParquetFile(paths["pages"]).read()["url"].to_pylist() == ["http://a.test/good"]
    assert [path.read_bytes() for path in tmp_path.rglob("*.rows") if "set-aside" in path.parts] == [bad]


@pytest.mark.parametrize(
    "item", [{"name": 1}, {"price": "1"}, {"count": 1.5}, {"count": True}, {"sold": 1}, {"price": True}]
)
def test_an_item_of_the_wrong_type_is_refused_before_it_is_in_any_file(item: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"items\.\w+ is of type"):
        frame("http://a.test/", Facts(items={"items": [item]}), 200)
