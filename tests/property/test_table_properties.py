"""Whatever pages say, the tables tell it: no text breaks a row, a part, or the rows beside it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile

from skitter.archive.parts import TABLES, part_path
from skitter.archive.rowpieces import row_pieces
from skitter.archive.rows import Said, framed_row, rows_in, whole_frames
from skitter.archive.tables import write_parts
from skitter.model import Link, RecordAt
from tests.exchanges import exchange

TEXT = st.text(alphabet=st.characters(), max_size=12)
LINKS = st.lists(st.tuples(TEXT, st.builds(Link, TEXT, TEXT, TEXT, TEXT)), max_size=4).map(tuple)
SAID = st.builds(
    Said,
    kind=st.sampled_from(["page", "robots"]),
    depth=st.integers(0, 10**6),
    title=TEXT,
    text=TEXT,
    language=TEXT,
    links=LINKS,
    simhash=st.none() | st.integers(0, 2**64 - 1),
)
URLS = TEXT.map(lambda text: f"http://a.test/{text}") | TEXT


def framed(url: str, said: Said, status: int) -> bytes:
    pieces = row_pieces(
        exchange(url, status=status),
        said,
        uri=url,
        surt="test,a)/",
        digest="",
        mime="text/html",
        with_links=True,
        with_text=True,
    )
    return b"".join(framed_row(pieces, RecordAt("s", 1, 2), ""))


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(URLS, SAID, st.integers(100, 999)), max_size=4))
def test_every_page_is_told_as_it_spoke(pages: list[tuple[str, Said, int]]) -> None:
    journal = b"".join(framed(*page) for page in pages)
    with tempfile.TemporaryDirectory() as folder:
        assert write_parts(Path(folder), TABLES, "s.warc.gz", "s", journal, 0, 9) == len(pages)
        told = {
            table: ParquetFile(part_path(Path(folder), table, "s", 0, 9)).read().to_pylist()
            for table in TABLES
        }
    assert [row["url"] for row in told["pages"]] == [clean(url) for url, _, _ in pages]
    assert [row["title"] or "" for row in told["pages"]] == [clean(said.title) for _, said, _ in pages]
    assert [row["text"] for row in told["text"]] == [clean(said.text) for _, said, _ in pages if said.text]
    expected = [len(said.links) for _, said, _ in pages if tell_links(said)]
    assert [len(row["links"]) for row in told["links"]] == expected


def tell_links(said: Said) -> bool:
    """A single link to nowhere is none."""
    return "\n".join(target.replace("\n", " ") for target, _ in said.links) != ""


@given(st.lists(st.tuples(URLS, SAID, st.just(200)), min_size=1, max_size=3), st.integers(0, 400))
def test_a_journal_cut_anywhere_still_yields_its_whole_rows(
    pages: list[tuple[str, Said, int]], cut: int
) -> None:
    frames = [framed(*page) for page in pages]
    journal = b"".join(frames)[:cut]
    whole = whole_frames(journal)
    assert len(list(rows_in(journal[:whole]))) == sum(
        sum(map(len, frames[: number + 1])) <= cut for number in range(len(frames))
    )
