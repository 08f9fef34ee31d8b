"""`skitter query` cannot write: not by any kind of statement that DuckDB has, nor by what hides in a select."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from skitter.collection.tables import select_only
from skitter.confinement import run_without_writing
from skitter.confinement.landlock import version
from skitter.console.read.query import run_query
from skitter.errors import UsageError
from tests.archives import Made, add_tables, make_crawl

# By DuckDB's own names. What has no spelling in SQL is left out below.
STATEMENTS = {
    "INSERT": "insert into pages_in_index select * from pages_in_index",
    "UPDATE": "update pages_in_index set url = 'x'",
    "CREATE": "create table x as select 1",
    "DELETE": "delete from pages_in_index",
    "PREPARE": "prepare p as copy (select 1) to '{file}'",
    "EXECUTE": "execute p",
    "ALTER": "alter table pages_in_index add column x integer",
    "TRANSACTION": "begin transaction",
    "COPY": "copy (select 1) to '{file}'",
    "EXPLAIN": "explain analyze copy (select 1) to '{file}'",
    "DROP": "drop table pages_in_index",
    "EXPORT": "export database '{file}'",
    "PRAGMA": "pragma enable_profiling",
    "VACUUM": "vacuum",
    "CALL": "call enable_logging(storage_path = '{file}')",
    "SET": "set profiling_output = '{file}'",
    "LOAD": "load httpfs",
    "ATTACH": "attach '{file}'",
    "DETACH": "detach memory",
    "MULTI": "pivot pages on status",
    "COPY_DATABASE": "copy from database memory to other",
    "MERGE_INTO": "merge into pages_in_index using pages p on false when not matched then insert by name",
}
UNSPELLED = {
    "INVALID",
    "SELECT",
    "VARIABLE_SET",
    "CREATE_FUNC",
    "ANALYZE",
    "RELATION",
    "EXTENSION",
    "LOGICAL_PLAN",
}
HIDDEN = [
    "with x as (copy (select 1) to '{file}') select 1",
    "with x as (delete from pages_in_index returning *) select * from x",
    "select (with x as (copy (select 1) to '{file}') select 1)",
    "select url from pages where url in (with x as (copy (select '') to '{file}') select '')",
    "select * from query('with x as (copy (select 1) to ''{file}'') select 1')",
    "select * from enable_logging(storage_path = '{file}')",
    "explain analyze with x as (copy (select 1) to '{file}') select 1",
    "EXPLAIN ANALYZE copy (select 1) to '{file}'",
    "explain /* plan */ analyze copy (select 1) to '{file}'",
    "/**/ explain analyze copy (select 1) to '{file}'",
    "explain analyze (format json) copy (select 1) to '{file}'",
    "select 1 union all (with x as (copy (select 1) to '{file}') select 1)",
]


@pytest.fixture
def crawl(tmp_path: Path) -> Made:
    made = make_crawl(tmp_path / "crawl", 3)
    add_tables(made)
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_refused(crawl: Made, sql: str) -> None:
    """Inside of the archive's own folder, where DuckDB itself would let it write."""
    before = contents(crawl.archive)
    victim = next(path for path in before if path.endswith(".gz"))
    for file in (victim, str(crawl.archive / "new")):
        with crawl.collection() as collection, collection.duckdb(locked=True) as database:
            with pytest.raises(UsageError):
                select_only(database, sql.format(file=file)).fetchall()
            assert database.execute("select count(*) from pages").fetchone() == (3,)
    assert contents(crawl.archive) == before


def test_every_kind_of_statement_is_tried() -> None:
    assert set(duckdb.StatementType.__members__) == {*STATEMENTS, *UNSPELLED}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_no_statement_but_select_is_carried_out(crawl: Made, kind: str) -> None:
    assert_refused(crawl, STATEMENTS[kind])


@pytest.mark.parametrize("sql", HIDDEN)
def test_what_hides_in_a_select_is_not_carried_out(crawl: Made, sql: str) -> None:
    assert_refused(crawl, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from pages",
        "with recursive n as (select 1 as a union all select a + 1 from n where a < 3) select count(*) from n",
        "select count(*) from (select url from pages union select url from links)",
        "from pages",
        "show tables",
        "describe pages",
        "summarize pages",
        "explain select * from pages",
        "explain analyze select * from pages",
        "explain (format json) select * from pages",
    ],
)
def test_what_only_reads_is(crawl: Made, sql: str) -> None:
    with crawl.collection() as collection, collection.duckdb(locked=True) as database:
        assert select_only(database, sql).fetchall()


def test_a_condition_of_a_reader_cannot_write_either(crawl: Made, tmp_path: Path) -> None:
    file = tmp_path / "written"
    with crawl.collection() as collection, pytest.raises(UsageError):
        list(collection.pages(f"url in (with x as (copy (select '') to '{file}') select '')"))
    assert not file.exists()


@pytest.mark.skipif(not version(), reason="this kernel has no Landlock")
def test_the_kernel_keeps_the_command_from_writing_whatever_is_asked(
    crawl: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "written"
    monkeypatch.setattr("skitter.console.read.query.select_only", lambda database, sql: database.execute(sql))
    before = contents(crawl.archive)
    with pytest.raises(duckdb.IOException, match="Permission denied"):
        run_query(crawl.folder, f"copy (select 1) to '{crawl.archive}/new'", "csv")
    assert contents(crawl.archive) == before
    run_query(crawl.folder, "select count(*) from pages", "csv")
    assert capsys.readouterr().out.split() == ["count_star()", "3"]
    file.write_text("this thread still may")


@pytest.mark.skipif(not version(), reason="this kernel has no Landlock")
def test_what_was_raised_without_writing_is_raised(tmp_path: Path) -> None:
    with pytest.raises(PermissionError):
        run_without_writing(lambda: os.mkdir(tmp_path / "folder"))
