"""The examples of docs/reading.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.archives import Made, add_tables, make_crawl

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reading.md"
EXAMPLES = re.findall(r"<!-- example ?([a-z ]*)-->\n```python\n(.*?)```", DOCS.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = make_crawl(tmp_path_factory.mktemp("crawl") / "crawl")
    add_tables(made)
    return made


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4
    assert DOCS.read_text().count("```python") == len(EXAMPLES)


@pytest.mark.parametrize(("needs", "program"), EXAMPLES)
def test_an_example_runs(
    needs: str, program: str, crawl: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in set(needs.split()) & {"pandas", "polars"}:
        pytest.importorskip(library)
    exec(compile(program, str(DOCS), "exec"), {"folder": str(crawl.folder), "out": str(tmp_path)})
    printed = capsys.readouterr().out
    assert "example.org" in printed or "example.org" in (tmp_path / "shard-00000.jsonl").read_text()
