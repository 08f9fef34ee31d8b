"""What traps cost a crawl, and what defending against them costs the honest web.

    python -m bench.traps
    python -m bench.traps --without --scale 0.2

The trap web (`skitter.testing.traps`: 45 endless hosts, 52 honest ones that look like them) is crawled
with the defences, and with `--without` also without them. The web's own log is the judge. A table, one JSON
object as the last line; exit code 1 when less than 99 % of the honest content was seen, or 3 % and more of the
requests were spent in traps.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._report import last_line, progress, table, ticking
from bench._stops import Stop, site_of, stop_rows, stops
from skitter.settings import Settings
from skitter.testing.traps.audit import Tally, by_kind, faults, tallies, trapped_share, whole
from skitter.testing.traps.plan import KINDS, TrapPlan
from skitter.testing.traps.web import TrapWeb

CUT = 2000
# A crawl that falls into its traps ends all the same: after all that is honest, a third more, and so much a trap.
FUSE, FUSE_OF_A_TRAP = 4 / 3, 500
SHOWN = 8

SETTINGS = """\
[crawl]
scope = "any"
linger = 2
max_pages = {most}

[politeness]
delay = 0
slow_factor = 0
"""


class Pass(msgspec.Struct, kw_only=True):
    """One crawl of the trap web."""

    plan: TrapPlan
    found: dict[str, Tally]
    usage: Usage
    stops: list[Stop]

    @property
    def whole(self) -> Tally:
        return whole(self.found)

    @property
    def faults(self) -> list[str]:
        wrong = faults(self.whole)
        if self.usage.code:
            wrong.append(f"the crawl ended with exit code {self.usage.code}")
        if not self.plan.cut and self.whole.requests >= fuse(self.plan):
            wrong.append(f"the crawl did not end by itself, but after {fuse(self.plan):,} pages")
        return wrong

    def figures(self) -> dict[str, object]:
        everything = self.whole
        return {
            "honest": everything.honest,
            "seen": everything.seen,
            "share": round(everything.share, 5),
            "requests": everything.requests,
            "repeats": everything.repeats,
            "trapped": everything.wasted,
            "trapped_share": round(trapped_share(everything), 5),
            "stops": len(self.stops),
            "stops_on_honest_hosts": sum(not site_of(self.plan, stop)[0] for stop in self.stops),
            "wall_seconds": round(self.usage.wall, 1),
            "cpu_seconds": round(self.usage.cpu, 1),
            "rss_mb": round(self.usage.rss / 1e6, 1),
            "faults": self.faults,
        }


def settings(plan: TrapPlan, *, defended: bool) -> str:
    """Undefended, what is endless is cut by the operator's budget for each host that is a trap."""
    if defended:
        return SETTINGS.format(most=fuse(plan)) + switch(enabled=True)
    traps = [site.name for site in plan.sites if site.trap]
    budgets = "".join(f'\n[hosts."http://{name}"]\nbudget = {plan.cut}\n' for name in traps)
    return SETTINGS.format(most=0) + switch(enabled=False) + budgets


def fuse(plan: TrapPlan) -> int:
    traps = sum(site.trap for site in plan.sites)
    return int(FUSE * sum(len(site.contents()) for site in plan.sites)) + FUSE_OF_A_TRAP * traps


def switch(*, enabled: bool) -> str:
    """The setting that turns the defences on or off; nothing where this skitter has none."""
    mode = "on" if enabled else "off"
    return f'\n[traps]\nmode = "{mode}"\n' if "traps" in Settings.__struct_fields__ else ""


def crawl(plan: TrapPlan, *, defended: bool, keep: Path | None = None) -> Pass:
    words = "with the defences" if defended else f"without, {plan.cut:,} pages a trap"
    web = TrapWeb(plan)
    with tempfile.TemporaryDirectory(prefix="skitter-traps-") as scratch:
        folder = keep / ("with" if defended else "without") if keep else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "settings.toml"
        config.write_text(settings(plan, defended=defended))
        with web, ticking(words, every=10.0):
            places = ["--into", str(folder / "crawl"), "--config", str(config), "--resolve", web.resolve]
            command = skitter_command("crawl", *plan.seeds, *places, "--allow-private", "--json")
            usage = run_with_usage(command)
        found = tallies(plan, web.rows())
        stopped = stops(folder / "crawl") if defended and switch(enabled=True) else []
    progress(f"{words}: {usage.wall:.0f} s, CPU {usage.cpu:.0f} s")
    return Pass(plan=plan, found=found, usage=usage, stops=stopped)


def rows(done: Pass, other: Pass | None) -> list[Sequence[object]]:
    heading = ["", "hosts", "honest", "seen", "share", "again", "trapped", "a host", "of all"]
    lines: list[Sequence[object]] = [heading + (["seen, without", "trapped, without"] if other else [])]
    undefended = {tally.name: tally for tally in by_kind(other.plan, other.found)} if other else {}
    if other:
        undefended["all"] = other.whole
    requests = done.whole.requests
    for tally in (*by_kind(done.plan, done.found), done.whole):
        line = [tally.name, tally.hosts, tally.honest, tally.seen, f"{tally.share:.2%}", tally.repeats]
        each = tally.wasted / max(1, tally.hosts)
        line += [tally.wasted, f"{each:,.0f}", f"{tally.wasted / max(1, requests):.2%}"]
        if undefended:
            line += [f"{undefended[tally.name].share:.2%}", undefended[tally.name].wasted]
        lines.append(line)
    return lines


def worst(done: Pass) -> list[str]:
    """The hosts that lost most, and the traps that took most."""
    hosts = [tally for tally in done.found.values() if tally.honest > tally.seen]
    hosts.sort(key=lambda tally: tally.seen - tally.honest)
    traps = sorted(done.found.values(), key=lambda tally: -tally.wasted)
    return [
        *(
            f"{tally.name}: {tally.honest - tally.seen:,} of {tally.honest:,} not seen"
            for tally in hosts[:SHOWN]
        ),
        *(f"{tally.name}: {tally.wasted:,} requests in the trap" for tally in traps[:SHOWN] if tally.wasted),
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.traps", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the honest hosts (1: 120,000 pages)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", action="store_true", help="crawl it without the defences too")
    parser.add_argument("--cut", type=int, default=CUT, help="pages of a trap without the defences")
    parser.add_argument(
        "--only", action="append", default=[], choices=KINDS, metavar="KIND", help="no others"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the crawls here")
    options = parser.parse_args(arguments)
    plan = TrapPlan(seed=options.seed, scale=options.scale, kinds=tuple(options.only))
    done = crawl(plan, defended=True, keep=options.keep)
    other = None
    if options.without:
        cut = msgspec.structs.replace(plan, cut=options.cut)
        other = crawl(cut, defended=False, keep=options.keep)
    if done.stops:
        print(table(stop_rows(plan, done.stops)), end="\n\n")
    print(table(rows(done, other)))
    print(*worst(done), *(done.faults or ["as it should be"]), sep="\n")
    last_line(
        {
            "bench": "traps",
            "scale": options.scale,
            "seed": options.seed,
            "with": done.figures(),
            "without": other.figures() if other else None,
        }
    )
    return 1 if done.faults else 0


if __name__ == "__main__":
    sys.exit(main())
