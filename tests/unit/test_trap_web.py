"""The trap web is endless where it says so, finite where it says so, and the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from itertools import islice

import ada_url
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.testing.http_request import Head
from skitter.testing.traps.log import Row
from skitter.testing.traps.plan import KINDS, TrapPlan
from skitter.testing.traps.render import html
from skitter.testing.traps.server import TrapServer
from skitter.testing.traps.site import Book, Site, View

SMALL = TrapPlan(scale=0.005)
TRAPS = [site for site in SMALL.sites if site.trap]
HONEST = [site for site in SMALL.sites if not site.trap]
FIRST_MANY = 300


def named(site: Site) -> str:
    return site.name


def place(url: str) -> tuple[str, str]:
    host, slash, rest = url.removeprefix("http://").partition("/")
    return host, slash + rest


def hrefs(url: str, view: View) -> list[str]:
    return [str(ada_url.join_url(url, link.href)) for link in (*view.entries, *view.around)]


def walk(plan: TrapPlan, site: Site) -> Iterator[tuple[str, View | None, int, int]]:
    """Breadth first: URLs with what they show, their depth, and how many are known by then."""
    known = {f"http://{site.name}/": 0}
    queue = deque(known)
    while queue:
        url = queue.popleft()
        host, target = place(url)
        answering = plan.site(host)
        view = answering.view(host, target) if answering else None
        for href in hrefs(url, view) if view else ():
            if href not in known:
                known[href] = known[url] + 1
                queue.append(href)
        yield url, view, known[url], len(known)


def test_traps_stand_beside_as_many_honest_sites() -> None:
    assert (len(TRAPS), len(HONEST)) == (45, 52)
    assert len({site.name for site in SMALL.sites}) == 97


def test_at_full_scale_a_trap_may_cost_some_fifty_requests() -> None:
    contents = [len(site.contents()) for site in TrapPlan().sites if not site.trap]
    assert 100_000 <= sum(contents) <= 130_000
    assert sum(size >= 5000 for size in contents) >= 3


@pytest.mark.parametrize("site", TRAPS, ids=named)
def test_a_trap_has_always_more_than_was_fetched(site: Site) -> None:
    seen = list(islice(walk(SMALL, site), FIRST_MANY))
    assert len(seen) == FIRST_MANY
    assert seen[-1][3] > FIRST_MANY
    assert [url for url, view, _, _ in seen if view is None] == []


@pytest.mark.parametrize("site", TRAPS, ids=named)
def test_a_trap_host_is_a_real_site_too(site: Site) -> None:
    shown = {view.meaning for _, view, _, _ in islice(walk(SMALL, site), FIRST_MANY) if view}
    assert shown - {""} == site.contents()
    assert len(site.contents()) >= 14


@pytest.mark.parametrize("site", HONEST, ids=named)
def test_an_honest_site_ends_and_shows_what_it_promises_within_the_usual_depth(site: Site) -> None:
    seen = list(walk(SMALL, site))
    assert {view.meaning if view else "" for _, view, _, _ in seen} == site.contents()
    assert max(depth for _, _, depth, _ in seen) <= 15


@pytest.mark.parametrize("site", HONEST, ids=named)
def test_different_content_reads_differently_and_the_same_content_the_same(site: Site) -> None:
    texts: dict[str, set[str]] = {}
    for _, view, _, _ in walk(SMALL, site):
        assert view is not None
        words = [view.title, *view.text, *(link.words for link in view.entries)]
        texts.setdefault(view.meaning, set()).add("\n".join(words))
    assert {meaning for meaning, found in texts.items() if len(found) > 1} == set()
    assert len({text for found in texts.values() for text in found}) == len(texts)


def deepest(book: Book) -> int:
    """By what the book has written down, without a look at any view."""
    known = {"/": 0}
    queue = deque(known)
    while queue:
        page = queue.popleft()
        for target in (*book.pages[page].entries, *book.pages[page].around):
            if target not in known:
                known[target] = known[page] + 1
                queue.append(target)
    assert set(known) == set(book.pages)
    return max(known.values())


def test_honest_sites_of_full_size_stay_within_the_usual_depth() -> None:
    books = [site for site in TrapPlan().sites if isinstance(site, Book)]
    assert len(books) == 50
    assert max(map(deepest, books)) <= 15


DIGEST = """
from tests.unit.test_trap_web import digest
print(digest())
"""


def digest(seed: int = 1) -> str:
    plan, total = TrapPlan(seed=seed, scale=0.001), sha256()
    for site in plan.sites:
        for url, view, _, _ in islice(walk(plan, site), 30):
            total.update(url.encode() + (html(view, landmarks=site.landmarks) if view else b""))
    return total.hexdigest()


def test_every_process_sees_the_same_web() -> None:
    child = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.strip() == digest()


def test_another_seed_is_another_web() -> None:
    assert digest(2) != digest(1)


def test_a_plan_can_be_of_some_kinds_alone() -> None:
    plan = TrapPlan(kinds=("calendar", "docs"), scale=0.01)
    assert {site.kind for site in plan.sites} == {"calendar", "docs"}
    assert {site.kind for site in SMALL.sites} == set(KINDS)


def test_a_cut_domain_has_so_many_hosts() -> None:
    plan = TrapPlan(kinds=("subdomains",), cut=9)
    for site in plan.sites:
        seen = list(islice(walk(plan, site), FIRST_MANY))
        assert len(seen) < FIRST_MANY
        assert 1 < len({place(url)[0] for url, _, _, _ in seen}) <= 10


def test_what_is_not_there_is_logged_too() -> None:
    log = BytesIO()
    server = TrapServer(TrapPlan(kinds=("docs",), scale=0.001), log)
    for host, target in (("docs-0.test", "/none"), ("nobody.test", "/"), ("docs-0.test", "/")):
        server.answer(Head("GET", target, host, False, b"", False))
    rows = [msgspec.json.decode(line, type=Row) for line in log.getvalue().splitlines()[1:]]
    assert [(row.site, row.status, row.meaning) for row in rows] == [
        ("docs-0.test", 404, ""),
        ("", 404, ""),
        ("docs-0.test", 200, "/"),
    ]


hosts = st.sampled_from([site.name for site in SMALL.sites]) | st.text(max_size=30)
parts = st.sampled_from(
    """/ /notes/ ? & = ;sid= + .html /calendar/ /events?year= /cal.php?date= -01&view=month /kalender/ /agenda/
    2026 05 99 -1 0000 13 /list?page= /blog/page/ /item?v= /entry/ ٣ /shop? /range/ color-red f[]=
    colour:red /search?q= /tag/ /help/ index.php /news/ /tree/ /go?back= /story?id= /(S( )) %00 %ff""".split()
)
targets = st.lists(parts | st.text(max_size=5), max_size=9).map(lambda found: "/" + "".join(found))


@given(host=hosts, target=targets)
def test_nothing_that_is_asked_for_upsets_the_server(host: str, target: str) -> None:
    server = TrapServer(SMALL)
    status, body = server.answer(Head("GET", target, host, False, b"", False))
    assert status in (200, 404)
    assert body
