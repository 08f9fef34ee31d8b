"""A small web for tests of traps: pages with texts of their own, and a worker that fetches all there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256

from skitter.frontier.base import TrapView
from skitter.frontier.link_batches import pack
from skitter.model import Copy, Fetched, Result, TaskKind
from skitter.parse.fingerprints.figures import figures
from skitter.parse.fingerprints.fingerprint import simhash
from skitter.settings import CrawlSettings, PolitenessSettings, Settings
from tests.frontier_kit import NO_RULES, Driver, discovered

A = "http://a.test"
WORDS = (
    "amber birch cedar drift ember fjord grove heath islet knoll larch marsh north ochre peat quarry".split()
)
SETTINGS = Settings(
    crawl=CrawlSettings(scope="any"), politeness=PolitenessSettings(delay=0.0, slow_factor=0.0)
)
Site = Callable[[str], Result]


def prose(number: int) -> str:
    """Forty words that no other number has in this order and mixture."""
    digest = sha256(str(number).encode()).digest() + sha256(f"more {number}".encode()).digest()
    return " ".join(f"{WORDS[byte % 16]}{WORDS[byte // 16]}" for byte in digest[:40])


class Web:
    """Answers as the step would: the first copy of a body is named, and the text has a fingerprint."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def page(self, url: str, text: str, links: Iterable[str] = (), *, title: str = "") -> Fetched:
        body = f"{title}\n{text}".encode()
        digest = sha256(body).digest()
        copy = None if digest in self._known else Copy(url, 0.0, "<urn:x>", "s")
        self._known.add(digest)
        found = tuple(discovered(link, depth=2, parent=discovered(url).key) for link in links)
        return Fetched(
            status=200,
            content_type="text/html",
            digest=digest,
            size=len(body),
            copy=copy,
            title=title,
            link_batches=pack(found),
            simhash=simhash(text),
            figures=figures(text, url, title),
        )


def crawl(driver: Driver, site: Site, *, most: int = 1_000) -> list[str]:
    """A worker that serves all there is, up to `most` pages; the URLs it asked for, in order."""
    asked: list[str] = []
    idle = 0
    while idle < 40 and len(asked) < most:
        leases = driver.lease()
        idle = 0 if leases else idle + 1
        for lease in leases:
            outcomes = []
            for task in lease.tasks:
                is_page = task.kind is not TaskKind.ROBOTS
                asked += [task.url] * is_page
                outcomes.append(driver.outcome(lease, site(task.url) if is_page else NO_RULES, task))
            driver.settle(*outcomes)
        driver.promote()
        driver.clock.advance(0.01)
    return asked


def number_in(url: str) -> int:
    return int("".join(filter(str.isdigit, url.partition("//")[2].partition("/")[2])) or 0)


def in_force(driver: Driver) -> list[TrapView]:
    return [view for view in driver.ask(driver.frontier.traps(limit=100)) if not view.ended]
