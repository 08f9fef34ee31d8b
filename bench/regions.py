"""Do hosts end up near their workers, and is everybody polite through kills?

    python -m bench.regions
    python -m bench.regions --kills 50 --hosts 40 --pages 60

A server and two workers, one in each of two network namespaces, crawl sites that answer after 5 ms to one and
after 150 ms to the other. Three crawls: workers without regions, workers with, and with regions while server and
workers are killed again and again. The web's own log is the judge: the mean time of answers, requests that
overlap or come too soon, pages that are missing; beside it stands what the frontier's ledger says of its manners.
Exit code 1 when answers take more than 60 % of the time that they take without regions, or on any fault; 2
without root.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench._crawls import child_environment, skitter_command
from bench._namespaces import MIDDLE, REGIONS, command_in, two_networks, why_not
from bench._report import last_line, progress, table

NEAR, FAR, DELAY = 0.005, 0.150, 0.2
MOST_OF_IT = 0.6
# The web notes when a request came, a little after it was sent: two may seem closer by that.
_GRAIN = 0.02
_LONGEST = 240.0
Child = subprocess.Popen[bytes]


class Request(NamedTuple):
    came: float
    ended: float
    host: str
    path: str
    late: float
    is_near: bool


class Verdict(NamedTuple):
    requests: int
    pages: int
    mean: float
    near: float
    violations: int
    by_ledger: int
    missing: int
    kills: int


class Company:
    """The server, its workers and the web. Whoever dies is started again."""

    def __init__(self, folder: Path, options: argparse.Namespace, with_regions: bool) -> None:
        self.folder, self.options, self.with_regions = folder, options, with_regions
        self.log = folder / "requests"
        self.output = (folder / "output").open("ab")
        shape = (str(options.hosts), str(options.pages), str(NEAR), str(FAR))
        words = [sys.executable, "-m", "bench._far_web", MIDDLE, str(self.log), *shape]
        self.web = subprocess.Popen(words, stdout=subprocess.PIPE, env=child_environment())
        assert self.web.stdout is not None
        self.port = int(self.web.stdout.readline())
        self.tokens, self.token = folder / "tokens", folder / "token"
        token, operator = secrets.token_hex(16), secrets.token_hex(16)
        for file, text in (
            (self.tokens, f"trusted-worker {token}\noperator {operator}\n"),
            (self.token, token),
        ):
            file.write_text(text)
            file.chmod(0o600)
        self._write_settings()
        self.listen = f"{MIDDLE}:{20_000 + random.randrange(10_000)}"
        self.members: dict[str, Child] = {}

    def _write_settings(self) -> None:
        hosts = [f"h{number}.test" for number in range(self.options.hosts)]
        resolve = ", ".join(f'"{host}:{self.port}:{MIDDLE}"' for host in hosts)
        (self.folder / "my.toml").write_text(
            f"[fetch]\nallow_private = true\nresolve = [{resolve}]\n[politeness]\ndelay = {DELAY}\n"
            'address_rate = 0\n[frontier]\nlease_duration = 5.0\n[traps]\nmode = "off"\n'
        )
        self.seeds = [f"http://{host}:{self.port}/" for host in hosts]

    def start(self, name: str) -> None:
        if name == "server":
            command = skitter_command(
                "serve",
                str(self.folder / "crawl"),
                *self.seeds,
                *("--listen", self.listen, "--config", str(self.folder / "my.toml")),
                *("--tokens", str(self.tokens)),
            )
        else:
            region = ("--region", name) if self.with_regions else ()
            asked = ("--join", f"http://{self.listen}", "--token-file", str(self.token), *region)
            allowed = ("--allow", "private", "--allow", "resolve")
            command = command_in(name, *skitter_command("worker", *asked, *allowed))
        self.members[name] = subprocess.Popen(
            command, stdout=self.output, stderr=self.output, env=child_environment()
        )

    def requests(self) -> list[Request]:
        found = []
        for line in self.log.read_text().splitlines() if self.log.exists() else ():
            came, ended, host, path, late, is_near = line.split(" ")
            found.append(Request(float(came), float(ended), host, path, float(late), is_near == "True"))
        return found

    def paths(self) -> set[tuple[str, str]]:
        return {(one.host, one.path) for one in self.requests() if one.path != "/robots.txt"}

    def violations_by_ledger(self) -> int:
        asked = skitter_command("stats", str(self.folder / "crawl"), "--json")
        told = json.loads(
            subprocess.run(asked, check=True, capture_output=True, env=child_environment()).stdout
        )
        return int(told["politeness"]["violations"])

    def ends(self) -> str:
        return (self.folder / "output").read_text()[-2_000:]

    def leave(self) -> None:
        for child in (*self.members.values(), self.web):
            child.kill()
            child.wait()
        self.output.close()


def crawl(folder: Path, options: argparse.Namespace, *, with_regions: bool, kills: int) -> Verdict:
    company = Company(folder, options, with_regions)
    choose, wanted = random.Random(options.seed), options.hosts * options.pages
    killed, began, next_kill = 0, time.monotonic(), 6.0
    try:
        for name in ("server", *REGIONS):
            company.start(name)
        while len(company.paths()) < wanted and time.monotonic() - began < _LONGEST:
            time.sleep(0.2)
            if any(child.poll() is not None for child in company.members.values()):
                raise SystemExit(company.ends())
            progress(f"{len(company.paths()):,} of {wanted:,} pages, {killed} kills")
            if killed < kills and time.monotonic() - began > next_kill:
                name = choose.choice(("server", *REGIONS, *REGIONS))
                company.members[name].send_signal(signal.SIGKILL)
                company.members[name].wait()
                company.start(name)
                killed, next_kill = killed + 1, next_kill + choose.uniform(0.5, 3.0)
    finally:
        company.leave()
    requests = company.requests()
    return Verdict(
        len(requests),
        len({(one.host, one.path) for one in requests}),
        sum(one.ended - one.came for one in requests) / max(1, len(requests)),
        sum(one.is_near for one in requests) / max(1, len(requests)),
        violations(requests),
        company.violations_by_ledger(),
        wanted - len(company.paths()),
        killed,
    )


def violations(requests: Sequence[Request]) -> int:
    """Requests to one host that came before the one before was answered, or too soon after it came. That one may
    have come as much earlier as it was seen late."""
    found = 0
    last: dict[str, Request] = {}
    for one in sorted(requests):
        before = last.get(one.host)
        if before is not None:
            found += one.came < before.ended - _GRAIN or one.came - before.came < DELAY - _GRAIN - before.late
        last[one.host] = one
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.regions", description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--pages", type=int, default=60, help="of each host")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    if missing := why_not():
        print(missing, file=sys.stderr)
        return 2
    found: dict[str, Verdict] = {}
    trials = (("without regions", False, 0), ("with regions", True, 0), ("and kills", True, options.kills))
    with two_networks():
        for name, with_regions, kills in trials:
            with tempfile.TemporaryDirectory(prefix="skitter-regions-") as folder:
                found[name] = crawl(Path(folder), options, with_regions=with_regions, kills=kills)
    rows: list[Sequence[object]] = [
        ("crawl", "requests", "pages", "mean ms", "near", "violations", "by the ledger", "missing", "kills")
    ]
    for name, one in found.items():
        rows.append((name, *one[:2], f"{one.mean * 1000:.1f}", f"{one.near:.0%}", *one[4:]))
    print(table(rows))
    share = found["with regions"].mean / found["without regions"].mean
    faults = sum(one.violations + one.by_ledger + one.missing for one in found.values())
    last_line({"latency": share, "faults": faults, "kills": found["and kills"].kills})
    return int(share > MOST_OF_IT or faults > 0)


if __name__ == "__main__":
    sys.exit(main())
