"""Processes that meet bytes of strangers are poor: looked at from outside, in /proc, and tried from inside."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from skitter.archive import segments
from skitter.confinement.landlock import version
from skitter.extend.process import ExtractorProcess
from skitter.folder import CrawlFolder
from skitter.settings import FetchSettings
from skitter.settings.plugins import PluginSettings
from skitter.worker.reading.pdf import PdfReader
from tests.integration.test_table_writer import child_of, commit, opened
from tests.pdfs import pdf

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
SECRET = "SKITTER_TOKENS"
KEPT = {"PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "SKITTER_KERNELS", "SKITTER_FAULT_POINT"}
# How memory is given back, which the writer of tables is told.
KEPT |= {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "ARROW_DEFAULT_MEMORY_POOL", "GLIBC_TUNABLES"}
TRIED = """
import ctypes, os, socket, subprocess, sys, threading
from skitter.confinement import confine
missing = confine(os.getppid(), memory=4_000_000_000, writes=(sys.argv[1],))

def tried(work):
    try:
        work()
        return "done"
    except OSError:
        return "refused"

def run_a_thread():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()

def rename():
    os.rename(sys.argv[1] + "/new", sys.argv[1] + "/renamed")

print(*missing)
for work in (
    lambda: open("/etc/passwd").read(),
    lambda: open(sys.argv[1] + "/new", "w").write("x"),
    rename,
    lambda: open(sys.argv[1] + "/../outside", "w"),
    lambda: os.listdir(sys.argv[1] + "/.."),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    lambda: socket.socket(socket.AF_UNIX),
    lambda: subprocess.run(["/bin/true"]),
    lambda: os.kill(os.getppid(), 0),
    lambda: __import__("sqlite3"),
    run_a_thread,
):
    print(tried(work))
"""


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def environment_of(pid: int) -> set[str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return {entry.partition(b"=")[0].decode() for entry in entries if entry}


def limit_of(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line for line in lines if line.startswith(name)).removeprefix(name).split()[0]


def assert_is_poor(pid: int) -> None:
    status = status_of(pid)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert environment_of(pid) <= KEPT
    assert limit_of(pid, "Max core file size") == "0"
    assert int(limit_of(pid, "Max open files")) <= 64
    assert int(limit_of(pid, "Max address space")) <= 8_000_000_000


def test_the_reader_of_pdfs_is_poor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "operator something-that-nobody-may-know")

    async def look() -> None:
        reader = PdfReader(FetchSettings())
        try:
            assert (await reader.read(pdf("words"))).reason == ""
            assert reader._child is not None
            assert_is_poor(reader._child.pid)
        finally:
            await reader.close()

    asyncio.run(look())


def test_the_writer_of_tables_is_poor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "operator something-that-nobody-may-know")
    monkeypatch.setattr(segments, "ROWS_A_PART", 10)
    archive = opened(tmp_path)
    commit(archive, range(12))
    assert_is_poor(child_of(archive))
    archive.close()


@pytest.mark.skipif(not version(), reason="this kernel has no Landlock")
def test_who_is_confined_reaches_its_folder_and_pythons_modules_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", TRIED, str(folder)], capture_output=True, text=True, check=True
    )
    missing, *tried = done.stdout.splitlines()
    assert missing == ""
    assert tried == ["refused", "done", "done", *["refused"] * 6, "done", "done"]
    assert os.listdir(tmp_path) == ["own"]


def test_the_process_of_users_code_has_a_short_environment_and_gains_no_privilege(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the user's own code: it keeps files and network, but gets no secret of the operator's."""
    monkeypatch.setenv(SECRET, "operator something-that-nobody-may-know")

    async def look() -> None:
        process = ExtractorProcess(PluginSettings(with_=("structured",)), {})
        try:
            await process.start()
            assert process._process is not None
            pid = process._process.pid
            assert status_of(pid)["NoNewPrivs"] == "1"
            assert SECRET not in environment_of(pid)
            assert limit_of(pid, "Max core file size") == "0"
            assert int(limit_of(pid, "Max data size")) == PluginSettings().memory
        finally:
            await process.close()

    asyncio.run(look())


def test_a_crawls_folder_is_its_owners_alone(tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path / "crawls" / "one")
    with folder.locked():
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
