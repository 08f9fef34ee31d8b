"""Sitemaps at their limits: how much memory do 25 million URLs take, and are all pages found that only they name?

    python -m bench.sitemaps                   # all four
    python -m bench.sitemaps --only parser     # an index of 500 files of 50,000 URLs each, in gzip
    python -m bench.sitemaps --only crawl      # 20 such files through a server and a worker
    python -m bench.sitemaps --only web        # 300 hosts, 30 % of pages in sitemaps only, 20 % of dates lie
    python -m bench.sitemaps --only liars      # kept fresh for a month, with the liars' dates and without

The parser must stay below 100 MB of resident memory, the worker must not grow with the number of files, the web
must be found whole, and what liars say must not bring their pages more visits. A table and one JSON object as the
last line; exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench._crawls import _resident, child_environment, run_with_usage, web_crawl, write_quick_settings
from bench._liars import liars
from bench._report import last_line, progress, table
from bench._sitemap_files import URLS, file_of, index_of
from bench._verdict import verdict
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

MOST_MB = 100.0
# Of the worker's memory after the first file: one file more at the same time, and what an allocator keeps.
MOST_GROWTH = 1.5
# Of the visits that pages of liars get, with their dates and without, in the second half of a month.
MOST_EFFECT = 0.05
DELAY = 0.05


def in_a_child(files: int) -> dict[str, object]:
    command = [sys.executable, "-m", "bench._sitemap_files", str(files)]
    done = subprocess.run(command, env=child_environment(), check=True, stdout=subprocess.PIPE)
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


# -- a crawl


class _Shop(BaseHTTPRequestHandler):
    """robots.txt, an index, its files, and empty pages."""

    protocol_version = "HTTP/1.1"
    files = 0
    served = 0

    def do_GET(self) -> None:
        origin = f"http://{self.headers['Host']}"
        if self.path == "/robots.txt":
            body = f"User-agent: *\nDisallow:\nSitemap: {origin}/index.xml\n".encode()
        elif self.path == "/index.xml":
            body = index_of(origin, _Shop.files)
        elif self.path.startswith("/maps/"):
            body = file_of(origin, int(self.path[6:].partition(".")[0]))
            _Shop.served += 1
        else:
            body = b"<html><title>Item</title></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if body.startswith(b"<html") else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def shop(files: int) -> Iterator[str]:
    _Shop.files, _Shop.served = files, 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def crawl(files: int, folder: Path) -> dict[str, object]:
    """A server and a worker in another process, until all files are read; how the worker's memory grew."""
    (folder / "shop.toml").write_text(
        '[politeness]\ndelay = 0\nhost_budget = 0\n[fetch]\nallow_private = true\n[sitemaps]\nuse = "only"\n'
    )
    crawl_folder, config = str(folder / "crawl"), str(folder / "shop.toml")
    with shop(files) as origin:
        serve = ["serve", crawl_folder, f"{origin}/", "--listen", "127.0.0.1:0", "--config", config, "--json"]
        server = _start(*serve, pipe=True)
        assert server.stdout is not None
        where = json.loads(server.stdout.readline())["serving"]
        worker = _start("worker", "--join", where, "--allow", "private")
        try:
            memory = _watch(worker.pid, lambda: _Shop.served, files)
            urls = _await_urls(crawl_folder, files * URLS)
        finally:
            for child in (worker, server):
                child.send_signal(signal.SIGINT)
                child.wait(60)
    first = max(memory[:3]) / 1e6
    most = max(memory) / 1e6
    return {"files": files, "urls_known": urls, "first_mb": first, "most_mb": most, "growth": most / first}


def _start(*words: str, pipe: bool = False) -> subprocess.Popen[bytes]:
    output = subprocess.PIPE if pipe else subprocess.DEVNULL
    command = [sys.executable, "-m", "skitter", *words]
    return subprocess.Popen(command, env=child_environment(), stdout=output, stderr=subprocess.DEVNULL)


def _watch(pid: int, served: Callable[[], int], files: int) -> list[int]:
    """The worker's largest memory while each number of files was served."""
    most = [0] * (files + 1)
    until = time.monotonic() + 300
    while served() < files and time.monotonic() < until:
        at = served()
        most[at] = max(most[at], _resident(pid))
        progress(f"{at} of {files} files, {most[at] / 1e6:.0f} MB")
        time.sleep(0.2)
    return most[1:]


def _await_urls(folder: str, urls: int) -> int:
    """What the frontier knows once the last file is settled."""
    known, before, patience = 0, -1, 60
    while known < urls and patience:
        time.sleep(1.0)
        patience -= known == before
        before = known
        told = subprocess.run(
            [sys.executable, "-m", "skitter", "stats", folder, "--json"],
            env=child_environment(),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout
        known = sum(json.loads(told)["urls"].values()) if told else known
    return known


# -- the synthetic web


def web(hosts: int, folder: Path) -> dict[str, object]:
    plan = WebPlan(hosts=hosts, pages=8, seed=7, crawl_delay=0.1, flaky_failures=1, listed=0.3, lies=0.2)
    config = folder / "web.toml"
    write_quick_settings(config, delay=DELAY)
    with SyntheticWeb(plan, log=folder / "requests.jsonl") as running:
        usage = run_with_usage(web_crawl(running, folder / "web", config))
    account = verdict(folder / "web", folder / "requests.jsonl", plan, DELAY, ())
    expected = plan.expected()
    return {
        "hosts": hosts,
        "expected": len(expected),
        "in_sitemaps_only": sum("/listed/" in url for url in expected),
        "wall_s": usage.wall,
        "faults": {name: len(found) for name, found in account.faults.items()},
        "lost": account.lost,
    }


def wrong_in(results: dict[str, dict[str, object]]) -> Iterator[str]:
    parsed, crawled, found = results.get("parser"), results.get("crawl"), results.get("web")
    if parsed and (
        float(str(parsed["rss_mb"])) > MOST_MB or parsed["urls"] != int(str(parsed["files"])) * URLS
    ):
        yield f"the parser took {parsed['rss_mb']} MB for {parsed['urls']} URLs"
    if crawled and int(str(crawled["urls_known"])) < int(str(crawled["files"])) * URLS:
        yield f"only {crawled['urls_known']} URLs are known"
    if crawled and float(str(crawled["growth"])) > MOST_GROWTH:
        yield f"the worker grew {crawled['growth']} fold"
    if found and (found["faults"] or found["lost"]):
        yield f"the web was not found as planned: {found['faults']}"
    dated = results.get("liars")
    if dated and dated["not_found"]:
        yield f"{dated['not_found']} pages were not found"
    if dated and abs(float(str(dated["second_half"])) - 1) > MOST_EFFECT:
        yield f"pages of liars get {float(str(dated['second_half'])):.2f} times the visits"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sitemaps", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("parser", "crawl", "web", "liars"))
    parser.add_argument("--files", type=int, default=500, help="of the parser's index")
    parser.add_argument("--crawled", type=int, default=20, help="files of the crawl's index")
    parser.add_argument("--hosts", type=int, default=300)
    options = parser.parse_args(arguments)
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="sitemaps-") as name:
        if options.only in (None, "parser"):
            results["parser"] = in_a_child(options.files)
        if options.only in (None, "crawl"):
            results["crawl"] = crawl(options.crawled, Path(name))
        if options.only in (None, "web"):
            results["web"] = web(options.hosts, Path(name))
        if options.only in (None, "liars"):
            results["liars"] = liars(options.hosts, Path(name))
    for part, told in results.items():
        print(table([(part, ""), *told.items()]), end="\n\n")
    wrong = list(wrong_in(results))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    last_line({"bench": "sitemaps", **results, "faults": wrong})
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
