"""What https costs a page: plain HTTP, HTTP/2 over TLS on kept connections, and a fresh connection for each.

    python -m bench.tls --rounds 3
    python -m bench.tls --peers wget2,colly --rounds 1

nginx serves the same site in three ways: plain, https with HTTP/2, and https with HTTP/1.1 where a connection is
good for one request. skitter and its peers mirror each in turn. What a connection costs is the difference of the
last two, by as many connections as nginx saw more. A table and one JSON object as the last line; exit code 1 when
a page is missing in skitter's archive, 2 when a program is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import msgspec
import trustme

from bench._apart import leave_the_network
from bench._mirrors import Crawler, Round, Site, mirror_once
from bench._nginx import logged, read_access_log, secure, serving
from bench._peers import DOCS, complain, found, want
from bench._report import last_line, progress, table, ticking
from bench._roster import ALL, chosen, interpreter, roster
from bench.mirror import reachable, show_duties

PLAIN, KEPT, FRESH = "http", "https", "https, fresh connections"
# Those that do not stop by themselves before they have the whole site take too long for three ways of it.
CUT = 1_500


class Way(msgspec.Struct, frozen=True):
    site: Site
    log: Path


class Reading(msgspec.Struct, frozen=True):
    """One mirror by one way. `connections` and `protocol` are by nginx's log: the protocol of most requests."""

    us: float
    pages: int
    rate: float
    connections: int
    protocol: str
    missing: int


def read(crawler: Crawler, way: Way, folder: Path, wanted: set[str]) -> Reading:
    begin = way.log.stat().st_size if way.log.exists() else 0
    done: Round = mirror_once(crawler, way.site, folder)
    asked = read_access_log(way.log, begin)
    protocols = Counter(row.protocol for row in asked)
    pages = len(done.pages)
    return Reading(
        us=done.usage.cpu / max(1, pages) * 1e6,
        pages=pages,
        rate=pages / done.usage.wall,
        connections=len({row.connection for row in asked}),
        protocol=protocols.most_common(1)[0][0] if protocols else "none",
        missing=len(wanted - set(done.pages)),
    )


def fresh_cost(kept: Reading, fresh: Reading) -> float:
    """Microseconds of CPU that a connection takes: what all pages cost more, by the further connections."""
    more = fresh.connections - kept.connections
    return (fresh.us * fresh.pages - kept.us * kept.pages) / more if more > 0 else float("nan")


def certificate(folder: Path) -> tuple[Path, Path]:
    """What crawlers trust, and what nginx shows: made for this run."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "docs.test")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return folder / "ca.pem", folder / "server.pem"


def ways(serve: ExitStack, folder: Path, docs: Path) -> dict[str, Way]:
    ca_file, pem = certificate(folder)
    found_ways: dict[str, Way] = {}
    for number, name in enumerate((PLAIN, KEPT, FRESH)):
        own = folder / str(number)
        own.mkdir()
        own.chmod(0o755)
        log = own / "access.log"
        server = logged(log) if name == PLAIN else secure(log, pem, 1 if name == FRESH else 100_000)
        port = serve.enter_context(serving(found("nginx") or "nginx", docs, own, server))
        found_ways[name] = Way(Site(port, None if name == PLAIN else ca_file), log)
    return found_ways


def rows_of(measured: Mapping[str, Mapping[str, Sequence[Reading]]]) -> list[Sequence[object]]:
    heading = ["CPU us a page", *(c for way in (PLAIN, KEPT, FRESH) for c in (way, "spread"))]
    rows: list[Sequence[object]] = [[*heading, "a connection, us", "connections kept", "fresh", "spoken"]]
    for name, by_way in measured.items():
        cells: list[object] = [name]
        for way in (PLAIN, KEPT, FRESH):
            values = sorted(reading.us for reading in by_way[way])
            cells += [round(median(values), 1), f"{values[0]:,.0f} to {values[-1]:,.0f}"]
        pairs = zip(by_way[KEPT], by_way[FRESH], strict=True)
        cells.append(round(median(fresh_cost(kept, fresh) for kept, fresh in pairs), 1))
        last_kept, last_fresh = by_way[KEPT][-1], by_way[FRESH][-1]
        rows.append([*cells, last_kept.connections, last_fresh.connections, last_kept.protocol])
    return rows


def compare(by_way: Mapping[str, Way], place: Path, options: argparse.Namespace) -> int:
    taking = options.taking
    wanted = reachable(options.docs)
    measured: dict[str, dict[str, list[Reading]]] = {
        name: {way: [] for way in by_way} for name in taking.crawlers
    }
    for number in range(1, options.rounds + 1):
        for name, crawler in taking.crawlers.items():
            for way, served in by_way.items():
                words = f"round {number} of {options.rounds}, {name}, {way}"
                with ticking(words):
                    reading = read(crawler, served, Path(tempfile.mkdtemp(dir=place)), wanted)
                progress(f"{words}: {reading.pages:,} pages, {reading.us:,.0f} us, {reading.protocol}")
                measured[name][way].append(reading)
    print(table(rows_of(measured)))
    print(f"{len(wanted):,} pages; medians of {options.rounds} rounds; skitter on Python {interpreter()}")
    show_duties([*taking.crawlers], taking.absent)
    last_line({"bench": "tls", "crawlers": msgspec.to_builtins(measured), "absent": taking.absent})
    return int(any(reading.missing for readings in measured["skitter"].values() for reading in readings))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tls", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--docs", type=Path, default=DOCS, help="the site, with an index.html")
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {','.join(ALL)}")
    parser.add_argument("--python", action="append", default=[], help="skitter on this interpreter as well")
    options = parser.parse_args(arguments)
    if absent := want("nginx", "wget2", *(["openjdk-17-doc"] if options.docs == DOCS else [])):
        return complain("tls", absent)
    options.taking = roster(chosen(options.peers), options.python, cut=CUT)
    if not leave_the_network():
        progress("without root the peers are not kept from the network")
    with (
        tempfile.TemporaryDirectory(prefix="skitter-nginx-") as folder,
        tempfile.TemporaryDirectory(prefix="skitter-tls-") as place,
        ExitStack() as serve,
    ):
        os.chmod(folder, 0o755)
        return compare(ways(serve, Path(folder), options.docs), Path(place), options)


if __name__ == "__main__":
    sys.exit(main())
