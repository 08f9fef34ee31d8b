"""`skitter plan`: the sums of a target, a plan from seeds, and one from a crawl so far."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.command import complaint, read_json, said, serving_site, skitter

PAGES = {
    "/": b"".join(b"<a href=/%d>page</a>" % n for n in range(60)),
    **{f"/{n}": b"<title>page %d</title> text %d " % (n, n * 7919) + b"x" * 2_000 for n in range(60)},
}


def test_the_sums_of_a_billion_pages_a_week() -> None:
    words = said(skitter("plan", "--pages", "1e9", "--in", "7d"))
    assert "1,000,000,000 pages in 7 d 00 h" in words
    assert "1,653 a second" in words
    assert "165 MB/s" in words
    assert "100 TB in all" in words
    found = read_json("plan", "--pages", "1e9", "--in", "7d")
    assert found["target"]["machines"] == pytest.approx(1653 / 700 / 8, abs=1)
    assert found["target"]["cost"]["prices"] == "example prices"


def test_prices_are_printed_changed_and_used(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(said(skitter("plan", "--example-prices")).replace("0.40", "1000.0"))
    cheap = json.loads(said(skitter("plan", "--pages", "1e6", "--in", "1d", "--json")))
    dear = json.loads(said(skitter("plan", "--pages", "1e6", "--in", "1d", "--prices", prices, "--json")))
    assert dear["target"]["cost"]["crawling"] > 20_000 > cheap["target"]["cost"]["crawling"]
    prices.write_text("nothing = 1")
    assert "is no table of prices" in complaint(skitter("plan", "--pages", "5", "--prices", prices), 2)


def test_seeds_are_planned_with_what_is_assumed_of_them(tmp_path: Path) -> None:
    words = said(skitter("plan", "https://a.example/", "https://b.example/", "--pages-per-host", "500"))
    assert "2 hosts, and nothing crawled yet" in words
    assert "about 8 m 20 s" in words
    assert "politeness" in words
    assert "skitter plan --pages 1e9 --in 7d" in complaint(skitter("plan"), 2)
    assert "is not a crawl" in complaint(skitter("plan", tmp_path), 2)


def test_a_crawl_so_far_is_planned_by_what_it_showed(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text("[fetch]\nallow_private = true\n[politeness]\ndelay = 0.05\n")
    with serving_site(PAGES) as server:
        done = skitter(
            "crawl", f"{server.url}/", "--into", tmp_path / "c", "--config", config, "--max-pages", 30
        )
        assert done.returncode == 0, done.stderr
    said(skitter("settings", "--in", tmp_path / "c", "--set", "crawl.max_pages=0"))
    found = read_json("plan", tmp_path / "c")
    left = found["estimate"]
    assert left["urls"][1] == pytest.approx(31, abs=3)
    assert left["seconds"][0] < left["seconds"][1] < left["seconds"][2]
    assert left["bytes"][1] == pytest.approx(31 * 2_050, rel=0.3)
    assert found["assumed"]["page_bytes"] == pytest.approx(2_050, rel=0.3)
    assert left["hosts"][0]["host"] == server.url
    words = said(skitter("plan", tmp_path / "c"))
    assert "30 pages so far" in words
    assert "limited by" in words


def test_a_region_that_is_none_is_refused_at_once() -> None:
    done = skitter("worker", "--join", "http://127.0.0.1:1", "--region", "Far East")
    assert "is no region: small letters, digits and -" in complaint(done, 2)
