"""What a process has used: CPU with all its threads, memory, disk."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds() -> float:
    """User and system time of every thread: RocksDB's compactions count."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def disk_bytes(folder: Path) -> int:
    """Files may vanish while they are counted: compaction goes on."""
    total = 0
    for entry in os.scandir(folder):
        try:
            total += entry.stat().st_size
        except FileNotFoundError:
            continue
    return total


def _fixed_work() -> None:
    """Always the same: hashing, strings and dicts, about a millisecond."""
    seen = {blake2b(f"https://h{number}.example.com/".encode()).digest(): number for number in range(500)}
    sum(seen.values())


class Meter:
    """CPU since the last reading, without what `aside` took: the making of URLs is not the frontier's.

    A CPU second is worth less while others use the same caches and the core's other half: 1.5 times and more was
    seen. So a fixed piece of work is timed along the way, and `pace` says what it took (ms)."""

    def __init__(self) -> None:
        self._cpu = cpu_seconds()
        self._aside = 0.0
        self._paces: list[float] = []
        self.pace = 0.0

    @contextmanager
    def aside(self) -> Iterator[None]:
        began = time.thread_time()
        yield
        before = time.thread_time()
        _fixed_work()
        end = time.thread_time()
        self._paces.append(end - before)
        self._aside += end - began

    def read(self) -> float:
        cpu = cpu_seconds()
        spent = cpu - self._cpu - self._aside
        self.pace = statistics.median(self._paces) * 1e3
        self._cpu, self._aside = cpu, 0.0
        self._paces.clear()
        return spent
