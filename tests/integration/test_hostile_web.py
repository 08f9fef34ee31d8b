"""A real crawl of every misbehaviour in the catalogue: each ends exactly as documented, and nothing hangs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
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
from skitter.testing.hostile.catalogue import CATALOGUE, FOUND_ONLY, reference_page
from skitter.testing.hostile.codings import gzip_bomb
from skitter.testing.hostile.web import HostileWeb
from skitter.wiring import open_crawl
from tests.exchanges import Read, finished_records
from tests.keys import KEYS

ATTEMPTS = 2
MAX_BODY = 2_000_000
# Seconds, also on a machine that has far more to do; a crawl that hangs says what it waits for.
LONGEST = 480.0
# However slow the machine, who answers is waited for; only those who do not are given up after seconds.
PATIENT = FetchSettings(max_body=MAX_BODY, dns_timeout=120.0, total_timeout=120.0)
HASTY = FetchSettings(
    max_body=MAX_BODY,
    dns_timeout=3.0,
    connect_timeout=3.0,
    first_byte_timeout=3.0,
    stall_timeout=2.0,
    total_timeout=8.0,
)
TIMED_OUT = ("connect_timeout", "dns_timeout", "first_byte_timeout", "stalled", "total_timeout")


def settings(web: HostileWeb, limits: FetchSettings) -> Settings:
    """The limits' own values, but for patience and a smaller body."""
    return Settings(
        crawl=CrawlSettings(linger=2.0),
        identity=IdentitySettings(contact="me@example.org"),
        politeness=PolitenessSettings(delay=0.05, slow_factor=0.0),
        retry=RetrySettings(attempts=ATTEMPTS, backoff=(0.05,), quarantine_after=2),
        fetch=msgspec.structs.replace(limits, resolve=web.resolve, nameservers=(web.nameserver,)),
    )


class Part(msgspec.Struct):
    """What a crawl of some of the catalogue left behind."""

    how: Ended
    stats: Stats
    found: dict[str, Explanation]
    archive: list[Read]


class Crawled(msgspec.Struct):
    """What the crawls of the whole catalogue left behind: of those who answer, and of those who do not."""

    patient: Part
    hasty: Part
    asked: Counter[tuple[str, str]]

    @property
    def found(self) -> dict[str, Explanation]:
        return self.patient.found | self.hasty.found


async def crawl(web: HostileWeb, cases: list[Case], limits: FetchSettings, folder: Path) -> Part:
    crawl_folder = CrawlFolder(folder)
    crawl_folder.lock()
    async with open_crawl(crawl_folder, settings(web, limits)) as parts:
        seeds = [case.origin() + "/" for case in cases if case.name not in FOUND_ONLY]
        await parts.frontier.admit(read_seeds(seeds, [], KEYS))
        try:
            async with asyncio.timeout(LONGEST):
                how = await parts.loop.run()
        except TimeoutError:
            pytest.fail(f"the crawl did not end: {await parts.frontier.stats()}")
        found = {case.name: await parts.frontier.explain(case.origin() + case.watched) for case in cases}
        stats = await parts.frontier.stats()
    crawl_folder.unlock()
    return Part(how, stats, found, finished_records(folder / "archive"))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("hostile")
    answer = [case for case in CATALOGUE.values() if case.ends.detail not in TIMED_OUT]
    do_not = [case for case in CATALOGUE.values() if case.ends.detail in TIMED_OUT]
    with HostileWeb() as web, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        patient = runner.run(crawl(web, answer, PATIENT, folder / "patient"))
        hasty = runner.run(crawl(web, do_not, HASTY, folder / "hasty"))
        yield Crawled(patient, hasty, web.requests())


@pytest.mark.parametrize("name", CATALOGUE)
def test_it_ends_as_documented(crawled: Crawled, name: str) -> None:
    case, found = CATALOGUE[name], crawled.found[name]
    assert (ending(found), found.state) == (documented(case), case.ends.state)
    assert case.ends.detail in (found.fetches[-1].detail if found.fetches else found.waits or found.reason)
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
    waiting = [name for name, case in CATALOGUE.items() if case.ends.state in ("queued", "failed")]
    left = 0
    for part in (crawled.patient, crawled.hasty):
        assert part.how is Ended.WAITING
        assert part.stats.politeness.violations == 0
        left += sum(part.stats.urls[state] for state in ("queued", "failed", "in_progress"))
    assert left == len(waiting)


def test_what_has_no_end_is_cut_and_marked_in_the_archive(crawled: Crawled) -> None:
    url = CATALOGUE["endless-body"].origin() + "/"
    (record,) = [
        read for read in crawled.patient.archive if read.fields.get("WARC-Target-URI") == url and read.status
    ]
    assert record.fields["WARC-Truncated"] == "length"
    assert len(record.payload) == MAX_BODY


def test_a_bomb_is_archived_as_it_came(crawled: Crawled) -> None:
    url = CATALOGUE["gzip-bomb"].origin() + "/"
    (record,) = [
        read for read in crawled.patient.archive if read.fields.get("WARC-Target-URI") == url and read.status
    ]
    assert "WARC-Truncated" not in record.fields
    assert record.payload == gzip_bomb()


def test_a_redirect_to_the_inner_network_is_not_followed_there(crawled: Crawled) -> None:
    assert crawled.patient.stats.failures["address_refused"] > 0
    assert crawled.found["redirect-inside"].reason == "redirects to http://10.0.0.1:8080/"


def test_robots_rules_hold_however_long_they_are(crawled: Crawled) -> None:
    assert crawled.asked["robots-giant.hostile.test", "/private"] == 0
    assert crawled.asked["robots-loop.hostile.test", "/robots.txt"] == 6


def test_the_documentation_says_what_the_catalogue_says() -> None:
    words = "run: python -m skitter.testing.hostile --page > docs/hostile-web.md"
    assert (FOLDER / "hostile-web.md").read_text() == reference_page(), words


def test_the_catalogue_is_as_large_as_promised() -> None:
    assert len(CATALOGUE) >= 150
