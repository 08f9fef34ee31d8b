"""Blocklists while a crawl runs: what they forbid is not asked for, from when they say so until they do not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skitter.errors import SettingsError
from skitter.frontier.link_batches import pack
from skitter.model import Fetched, Refusal
from skitter.settings import CrawlSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, discovered, redirected, seed

A, B = "http://a.test", "http://b.test"
Write = Callable[[str], None]


@pytest.fixture
def blocklist(tmp_path: Path) -> Path:
    path = tmp_path / "list.txt"
    path.write_text("b.test\n")
    return path


@pytest.fixture
def write(blocklist: Path) -> Write:
    """Rewrites the list; each time it looks newer, whatever the file system's clock can tell apart."""
    stamps = iter(range(1, 100))

    def rewrite(text: str) -> None:
        blocklist.write_text(text)
        os.utime(blocklist, ns=(0, next(stamps)))

    return rewrite


@pytest.fixture
def driver(start: Start, blocklist: Path) -> Driver:
    return start(Settings(crawl=CrawlSettings(scope="any", blocklists=(str(blocklist),))))


def test_what_a_list_forbids_is_refused_with_its_line_also_as_a_seed(driver: Driver, blocklist: Path) -> None:
    for found in (seed(B + "/"), discovered("http://www.b.test/x"), discovered(B + ":81/")):
        (verdict,) = driver.admit(found)
        assert (verdict.reason, verdict.rule) == (Refusal.BLOCKLIST, f"{blocklist} line 1: b.test")
    assert driver.explain(B + "/").reason == f"blocklist: {blocklist} line 1: b.test"
    assert "line 1: b.test" in driver.explain(B + "/unknown").reason
    assert driver.lease() == []
    assert driver.stats().refusals == {"blocklist": 3}


def test_a_list_that_grows_counts_at_once_for_what_was_admitted(driver: Driver, write: Write) -> None:
    driver.open_host(A + "/1", A + "/2")
    write("a.test/1\n")
    driver.promote()
    lease = driver.lease_one()
    assert [task.url for task in lease.tasks] == [A + "/2"]
    assert driver.explain(A + "/1").state == "refused"


def test_not_even_the_robots_txt_of_a_listed_host_is_asked_for(driver: Driver, write: Write) -> None:
    driver.admit(*(seed(f"{A}/{n}") for n in range(300)))
    write("a.test\n")
    driver.promote()
    for _ in range(3):
        assert driver.lease() == []
    assert driver.stats().urls["refused"] == 300
    assert driver.ask(driver.frontier.horizon()).next_at is None


def test_what_a_list_forbids_no_more_comes_back(driver: Driver, write: Write) -> None:
    driver.admit(seed(B + "/1"), discovered("http://c.test/"))
    write("c.test\n")
    driver.promote()
    assert driver.explain(B + "/1").state == "queued"
    assert driver.lease_one(capacity=1).host in (A, B)
    assert driver.stats().refusals == {}


def test_what_comes_back_is_judged_by_the_other_rules_again(
    start: Start, blocklist: Path, write: Write
) -> None:
    settings = CrawlSettings(scope="host", blocklists=(str(blocklist),))
    driver = start(Settings(crawl=settings))
    driver.admit(discovered(B + "/1"))
    write("")
    driver.promote()
    assert driver.explain(B + "/1").reason.startswith("scope: ")
    assert driver.stats().refusals == {"scope": 1}


def test_lists_that_changed_while_nobody_crawled_are_noticed_at_the_start(
    driver: Driver, write: Write, blocklist: Path
) -> None:
    driver.admit(seed(B + "/1"))
    driver.reopen()
    assert driver.promote() == 0
    driver.reopen(Settings(crawl=CrawlSettings(scope="any")))
    assert driver.ask(driver.frontier.horizon()).next_at is not None
    assert driver.promote() == 1
    assert driver.explain(B + "/1").state == "queued"


def test_many_come_back_in_bounded_steps(start: Start, blocklist: Path, write: Write) -> None:
    settings = Settings(crawl=CrawlSettings(scope="any", blocklists=(str(blocklist),)))
    driver = start(settings, audited=False)
    driver.admit(*(discovered(f"{B}/{n}") for n in range(11_000)))
    write("")
    steps = []
    while moved := driver.promote():
        steps.append(moved)
    assert sum(steps) == 11_000
    assert max(steps) <= 10_000


def test_a_list_that_breaks_keeps_its_last_good_reading_and_says_so_once(
    start: Start, blocklist: Path
) -> None:
    told: list[str] = []
    settings = Settings(crawl=CrawlSettings(scope="any", blocklists=(str(blocklist),)))
    driver = start(settings, tell=told.append)
    for number, (text, why) in enumerate(
        [("ok.test\n( (\n", "line 2: '( ('"), (None, "cannot be read: No such file")]
    ):
        if text is None:
            blocklist.unlink()
        else:
            blocklist.write_text(text)
            os.utime(blocklist, ns=(0, 1))
        driver.promote()
        driver.promote()
        assert len(told) == number + 1
        assert why in told[-1]
        assert "stays in force" in told[-1]
        assert driver.admit(discovered(f"{B}/{number}"))[0].reason is Refusal.BLOCKLIST


@pytest.mark.parametrize(
    ("text", "why"), [("x.test\n\n( (\n", r"list.txt line 3: '\( \('"), (None, "No such file")]
)
def test_a_crawl_does_not_start_with_a_list_it_cannot_read(
    start: Start, blocklist: Path, text: str | None, why: str
) -> None:
    if text is None:
        blocklist.unlink()
    else:
        blocklist.write_text(text)
    with pytest.raises(SettingsError, match=f"crawl.blocklists: .*{why}"):
        start(Settings(crawl=CrawlSettings(blocklists=(str(blocklist),))))


def test_who_looks_on_reads_no_list_and_minds_no_broken_one(driver: Driver, write: Write) -> None:
    driver.admit(seed(B + "/"))
    write("( (\n")
    with driver.reader() as reader:
        assert driver.ask(reader.stats()).refusals == {"blocklist": 1}
        assert driver.ask(reader.explain(B + "/")).state == "refused"


def test_a_robots_txt_that_leads_to_a_listed_host_is_not_asked_for_there(driver: Driver) -> None:
    driver.admit(seed(A + "/"))
    driver.fetch(redirected(B + "/robots.txt"))
    assert driver.lease() == []
    assert "line 1: b.test" in driver.host(A).robots


def test_a_page_links_to_what_is_listed_and_to_what_is_not(driver: Driver) -> None:
    driver.open_host(A + "/")
    settled = driver.fetch(
        Fetched(status=200, link_batches=pack([discovered(B + "/"), discovered(A + "/2")]))
    )
    assert (settled.added, settled.refused) == (1, 1)
