"""Prometheus' own tool, which Debian ships in the package `prometheus`."""

from __future__ import annotations

import shutil
import subprocess

import pytest

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: apt install prometheus"
)


def promtool(*arguments: object, given: str = "") -> str:
    """What it says; it must be content."""
    done = subprocess.run(
        ["promtool", *map(str, arguments)], input=given, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
