"""A real crawl of every misbehaviour in the catalogue: each ends exactly as documented, and nothing hangs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from skitter.folder import CrawlFolder
from skitter.frontier.base import Explanation, Stats
from skitter.reference import FOLDER
from skitter.seeds import read_seeds
from skitter.settings import (
    CrawlSettings,
    FetchSettings,
    IdentitySettings,
    PolitenessSettings,
    RetrySettings,
    Settings,
)
from skitter.telemetry import Ended
from skitter.testing.hostile.case import Case
from skitter.testing.hostile.catalogue import CATALOGUE, reference_page
from skitter.testing.hostile.codings import gzip_bomb
from skitter.testing.hostile.web import HostileWeb
from skitter.wiring import open_crawl
from tests.exchanges import Read, finished_records

ATTEMPTS = 2
MAX_BODY = 2_000_000
LONGEST = 60.0


def settings(web: HostileWeb) -> Settings:
    """The limits' own values, but for patience: seconds instead of minutes, and a smaller body."""
    return Settings(
        crawl=CrawlSettings(linger=2.0),
        identity=IdentitySettings(contact="me@example.org"),
        politeness=PolitenessSettings(delay=0.05, slow_factor=0.0),
        retry=RetrySettings(attempts=ATTEMPTS, backoff=(0.05,), quarantine_after=2),
        fetch=FetchSettings(
            connect_timeout=5.0,
            first_byte_timeout=5.0,
            stall_timeout=3.0,
            total_timeout=7.0,
            max_body=MAX_BODY,
            resolve=web.resolve,
            nameservers=(web.nameserver,),
        ),
    )


class Crawled:
    """What a crawl of the whole catalogue left behind."""

    def __init__(
        self,
        how: Ended,
        stats: Stats,
        found: dict[str, Explanation],
        asked: Counter[tuple[str, str]],
        archive: list[Read],
    ) -> None:
        self.how = how
        self.stats = stats
        self.found = found
        self.asked = asked
        self.archive = archive


async def crawl(web: HostileWeb, folder: Path) -> tuple[Ended, Stats, dict[str, Explanation]]:
    crawl_folder = CrawlFolder(folder)
    crawl_folder.lock()
    async with open_crawl(crawl_folder, settings(web)) as parts:
        await parts.frontier.admit(read_seeds(web.seeds, []))
        async with asyncio.timeout(LONGEST):
            how = await parts.loop.run()
        urls = {name: case.origin() + case.watched for name, case in CATALOGUE.items()}
        found = {name: await parts.frontier.explain(url) for name, url in urls.items()}
        stats = await parts.frontier.stats()
    crawl_folder.unlock()
    return how, stats, found


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("hostile")
    with HostileWeb() as web, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        how, stats, found = runner.run(crawl(web, folder))
        yield Crawled(how, stats, found, web.requests(), finished_records(folder / "archive"))


@pytest.mark.parametrize("name", CATALOGUE)
def test_it_ends_as_documented(crawled: Crawled, name: str) -> None:
    case, found = CATALOGUE[name], crawled.found[name]
    assert (ending(found), found.state) == (documented(case), case.ends.state)
    assert case.ends.detail in (found.fetches[-1].detail if found.fetches else found.waits)
    assert len(found.fetches) == requests(case)
    if not case.ends.never:
        assert crawled.asked[case.host(), case.watched] == requests(case)


def ending(found: Explanation) -> tuple[str, int]:
    return (found.fetches[-1].result, found.fetches[-1].status) if found.fetches else ("", 0)


def documented(case: Case) -> tuple[str, int]:
    return case.ends.result, case.ends.status


def requests(case: Case) -> int:
    return 0 if case.ends.never else min(case.ends.requests or ATTEMPTS, ATTEMPTS)


def test_the_crawl_ends_by_itself_and_only_what_must_wait_waits(crawled: Crawled) -> None:
    assert crawled.how is Ended.WAITING
    waiting = [name for name, case in CATALOGUE.items() if case.ends.state in ("queued", "failed")]
    urls = crawled.stats.urls
    assert (
        urls["queued"] + urls["failed"] + urls["in_progress"] == len(waiting) + 1
    )  # and where redirect-inside led
    assert crawled.stats.politeness.violations == 0


def test_what_has_no_end_is_cut_and_marked_in_the_archive(crawled: Crawled) -> None:
    url = CATALOGUE["endless-body"].origin() + "/"
    (record,) = [
        read for read in crawled.archive if read.fields.get("WARC-Target-URI") == url and read.status
    ]
    assert record.fields["WARC-Truncated"] == "length"
    assert len(record.payload) == MAX_BODY


def test_a_bomb_is_archived_as_it_came(crawled: Crawled) -> None:
    url = CATALOGUE["gzip-bomb"].origin() + "/"
    (record,) = [
        read for read in crawled.archive if read.fields.get("WARC-Target-URI") == url and read.status
    ]
    assert "WARC-Truncated" not in record.fields
    assert record.payload == gzip_bomb()


def test_a_redirect_to_the_inner_network_is_not_followed_there(crawled: Crawled) -> None:
    assert crawled.stats.failures["address_refused"] > 0
    assert crawled.found["redirect-inside"].reason == "redirects to http://10.0.0.1:8080/"


def test_robots_rules_hold_however_long_they_are(crawled: Crawled) -> None:
    assert crawled.asked["robots-giant.hostile.test", "/private"] == 0
    assert crawled.asked["robots-loop.hostile.test", "/robots.txt"] == 6


def test_the_documentation_says_what_the_catalogue_says() -> None:
    words = "run: python -m skitter.testing.hostile --page > docs/hostile-web.md"
    assert (FOLDER / "hostile-web.md").read_text() == reference_page(), words


def test_the_catalogue_is_as_large_as_promised() -> None:
    assert len(CATALOGUE) >= 150
