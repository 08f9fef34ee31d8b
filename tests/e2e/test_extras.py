"""What is not installed is said in one line that names the extra, and a crawl needs none of the extras."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skitter.extras import EXTRAS
from tests.e2e.command import ENVIRON, Done, complaint, said, serving_site

# As Python itself has it: a module that is None there cannot be imported, and is not found.
WITHOUT = f"""
import sys
for name in {sorted(EXTRAS)}:
    sys.modules[name] = None
from skitter.cli import main
sys.exit(main(sys.argv[1:]))
"""
SITE = {"/": b"<title>Home</title><a href=/two>two</a>", "/two": b"<title>Two</title>"}


def without_extras(*arguments: object) -> Done:
    words = [sys.executable, "-c", WITHOUT, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=ENVIRON, timeout=90, check=False)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    folder = tmp_path_factory.mktemp("base") / "crawl"
    with serving_site(SITE) as server:
        done = without_extras("crawl", f"{server.url}/", "--into", folder, "--allow-private", "--delay", "0")
    return folder, done


def test_a_crawl_with_its_archive_needs_no_extra(crawled: tuple[Path, Done]) -> None:
    folder, done = crawled
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("pip install 'skitter[query]'") == 1
    assert [path.name for path in folder.glob("archive/*.warc.gz")]
    assert not [*folder.glob("archive/*/*.parquet")]
    assert "tables" not in (folder / "crawl.toml").read_text()  # a later run that has pyarrow keeps them
    assert said(without_extras("stats", folder))


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("query", "DIR", "select 1"), "query"),
        (("verify", "DIR"), "query"),
        (("export", "DIR", "--to", "wacz", "DIR.wacz"), "query"),
        (("sink", "DIR", "--to", "DIR.files"), "query"),
        (("extract", "DIR", "--with", "structured"), "query"),
        (("serve", "DIR", "--listen", "127.0.0.1:0"), "serve"),
        (("query", "s3://bucket/x", "select 1"), "objects"),
    ],
)
def test_what_is_missing_is_named_with_what_to_install(
    crawled: tuple[Path, Done], words: tuple[str, ...], extra: str
) -> None:
    folder, _ = crawled
    told = complaint(without_extras(*(word.replace("DIR", str(folder)) for word in words)), 2)
    assert f"pip install 'skitter[{extra}]'" in told


def test_what_was_crawled_without_tables_is_read_when_duckdb_is_there(crawled: tuple[Path, Done]) -> None:
    from skitter.collection.collection import Collection

    with Collection.at(crawled[0]) as collection:
        assert collection.count("status = 200 and kind = 'page'") == 2
