"""Forks made ready for a crawl: told what to do once, heard of when they end, gone when nobody is left."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="forks are made on Linux only")

DEADLINE = 30
# In a process of its own: this one has threads.
BEGINNING = """
import asyncio, os, signal, sys, threading
from pathlib import Path
from skitter.console.hired import Hired, processes_for
from skitter.console.spares import Spare, spared
"""


def printed(script: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", BEGINNING + script, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE).stdout


def test_a_spare_carries_out_what_it_is_told_and_its_code_is_heard(tmp_path: Path) -> None:
    file = tmp_path / "a name with spaces and ü"
    script = """
def carry_out(words):
    print("said where nobody hears it", flush=True)
    Path(words[1]).write_text(f"{words[0]} {os.getsid(0) == os.getpid()}")
    return 7

async def watched(spares):
    spare = spares.pop()
    spare.start(["worker", sys.argv[1]])
    codes = await asyncio.gather(spare.wait(), spare.wait())
    try:
        spare.send_signal(signal.SIGTERM)
    except ProcessLookupError:
        print(*codes, "and gone")

with spared(2, carry_out) as spares:
    assert len(spares) == 2
    asyncio.run(watched(spares))
"""
    assert printed(script, str(file)) == "7 7 and gone\n"
    assert file.read_text() == "worker True"


def test_a_bug_in_a_spare_is_told_and_does_not_return_to_where_it_was_forked() -> None:
    script = """
def carry_out(words):
    raise RuntimeError("a bug")

with spared(2, carry_out) as spares:
    spare = spares.pop()
    spare.start(["worker"])
    print(os.waitstatus_to_exitcode(os.waitpid(spare.pid, 0)[1]))
"""
    command = [sys.executable, "-c", BEGINNING + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout == "1\n"
    assert done.stderr.count("RuntimeError: a bug") == 1


def test_spares_that_nobody_took_are_gone_after_the_block() -> None:
    """The later ones inherit what the first one listens to, and must not keep it open."""
    script = """
with spared(3, lambda words: 0) as spares:
    pids = [spare.pid for spare in spares]
print([Path(f"/proc/{pid}").exists() for pid in pids])
"""
    assert printed(script) == "[False, False, False]\n"


def test_spares_end_with_a_parent_that_is_killed() -> None:
    script = """
with spared(2, lambda words: 0) as spares:
    print(*(spare.pid for spare in spares), flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", BEGINNING + script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        ends = [os.pidfd_open(pid) for pid in pids]
        parent.kill()
    for end in ends:
        try:
            assert select.select([end], [], [], DEADLINE)[0]
        finally:
            os.close(end)


@pytest.mark.parametrize(("workers", "spares"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4)])
def test_a_crawl_makes_as_many_spares_as_it_starts_processes(workers: int, spares: int) -> None:
    script = "with spared(processes_for(int(sys.argv[1])), lambda words: 0) as spares: print(len(spares))"
    assert printed(script, str(workers)) == f"{spares}\n"


def test_a_process_with_threads_makes_no_spares() -> None:
    script = """
ended = threading.Event()
threading.Thread(target=ended.wait).start()
with spared(2, lambda words: 0) as spares:
    print(spares)
ended.set()
"""
    assert printed(script) == "[]\n"


def test_for_a_spare_that_has_died_a_process_is_started_anew(tmp_path: Path) -> None:
    script = """
async def hire(spares):
    hired = Hired(Path(sys.argv[1]), Path(sys.argv[1]) / "workers.sock", spares)
    for place in range(2):
        await hired.start(place)
    print(*sorted(type(process).__name__ for process in hired.processes.values()), spares)
    await hired.end()

with spared(2, lambda words: signal.pause()) as spares:
    spares[1].kill()
    os.waitid(os.P_PID, spares[1].pid, os.WEXITED | os.WNOWAIT)
    asyncio.run(hire(spares))
"""
    assert printed(script, str(tmp_path)) == "Process Spare []\n"
