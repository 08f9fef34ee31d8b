"""The chaos trial in its short form: everything that can happen to a crawl happens to a small one."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from bench import chaos
from bench._crawls import child_environment
from bench._jumps import Run, Wall, by_real_time, library
from bench._records import Fetch

from skitter.testing.request_log import Request


def test_a_crawl_that_is_given_no_peace_ends_exact(capsys: pytest.CaptureFixture[str]) -> None:
    small = "--kills 12 --pauses 2 --fills 1 --leaps 3 --pages 400 --lease 1 --crawl-delay 0.3"
    code = chaos.main([*small.split(), "--segment-size", "200000", "--seed", "3"])
    said = capsys.readouterr().out
    figures = json.loads(said.splitlines()[-1])
    assert figures["faults"] == {}, said
    assert code == 0
    killed = sum(figures.get(name, 0) for name in KILLS)
    assert killed == 12
    assert figures["pause_past_the_lease"] == 2
    assert figures.get("clock_set_while_it_runs", 0) == (3 if library() else 0)


KILLS = ("kill", "kill_while_starting", "kill_while_draining")


def test_a_time_that_two_clocks_showed_is_of_the_run_in_which_the_url_was_asked() -> None:
    fetch = Fetch("http://a.test/", b"", 1000.5, "fetched", 200, None)
    ahead, right = Run(900.0, 100.0, 110.0), Run(0.0, 1000.0, 1010.0)
    asked = Request(id=1, start=100.4, host="a.test", path="/", connection=1)
    (found,) = by_real_time([fetch], [asked], [ahead, right])
    assert found.sent_at == 100.5
    later = Request(id=2, start=1000.4, host="a.test", path="/", connection=1)
    (found,) = by_real_time([fetch], [later], [ahead, right])
    assert found.sent_at == 1000.5


WATCHER = """
import ctypes, sys, time
libc = ctypes.CDLL(None)

class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

def waited(clock):
    "Seconds until a condition that nobody signals is given up, 0.05 s from now by one of the clocks."
    kind, condition, mutex = (ctypes.create_string_buffer(64) for _ in range(3))
    libc.pthread_condattr_init(kind)
    libc.pthread_condattr_setclock(kind, clock)
    libc.pthread_cond_init(condition, kind)
    until = time.clock_gettime_ns(clock) + 50_000_000
    began = time.monotonic()
    libc.pthread_cond_timedwait(condition, mutex, ctypes.byref(Timespec(*divmod(until, 10**9))))
    return time.monotonic() - began

for _ in sys.stdin:
    clocks = time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
    print(*clocks, waited(time.CLOCK_REALTIME), waited(time.CLOCK_MONOTONIC), flush=True)
"""


@pytest.mark.skipif(library() is None, reason="there is no C compiler")
def test_a_wall_clock_that_is_set_moves_no_other_clock_and_no_wait() -> None:
    """With libfaketime every wait by a condition was over at once: Python's threads took each other's turns."""
    wall = Wall()
    command = [sys.executable, "-c", WATCHER]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**child_environment(), **wall.environ},
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for offset in (0.0, -1800.0, 1800.0):
            wall.set(offset)
            child.stdin.write("\n")
            child.stdin.flush()
            shown, monotonic, since_boot, by_wall, by_monotonic = map(float, child.stdout.readline().split())
            assert shown - time.time() == pytest.approx(offset, abs=60)
            assert monotonic == pytest.approx(time.monotonic(), abs=60)
            assert since_boot == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)
            assert 0.05 <= by_wall < 60
            assert 0.05 <= by_monotonic < 60
        child.stdin.close()
