"""Which pages are taken for the same, and what does it cost to find out?

    python -m bench.near
    python -m bench.near --choose

Real documentation pages are changed in ways that leave them the same page; the other pages of the same template
must not be taken for them. Precision and recall by distance on the half of the pages that no choice was made on,
the cost of a fingerprint, and the cost of a look-up with ten thousand to ten million fingerprints known. Tables,
and one JSON object as the last line; exit code 1 when a target is missed, 2 without pages.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench._fingerprints import Cost, measure
from bench._likeness import FURTHEST, Curve, Fingerprint, Pair, judge, pairs_of, texts_of
from bench._report import last_line, progress, table, ticking
from skitter.parse.fingerprints import fingerprint_plain as ours
from skitter.parse.fingerprints.fingerprint import simhash
from skitter.parse.fingerprints.fingerprint_plain import FEWEST_WORDS, Words
from skitter.schedule.near import NEAR

FOLDERS = (Path("/usr/share/doc/openjdk-17-jre-headless/api"), Path("/usr/share/doc/python3.11/html"))
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
# Of precision what the other half of the pages gave (0.978), rounded down.
PER_PAGE, GROWTH, PRECISION = 150.0, 2.0, 0.97
_ROUNDS = 3


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.near", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, nargs="+", default=FOLDERS, help="HTML files below these")
    parser.add_argument("--pages", type=int, default=0, help="so many, drawn at random; 0 means all")
    parser.add_argument("--variants", type=int, default=800, help="pages that are changed, in six ways each")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="of the index")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--choose", action="store_true", help="compare kinds of fingerprint on the other half"
    )
    options = parser.parse_args(arguments)
    files = sorted(file for folder in options.folder for file in folder.rglob("*.html"))
    if not files:
        print("no HTML files: install openjdk-17-doc and python3-doc, or give --folder", file=sys.stderr)
        return 2
    random.Random(options.seed).shuffle(files)
    files = files[: options.pages or None]
    half = len(files) // 2
    with ticking("reading pages"):
        texts = texts_of(files[:half] if options.choose else files[half:])
        long = [file for file, text in texts.items() if simhash(text) is not None]
        pairs = pairs_of(long[: options.variants], random.Random(options.seed))
    if options.choose:
        return _choose(list(texts.values()), pairs, options.seed)
    return _run(list(texts.values()), pairs, options)


def _run(texts: Sequence[str], pairs: Sequence[Pair], options: argparse.Namespace) -> int:
    with ticking("judging"):
        curve = judge(texts, pairs, simhash, options.seed)
    took = {"skitter": _cost_of(simhash, texts)}
    if (other := _peer()) is not None:
        took["simhash (PyPI)"] = _cost_of(other, texts[:200])
    with tempfile.TemporaryDirectory(prefix="skitter-near-") as folder:
        costs = measure(Path(folder), options.sizes, options.seed)
    return _report(curve, took, costs)


def _report(curve: Curve, took: dict[str, float], costs: Sequence[Cost]) -> int:
    targets = {
        f"precision at {NEAR} bits": (curve.precision[NEAR], curve.precision[NEAR] >= PRECISION),
    }
    if costs:
        page = took["skitter"] + costs[-1].look_up_us
        growth = costs[-1].look_up_us / costs[0].look_up_us
        targets["us of fingerprint and look-up a page"] = (page, page <= PER_PAGE)
        targets["look-up in the largest index, times that in the smallest"] = (growth, growth <= GROWTH)
    print(_curve_table(curve))
    print()
    print(table([["fingerprint of a page", "us"], *([name, round(us, 1)] for name, us in took.items())]))
    print()
    heading: list[object] = ["fingerprints in the index", "us a look-up", "us with adding it", "disk MB"]
    rows = [[f"{c.fingerprints:,}", c.look_up_us, c.add_us, c.disk // 1_000_000] for c in costs]
    print(table([heading, *rows]))
    print()
    judged = [[words, value, "PASS" if met else "FAIL"] for words, (value, met) in targets.items()]
    print(table([["target", "measured", ""], *judged]))
    last_line(
        {
            "bench": "near",
            "pages": curve.judged,
            "curve": msgspec.to_builtins(curve),
            "fingerprint_us": {name: round(us, 1) for name, us in took.items()},
            "index": [msgspec.to_builtins(cost) for cost in costs],
            "targets": {words: [round(value, 3), met] for words, (value, met) in targets.items()},
        }
    )
    return 0 if all(met for _, met in targets.values()) else 1


def _curve_table(curve: Curve) -> str:
    rows: list[list[object]] = [[f"{curve.judged:,} pages; bits that may differ", *range(FURTHEST + 1)]]
    rows += [[f"recall, {kind}", *shares] for kind, shares in curve.recall.items()]
    rows.append(["recall, mean", *curve.overall])
    rows.append(["different pages taken for the same", *curve.confused])
    rows.append(["precision", *curve.precision])
    return table(rows)


def _cost_of(fingerprint: Fingerprint, texts: Sequence[str]) -> float:
    """The best of a few rounds: others use the machine too."""
    rounds = []
    for _ in range(_ROUNDS):
        began = time.thread_time()
        for text in texts:
            fingerprint(text)
        rounds.append((time.thread_time() - began) * 1e6 / len(texts))
    return min(rounds)


def _peer() -> Fingerprint | None:
    """The library of that name, where it is installed. It is given words: it counts the features of a text
    itself in bytes, and raises OverflowError with numpy 2 on texts where one occurs more than 255 times."""
    try:
        library = importlib.import_module("simhash")
    except ImportError:
        progress("simhash of PyPI is not installed: left out")
        return None
    return lambda text: int(library.Simhash(text.lower().split()).value)


# -- the choice of shingles and weights


def _choose(texts: Sequence[str], pairs: Sequence[Pair], seed: int) -> int:
    heading: list[object] = ["words a shingle", "counted up to", "recall", "confused", "precision"]
    rows, found = [heading], []
    for width in (1, 2, 3, 4):
        for limit in (1, 8, 16, 1_000_000):
            progress(f"shingles of {width}, counted up to {limit:,}")
            curve = judge(texts, pairs, _variant(width, limit), seed)
            figures = [curve.overall[NEAR], curve.confused[NEAR], curve.precision[NEAR]]
            rows.append([str(width), limit, *figures])
            found.append({"width": width, "limit": limit, "recall, confused, precision": figures})
    print(table(rows))
    last_line({"bench": "near --choose", "pages": len(texts), "variants": found})
    return 0


def _variant(width: int, limit: int) -> Callable[[str], int | None]:
    def fingerprint(text: str) -> int | None:
        words = ours._mixed(ours._words(text))
        if len(words) < max(FEWEST_WORDS, width):
            return None
        distinct, counts = ours._counted(_shingles(words, width), np.array(limit))
        return ours._majority(ours._mixed(distinct), counts)

    return fingerprint


def _shingles(words: Words, width: int) -> Words:
    count = len(words) - width + 1
    joined = np.zeros(count, np.uint64)
    for place in range(width):
        joined = joined * np.uint64(ours._FIRST) + words[place : place + count]
    return joined


if __name__ == "__main__":
    sys.exit(main())
