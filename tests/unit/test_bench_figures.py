"""Benchmarks must not flatter: rates by the web's log, targets that can be missed, a stopwatch that adds up."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bench._by_turns import by_turns
from bench._crawls import run_with_usage
from bench._growing import Stretch
from bench._steady import allowed, steady
from bench._stopwatch import Stopwatch
from bench._targets import Target, judged
from bench.growth import growth
from bench.profile import BEGIN, END, write
from bench.service import second_worker

from skitter.testing.request_log import Request

SLOW_START = 5


def asked(host: int, start: float, *, took: float = 0.1, path: str = "/a") -> Request:
    return Request(id=0, start=start, end=start + took, host=f"h{host}.test", path=path, connection=1)


def ten_hosts(seconds: int, *, took: float = 0.1) -> list[Request]:
    """One request a second to each of ten hosts, after a slow start with one host."""
    slow = [asked(0, second + 0.5, took=took) for second in range(SLOW_START)]
    return slow + [asked(h, s + h / 10, took=took) for s in range(SLOW_START, seconds) for h in range(10)]


def test_the_rate_is_that_of_the_second_half_and_the_start_is_told_apart() -> None:
    found = steady(ten_hosts(20), began=0.0, ended=20.0)
    assert found.rate == 10.0
    assert found.reached == SLOW_START
    assert found.pages == SLOW_START + 150


def test_robots_txt_is_no_page() -> None:
    rows = [asked(0, second, path="/robots.txt") for second in range(10)]
    assert steady(rows, began=0.0, ended=10.0).pages == 0


def test_a_crawl_that_dies_halfway_has_no_rate() -> None:
    found = steady(ten_hosts(9), began=0.0, ended=20.0)
    assert found.rate == 0.0


def test_what_politeness_allows_counts_hosts_that_were_never_reached() -> None:
    assert allowed(ten_hosts(20), hosts=30, delay=1.0, slow_factor=1.0) == pytest.approx(30.0)


def test_slow_hosts_are_allowed_less_by_the_rule_that_the_crawler_promises() -> None:
    rows = ten_hosts(20, took=2.0)
    assert allowed(rows, hosts=10, delay=1.0, slow_factor=1.0) == pytest.approx(5.0)
    assert allowed(rows, hosts=10, delay=1.0, slow_factor=3.0) == pytest.approx(10 / 6)
    # without a factor, a request still waits for the end of the one before
    assert allowed(rows, hosts=10, delay=1.0, slow_factor=0.0) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (Target("a", 1.5, most=1.5), True),
        (Target("a", 1.51, most=1.5), False),
        (Target("a", 20.0, least=20.0), True),
        (Target("a", 19.9, least=20.0), False),
        (Target("a", 1.0, most=0), False),
    ],
)
def test_a_target_is_missed_on_the_wrong_side_of_its_limit(target: Target, met: bool) -> None:
    assert target.met is met
    assert judged([target]) is met


def test_growth_is_judged_at_equal_pace_by_the_dearest_size() -> None:
    calm, busy = Stretch(us=100, pace=1.0, urls=0, rss=0), Stretch(us=200, pace=2.0, urls=0, rss=0)
    dear = Stretch(us=150, pace=1.0, urls=0, rss=0)
    assert growth({10: [calm], 100: [busy]}) == 1.0
    assert growth({10: [calm], 100: [dear], 1000: [busy]}) == 1.5


# -- the stopwatch


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module to be filled with functions."""
    module = ModuleType("bench_stages_under_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_innermost_stage_counts_and_stages_add_up(stages: Any) -> None:
    def outer() -> None:
        burn(0.01)
        stages.inner()

    stages.inner = lambda: burn(0.02)
    stages.outer = outer
    watch = Stopwatch()
    began = time.thread_time()
    watch.time("bench_stages_under_test:inner", "inner")
    watch.time("bench_stages_under_test:outer", "outer")
    stages.outer()
    watch.enter("end")
    taken = time.thread_time() - began
    assert watch.spent["inner"] >= 0.02e9
    assert 0.01e9 <= watch.spent["outer"] < 0.02e9
    assert sum(watch.spent.values()) / 1e9 == pytest.approx(taken, abs=0.005)
    assert watch.calls == {"inner": 1, "outer": 1}


def test_a_stage_that_raises_is_left(stages: Any) -> None:
    def broken() -> None:
        raise ValueError

    stages.broken = broken
    watch = Stopwatch()
    watch.time("bench_stages_under_test:broken", "broken")
    with pytest.raises(ValueError):
        stages.broken()
    before = watch.spent["broken"]
    burn(0.01)
    watch.enter("end")
    assert watch.spent["broken"] == before
    assert watch.spent["outside"] >= 0.01e9


def test_a_coroutine_is_timed_without_what_runs_while_it_waits(stages: Any) -> None:
    async def waiting() -> str:
        burn(0.01)
        await asyncio.sleep(0)
        burn(0.01)
        return "done"

    async def both() -> str:
        task = asyncio.create_task(stages.waiting())
        await asyncio.sleep(0)
        burn(0.03)
        done: str = await task
        return done

    stages.waiting = waiting
    watch = Stopwatch()
    watch.time("bench_stages_under_test:waiting", "waiting")
    assert asyncio.run(both()) == "done"
    assert 0.02e9 <= watch.spent["waiting"] < 0.03e9


def test_a_cancelled_coroutine_learns_of_it(stages: Any) -> None:
    heard = []

    async def waiting() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def cancel() -> None:
        task = asyncio.create_task(stages.waiting())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    stages.waiting = waiting
    Stopwatch().time("bench_stages_under_test:waiting", "waiting")
    asyncio.run(cancel())
    assert heard == ["cancelled"]


# -- the page


def test_the_table_replaces_the_last_one_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    write(f"{BEGIN}\nnew\n{END}", page)
    assert page.read_text() == f"before\n\n{BEGIN}\nnew\n{END}\n\nafter\n"


def test_a_page_without_a_place_for_the_table_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("no place\n")
    with pytest.raises(SystemExit, match="has no place"):
        write("new", page)
    assert page.read_text() == "no place\n"


def test_a_second_worker_is_judged_by_the_rounds_that_lie_side_by_side() -> None:
    def passes(*rates: float) -> list[dict[str, float]]:
        return [{"pages_per_second": rate} for rate in rates]

    found = second_worker({"one process": passes(1000, 500, 1000), "two workers": passes(1600, 800, 1400)})
    assert (found.value, found.met) == (1.6, True)
    assert not second_worker({"one process": passes(1000), "two workers": passes(1499)}).met


TAKES_MEMORY = """
import subprocess, sys, time
taken = bytearray(b"x" * 60_000_000)
if len(sys.argv) > 1:
    subprocess.run([sys.executable, "-c", sys.argv[1]])
else:
    time.sleep(1.0)
"""


def test_the_memory_of_a_command_is_that_of_all_its_processes_and_not_of_who_measures() -> None:
    large = bytearray(b"x" * 300_000_000)
    family = run_with_usage([sys.executable, "-c", TAKES_MEMORY, TAKES_MEMORY])
    alone = run_with_usage([sys.executable, "-c", "import time; time.sleep(0.6)"])
    assert family.code == alone.code == 0
    assert 120_000_000 < family.rss < len(large)
    assert 0 < alone.rss < 60_000_000


def test_commands_by_turns_end_as_they_would_alone(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 1.2: pass\nprint('done')"
    commands = {
        "busy": [sys.executable, "-c", burn],
        "wrong": [sys.executable, "-c", "raise SystemExit(3)"],
    }
    spent = by_turns(commands, tmp_path)
    assert (spent["busy"].code, spent["wrong"].code) == (0, 3)
    assert (tmp_path / "busy").read_text() == "done\n"
    assert spent["busy"].cpu >= 1.2
    assert spent["busy"].wall >= 1.0
