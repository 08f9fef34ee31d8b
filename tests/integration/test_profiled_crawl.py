"""The profile must know every stage by its present name, and its parts must be the whole."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from bench._crawls import start
from bench._profiled import STAGES, Profile

from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb


def test_a_crawl_is_timed_in_every_stage_and_ends_as_without(tmp_path: Path) -> None:
    config, report, output = (tmp_path / name for name in ("settings.toml", "profile.json", "output"))
    config.write_text("[politeness]\ndelay = 0.0\n")
    with SyntheticWeb(WebPlan.plain(hosts=1, pages=30), log=tmp_path / "requests.jsonl") as web:
        crawl = ["crawl", *web.seeds, "--into", str(tmp_path / "crawl"), "--config", str(config)]
        places = ["--resolve", web.resolve, "--allow-private"]
        command = [sys.executable, "-m", "bench._profiled", str(report), *crawl, *places]
        with output.open("wb") as stream:
            assert start(command, stream).wait(60) == 0, output.read_text()
    profile = msgspec.json.decode(report.read_bytes(), type=Profile)
    assert set(STAGES) - set(profile.calls) == set()
    assert profile.calls["parse"] == 30
    assert min(profile.spent.values()) >= 0
    assert sum(profile.spent.values()) <= profile.process
