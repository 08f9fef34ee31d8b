"""The chaos trial with many processes: a server and its workers, given no peace, must still crawl exactly.

    python -m bench.processes --kills 100 --pauses 20 --pages 8000

Server and workers are killed, stopped past their leases and started again with clocks that disagree, while a
proxy before each worker hangs up in the middle of asks and answers. Then the web's request log, the frontier's
ledger and the archive are compared pairwise, and the log is audited for manners. One JSON object is the last
line; exit code 1 on any fault.
"""

from __future__ import annotations

import argparse
import random
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench._account import Account
from bench._company import Company, Process, without_pandas
from bench._crawls import LogSize, child_environment, skitter_command, write_quick_settings
from bench._cuts import CuttingProxy
from bench._jumps import library
from bench._report import last_line, progress, table
from bench._torment import Torments
from bench._unrest import Unrest, strikes
from bench._verdict import ATTEMPTS, toll, verdict
from bench.chaos import PAGES_A_HOST, SHOWN
from skitter.testing.features import ROBOTS_SHARES, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb


def run(options: argparse.Namespace, folder: Path) -> int:
    plan = plan_of(options)
    log, crawl = folder / "requests.jsonl", folder / "crawl"
    expected = sum(row.requests(ATTEMPTS) for row in plan.expected().values()) + plan.hosts
    choose = random.Random(options.seed)
    if library() is None:
        progress("clocks agree: there is no C compiler to build one that can be set")
    acts = strikes(choose, kills=options.kills, pauses=options.pauses, workers=options.workers)
    with ExitStack() as stack:
        web = stack.enter_context(SyntheticWeb(plan, log=log, latency=(0.0, options.latency)))
        config = settings_of(options, web, folder)
        port = free_port()
        proxies = [stack.enter_context(CuttingProxy(port, choose)) for _ in range(options.workers)]
        output = stack.enter_context((folder / "output").open("ab"))
        place = ("--listen", f"127.0.0.1:{port}", "--config", str(config))
        environ = without_pandas(folder / "without")
        serve = skitter_command("serve", str(crawl), *web.seeds, *place, "--json")
        server = Process("server", serve, output, environ)
        workers = [
            Process(f"worker {number}", worker_of(proxy, folder / f"worker-{number}.log"), output, environ)
            for number, proxy in enumerate(proxies, start=1)
        ]
        company = Company(port, server, workers, Torments())
        stack.callback(company.leave)
        done = Unrest(company, LogSize(log), expected, choose, options.lease).run(acts)
    done.counts["connections cut"] = sum(proxy.cuts for proxy in proxies)
    done.counts["answers to a settle lost"] = sum(proxy.answers_lost for proxy in proxies)
    progress("reading the log, the ledger and the archive")
    result = verdict(crawl, log, plan, options.delay, done.deaths, runs=done.runs, pauses=done.pauses)
    result.blame("exit code", done.faults)
    result.blame("skitter verify", verified(crawl))
    show(options, plan, done, result)
    return 1 if result.faults else 0


def plan_of(options: argparse.Namespace) -> WebPlan:
    """Without hosts that never yield their robots.txt: theirs would stay queued, and no server ends by itself."""
    robots: dict[RobotsKind, float] = {
        kind: share for kind, share in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE
    }
    hosts = max(1, options.pages // PAGES_A_HOST)
    return WebPlan(
        seed=options.seed, hosts=hosts, pages=PAGES_A_HOST, crawl_delay=options.crawl_delay, robots=robots
    )


def settings_of(options: argparse.Namespace, web: SyntheticWeb, folder: Path) -> Path:
    config = folder / "quick.toml"
    write_quick_settings(config, delay=options.delay, segment_size=options.segment_size, lease=options.lease)
    with config.open("a") as file:
        file.write(f'\n[fetch]\nallow_private = true\nresolve = ["{web.resolve}"]\n')
        file.write(f"concurrency = {options.concurrency}\n")
    return config


def worker_of(proxy: CuttingProxy, log: Path) -> list[str]:
    allowed = ("--allow", "private", "--allow", "resolve")
    return skitter_command("worker", "--join", f"http://127.0.0.1:{proxy.port}", "--log", str(log), *allowed)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def verified(crawl: Path) -> list[str]:
    command = skitter_command("verify", str(crawl))
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=False)
    return (
        [] if done.returncode == 0 else [*done.stdout.splitlines()[:SHOWN], *done.stderr.splitlines()[:SHOWN]]
    )


def show(options: argparse.Namespace, plan: WebPlan, done: Torments, result: Account) -> None:
    faults = {kind: len(lines) for kind, lines in result.faults.items()}
    figures: dict[str, int | float] = {
        "hosts": plan.hosts,
        "workers": options.workers,
        "servers": len(done.runs),
        "kills": sum(count for name, count in done.counts.items() if name.startswith("kill")),
        **dict(sorted(done.counts.items())),
        "seconds": round(done.seconds, 1),
        **toll(result),
    }
    print(table([("", "count"), *figures.items(), *((f"FAULT {kind}", n) for kind, n in faults.items())]))
    for kind, lines in result.faults.items():
        print(f"\n{kind}:", *lines[:SHOWN], sep="\n    ")
    named = {name.replace(",", "").replace(" ", "_"): value for name, value in figures.items()}
    last_line({"bench": "processes", "seed": options.seed, **named, "faults": faults})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.processes", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="at least; some come in pairs")
    parser.add_argument("--pauses", type=int, default=20)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--pages", type=int, default=8_000, help="of the whole web, about")
    parser.add_argument("--seed", type=int, default=1, help="of the web and of what happens when")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds between two requests to a host")
    parser.add_argument("--crawl-delay", type=float, default=1.5, help="what some hosts ask for instead (s)")
    parser.add_argument("--lease", type=float, default=8.0, help="seconds a lease lasts")
    parser.add_argument("--concurrency", type=int, default=16, help="requests in flight of a worker, at most")
    parser.add_argument("--latency", type=float, default=0.2, help="think time of the slowest host (s)")
    parser.add_argument("--segment-size", type=int, default=2_000_000, help="small: segments end often")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave everything in this new folder")
    options = parser.parse_args(arguments)
    if options.keep:
        options.keep.mkdir(parents=True)
        return run(options, options.keep)
    with tempfile.TemporaryDirectory(prefix="skitter-processes-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
