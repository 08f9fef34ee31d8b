"""The built wheel alone, as a newcomer has it: no compiler, a new environment, nothing of this folder.

    python -m bench.install                                   # with this Python
    python -m bench.install --python python3.12 --python python3.13

Says what is installed in megabytes, and how long each step took. See bench/README.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench._report import last_line, progress, table

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 150
_BASE = (
    ("crawl the demo", ("{python}", "-m", "skitter.testing.demo", "--into", "{crawl}")),
    ("stats", ("{skitter}", "stats", "{crawl}")),
)
_QUERY = (
    ("query", ("{skitter}", "query", "{crawl}", "select host, count(*) from pages group by all")),
    ("verify", ("{skitter}", "verify", "{crawl}")),
    ("export to WACZ", ("{skitter}", "export", "{crawl}", "--to", "wacz", "{crawl}.wacz")),
    ("export to JSON", ("{skitter}", "export", "{crawl}", "--to", "jsonl", "{crawl}.jsonl")),
)
STEPS = {"": _BASE, "query": _BASE + _QUERY}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.install", description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", metavar="PROGRAM", help="may be repeated")
    parser.add_argument("--unpinned", action="store_true", help="the newest versions, not constraints.txt")
    options = parser.parse_args()
    rows: list[Sequence[object]] = [("step", "seconds", "MB")]
    good = True
    with tempfile.TemporaryDirectory(prefix="skitter-install-") as folder:
        for python in options.python or [sys.executable]:
            wheel = _build(Path(folder), python, rows)
            for extra in STEPS:
                good &= _try(Path(folder), python, wheel, extra, rows, pinned=not options.unpinned)
    print(table(rows))
    last_line({"good": good, "steps": [list(row) for row in rows[1:]]})
    return 0 if good else 1


def _build(folder: Path, python: str, rows: list[Sequence[object]]) -> Path:
    dist = folder / f"dist-{Path(python).name}"
    tools = _environment(folder / f"build-{Path(python).name}", python)
    _run((tools, "-m", "pip", "install", "--quiet", "build"), os.environ)
    began = time.monotonic()
    # The sdist, and then the wheel from it: so a file that the sdist lacks is noticed.
    _run((tools, "-m", "build", "--outdir", str(dist), str(ROOT)), os.environ)
    took = time.monotonic() - began
    for built in sorted(dist.iterdir()):
        rows.append((f"{Path(python).name}: {built.name}", took, built.stat().st_size / 1e6))
    return next(dist.glob("*.whl"))


def _environment(place: Path, python: str) -> str:
    _run((python, "-m", "venv", str(place)), os.environ)
    return str(place / "bin" / "python")


def _try(
    folder: Path, python: str, wheel: Path, extra: str, rows: list[Sequence[object]], *, pinned: bool
) -> bool:
    name = f"{Path(python).name}: skitter[{extra}]" if extra else f"{Path(python).name}: skitter"
    place = folder / f"{Path(python).name}-{extra or 'base'}"
    own = _environment(place, python)
    before = _megabytes(place)
    # No compiler, no headers, no tool but those of the environment.
    environ = {"PATH": str(place / "bin"), "HOME": str(folder), "CC": "no-compiler", "LANG": "C.UTF-8"}
    pins = ("--constraint", str(ROOT / "constraints.txt")) if pinned else ()
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = (own, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *pins, wanted)
    install_environ = {**environ, **{k: v for k, v in os.environ.items() if k.startswith(("PIP_", "UV_"))}}
    took = _run(pip, install_environ)
    size = _megabytes(place) - before
    rows.append((f"{name}: install", took, size))
    good = extra != "" or size <= MOST_MEGABYTES
    words = {"python": own, "skitter": str(place / "bin" / "skitter"), "crawl": str(place / "crawl")}
    for step, command in STEPS[extra]:
        progress(f"{name}: {step}")
        rows.append((f"{name}: {step}", _run([word.format(**words) for word in command], environ), ""))
    return good


def _run(command: Sequence[str], environ: dict[str, str] | os._Environ[str]) -> float:
    began = time.monotonic()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-4000:], file=sys.stderr)
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return time.monotonic() - began


def _megabytes(place: Path) -> float:
    return sum(file.lstat().st_size for file in place.rglob("*") if file.is_file()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
