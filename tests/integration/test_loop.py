"""The worker's loop does not go on behind a fault of ours, nor for ever behind a fault of the web's."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from pathlib import Path

import pytest

from skitter.errors import ArchiveFailed
from skitter.folder import CrawlFolder
from skitter.seeds import read_seeds
from skitter.settings import CrawlSettings, FetchSettings, FrontierSettings, RetrySettings, Settings
from skitter.telemetry import Ended
from skitter.wiring import open_crawl
from tests.keys import KEYS
from tests.raw_server import page, sends, serving


def test_a_disk_that_cannot_be_synced_stops_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async def crawl(url: str) -> None:
        settings = Settings(
            crawl=CrawlSettings(linger=60.0),
            fetch=FetchSettings(allow_private=True),
            frontier=FrontierSettings(sync_interval=0.0),
            retry=RetrySettings(backoff=(30.0,)),
        )
        async with open_crawl(CrawlFolder(tmp_path), settings) as parts:
            await parts.frontier.admit(read_seeds([url], [], KEYS))
            # only while it runs: finishing a segment syncs too, and must be able to
            with monkeypatch.context() as patched:
                patched.setattr(os, "fsync", fails)
                await parts.loop.run()

    # the host fails for ever, so the loop would wait for its retry and not end by itself
    broken = sends(page(b"no", status=b"500 No"))
    with serving(broken) as server, pytest.raises(ArchiveFailed, match="Input/output"):
        asyncio.run(crawl(server.url + "/"))


def test_a_crawl_of_a_host_on_which_nobody_listens_comes_to_its_end(tmp_path: Path) -> None:
    """Its robots.txt cannot be had: it is given up, what waits for it becomes dead letters, nothing is left."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = Settings(
        fetch=FetchSettings(allow_private=True),
        retry=RetrySettings(backoff=(0.1,), quarantine_after=1, quarantine=0.1, quarantines=1),
    )

    async def crawl() -> tuple[Ended, dict[str, int], dict[str, int]]:
        async with open_crawl(CrawlFolder(tmp_path), settings) as parts:
            seeds = [f"http://127.0.0.1:{port}/{number}" for number in range(3)]
            await parts.frontier.admit(read_seeds(seeds, [], KEYS))
            ended = await parts.loop.run()
            stats = await parts.frontier.stats()
            return ended, stats.urls, stats.hosts

    ended, urls, hosts = asyncio.run(crawl())
    assert ended is Ended.COMPLETE
    assert {state: count for state, count in urls.items() if count} == {"dead_letter": 3}
    assert hosts["given_up"] == 1
    assert "host_given_up" in CrawlFolder(tmp_path).log.read_text()
