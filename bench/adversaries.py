"""Are walls told from pages? Kinds of walls beside honest look-alikes, on seeds that nobody looked at.

    python -m bench.adversaries
    python -m bench.adversaries --seeds 500 520 --each 40

A table by kind, one JSON object as the last line; exit code 1 when recall is below 95 % or 0.5 % and more of
the honest pages are lost. The classifier was made looking at seed 1 alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence

from bench._report import table
from skitter.parse.page import read_page
from skitter.parse.walls import Wall, find_wall
from skitter.testing.walls import Sample, honest, walls

RECALL, LOSS = 0.95, 0.005


def found_in(sample: Sample) -> Wall | None:
    page = read_page(sample.html, url=sample.url, content_type="text/html", with_text=True)
    return find_wall(sample.html, url=sample.url, title=page.title, text=page.text, links=len(page.links))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.adversaries", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(100, 110), metavar=("FROM", "TO"))
    parser.add_argument("--each", type=int, default=50, help="pages of each kind and seed")
    options = parser.parse_args(argv)
    met: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for seed in range(*options.seeds):
        for sample in (*walls(seed, options.each), *honest(seed, options.each)):
            met[sample.name] += 1
            told[sample.name] += found_in(sample) is not None
    kinds = {sample.name for sample in walls(0, 1)}
    rows = [("pages", "met", "taken for a wall", "share")]
    rows += [(name, f"{met[name]:,}", f"{told[name]:,}", f"{told[name] / met[name]:.2%}") for name in met]
    print(table(rows))
    recall = sum(told[name] for name in kinds) / sum(met[name] for name in kinds)
    lost = sum(told[name] for name in met if name not in kinds)
    loss = lost / sum(met[name] for name in met if name not in kinds)
    print(json.dumps({"recall": recall, "honest_loss": loss, "kinds": len(kinds)}))
    return int(recall < RECALL or loss >= LOSS)


if __name__ == "__main__":
    sys.exit(main())
