"""A store whose log cannot be written says so: what was acknowledged is there afterwards, and nothing else is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from skitter.clock import SystemClock
from skitter.frontier.opening import open_rocks_frontier
from skitter.settings import Settings

# The kernel refuses what would make a file longer than so many bytes, as a full disk would.
_LONGEST_FILE = 300_000
_AT_ONCE = 20
_CHILD = f"""
import asyncio, resource, sys
from pathlib import Path
from skitter.clock import SystemClock
from skitter.errors import StoreFailed
from skitter.frontier.opening import open_rocks_frontier
from skitter.settings import Settings
from tests.frontier_kit import seed

async def main():
    frontier = open_rocks_frontier(Path(sys.argv[1]), Settings(), SystemClock())
    resource.setrlimit(resource.RLIMIT_FSIZE, ({_LONGEST_FILE}, {_LONGEST_FILE}))
    for number in range(1_000):
        urls = [f"http://h{{number}}.test/{{place}}" for place in range({_AT_ONCE})]
        try:
            verdicts = await frontier.admit([seed(url) for url in urls])
        except StoreFailed as error:
            print("failed:", error, file=sys.stderr)
            return 3
        assert [verdict.kind for verdict in verdicts] == ["added"] * {_AT_ONCE}
        print(number, flush=True)

sys.exit(asyncio.run(main()))
"""


def test_a_log_that_cannot_be_written_is_an_error_and_what_was_acknowledged_is_kept(tmp_path: Path) -> None:
    child = subprocess.run(
        (sys.executable, "-c", _CHILD, str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 3, child.stderr
    acknowledged = [int(line) for line in child.stdout.splitlines()]
    assert acknowledged == list(range(len(acknowledged)))
    assert acknowledged
    assert "the frontier in" in child.stderr

    async def known() -> tuple[int, list[str]]:
        frontier = open_rocks_frontier(tmp_path, Settings(), SystemClock())
        try:
            stats = await frontier.stats()
            last = [f"http://h{acknowledged[-1]}.test/{place}" for place in range(_AT_ONCE)]
            states = [(await frontier.explain(url)).state or "" for url in last]
            return sum(stats.urls.values()), states
        finally:
            await frontier.close()

    count, states = asyncio.run(known())
    assert count == _AT_ONCE * len(acknowledged)
    assert states == ["queued"] * _AT_ONCE
