"""Whole crawls of the synthetic web in child processes, judged by three independent records of each: the web's
request log, the frontier's ledger and the archive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from bench._account import Account
from bench._crawls import LogSize, start, web_crawl, write_quick_settings
from bench._records import archive_faults, known, records
from bench._verdict import breaches, verdict
from bench.kills import Killer

from skitter.testing.audit import is_robots
from skitter.testing.features import RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.sites import Site
from skitter.testing.web import SyntheticWeb

TOOLS = Path(sys.executable).parent
DELAY = 0.1
DEADLINE = 60.0
COMPLETE, WAITING, INTERRUPTED = 0, 3, 130


class Trial:
    """A synthetic web, a crawl's folder, and the command that crawls the one into the other."""

    def __init__(self, folder: Path, web: SyntheticWeb) -> None:
        self.web = web
        self.folder = folder / "crawl"
        self.config = folder / "quick.toml"
        self.output = folder / "output.jsonl"
        self.log_size = LogSize(web.log_path)
        write_quick_settings(self.config, delay=DELAY, segment_size=300_000)

    def command(self, *more: str) -> list[str]:
        return web_crawl(self.web, self.folder, self.config, *more)

    def crawl(self, *more: str) -> int:
        with self.output.open("ab") as output:
            return start(self.command(*more), output).wait(DEADLINE)

    @contextmanager
    def running(self, *, until: int) -> Iterator[subprocess.Popen[bytes]]:
        """A crawl that has made so many requests."""
        with self.output.open("ab") as output, start(self.command(), output) as child:
            try:
                self._await(child, lambda: self.log_size.look() >= until)
                yield child
            finally:
                child.kill()

    def _await(self, child: subprocess.Popen[bytes], there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not there():
            assert child.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(0.02)

    def judge(self, *kills: float, admits: Callable[[str], bool] | None = None) -> Account:
        self.web.stop()
        return verdict(self.folder, self.web.log_path, self.web.plan, DELAY, kills, admits)


@contextmanager
def trial_of(plan: WebPlan, folder: Path, latency: float = 0.0, least: float = 0.0) -> Iterator[Trial]:
    with SyntheticWeb(plan, log=folder / "requests.jsonl", latency=(least, latency)) as web:
        yield Trial(folder, web)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Trial]:
    with trial_of(WebPlan.demo(), tmp_path) as trial:
        yield trial


@pytest.fixture
def slow_demo(tmp_path: Path) -> Iterator[Trial]:
    """Hosts that think for a while, so that requests are in flight at any moment."""
    with trial_of(WebPlan.demo(seed=2), tmp_path, latency=0.3) as trial:
        yield trial


def ends_as(plan: WebPlan) -> int:
    """Hosts that never yield their robots.txt keep a crawl waiting."""
    kinds = {plan.robots_kind(host) for host in range(plan.hosts)}
    return WAITING if RobotsKind.UNAVAILABLE in kinds else COMPLETE


def test_the_demo_web_is_fetched_exactly_and_the_archive_is_readable_by_others(demo: Trial) -> None:
    assert demo.crawl() == ends_as(demo.web.plan)
    result = demo.judge()
    assert result.faults == {}
    assert result.lost == 0
    segments = sorted((demo.folder / "archive").glob("*.warc.gz"))
    assert len(segments) > 1
    subprocess.run([TOOLS / "warcio", "check", *segments], check=True, capture_output=True)
    indexed = subprocess.run(
        [TOOLS / "cdx-indexer", "--cdxj", *segments], check=True, capture_output=True, text=True
    )
    assert len(indexed.stdout.splitlines()) == result.archived


def test_three_hundred_hosts_with_every_feature_are_crawled_politely_and_exactly(tmp_path: Path) -> None:
    with trial_of(WebPlan(seed=7, hosts=300, pages=8, crawl_delay=0.2), tmp_path) as trial:
        assert trial.crawl() == WAITING
        result = trial.judge()
    assert result.faults == {}
    assert result.lost == 0


def test_a_crawl_killed_three_times_ends_as_exact_as_an_undisturbed_one(tmp_path: Path) -> None:
    plan = WebPlan(seed=3, hosts=60, pages=10, crawl_delay=0.2)
    with trial_of(plan, tmp_path, latency=0.1) as trial, trial.output.open("ab") as output:
        expected = len(plan.expected())
        killer = Killer(trial.command(), trial.log_size, [0.2, 0.5, 0.8], expected, seed=3)
        killed = killer.run(output)
        assert killed.code == WAITING
        result = trial.judge(*killed.kills)
    assert len(killed.kills) >= 2
    assert result.faults == {}


def test_ctrl_c_drains_and_the_next_run_repeats_nothing(slow_demo: Trial) -> None:
    with slow_demo.running(until=100) as child:
        child.send_signal(signal.SIGINT)
        assert child.wait(DEADLINE) == INTERRUPTED
    states = known(slow_demo.folder / "frontier").states
    assert "queued" in states.values()
    assert slow_demo.crawl() == ends_as(slow_demo.web.plan)
    result = slow_demo.judge()
    assert result.faults == {}
    assert result.lost == 0


def test_ctrl_c_twice_stops_at_once_and_the_next_run_still_completes(tmp_path: Path) -> None:
    plan = WebPlan.demo(seed=4)
    # No host is ever idle, so that something is in flight whenever the second signal comes.
    with trial_of(plan, tmp_path, latency=0.6, least=0.6) as trial:
        with trial.running(until=60) as child:
            child.send_signal(signal.SIGINT)
            _await_note(trial, child, "Ctrl-C")
            # From here on nothing is settled, however long closing takes.
            stopped = time.time()
            child.send_signal(signal.SIGINT)
            assert child.wait(DEADLINE) == INTERRUPTED
        assert trial.crawl() == ends_as(plan)
        result = trial.judge(stopped)
    assert result.faults == {}
    assert result.lost_in_flight > 0


def _await_note(trial: Trial, child: subprocess.Popen[bytes], words: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while words not in trial.output.read_text():
        assert child.poll() is None
        assert time.monotonic() < deadline


def test_a_crawl_that_was_paused_past_its_leases_asks_nothing_twice(tmp_path: Path) -> None:
    lease, pause, latency = 3.0, 3.5, 5.0
    plan = WebPlan.plain(hosts=1, pages=1)
    with SyntheticWeb(plan, log=tmp_path / "requests.jsonl", latency=(latency, latency)) as web:
        trial = Trial(tmp_path, web)
        write_quick_settings(trial.config, delay=DELAY, lease=lease)
        with trial.running(until=1) as child:
            child.send_signal(signal.SIGSTOP)
            time.sleep(pause)  # the pause itself is what is tried
            child.send_signal(signal.SIGCONT)
            assert child.wait(DEADLINE) == COMPLETE
        result = trial.judge()
    assert result.faults == {}
    assert result.requests == 2


def test_an_archive_that_was_spoilt_is_found_out(demo: Trial) -> None:
    assert demo.crawl("--max-pages", "60") == COMPLETE
    archive = demo.folder / "archive"
    sound = records(archive)
    assert archive_faults(archive, sound) == []
    index = archive / "index.cdxj"
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(lines[1:]))
    assert ["no line" in fault for fault in archive_faults(archive, sound)] == [True]
    index.write_text("".join(lines))
    (archive / "left.warc.gz.open").touch()
    segment = archive / sound[-1].segment
    os.truncate(segment, sound[-1].offset + 20)
    words = " ".join(archive_faults(archive, sound))
    assert "left behind: left.warc.gz.open" in words
    assert "gzip -t" in words
    assert "does not name exactly one gzip member" in words


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_max_pages_is_exact(demo: Trial, limit: int) -> None:
    assert demo.crawl("--max-pages", str(limit)) == COMPLETE
    demo.web.stop()
    found = records(demo.folder / "archive")
    pages = [record for record in found if record.status == 200 and not is_robots(record.url)]
    assert len({page.url for page in pages}) == len(pages) == limit
    assert breaches(demo.web.requests(), demo.web.plan, DELAY) == []


def test_max_pages_is_exact_across_kills(slow_demo: Trial) -> None:
    limit = 150
    with slow_demo.output.open("ab") as output:
        command = slow_demo.command("--max-pages", str(limit))
        killed = Killer(command, slow_demo.log_size, [0.2, 0.4, 0.6], limit, seed=5).run(output)
    assert killed.code == COMPLETE
    assert killed.kills
    slow_demo.web.stop()
    found = records(slow_demo.folder / "archive")
    pages = [record.url for record in found if record.status == 200 and not is_robots(record.url)]
    assert len(set(pages)) == len(pages) == limit


def test_a_limit_that_is_raised_lets_the_crawl_go_on_to_its_end(demo: Trial) -> None:
    assert demo.crawl("--max-pages", "50") == COMPLETE
    assert demo.crawl("--max-pages", "0") == ends_as(demo.web.plan)
    assert demo.judge().faults == {}


def test_scope_host_fetches_the_seed_host_and_nothing_else(demo: Trial) -> None:
    home = _name(demo.web.seeds[0])
    assert demo.crawl("--scope", "host") == COMPLETE
    assert demo.judge(admits=lambda url: _name(url) == home).faults == {}


def test_scope_domain_fetches_every_host_of_the_seed_domain_and_nothing_else(demo: Trial) -> None:
    inside = [host for host in range(demo.web.plan.hosts) if demo.web.plan.name(host).endswith(".web.test")]
    assert 1 < len(inside) < demo.web.plan.hosts
    assert demo.crawl("--scope", "domain") in (COMPLETE, WAITING)
    assert demo.judge(admits=lambda url: _name(url).endswith(".web.test")).faults == {}


def test_scope_prefix_fetches_what_lies_below_the_seed_folder_and_nothing_else(tmp_path: Path) -> None:
    plan = WebPlan(hosts=2, pages=60, spread=0.0, features={}, robots={})
    seed, inside = _seed_of_a_folder(plan)
    assert len(inside) > 3
    with trial_of(plan, tmp_path) as trial:
        command = [seed if part in plan.seeds else part for part in trial.command("--scope", "prefix")]
        with trial.output.open("ab") as output:
            assert start(command, output).wait(DEADLINE) == COMPLETE
        trial.web.stop()
    asked = [f"http://{row.host}{row.path}" for row in trial.web.requests() if not is_robots(row.path)]
    assert sorted(asked) == sorted(inside)


def _seed_of_a_folder(plan: WebPlan) -> tuple[str, set[str]]:
    """The page from which most others of its folder are reached without leaving it, and all of these."""
    site = plan.site(0)
    reached = {path: _reached(site, path) for path in site.pages if path.count("/") > 1}
    path = max(reached, key=lambda path: len(reached[path]))
    return plan.url(0, path), {plan.url(0, other) for other in reached[path]}


def _reached(site: Site, start_path: str) -> set[str]:
    folder = start_path.rpartition("/")[0] + "/"
    seen, queue = {start_path}, [start_path]
    while queue:
        page = site.page(queue.pop())
        links = site.links(page) if page else []
        new = {link.path for link in links if link.host == 0 and link.path.startswith(folder)} - seen
        seen |= new
        queue += new
    return seen


def _name(url: str) -> str:
    return urlsplit(url).netloc
