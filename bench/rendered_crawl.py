"""Single-page apps and static sites in one crawl that renders: is all of it found, politely, whatever is killed?

    python -m bench.rendered_crawl --routes 250 --pages 2500 --kills 20

Eight apps of eight kinds and static sites on loopback (`skitter.testing.apps`). Browsers, worker processes and
the crawl itself are killed (`kill -9`) in turn, and a killed crawl is started again. Then the web's own log says
which routes were asked for, how politely, and how often; the archive says which pages were rendered.
`--without-tabs` gives up every tab that waits, so that each page is rendered anew in each round. The last line is
JSON; exit code 1 when something is missing, impolite or not as the archive should be.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

from bench._report import last_line, progress, table
from skitter.collection.collection import Collection
from skitter.testing.apps.sites import AppsPlan
from skitter.testing.apps.web import AppsWeb
from skitter.testing.audit import violations

VICTIMS = ("browser", "worker", "crawl")
GIVE_UP = 3600.0
PAUSE = 0.2


class Outcome(msgspec.Struct, kw_only=True):
    seconds: float
    cpu: float
    starts: int
    kills: dict[str, int]
    largest: int
    """Bytes, of all browsers at once: what is not shared."""
    code: int


class Figures(msgspec.Struct, kw_only=True):
    routes: int
    routes_found: int
    static_pages: int
    static_found: int
    static_rendered: int
    renderings: int
    rendered_twice: int
    requests: int
    repeated: int
    violations: int
    denied: int
    defects: str
    seconds: float
    cpu: float
    cpu_a_rendering: float
    largest_mb: int
    kills: dict[str, int]
    code: int

    def faults(self, allowed: int) -> list[str]:
        found = []
        if self.routes_found < self.routes:
            found.append(f"{self.routes - self.routes_found} routes were not found")
        if self.static_found < self.static_pages:
            found.append(f"{self.static_pages - self.static_found} static pages were not found")
        if self.static_rendered > 0.03 * self.static_pages:
            found.append(f"{self.static_rendered} static pages were rendered")
        if self.violations or self.denied:
            found.append(f"{self.violations} violations, {self.denied} requests that robots.txt denies")
        if self.repeated > allowed:
            found.append(f"{self.repeated} requests were made again, for {sum(self.kills.values())} kills")
        if self.rendered_twice or self.defects != "no defects" or self.code:
            found.append(f"{self.rendered_twice} rendered twice; {self.defects}; exit code {self.code}")
        return found


def main() -> int:
    options = _parser().parse_args()
    plan = AppsPlan(apps=options.apps, routes=options.routes, sites=options.sites, pages=options.pages)
    folder = Path(tempfile.mkdtemp(prefix="rendered-crawl-"))
    try:
        with AppsWeb(plan, latency=options.latency) as web:
            command = _command(options, plan, folder / "crawl", web.resolve)
            outcome = _Trial(command, options.kills, options.seed).run()
        figures = _figures(plan, web, folder / "crawl", outcome, options.delay)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    rows = [(name, str(getattr(figures, name))) for name in Figures.__struct_fields__]
    print(table([("figure", "value"), *rows]))
    # a worker has up to as many requests in flight as there are hosts, and a commit under way
    faults = figures.faults(allowed=(plan.apps + plan.sites) * 8 * max(1, options.kills))
    for fault in faults:
        print(fault)
    last_line({**msgspec.structs.asdict(figures), "faults": faults})
    return 1 if faults else 0


def _command(options: argparse.Namespace, plan: AppsPlan, folder: Path, resolve: str) -> list[str]:
    config = folder.with_name("my.toml")
    patience = 0.02 if options.without_tabs else 30.0
    config.write_text(
        f"[politeness]\ndelay = {options.delay}\n[fetch]\nallow_private = true\n[render]\npatience = {patience}\n"
    )
    command = [sys.executable, "-m", "skitter", "crawl", *plan.seeds, "--into", str(folder)]
    command += ["--config", str(config), "--render", options.render, "--resolve", resolve]
    return [*command, "--workers", str(options.workers)]


class _Trial:
    """Runs the crawl to its end, through all kills."""

    def __init__(self, command: list[str], kills: int, seed: int) -> None:
        self._command = command
        self._left = [VICTIMS[number % len(VICTIMS)] for number in range(kills)]
        self._random = random.Random(seed)
        self._killed: Counter[str] = Counter()
        self._largest = 0
        self._starts = 0
        # seconds by process, as they were last seen: nobody waits for the processes of a browser that is killed
        self._cpu: dict[int, float] = {}

    def run(self) -> Outcome:
        began = time.monotonic()
        code = -1
        while time.monotonic() - began < GIVE_UP:
            crawl = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._starts += 1
            self._watch(crawl)
            code = crawl.wait()
            if code >= 0:
                break
        return Outcome(
            seconds=time.monotonic() - began,
            cpu=sum(self._cpu.values()),
            starts=self._starts,
            kills=dict(self._killed),
            largest=self._largest,
            code=code,
        )

    def _watch(self, crawl: subprocess.Popen[bytes]) -> None:
        """Until it ends, or was killed."""
        next_kill = time.monotonic() + self._random.uniform(3, 8)
        while crawl.poll() is None:
            time.sleep(PAUSE)
            tree = _tree(crawl.pid)
            browsers = [pid for pid, name in tree.items() if "headless" in name]
            self._cpu |= {pid: used for pid in tree if (used := _cpu(pid))}
            self._largest = max(self._largest, sum(map(_own_memory, browsers)))
            if self._left and time.monotonic() >= next_kill:
                next_kill = time.monotonic() + self._random.uniform(2, 6)
                self._kill(crawl.pid, tree, browsers)

    def _kill(self, crawl: int, tree: dict[int, str], browsers: list[int]) -> None:
        victim = self._left[0]
        workers = [pid for pid, name in tree.items() if pid != crawl and " worker " in name]
        found = {"browser": browsers, "worker": workers, "crawl": [crawl]}[victim]
        if found:
            os.kill(self._random.choice(found), signal.SIGKILL)
            self._left.pop(0)
            self._killed[victim] += 1
            progress(f"killed a {victim}, {len(self._left)} to go")


def _cpu(pid: int) -> float:
    """Seconds, without its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _tree(root: int) -> dict[int, str]:
    """A process and all below it, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: _words(pid) for pid in found}


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _own_memory(pid: int) -> int:
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()


def _figures(plan: AppsPlan, web: AppsWeb, folder: Path, outcome: Outcome, delay: float) -> Figures:
    rows = web.requests()
    asked = Counter((row.host, row.path) for row in rows)
    found = violations(rows, lambda _: delay)
    with Collection.at(folder) as collection:
        rendered = Counter(page.url for page in collection.pages("kind = 'rendered'"))
    checked = subprocess.run(
        [sys.executable, "-m", "skitter", "verify", str(folder)], capture_output=True, text=True
    )
    static = [f"http://{host}{path}" for host in plan.site_hosts for path in plan.paths(host)]
    routes = [f"http://{host}{path}" for host in plan.app_hosts for path in plan.paths(host)]
    urls = {f"http://{host}{path}" for host, path in asked}
    for each in found[:5]:
        print(each)
    return Figures(
        routes=len(routes),
        routes_found=len(urls & set(routes)),
        static_pages=len(static),
        static_found=len(urls & set(static)),
        static_rendered=len(rendered.keys() & set(static)),
        renderings=len(rendered),
        rendered_twice=sum(number > 1 for number in rendered.values()),
        requests=len(rows),
        repeated=sum(number - 1 for number in asked.values()),
        violations=len(found),
        denied=sum(row.path.startswith("/private/") for row in rows),
        defects=checked.stdout.strip().splitlines()[-1] if checked.stdout else checked.stderr[-200:],
        seconds=round(outcome.seconds, 1),
        cpu=round(outcome.cpu, 1),
        cpu_a_rendering=round(outcome.cpu / max(1, len(rendered)), 3),
        largest_mb=outcome.largest // 1_000_000,
        kills=outcome.kills,
        code=outcome.code,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.rendered_crawl", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--apps", type=int, default=8)
    parser.add_argument("--routes", type=int, default=25, help="of each app")
    parser.add_argument("--sites", type=int, default=8)
    parser.add_argument("--pages", type=int, default=250, help="of each static site")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--render", default="auto", choices=("never", "auto", "always"))
    parser.add_argument("--without-tabs", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the crawl's folder where it is")
    return parser


if __name__ == "__main__":
    sys.exit(main())
