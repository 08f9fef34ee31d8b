"""Crawls by several processes, disturbed in every way a process or a network can be, end as undisturbed ones do:
by the web's request log, the frontier's ledger and the archive."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench._account import Account
from bench._crawls import LogSize, skitter_command, start, web_crawl, write_quick_settings
from bench._verdict import verdict

from skitter.testing.features import FEATURE_SHARES, ROBOTS_SHARES, Feature, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.cutting_proxy import CuttingProxy
from tests.raw_server import page, serving

DELAY = 0.05
# Where leases are to run out in a test they are short, elsewhere no busy machine may let one run out.
SHORT_LEASE, LONG_LEASE = 4.0, 30.0
DEADLINE = 60.0
Child = subprocess.Popen[bytes]
# Without what only takes time: pages that fail five times, hosts that never yield their robots.txt.
PLAN = WebPlan(
    hosts=16,
    pages=7,
    crawl_delay=0.1,
    flaky_failures=1,
    features={feature: share for feature, share in FEATURE_SHARES.items() if feature is not Feature.BROKEN},
    robots={kind: share for kind, share in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE},
)


def awaited(there: Callable[[], bool], *children: Child) -> None:
    deadline = time.monotonic() + DEADLINE
    while not there():
        assert time.monotonic() < deadline
        assert all(child.poll() is None for child in children)
        time.sleep(0.01)


class Trial:
    def __init__(self, folder: Path, web: SyntheticWeb, lease: float) -> None:
        self.web = web
        self.folder = folder / "crawl"
        self.config = folder / "quick.toml"
        self._output = folder / "output"
        self.log_size = LogSize(web.log_path)
        write_quick_settings(self.config, delay=DELAY, segment_size=60_000, lease=lease)
        with self.config.open("a") as config:
            config.write(f'\n[fetch]\nallow_private = true\nresolve = ["{web.resolve}"]\n')
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.closing = ExitStack()

    def started(self, *command: str) -> Child:
        output = self.closing.enter_context(self._output.open("ab"))
        child = start(command, output)
        self.closing.callback(child.wait)
        self.closing.callback(child.kill)
        return child

    def crawl(self, *more: str) -> Child:
        return self.started(*web_crawl(self.web, self.folder, self.config, *more))

    def serve(self) -> Child:
        server = self.started(*self.serving(*self.web.seeds))
        awaited(self.answers, server)
        return server

    def serving(self, *seeds: str) -> list[str]:
        place = ("--listen", f"127.0.0.1:{self.port}", "--config", str(self.config))
        return skitter_command("serve", str(self.folder), *seeds, *place, "--json")

    def worker(self, port: int = 0) -> Child:
        allowed = ("--allow", "private", "--allow", "resolve")
        place = f"http://127.0.0.1:{port or self.port}"
        return self.started(*skitter_command("worker", "--join", place, *allowed))

    def careful_worker(self) -> Child:
        """Which lets the server loosen nothing."""
        place = f"http://127.0.0.1:{self.port}"
        log = ("--log", str(self.folder.with_suffix(".worker")))
        return self.started(*skitter_command("worker", "--join", place, *log))

    def answers(self) -> bool:
        try:
            self.stats()
        except OSError:
            return False
        return True

    def stats(self) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/stats", timeout=10) as answer:
            return json.load(answer)["stats"]

    def is_done(self) -> bool:
        urls = self.stats()["urls"]
        return not urls["queued"] and not urls["in_progress"] and not urls["failed"]

    def requested(self, count: int) -> Callable[[], bool]:
        return lambda: self.log_size.look() >= count

    def end(self, server: Child, *workers: Child) -> None:
        awaited(self.is_done, server, *workers)
        for child in (*workers, server):
            child.send_signal(signal.SIGTERM)
            assert child.wait(DEADLINE) == 0, self._output.read_text()

    def judge(self, *kills: float, pauses: tuple[tuple[float, float], ...] = ()) -> Account:
        self.web.stop()
        return verdict(self.folder, self.web.log_path, self.web.plan, DELAY, kills, pauses=pauses)


@contextmanager
def trial_of(folder: Path, latency: float = 0.05, lease: float = LONG_LEASE) -> Iterator[Trial]:
    with SyntheticWeb(PLAN, log=folder / "requests.jsonl", latency=(0.0, latency)) as web:
        trial = Trial(folder, web, lease)
        with trial.closing:
            yield trial


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    with trial_of(tmp_path) as made:
        yield made


@pytest.fixture
def brief(tmp_path: Path) -> Iterator[Trial]:
    with trial_of(tmp_path, lease=SHORT_LEASE) as made:
        yield made


def killed(child: Child | int) -> float:
    os.kill(child if isinstance(child, int) else child.pid, signal.SIGKILL)
    return time.time()


def children_of(child: Child) -> list[int]:
    found = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text()
    return [int(pid) for pid in found.split()]


# -- skitter crawl --workers


@pytest.mark.parametrize(("workers", "beside"), [(2, 1), (3, 2), (4, 4)])
def test_a_crawl_by_several_processes_is_exact_and_leaves_none_behind(
    trial: Trial, workers: int, beside: int
) -> None:
    """Its own is one of them, unless they are many: then its committer has enough to do."""
    crawl = trial.crawl("--workers", str(workers))
    awaited(trial.requested(40), crawl)
    processes = children_of(crawl)
    assert len(processes) == beside
    assert crawl.wait(DEADLINE) == 0
    result = trial.judge()
    assert result.faults == {}
    assert result.lost == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)


def test_a_worker_of_a_crawl_that_is_killed_is_replaced_and_costs_nothing_but_effort(trial: Trial) -> None:
    crawl = trial.crawl("--workers", "2")
    kills = []
    for count in (30, 70):
        awaited(trial.requested(count), crawl)
        kills.append(killed(children_of(crawl)[0]))
    assert crawl.wait(DEADLINE) == 0
    assert trial.judge(*kills).faults == {}
    assert (trial.folder / "skitter.log").read_text().count('"worker_ended"') == 2


def test_a_crawl_that_is_killed_takes_its_workers_along_and_goes_on_in_the_next_run(trial: Trial) -> None:
    crawl = trial.crawl("--workers", "2")
    awaited(trial.requested(40), crawl)
    workers = children_of(crawl)
    killed(crawl)
    crawl.wait(DEADLINE)
    kill = time.time()  # its workers end when the kernel has done with it
    awaited(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert trial.crawl("--workers", "2").wait(DEADLINE) == 0
    assert trial.judge(kill).faults == {}


def test_a_crawl_that_is_too_much_for_one_process_is_handed_over_and_stays_exact(tmp_path: Path) -> None:
    # slow enough to be looked at once its hosts are known: that is done every second
    with trial_of(tmp_path, latency=0.4) as trial:
        trial.config.write_text(trial.config.read_text().replace("[crawl]\n", "[crawl]\nrelief = 0.0\n"))
        assert trial.crawl().wait(DEADLINE) == 0
        assert trial.judge().faults == {}
        log = (trial.folder / "skitter.log").read_text()
    cores = len(os.sched_getaffinity(0))
    assert log.count('"workers_started"') == (cores > 1)


def test_ctrl_c_drains_all_processes_and_the_next_run_repeats_nothing(tmp_path: Path) -> None:
    with trial_of(tmp_path, latency=0.3) as trial:
        crawl = trial.crawl("--workers", "2")
        awaited(trial.requested(40), crawl)
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait(DEADLINE) == 130
        assert trial.crawl("--workers", "2").wait(DEADLINE) == 0
        result = trial.judge()
    assert result.faults == {}
    assert result.lost == 0


# -- skitter serve, skitter worker


def test_a_served_crawl_is_exact_and_all_end_when_they_are_told(trial: Trial) -> None:
    server = trial.serve()
    trial.end(server, trial.worker(), trial.worker())
    result = trial.judge()
    assert result.faults == {}
    assert result.lost == 0


def test_a_worker_that_is_killed_costs_nothing_but_effort(brief: Trial) -> None:
    server = brief.serve()
    first, second = brief.worker(), brief.worker()
    awaited(brief.requested(40), server, first, second)
    kill = killed(first)
    brief.end(server, second)
    assert brief.judge(kill).faults == {}


def test_a_server_that_is_killed_gets_what_its_workers_fetched_meanwhile(brief: Trial) -> None:
    server = brief.serve()
    workers = brief.worker(), brief.worker()
    awaited(brief.requested(40), server, *workers)
    kill = killed(server)
    server.wait(DEADLINE)
    back = time.time()
    brief.end(brief.serve(), *workers)
    assert brief.judge(kill, back).faults == {}


def test_a_worker_that_was_stopped_past_its_leases_starts_no_request_for_them(brief: Trial) -> None:
    server = brief.serve()
    first, second = brief.worker(), brief.worker()
    awaited(brief.requested(40), server, first, second)
    first.send_signal(signal.SIGSTOP)
    stopped = time.time()
    awaited(lambda: brief.stats()["leases_expired"] > 0, server)
    first.send_signal(signal.SIGCONT)
    awake = time.time()
    brief.end(server, first, second)
    assert brief.judge(stopped, awake, pauses=((stopped, awake),)).faults == {}


@pytest.mark.parametrize("after_the_request", [False, True], ids=["in the request", "before the answer"])
def test_a_connection_that_is_cut_in_a_settle_loses_and_doubles_nothing(
    trial: Trial, after_the_request: bool
) -> None:
    server = trial.serve()
    with CuttingProxy(trial.port, b"POST /v1/work/settle", after_the_request=after_the_request) as proxy:
        worker = trial.worker(proxy.port)
        trial.end(server, worker)
        assert proxy.cuts > 3
    result = trial.judge()
    assert result.faults == {}
    assert result.lost == 0


def test_a_request_is_given_up_with_its_lease_while_the_server_does_not_answer(brief: Trial) -> None:
    """Whether it is stopped or the network is gone: it may give the host to somebody else from then on."""
    asked, left = threading.Event(), threading.Event()

    def answer(connection: socket.socket, raw: bytes) -> bool:
        if raw.split()[1] == b"/robots.txt":
            connection.sendall(page(b"", status=b"404 Not Found"))
            return True
        asked.set()
        with contextlib.suppress(OSError):
            connection.recv(1)
        left.set()
        return False

    with serving(answer) as site:
        server = brief.started(*brief.serving(site.url + "/"))
        awaited(brief.answers, server)
        worker = brief.worker()
        awaited(asked.is_set, server, worker)
        server.send_signal(signal.SIGSTOP)
        assert left.wait(SHORT_LEASE + DELAY)
        assert worker.poll() is None


def test_a_worker_keeps_its_own_guard_whatever_its_server_says(trial: Trial) -> None:
    """The server names addresses on loopback; the worker asks DNS, and dials nothing special."""
    server, worker = trial.serve(), trial.careful_worker()
    awaited(lambda: bool(trial.stats()["failures"]), server, worker)
    log = trial.folder.with_suffix(".worker").read_text()
    assert "fetch.allow_private, fetch.resolve are not taken over" in log
    assert trial.log_size.look() == 0
    for child in (worker, server):
        child.send_signal(signal.SIGTERM)
        assert child.wait(DEADLINE) == 0
