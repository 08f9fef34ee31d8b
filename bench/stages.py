"""What does each stage of a page's path cost, beside the best other library for it?

    python -m bench.stages
    python -m bench.stages --startup    # only: how soon is it there, how soon is the first page fetched?

Real pages (Debian's openjdk-17-doc) go through single functions; the figures are microseconds of CPU of the
process, medians of several rounds in which all take turns. A table, the targets of the start and one JSON object
as the last line; exit code 1 when a target is missed, 2 without pages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from bench._crawls import child_environment, run_with_usage, skitter_command
from bench._peers import DOCS, SCRIPTS, complain, peers_python, want
from bench._report import last_line, progress, table
from bench._stage_works import OURS, Pages, Work, frontier_works, lease_and_settle, works
from bench._targets import Target, judged, show_targets
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

HELP_SECONDS, FIRST_PAGE_SECONDS = 0.3, 1.0
STARTS = 5
Costs = dict[str, dict[str, list[float]]]


def cost(work: Work) -> float:
    """The best of three, as for the peers: what disturbs only adds, and what is done once is no page's cost."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        count = work()
        best = min(best, (time.process_time() - began) / count)
    return best * 1e6


def add(found: Costs, costs: Mapping[str, Mapping[str, float]]) -> None:
    for stage, by_library in costs.items():
        for library, us in by_library.items():
            found.setdefault(stage, {}).setdefault(library, []).append(us)


def by_peers(python: str, given: Path) -> dict[str, dict[str, float]]:
    command = [python, str(SCRIPTS / "stages.py"), str(given)]
    said = subprocess.run(command, capture_output=True, check=True).stdout
    found: dict[str, dict[str, float]] = json.loads(said)
    return found


def measured(pages: Pages, rounds: int) -> Costs:
    python = peers_python()
    found: Costs = {}
    with tempfile.TemporaryDirectory(prefix="skitter-stages-") as name:
        given = Path(name) / "given.json"
        pages.write(given)
        for number in range(1, rounds + 1):
            for stage, by_library in {**works(pages), **frontier_works()}.items():
                progress(f"round {number} of {rounds}, {stage}")
                add(found, {stage: {library: cost(work) for library, work in by_library.items()}})
            add(found, {"lease and settle, a page of 20 links": {OURS: lease_and_settle()}})
            if python is not None:
                progress(f"round {number} of {rounds}, the peers")
                add(found, by_peers(python, given))
    return found


# -- the start


def startup() -> dict[str, list[float]]:
    """Seconds that `skitter --help` takes, and from a crawl's start to its first page at the server."""
    found: dict[str, list[float]] = {"help": [], "first_page": []}
    for _ in range(STARTS):
        found["help"].append(run_with_usage(skitter_command("--help")).wall)
        found["first_page"].append(_first_page())
    return found


def _first_page() -> float:
    """By the server's log, robots.txt and the delay after it included: a host without delay is asked."""
    with tempfile.TemporaryDirectory(prefix="skitter-start-") as name:
        folder = Path(name)
        config = folder / "settings.toml"
        config.write_text("[politeness]\ndelay = 0.0\n")
        with SyntheticWeb(WebPlan.plain(hosts=1, pages=1), log=folder / "requests.jsonl") as web:
            places = ["--into", str(folder / "crawl"), "--config", str(config), "--resolve", web.resolve]
            command = skitter_command("crawl", *web.seeds, *places, "--allow-private")
            began = time.time()
            subprocess.run(command, env=child_environment(), capture_output=True, check=True)
            web.stop()
            return next(row.start for row in web.requests() if row.path == "/") - began


def targets(starts: Mapping[str, list[float]]) -> list[Target]:
    """By the least of them: what disturbs a start only adds."""
    return [
        Target("seconds of `skitter --help`", min(starts["help"]), most=HELP_SECONDS),
        Target("seconds to the first page", min(starts["first_page"]), most=FIRST_PAGE_SECONDS),
    ]


def rows_of(found: Costs) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("stage", "library", "us", "spread", "times ours")]
    for stage, by_library in found.items():
        ours = median(next(values for library, values in by_library.items() if library.startswith(OURS)))
        for library, values in by_library.items():
            middle = median(values)
            spread = f"{min(values):,.1f} to {max(values):,.1f}"
            rows.append((stage, library, round(middle, 2), spread, round(middle / ours, 2)))
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stages", description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--startup", action="store_true", help="only the start")
    parser.add_argument("--quick", action="store_true", help="100 pages, one round")
    options = parser.parse_args(arguments)
    if options.quick:
        options.pages, options.rounds = 100, 1
    absent = [] if options.startup else want("openjdk-17-doc")
    if absent:
        return complain("stages", absent)
    found: Costs = {} if options.startup else measured(Pages(DOCS, options.pages), options.rounds)
    starts = startup()
    verdicts = targets(starts)
    if found:
        print(table(rows_of(found)))
    show_targets(verdicts)
    last_line(
        {
            "bench": "stages",
            "us": {
                stage: {name: round(median(v), 2) for name, v in by.items()} for stage, by in found.items()
            },
            "startup": starts,
            "targets": {target.words: target.row() for target in verdicts},
        }
    )
    return 0 if judged(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
