"""A disk that is full or cannot be written: the crawl stops with one line, and goes on when there is room."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from skitter.testing.audit import compare, violations
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.e2e.command import complaint, read_json, said, skitter

DELAY = 0.01
Remount = Callable[[str], None]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Remount]]:
    """A small disk of its own, and how to change it."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place, lambda how: mount(place, how)
    finally:
        subprocess.run(["umount", str(place)], check=True)


def mount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)


def crawl(web: SyntheticWeb, into: Path) -> list[object]:
    flags = ["--scope", "any", "--resolve", web.resolve, "--delay", DELAY]
    return ["crawl", *web.seeds, "--into", into, *flags]


def archived(folder: Path) -> Counter[str]:
    """How often each page is in the archive."""
    found = Counter[str]()
    for segment in folder.glob("*.warc.gz"):
        with segment.open("rb") as file:
            for record in ArchiveIterator(file):
                uri = record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type in ("response", "revisit") and not uri.endswith("/robots.txt"):
                    found[uri] += 1
    return found


@pytest.mark.parametrize("size", ["300k", "500k", "800k"])
def test_a_full_disk_loses_nothing(disk: tuple[Path, Remount], size: str) -> None:
    place, remount = disk
    remount(f"size={size}")
    plan = WebPlan.plain(hosts=20, pages=10)
    with SyntheticWeb(plan) as web:
        for _ in range(2):
            line = complaint(skitter(*crawl(web, place / "c")), 1)
            assert "no room left" in line or "free space" in line
        remount("size=100m")
        said(skitter(*crawl(web, place / "c")))
        web.stop()
        requests = web.requests()
    assert not compare(requests, plan, 1, spare=2)
    assert violations(requests, lambda host: DELAY) == []
    assert archived(place / "c" / "archive") == dict.fromkeys(plan.expected(), 1)
    assert read_json("stats", place / "c")["pages"] == 200


def test_a_folder_that_cannot_be_written_is_said_to_be(disk: tuple[Path, Remount]) -> None:
    place, remount = disk
    remount("size=20m")
    with SyntheticWeb(WebPlan.plain(hosts=2, pages=2)) as web:
        said(skitter(*crawl(web, place / "c")))
        before = read_json("stats", place / "c")
        remount("ro")
        for into in ("c", "new"):
            line = complaint(skitter(*crawl(web, place / into)), 1)
            assert "Read-only file system" in line
            assert "check its owner, permissions and free space" in line
        remount("rw")
        assert read_json("stats", place / "c") == before
        said(skitter(*crawl(web, place / "c")))
