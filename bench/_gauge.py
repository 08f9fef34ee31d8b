"""What a process has used: CPU with all its threads, memory, disk."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


class Meter:
    """CPU since the last reading, without what `aside` took: the making of URLs is not the frontier's."""

    def __init__(self) -> None:
        self._cpu = cpu_seconds()
        self._aside = 0.0

    @contextmanager
    def aside(self) -> Iterator[None]:
        began = time.thread_time()
        yield
        self._aside += time.thread_time() - began

    def read(self) -> float:
        cpu = cpu_seconds()
        spent = cpu - self._cpu - self._aside
        self._cpu, self._aside = cpu, 0.0
        return spent
