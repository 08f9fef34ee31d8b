"""Whole crawls of a synthetic web of which a part is in sitemaps only, judged like every other crawl."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from skitter.testing.audit import is_robots
from skitter.testing.features import Kind
from skitter.testing.plan import WebPlan
from tests.e2e.test_synthetic_crawls import Trial, ends_as, trial_of

HOSTS = 60


def listed_web(hosts: int = HOSTS) -> WebPlan:
    """30 % of the pages are in sitemaps only, and a fifth of the dates lie."""
    return WebPlan(hosts=hosts, pages=8, seed=5, crawl_delay=0.1, flaky_failures=1, listed=0.3, lies=0.2)


def requested(trial: Trial) -> set[str]:
    trial.web.stop()
    return {f"{row.host}{row.path}" for row in trial.web.requests() if not is_robots(row.path)}


def test_pages_that_only_sitemaps_name_are_all_found_once(tmp_path: Path) -> None:
    plan = listed_web()
    expected = plan.expected()
    files = [one for one in expected.values() if one.kind is Kind.SITEMAP]
    hidden = [url for url in expected if "/listed/" in url]
    assert len(files) > HOSTS // 2
    assert len(hidden) > len(expected) * 0.15
    with trial_of(plan, tmp_path) as trial:
        assert trial.crawl() == ends_as(plan)
        result = trial.judge()
    assert result.faults == {}
    assert result.lost == 0


def test_a_crawl_with_sitemaps_that_is_killed_ends_as_exact_as_an_undisturbed_one(tmp_path: Path) -> None:
    plan = listed_web(25)
    with trial_of(plan, tmp_path, latency=0.1) as trial:
        for until in (40, 120):
            with trial.running(until=until) as child:
                child.kill()
                child.wait()
        assert trial.crawl() == ends_as(plan)
        result = trial.judge(0.0, 0.0)
    assert result.lost == 0


def test_without_sitemaps_nothing_of_them_is_asked_for(tmp_path: Path) -> None:
    with trial_of(listed_web(10), tmp_path) as trial:
        trial.crawl("--sitemaps", "off")
        asked = requested(trial)
    assert asked
    assert not [url for url in asked if "sitemap" in url or "/listed/" in url]


def test_only_sitemaps_fetches_the_seed_and_what_they_name(tmp_path: Path) -> None:
    plan = listed_web(10)
    with trial_of(plan, tmp_path) as trial:
        trial.crawl("--sitemaps", "only")
        asked = requested(trial)
    name = plan.name(0)
    listed = {f"{name}{path}" for path in plan.site(0).pages if path.startswith(("/listed/", "/sitemap"))}
    assert asked == {f"{name}/", *listed}


def test_a_sitemap_given_as_such_is_enough_and_explain_says_who_named_a_page(tmp_path: Path) -> None:
    plan = listed_web(10)
    host = next(number for number in range(10) if number % 3 and plan.robots_names_sitemap(number))
    with trial_of(plan, tmp_path) as trial:
        command = trial.command("--sitemaps", "off", "--sitemap", plan.url(host, "/sitemap.xml"))
        seeds = [word for word in command if word not in plan.seeds]
        subprocess.run(seeds, check=False, capture_output=True)
        page = plan.url(host, "/listed/0.html")
        told = subprocess.run(
            [sys.executable, "-m", "skitter", "explain", page, "--in", str(trial.folder)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    assert "completed" in told
    assert f"named by the sitemap {plan.url(host, '/sitemap.xml')}" in told
