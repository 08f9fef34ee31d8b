"""Connections are descriptors: the limit is raised as far as it goes; where that is not far, fewer are opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import ENVIRON, command, serving_site

CHILD = """
import resource, sys
from skitter.settings import Settings
from skitter.fetch_stack import raise_descriptor_limit

soft, hard = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
able = raise_descriptor_limit(Settings())
print(able.fetch.connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "limit"),
    [(256, 1024, 384, 1024), (256, 8192, 4096, 8192), (64, 64, 16, 64)],
)
def test_the_limit_of_open_files_is_raised_and_kept_to(
    soft: int, hard: int, connections: int, limit: int
) -> None:
    child = [sys.executable, "-c", CHILD, str(soft), str(hard)]
    done = subprocess.run(child, capture_output=True, env=ENVIRON, check=True, text=True, timeout=60)
    assert done.stdout.split() == [str(connections), str(limit)]


def test_a_crawl_says_so_when_it_cannot_have_the_connections_it_wants(tmp_path: Path) -> None:
    with serving_site({"/": b"<title>home</title>"}) as server:
        crawl = command("crawl", server.url + "/", "--into", tmp_path / "crawl", "--allow-private", "--json")
        limited = ["prlimit", "--nofile=1024:1024", *crawl]
        done = subprocess.run(limited, capture_output=True, env=ENVIRON, timeout=60, check=True)
    assert b"only 384 connections instead of 4,096" in done.stdout + done.stderr
