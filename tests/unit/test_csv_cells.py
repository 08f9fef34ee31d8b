"""CSV of ours runs no formula in a spreadsheet and no escape in a terminal."""

from __future__ import annotations

import duckdb
import pytest

from skitter.collection.export.csv_cells import harmless, harmless_in_sql

CELLS = {
    '=HYPERLINK("http://evil.test","x")': '\'=HYPERLINK("http://evil.test","x")',
    "+1": "'+1",
    "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0",
    "@SUM(1)": "'@SUM(1)",
    "\t=1": "'\t=1",
    "\r=1": "'\ufffd=1",
    "\x1b]0;title\x07": "\ufffd]0;title\ufffd",
    "nul \0 and csi \x9b": "nul \ufffd and csi \ufffd",
    "two\nlines": "two\nlines",
    "plain = words": "plain = words",
    "ünïcode": "ünïcode",
    "": "",
}


@pytest.mark.parametrize("text", CELLS)
def test_a_text_is_harmless_and_otherwise_itself(text: str) -> None:
    assert harmless(text) == CELLS[text]


@pytest.mark.parametrize("value", [-5, 1.5, None, True])
def test_what_is_no_text_stays(value: object) -> None:
    assert harmless(value) is value


def test_duckdb_says_the_same() -> None:
    with duckdb.connect(":memory:") as database:
        database.execute('create table t ("a ""cell" varchar)')
        texts = [text for text in CELLS if "\0" not in text]
        database.executemany("insert into t values (?)", [[text] for text in texts])
        column = harmless_in_sql('a "cell')
        found = [row[0] for row in database.execute(f"select * replace ({column}) from t").fetchall()]
    assert found == [CELLS[text] for text in texts]
