"""All benchmarks in their quick forms, one after the other: `make bench`, or

    python -m bench            # runs them
    python -m bench --list     # what there is

Each goes on whatever the one before found; the exit code is 1 when any missed a target, could not run or found a
fault. The full forms, and what each answers: bench/README.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from bench._crawls import child_environment
from bench._report import table

QUICK = {
    "mirror": (("--quick",), "a page beside wget2, Scrapy and Crawlee"),
    "broad": (("--quick",), "3,000 polite hosts, beside Scrapy"),
    "stages": (("--quick",), "each stage beside other libraries; the start"),
    "growth": (("--quick",), "does a page cost more when more is known?"),
    "profile": (("--quick",), "where a page's microseconds go"),
    "archive": (("--pages", "500"), "what archiving a page costs"),
    "kills": ((), "is a crawl exact that is killed?"),
}
FULL = """frontier settings sitemaps freshness revisits chaos processes hostile slow near objects reading markdown
    traps adversaries plan importance regions docs_equal service door paying soak install log takeover rendering
    tls rendered_crawl""".split()
VERDICTS = {0: "good", 1: "missed a target or found a fault", 2: "something is missing"}


def listing() -> str:
    rows = [(f"python -m bench.{name} {' '.join(more)}", words) for name, (more, words) in QUICK.items()]
    rows += [(f"python -m bench.{name}", "only in full; see bench/README.md") for name in FULL]
    return table([("command", "answers"), *rows])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="say what there is, run nothing")
    options = parser.parse_args()
    print(listing(), flush=True)
    if options.list:
        return 0
    codes = {}
    for name, (more, _) in QUICK.items():
        command = [sys.executable, "-m", f"bench.{name}", *more]
        print(f"\n== {' '.join(command[1:])}", flush=True)
        codes[name] = subprocess.run(command, env=child_environment(), check=False).returncode
    rows = [(name, VERDICTS.get(code, f"ended with {code}")) for name, code in codes.items()]
    print(f"\n{table([('benchmark', ''), *rows])}")
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main())
