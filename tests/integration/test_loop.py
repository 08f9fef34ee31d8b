"""The worker's loop does not go on behind a fault of ours."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from skitter.errors import ArchiveFailed
from skitter.folder import CrawlFolder
from skitter.seeds import read_seeds
from skitter.settings import CrawlSettings, FetchSettings, FrontierSettings, RetrySettings, Settings
from skitter.wiring import open_crawl
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
            await parts.frontier.admit(read_seeds([url], []))
            # only while it runs: finishing a segment syncs too, and must be able to
            with monkeypatch.context() as patched:
                patched.setattr(os, "fsync", fails)
                await parts.loop.run()

    # the host fails for ever, so the loop would wait for its retry and not end by itself
    broken = sends(page(b"no", status=b"500 No"))
    with serving(broken) as server, pytest.raises(ArchiveFailed, match="Input/output"):
        asyncio.run(crawl(server.url + "/"))
