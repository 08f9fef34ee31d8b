"""A crawl from Python: pages as they are committed, each once, with back-pressure; plugins tried out on them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import skitter
from skitter.errors import UsageError
from skitter.runtime import from_python
from tests.e2e.command import serving_site
from tests.e2e.command import skitter as command
from tests.raw_server import RawServer

COUNT = 30
SITE = {
    f"/{n}": f'<html><title>Page {n}</title><h1>Thing {n}</h1><a href="/{n + 1}">on</a></html>'.encode()
    for n in range(COUNT)
}
SITE["/"] = "".join(f'<a href="/{n}">{n}</a>' for n in range(COUNT)).encode()
SETTINGS = {"fetch.allow_private": True, "crawl.linger": 1.0, "traps.mode": "off"}
PLUGIN = """
import skitter
from dataclasses import dataclass

@dataclass
class Thing:
    name: str

@skitter.page
def thing(page):
    if page.first("h1"):
        yield Thing(page.first("h1"))
"""


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as found:
        yield found


def crawl(server: RawServer, folder: Path, **more: Any) -> from_python.Pages:
    return skitter.crawl(server.url, into=folder, delay=0.0, settings=SETTINGS, **more)


def paths(server: RawServer, pages: list[skitter.Page]) -> list[str]:
    return sorted(page.url.removeprefix(server.url) for page in pages)


def archived(folder: Path) -> int:
    with skitter.open(folder) as crawl:
        return crawl.count("kind = 'page' and status = 200")


def test_every_page_of_a_crawl_comes_once(tmp_path: Path, server: RawServer) -> None:
    async def act() -> list[skitter.Page]:
        return [page async for page in crawl(server, tmp_path / "c")]

    pages = asyncio.run(act())
    assert paths(server, pages) == sorted(SITE)
    assert {page.first("h1") for page in pages} == {None, *(f"Thing {n}" for n in range(COUNT))}
    assert {page.depth for page in pages} == {0, 1}
    assert archived(tmp_path / "c") == len(SITE)
    assert asyncio.run(act()) == []  # the folder has them all


def test_a_plain_for_does_the_same(tmp_path: Path, server: RawServer) -> None:
    pages = list(crawl(server, tmp_path / "c"))
    assert paths(server, pages) == sorted(SITE)


def test_a_page_is_committed_when_it_comes_and_leaving_the_loop_stops_the_crawl(
    tmp_path: Path, server: RawServer
) -> None:
    for page in crawl(server, tmp_path / "c"):
        assert page.url == f"{server.url}/"
        with skitter.open(tmp_path / "c") as reading:
            assert reading.page(page.url).body == page.body
        break
    first = archived(tmp_path / "c")
    assert first >= 1
    rest = list(crawl(server, tmp_path / "c"))  # nobody holds the folder, and the crawl goes on
    assert len(rest) == len(SITE) - first


def test_leaving_an_async_loop_stops_the_crawl_too(tmp_path: Path, server: RawServer) -> None:
    async def act() -> None:
        async for _ in crawl(server, tmp_path / "c"):
            break

    asyncio.run(act())
    first = archived(tmp_path / "c")
    assert first >= 1
    assert len(list(crawl(server, tmp_path / "c"))) == len(SITE) - first


def test_a_loop_that_was_left_may_be_gone_on_with_at_once(tmp_path: Path, server: RawServer) -> None:
    async def act() -> set[str]:
        found = set()
        for _ in range(3):
            async for page in crawl(server, tmp_path / "c"):
                assert page.url not in found
                found.add(page.url)
                break
        return found

    assert len(asyncio.run(act())) == 3


def test_a_task_that_is_cancelled_closes_its_folder(tmp_path: Path, server: RawServer) -> None:
    async def take(seen: asyncio.Event) -> None:
        async for _ in crawl(server, tmp_path / "c"):
            seen.set()

    async def act() -> None:
        seen = asyncio.Event()
        taking = asyncio.create_task(take(seen))
        await seen.wait()
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        assert taking.cancelled() or taking.exception() is None

    asyncio.run(act())
    first = archived(tmp_path / "c")
    assert len(list(crawl(server, tmp_path / "c"))) == len(SITE) - first


def test_an_iterator_that_is_left_lying_is_closed_when_python_ends(tmp_path: Path, server: RawServer) -> None:
    script = (
        "import skitter\n"
        f"pages = iter(skitter.crawl({server.url!r}, into='c', delay=0.0, settings={SETTINGS!r}))\n"
        "print(next(pages).url)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{server.url}/\n", "")
    first = archived(tmp_path / "c")
    assert len(list(crawl(server, tmp_path / "c"))) == len(SITE) - first


def test_pages_that_nobody_takes_stop_the_asking(
    tmp_path: Path, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_python, "MOST_WAITING", 4)
    most = 0

    async def act() -> int:
        nonlocal most
        taken = 0
        async for _ in crawl(server, tmp_path / "c"):
            taken += 1
            await asyncio.sleep(0.02)  # the reader is slow
            most = max(most, len(server.requests) - taken)
        return taken

    assert asyncio.run(act()) == len(SITE)
    # what waits; robots.txt and the page that is not there, which do not come; and some air
    assert most <= 4 + 2 + 2


def test_where_a_loop_runs_a_plain_for_says_what_to_write(tmp_path: Path, server: RawServer) -> None:
    async def act() -> None:
        with pytest.raises(UsageError, match="write async for"):
            iter(crawl(server, tmp_path / "c"))

    asyncio.run(act())


def test_plugins_make_items_in_a_crawl_from_python(tmp_path: Path, server: RawServer) -> None:
    plugin = tmp_path / "things.py"
    plugin.write_text(PLUGIN)
    seen = list(crawl(server, tmp_path / "c", plugins=[str(plugin)], max_pages=5))
    assert len(seen) >= 5
    with skitter.open(tmp_path / "c") as reading, reading.duckdb() as database:
        names = {name for (name,) in database.execute("select name from Thing").fetchall()}
    assert names <= {f"Thing {n}" for n in range(COUNT)}
    assert len(names) >= 4


def test_a_saved_page_is_tried_out_in_a_test(tmp_path: Path, server: RawServer) -> None:
    list(crawl(server, tmp_path / "c"))
    saved = tmp_path / "fixtures" / "seven.warc.gz"
    done = command("show", tmp_path / "c", f"{server.url}/7", "--to", saved)
    assert done.returncode == 0, done.stderr
    (tmp_path / "trial_things.py").write_text(PLUGIN)
    test = (
        "import sys; sys.path.insert(0, '.')\nimport skitter\nfrom trial_things import Thing\n"
        "assert skitter.testing.run('trial_things.py', 'fixtures/seven.warc.gz') == [Thing('Thing 7')]\n"
        f"with skitter.open('c') as crawl:\n    page = crawl.page('{server.url}/7')\n"
        "    print(skitter.extract(page, 'trial_things.py'), page.title)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", test], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "[Thing(name='Thing 7')] Page 7\n", ran.stderr


def test_crawl_is_a_function_whatever_was_imported() -> None:
    import_module("skitter.runtime.lifecycle")
    assert callable(skitter.crawl)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = skitter.nonsense


@pytest.mark.parametrize("name", ["max_pages", "politeness.dealy"])
def test_a_setting_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=name):
        skitter.crawl("http://a.test/", into=tmp_path / "c", settings={name: 1})
