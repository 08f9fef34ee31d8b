"""A disk that is full: the crawl pauses, says so, and goes on when there is room. One that cannot be written: it
stops with one line."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench._records import archive_faults, records
from warcio.archiveiterator import ArchiveIterator

from skitter.testing.audit import compare, violations
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.e2e.command import ENVIRON, command, complaint, read_json, said, skitter

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


class Paused:
    """A crawl in a process of its own, of which every line is read as it is said."""

    def __init__(self, words: list[object], min_free: int) -> None:
        lease = {
            "SKITTER_FRONTIER_LEASE_DURATION": "5"
        }  # hosts of workers elsewhere rest for one after a pause
        environ = {**ENVIRON, **lease, "SKITTER_ARCHIVE_MIN_FREE": str(min_free)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command(*words), stdout=subprocess.DEVNULL, stderr=pipe, env=environ, text=True
        )
        self.said: list[str] = []

    def says(self, words: str) -> str:
        """Waits for it; the end of the process ends the wait too."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if words in line:
                return line
        raise AssertionError(f"never said {words!r}: {self.said}")

    def ends(self) -> int:
        _, rest = self.process.communicate(timeout=60)
        self.said.append(rest)
        assert "Traceback" not in "".join(self.said)
        return self.process.returncode


@pytest.mark.parametrize(("size", "min_free"), [("300k", 0), ("900k", 0), ("20m", 21_000_000)])
def test_a_full_disk_pauses_the_crawl_until_there_is_room(
    disk: tuple[Path, Remount], size: str, min_free: int
) -> None:
    place, remount = disk
    remount(f"size={size}")
    plan = WebPlan.plain(hosts=20, pages=10)
    with SyntheticWeb(plan) as web:
        paused = Paused(crawl(web, place / "c"), min_free)
        line = paused.says("paused: ")
        assert str(place / "c") in line
        remount("size=200m")
        paused.says("there is room again")
        assert paused.ends() == 0
        web.stop()
        requests = web.requests()
    assert not compare(requests, plan, 1, spare=2)
    assert violations(requests, lambda host: DELAY) == []
    assert archived(place / "c" / "archive") == dict.fromkeys(plan.expected(), 1)
    assert archive_faults(place / "c" / "archive", records(place / "c" / "archive")) == []
    assert read_json("stats", place / "c")["pages"] == 200


def test_a_full_disk_of_the_frontier_alone_pauses_the_crawl_too(
    disk: tuple[Path, Remount], tmp_path: Path
) -> None:
    """Its store has to be closed and opened anew, in the same process."""
    place, remount = disk
    remount("size=200m")
    plan = WebPlan.plain(hosts=20, pages=10)
    folder = tmp_path / "c"
    with SyntheticWeb(plan) as web:
        said(skitter(*crawl(web, folder), "--max-pages", 3))
        shutil.move(folder / "frontier", place / "frontier")
        (folder / "frontier").symlink_to(place / "frontier")
        used = shutil.disk_usage(place).used
        remount(f"size={(used >> 10) + 100}k")
        (folder / "crawl.toml").write_text((folder / "crawl.toml").read_text().replace("max_pages = 3", ""))
        paused = Paused(crawl(web, folder), 0)
        assert "frontier" in paused.says("paused: ")
        remount("size=200m")
        paused.says("there is room again")
        assert paused.ends() == 0
        web.stop()
    assert archived(folder / "archive") == dict.fromkeys(plan.expected(), 1)
    assert archive_faults(folder / "archive", records(folder / "archive")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_paused_crawl_can_be_stopped_and_loses_nothing(disk: tuple[Path, Remount], number: int) -> None:
    place, remount = disk
    remount("size=500k")
    plan = WebPlan.plain(hosts=20, pages=10)
    with SyntheticWeb(plan) as web:
        paused = Paused(crawl(web, place / "c"), 0)
        paused.says("paused: ")
        paused.process.send_signal(number)
        assert paused.ends() == (130 if number == signal.SIGINT else -number)
        remount("size=200m")
        said(skitter(*crawl(web, place / "c")))
        web.stop()
    assert archived(place / "c" / "archive") == dict.fromkeys(plan.expected(), 1)
    assert archive_faults(place / "c" / "archive", records(place / "c" / "archive")) == []


def test_a_full_disk_pauses_a_server_and_its_workers_lose_nothing(
    disk: tuple[Path, Remount], tmp_path: Path
) -> None:
    place, remount = disk
    remount("size=900k")
    plan = WebPlan.plain(hosts=20, pages=10)
    with SyntheticWeb(plan) as web, socket.create_server(("127.0.0.1", 0)) as free:
        where = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        served = ["serve", place / "c", *web.seeds, "--listen", where, "--scope", "any", "--delay", DELAY]
        server = Paused([*served, "--resolve", web.resolve, "--allow-private"], 0)
        server.says("serving ")
        worker = subprocess.Popen(
            command("worker", "--join", f"http://{where}", "--allow", "private", "--allow", "resolve"),
            stderr=subprocess.DEVNULL,
            env=ENVIRON,
        )
        try:
            server.says("paused: ")
            remount("size=200m")
            server.says("there is room again")
            server.says("serving ")
            until(lambda: stats_at(where)["completed"] == 200)
        finally:
            worker.terminate()
            worker.wait(60)
            server.process.terminate()
            assert server.ends() == 0
        web.stop()
        requests = web.requests()
    assert violations(requests, lambda host: DELAY) == []
    assert archived(place / "c" / "archive") == dict.fromkeys(plan.expected(), 1)
    assert archive_faults(place / "c" / "archive", records(place / "c" / "archive")) == []


def test_a_paused_server_can_be_stopped(disk: tuple[Path, Remount]) -> None:
    place, _ = disk
    server = Paused(["serve", place / "c", "--new", "--listen", "127.0.0.1:0"], 21_000_000)
    server.says("paused: ")
    server.process.terminate()
    assert server.ends() == 0


def stats_at(where: str) -> dict[str, int]:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{where}/v1/stats", timeout=30) as told:
        urls: dict[str, int] = json.load(told)["stats"]["urls"]
        return urls
    return {"completed": 0}


def until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_folder_that_cannot_be_written_is_said_to_be(disk: tuple[Path, Remount]) -> None:
    place, remount = disk
    remount("size=200m")
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
