"""Users' code beside a worker: what it makes is kept, and nothing that it does holds up a page."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from skitter.clock import SystemClock
from skitter.errors import UsageError
from skitter.extend.extractor import PageResult
from skitter.extend.messages import PageMessage
from skitter.extend.versions import with_versions
from skitter.model import FaultKind
from skitter.settings import Settings
from skitter.settings.plugins import PluginSettings
from skitter.worker.extractors import Extractors

BAD = str(Path(__file__).parents[1] / "plugins" / "bad.py")
HTML = (("content-type", "text/html; charset=utf-8"),)
T = TypeVar("T")


def with_plugin(name: str | Path, act: Callable[[Extractors], Awaitable[T]], seconds: float = 0.5) -> T:
    async def run() -> T:
        plugins = PluginSettings(with_=(str(name),), seconds=seconds)
        extractors = await Extractors.open(Settings(plugins=plugins), SystemClock())
        try:
            return await act(extractors)
        finally:
            await extractors.close()

    return asyncio.run(run())


async def ask(extractors: Extractors, url: str, body: bytes = b"<h1>A kettle</h1>") -> PageResult:
    numbers = extractors.matching(url, "text/html")
    return await extractors.run(PageMessage(url, body, 200, HTML, 1.0, 0, numbers))


def faults_of(extractors: Extractors, result: PageResult) -> dict[str, FaultKind]:
    return {extractors.described[fault.extractor].name: fault.kind for fault in result.faults}


@pytest.mark.parametrize(
    ("name", "kinds", "restarts"),
    [
        ("raises", (FaultKind.RAISED,), 0),
        ("loops", (FaultKind.LATE,), 0),
        ("backtracks", (FaultKind.LATE,), 1),
        ("allocates", (FaultKind.MEMORY,), 0),
        ("exits", (FaultKind.DIED,), 1),
        ("crashes", (FaultKind.DIED,), 1),
        ("floods", (FaultKind.OUTPUT,), 0),
        ("prints", (), 0),
        ("mistypes", (FaultKind.WRONG_ITEM,), 0),
        ("swallows", (FaultKind.LATE,), 1),
    ],
)
def test_a_bad_function_loses_its_own_items_of_its_own_page_alone(
    name: str, kinds: tuple[FaultKind, ...], restarts: int
) -> None:
    async def act(extractors: Extractors) -> None:
        urls = [f"http://a.test/{page}" for page in ("before", name, "after")]
        results = await asyncio.gather(*(ask(extractors, url) for url in urls))
        for url, result in zip(urls, results, strict=True):
            made = [row.json for number, row in result.items if extractors.described[number].name == "sound"]
            assert made == [f'{{"url":"{url}"}}']
        before, bad, after = results
        assert faults_of(extractors, bad) == dict.fromkeys([name] if kinds else [], *kinds)
        assert (before.faults, after.faults, bad.followed) == ([], [], [])
        assert len(bad.items) == (1 if kinds else 2)
        assert extractors.restarts <= restarts
        assert [row.json for _, row in (await ask(extractors, "http://a.test/later")).items]

    with_plugin(BAD, act)


def test_a_function_that_goes_on_being_bad_costs_one_restart_a_page() -> None:
    async def act(extractors: Extractors) -> None:
        pages = [f"http://a.test/{page}" for page in ("exits", "x", "exits", "y", "z", "exits")]
        results = await asyncio.gather(*(ask(extractors, url) for url in pages))
        assert [len(result.faults) for result in results] == [1, 0, 1, 0, 0, 1]
        assert all(len(result.items) == 1 for result in results)
        assert extractors.restarts == 3

    with_plugin(BAD, act)


def test_many_pages_at_once_are_each_answered_with_their_own_items() -> None:
    async def act(extractors: Extractors) -> None:
        urls = [f"http://a.test/{number}" for number in range(200)]
        results = await asyncio.gather(*(ask(extractors, url, b"x" * 50_000) for url in urls))
        assert [result.items[0][1].json for result in results] == [f'{{"url":"{url}"}}' for url in urls]

    with_plugin(BAD, act)


def test_users_code_sees_no_secret_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    plugin = tmp_path / "curious.py"
    plugin.write_text(
        "import os, skitter\n@skitter.page\ndef look(page):\n    yield {'seen': sorted(os.environ)}\n"
    )

    async def act(extractors: Extractors) -> str:
        return (await ask(extractors, "http://a.test/")).items[0][1].json

    assert "AWS_SECRET_ACCESS_KEY" in os.environ
    assert "AWS" not in with_plugin(plugin, act)


def test_a_worker_with_another_version_of_a_plugin_refuses_to_start(tmp_path: Path) -> None:
    plugin = tmp_path / "shop.py"
    plugin.write_text("import skitter\n@skitter.page\ndef product(page):\n    yield {'price': 1}\n")

    async def act() -> None:
        noted = await with_versions(PluginSettings(with_=(str(plugin),)), {})
        same = await Extractors.open(Settings(plugins=noted), SystemClock())
        await same.close()
        plugin.write_text(plugin.read_text().replace("1", "2"))
        with pytest.raises(
            UsageError, match=r"plugins differ from those of the crawl \(product\): copy the same"
        ):
            await Extractors.open(Settings(plugins=noted), SystemClock())

    asyncio.run(act())


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import skitter\nprice = 1 +\n", r"broken\.py line 2: invalid syntax; correct that line"),
        ("import skitter\n\nprize\n", r"broken\.py line 3: NameError: name 'prize' is not defined"),
        ("import skitter\n", r"broken\.py has no function with a hook: write @skitter\.page"),
        (
            "import skitter\n@skitter.page('/x')\ndef a(page): pass\n",
            r"broken\.py line 2: .*'/x' has no host",
        ),
        ("import skitter\n@skitter.pages\ndef a(page): pass\n", r"line 2: AttributeError: .* 'pages'"),
        ("import skitter, nonsense\n", r"broken\.py line 1: ModuleNotFoundError: No module named 'nonsense'"),
        ("import os\nos._exit(5)\n", r"plugins cannot be loaded: their process ended \(exit status 5\)"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_stops_the_start_and_names_the_line(
    tmp_path: Path, source: str, complaint: str
) -> None:
    plugin = tmp_path / "broken.py"
    plugin.write_text(source)

    async def nothing(extractors: Extractors) -> None:
        raise AssertionError("it was loaded")

    with pytest.raises(UsageError, match=complaint):
        with_plugin(plugin, nothing)


@pytest.mark.parametrize("name", ["no/such/file.py", "no_such_module", "no_such_package.module"])
def test_a_plugin_that_is_not_there_is_named(name: str) -> None:
    async def nothing(extractors: Extractors) -> None:
        raise AssertionError("it was loaded")

    with pytest.raises(UsageError, match=name):
        with_plugin(name, nothing)


def test_a_slow_inline_function_goes_into_the_process_after_three_pages(tmp_path: Path) -> None:
    plugin = tmp_path / "slow.py"
    plugin.write_text(
        "import os, time, skitter\n@skitter.page(inline=True)\ndef slow(page):\n"
        "    began = time.thread_time()\n    while time.thread_time() - began < 0.03: pass\n"
        "    yield {'pid': os.getpid()}\n"
    )

    async def act(extractors: Extractors) -> list[bool]:
        results = [await ask(extractors, f"http://a.test/{number}") for number in range(5)]
        return [str(os.getpid()) in result.items[0][1].json for result in results]

    assert with_plugin(plugin, act) == [True, True, True, False, False]
