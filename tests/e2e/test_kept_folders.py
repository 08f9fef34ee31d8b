"""A folder that an earlier version left is opened, read and gone on with: by the kept folder of each version."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from skitter.folder import FORMAT, CrawlFolder
from tests.e2e.command import complaint, read_json, said, skitter
from tests.folders.site import PAGES, serving_kept_site

KEPT = sorted(Path(__file__).parents[1].joinpath("folders").glob("*.tar.xz"))


@pytest.fixture(params=KEPT, ids=lambda path: path.name)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return next(path for path in tmp_path.iterdir())


def test_there_is_a_kept_folder() -> None:
    assert KEPT


def test_what_an_earlier_version_archived_is_read(kept: Path) -> None:
    assert read_json("query", kept, "select count(*) n from pages where kind = 'page' and status = 200") == {
        "n": len(PAGES)
    }
    assert said(skitter("show", kept, "http://kept.test/two")).encode() == PAGES["/two"]
    assert read_json("query", kept, "select name from Thing") == {"name": "one"}
    assert read_json("verify", kept)["defects"] == 0


def test_a_crawl_of_an_earlier_version_is_gone_on_with(kept: Path) -> None:
    assert CrawlFolder(kept).format == FORMAT
    assert read_json("explain", "http://kept.test/secret/x", "--in", kept)["state"] == "denied"
    with serving_kept_site() as (resolve, answered):
        said(skitter("refresh", kept))
        done = skitter("crawl", "--into", kept, "--resolve", resolve)
        assert done.returncode == 0, done.stderr
    assert sorted(line for line in answered if line.startswith("304")) == [
        f"304 {path}" for path in sorted(PAGES)
    ]
    assert not [line for line in answered if line.startswith("200") and "robots" not in line]
    assert read_json("verify", kept)["defects"] == 0


def test_a_folder_of_a_later_version_is_left_alone(kept: Path) -> None:
    (kept / "format").write_text("99 skitter 9.9\n")
    for words in (("stats", kept), ("crawl", "--into", kept)):
        assert "later version" in complaint(skitter(*words), 1)
    assert (kept / "format").read_text() == "99 skitter 9.9\n"
    found = skitter("query", kept / "archive", "select count(*) n from pages where status = 200", "--json")
    assert '"n": 4' in said(found)
