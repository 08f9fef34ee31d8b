"""The trap benchmark from end to end, on a few kinds of hosts: it must see a crawl that falls into its traps."""

from __future__ import annotations

import json

import pytest
from bench.traps import crawl, main

from skitter.testing.traps.plan import TrapPlan

KINDS = ("calendar", "subdomains", "shop", "docs")


def test_without_defences_all_is_seen_and_the_traps_take_their_share() -> None:
    plan = TrapPlan(scale=0.002, cut=60, kinds=KINDS)
    done = crawl(plan, defended=False)
    assert done.usage.code == 0
    assert done.whole.share == 1.0
    assert {name: tally.requests for name, tally in done.found.items() if name.startswith("calendar")} == {
        f"calendar-{variant}.test": 60 for variant in range(5)
    }
    assert any("in traps" in fault for fault in done.faults)


def test_the_benchmark_prints_a_line_a_kind_and_one_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--scale", "0.002", "--only", "docs"])
    lines = capsys.readouterr().out.splitlines()
    result = json.loads(lines[-1])
    assert code == 0
    assert [line.split()[0] for line in lines[1:3]] == ["docs", "all"]
    assert result["with"]["share"] == 1.0
    assert result["with"]["trapped"] == 0
