"""Our own Parquet, as others read it: what goes into a column is what pyarrow, DuckDB and polars find in it."""

from __future__ import annotations

import io
from array import array
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile

from skitter.archive import parquet
from skitter.archive.columns_plain import Column, numbers, optional, perhaps, strings
from skitter.archive.parquet import FLOAT32, INT16, INT32, INT64, STRING, TIME, UINT64, Field, Kind, Lists

FEW = settings(max_examples=60, deadline=None)
TEXT = st.text(max_size=12) | st.sampled_from(["", "a", "page", "x" * 5_000])
TEXTS = st.lists(st.none() | TEXT, min_size=1, max_size=60)
LINKS = st.lists(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=9), min_size=1, max_size=12)
NUMBERS: dict[str, tuple[Kind, pa.DataType, st.SearchStrategy[Any]]] = {
    "int16": (INT16, pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int32": (INT32, pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (INT64, pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (UINT64, pa.uint64(), st.integers(0, 2**64 - 1)),
    "float32": (FLOAT32, pa.float32(), st.floats(width=32, allow_nan=False)),
    "time": (TIME, pa.timestamp("us", tz="UTC"), st.integers(0, 2**52)),
}


@pytest.fixture(autouse=True, scope="module")
def small_pages() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_PAGE_BYTES", 100)
        yield


def encoded(texts: list[str | None]) -> Column:
    return optional([None if text is None else text.encode() for text in texts])


def read(content: bytes) -> ParquetFile:
    return ParquetFile(io.BytesIO(content))


@FEW
@given(TEXTS, st.booleans())
def test_strings_are_read_as_they_were_written(texts: list[str | None], repeats: bool) -> None:
    content = parquet.parquet_of([Field("it", STRING, encoded(texts), repeats, True)], len(texts))
    table = read(content).read()
    assert table.schema.field("it").type == pa.string()
    assert table["it"].to_pylist() == texts


@FEW
@given(TEXTS)
def test_the_footer_tells_the_least_the_greatest_and_how_many_are_not_there(texts: list[str | None]) -> None:
    content = parquet.parquet_of([Field("it", STRING, encoded(texts), True, True)], len(texts))
    told = read(content).metadata.row_group(0).column(0).statistics
    there = [text for text in texts if text is not None]
    assert told.null_count == len(texts) - len(there)
    assert told.has_min_max == (bool(there) and max(len(min(there)), len(max(there))) < 5_000)
    if told.has_min_max:
        assert (told.min, told.max) == (min(there), max(there))


@FEW
@given(st.data(), st.sampled_from(sorted(NUMBERS)))
def test_numbers_are_read_as_they_were_written(data: st.DataObject, name: str) -> None:
    kind, wanted, values = NUMBERS[name]
    given_ones = data.draw(st.lists(st.none() | values, min_size=1, max_size=60))
    content = parquet.parquet_of(
        [Field("it", kind, perhaps(kind.code, given_ones), compared=True)], len(given_ones)
    )
    file = read(content)
    assert file.read()["it"].equals(pa.chunked_array([pa.array(given_ones, wanted)]))
    there = [value for value in given_ones if value is not None]
    told = file.metadata.row_group(0).column(0).statistics
    if there and name != "time":
        assert (told.min, told.max) == (min(there), max(there))


@FEW
@given(LINKS, st.booleans())
def test_lists_are_read_as_they_were_written(links: list[list[tuple[str, str]]], repeats: bool) -> None:
    ends = numbers("i", accumulate(map(len, links), initial=0))
    columns = [strings([link[at].encode() for row in links for link in row]) for at in range(2)]
    fields = tuple(
        Field(name, STRING, column, repeats) for name, column in zip(("a", "b"), columns, strict=True)
    )
    content = parquet.parquet_of([Lists("it", fields, ends)], len(links))
    expected = [[{"a": a, "b": b} for a, b in row] for row in links]
    assert read(content).read()["it"].to_pylist() == expected


def test_a_page_is_of_bounded_size_and_a_value_never_cut() -> None:
    texts: list[str | None] = [f"{number:050d}" for number in range(100)]
    content = parquet.parquet_of([Field("it", STRING, encoded(texts))], 100)
    # Two lengths and eight values to a page, at a hundred bytes a page.
    assert content.count(b"\x28\xb5\x2f\xfd") == 13
    assert read(content).read()["it"].to_pylist() == texts


def test_without_rows_there_is_a_schema_and_no_more(tmp_path: Path) -> None:
    nothing = strings([])
    fields: list[Field | Lists] = [
        Field("it", STRING, nothing),
        Lists("them", (Field("a", STRING, nothing),), array("i", [0]).tobytes()),
    ]
    content = parquet.parquet_of(fields, 0)
    (tmp_path / "it.parquet").write_bytes(content)
    assert read(content).read().num_rows == 0
    assert duckdb.connect().execute(f"select them from '{tmp_path}/it.parquet'").fetchall() == []
    assert pytest.importorskip("polars").read_parquet(tmp_path / "it.parquet").columns == ["it", "them"]


@pytest.mark.parametrize("repeats", [True, False])
def test_duckdb_and_polars_read_what_pyarrow_reads(tmp_path: Path, repeats: bool) -> None:
    polars = pytest.importorskip("polars")
    rows = 500
    texts = [
        None if number % 7 == 3 else f"text {number // 9} \u2019" * (number % 4) for number in range(rows)
    ]
    links = [[(f"http://a.test/{at}", "x" * (at % 3)) for at in range(1 + row % 40)] for row in range(rows)]
    ends = numbers("i", accumulate(map(len, links), initial=0))
    leaves = [strings([link[at].encode() for row in links for link in row]) for at in range(2)]
    listed = tuple(Field(name, STRING, leaf, repeats) for name, leaf in zip("ab", leaves, strict=True))
    sparse = [None if number % 3 else number for number in range(rows)]
    fields: list[Field | Lists] = [
        Field("text", STRING, encoded(texts), repeats, True),
        Lists("links", listed, ends),
    ]
    fields += [Field(name, kind, perhaps(kind.code, sparse)) for name, (kind, _, _) in NUMBERS.items()]
    path = tmp_path / "it.parquet"
    path.write_bytes(parquet.parquet_of(fields, rows))
    by_pyarrow = ParquetFile(path).read()
    assert by_pyarrow["text"].to_pylist() == texts
    assert by_pyarrow["int32"].to_pylist() == sparse
    assert [len(row) for row in by_pyarrow["links"].to_pylist()] == [len(row) for row in links]
    told = [tuple(row.values()) for row in by_pyarrow.drop_columns(["time"]).to_pylist()]
    assert duckdb.connect().execute(f"select * exclude (time) from '{path}'").fetchall() == told
    assert polars.read_parquet(path).equals(polars.from_arrow(by_pyarrow))
