"""The pages that are generated say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from skitter.archive.schema import TABLES
from skitter.cli import main
from skitter.reference import FOLDER, PAGES, description
from skitter.settings.load import HOST_FIELDS, SECTIONS


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name](), "run: python -m skitter.reference"


def test_every_column_has_a_sentence() -> None:
    lacking = [c.name for table in TABLES for c in table.columns if not c.doc.endswith(".")]
    assert lacking == []


def test_the_guide_to_reading_names_every_table_and_column_of_it() -> None:
    guide = (FOLDER / "reading.md").read_text()
    rows = {
        table.name: next(r for r in guide.splitlines() if r.startswith(f"| `{table.name}` |"))
        for table in TABLES
    }
    common_crawl = ("url_", "content_", "warc_", "fetch_")
    for table in TABLES:
        for column in table.columns:
            told = f"`{column.name}`" in rows[table.name]
            assert told or (table.name == "pages" and column.name.startswith(common_crawl)), column.name
        assert all(f"`{column.short}`" in guide for column in table.columns if column.short)


def test_every_setting_has_a_sentence() -> None:
    fields = [field for section in [*SECTIONS.values(), HOST_FIELDS] for field in section.values()]
    assert [field.name for field in fields if not description(field).endswith(".")] == []


def test_every_command_has_its_page(tmp_path: Path) -> None:
    assert main(["man", "--pages", str(tmp_path)]) == 0
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (FOLDER / "commands").iterdir()}
    assert made == kept, "run: make docs"
