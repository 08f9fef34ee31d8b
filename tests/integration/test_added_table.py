"""A table that somebody else adds is kept like our own: committed, recovered, rolled back, queried."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import ParquetFile

import skitter
from skitter.archive.digests import digests_of
from skitter.archive.facts import Facts
from skitter.archive.packing import Packer
from skitter.archive.schema import ITEM, Column, Kind, Table, items_table
from skitter.archive.store import Archive
from skitter.clock import SystemClock
from skitter.collection.export.tables import write_parquet
from skitter.collection.verify.archive import verify
from skitter.collection.verify.findings import Ledger as Account
from skitter.settings import ArchiveSettings
from tests.exchanges import exchange
from tests.integration.test_archive_recovery import Ledger, in_a_process

ITEMS = items_table(
    "products",
    (
        Column("sku", Kind.TEXT, ITEM, "The shop's number."),
        Column("price", Kind.FLOAT64, ITEM, "In euros."),
        Column("stock", Kind.INT64, ITEM, "How many are left."),
    ),
)
SETTINGS = ArchiveSettings(segment_size=2200)


def opened(folder: Path, ledger: Ledger, added: tuple[Table, ...] = (ITEMS,), **how: Any) -> Archive:
    return Archive.open(
        folder / "archive",
        SETTINGS,
        SystemClock(),
        ledger.marks(),
        {},
        added=added,
        **{"in_child": False, **how},
    )


def facts_of(number: int) -> Facts:
    items = [
        {"sku": f"{number}-{n}", "price": n / 4, "stock": None if n else number} for n in range(number % 3)
    ]
    return Facts(title=f"Page {number}", text="words", items={"products": items})


def append(archive: Archive, number: int) -> str:
    given = exchange(f"http://a.test/{number}", b"%d" % number * 30)
    archive.place(
        Packer(SETTINGS, (ITEMS,)).pack(given, digests_of(given), media_type="", facts=facts_of(number))
    )
    return given.url


def skus(numbers: range) -> Counter[str]:
    return Counter(f"{number}-{n}" for number in numbers for n in range(number % 3))


def queried(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with skitter.open(folder) as crawl, crawl.duckdb(locked=True) as database:
        return database.execute(sql).fetchall()


def crash(folder: Path, ledger: Ledger) -> None:
    """Nine pages are committed, a tenth is not; the second run dies while it recovers what the first left."""

    def work() -> None:
        archive = opened(folder, ledger)
        for number in range(9):
            url = append(archive, number)
            ledger.commit(archive.marks(), [url])
            archive.committed()
            if number == 4:
                archive.sync()
                archive.synced()
                archive.rest()
        append(archive, 9)
        archive.marks()
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_process(work) == signal.SIGKILL


def assert_holds_nine_pages(folder: Path, ledger: Ledger) -> None:
    found = queried(
        folder, "select i.sku, i.price, i.stock, p.title from products i join pages p using (url, fetch_time)"
    )
    assert Counter(sku for sku, *_ in found) == skus(range(9))
    for sku, price, stock, title in found:
        number, n = map(int, sku.split("-"))
        assert (price, stock, title) == (n / 4, None if n else number, f"Page {number}")
    assert queried(folder, "select count(*) from pages") == [(9,)]
    with skitter.open(folder) as crawl:
        report = verify(crawl, Account(marks=tuple(ledger.marks()), least=9, most=9))
        assert report.findings == []
        assert write_parquet(crawl, folder, "url = 'http://a.test/8'", lambda _: None) == 1
    assert {row["sku"] for row in ParquetFile(folder / "products.parquet").read().to_pylist()} == {
        "8-0",
        "8-1",
    }


@pytest.mark.parametrize("in_child", [False, True], ids=["here", "in a child"])
def test_rows_of_an_added_table_survive_a_crash_and_are_queried(tmp_path: Path, in_child: bool) -> None:
    ledger = Ledger(tmp_path / "ledger")
    crash(tmp_path, ledger)
    opened(tmp_path, ledger, in_child=in_child).close()
    assert_holds_nine_pages(tmp_path, ledger)


def test_they_are_written_also_by_a_run_that_no_longer_knows_the_table(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    crash(tmp_path, ledger)
    opened(tmp_path, ledger, added=()).close()
    assert_holds_nine_pages(tmp_path, ledger)


def test_commits_lost_in_a_power_loss_take_their_items_along(tmp_path: Path) -> None:
    whole = Ledger(tmp_path / "whole")
    (tmp_path / "crawl").mkdir()
    crash(tmp_path / "crawl", whole)
    opened(tmp_path / "crawl", whole).close()
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        folder = tmp_path / f"{kept}"
        shutil.copytree(tmp_path / "crawl", folder)
        (tmp_path / f"ledger-{kept}").write_bytes(b"".join(lines[:kept]))
        opened(folder, Ledger(tmp_path / f"ledger-{kept}")).close()
        found = queried(folder, "select sku from products")
        assert Counter(sku for (sku,) in found) == skus(range(kept))


@pytest.mark.parametrize(
    "names",
    [("Items", "sku"), ("items;", "sku"), ("pages_in_parts", "sku"), ("items", "SKU"), ("items", "url")],
)
def test_a_table_that_sql_could_not_name_is_refused(names: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"names? of small letters|cannot be called"):
        items_table(names[0], (Column(names[1], Kind.TEXT, ITEM),))
