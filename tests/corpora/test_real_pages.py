"""Pages that others wrote, read in both ways: documentation as Debian ships it, and suites that have pages."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.corpora import corpus
from tests.readings import readings

PACKAGES = {
    "openjdk-17-doc": Path("/usr/share/doc/openjdk-17-doc/api"),
    "python3-doc": Path("/usr/share/doc/python3.11/html"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
    "cppreference-doc-en-html": Path("/usr/share/cppreference/doc/html/en"),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_real_pages_are_read_alike_and_nearly_all_in_one_pass(package: str) -> None:
    folder = PACKAGES[package]
    if not folder.exists():
        pytest.skip(f"needs Debian's {package}")
    pages = sorted(file for part in sorted(folder.iterdir())[:40] for file in part.rglob("*.html"))
    pages += sorted(folder.glob("*.html"))
    drawn = random.Random(5).sample(pages, min(30, len(pages)))
    both = [readings(file.read_bytes(), "") for file in drawn if file.stat().st_size < 300_000]
    assert len(both) > 15
    assert [by_tree.title for by_kernel, by_tree in both if by_kernel not in (None, by_tree)] == []
    assert sum(by_kernel is not None for by_kernel, _ in both) > 0.9 * len(both)


def test_pages_with_declared_charsets_are_read_alike() -> None:
    cases = json.loads((corpus("html5lib-encoding") / "encoding_prescan.json").read_text())
    for case in cases:
        by_kernel, by_tree = readings(bytes.fromhex(case["data_hex"]), "")
        assert by_kernel in (None, by_tree), case["file"]


def test_pages_with_odd_links_are_read_alike() -> None:
    for file in sorted(corpus("links-scrapy").glob("*.html")):
        by_kernel, by_tree = readings(file.read_bytes(), "")
        assert by_kernel in (None, by_tree), file.name
