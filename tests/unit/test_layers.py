"""Imports point down, pure packages stay pure, and nobody but the clock asks the time."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import skitter

ROOT = Path(skitter.__file__).parent

# The one place where the layers are written down, lowest first. A module imports from its own entry and from
# lower lines, never from its own line's other entries.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("__init__", "errors", "clock", "faultpoints", "model", "native", "recent", "snapshot"),
    ("settings", "telemetry"),
    ("log", "folder", "schedule"),
    ("urls", "robots", "parse", "reference"),
    ("frontier", "fetch", "archive"),
    ("desk", "seeds", "collection"),
    ("worker",),
    ("service", "hands"),
    ("wiring",),
    ("console",),
    ("cli",),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Shipped for users' own tests, beside the layers: it needs only the lowest, and nobody needs it. The demo is a
# command that runs the command line against it.
TESTING = "testing"
TESTING_USES = ("__init__", "errors")
DEMO = "testing/demo.py"
# `skitter.open` is the package's front door: it leads up, and only when somebody calls it.
FRONT_DOOR = {"__init__": {"collection"}}

PURE = ("urls", "robots", "parse", "schedule")
IMPURE = frozenset(
    """aiodns asyncio http io multiprocessing os pathlib pycurl random rocksdict secrets select shutil signal
    socket sqlite3 ssl subprocess sys tempfile threading time uvloop""".split()
)

CLOCK_READS = frozenset(
    """time.time time.time_ns time.clock_gettime time.monotonic time.monotonic_ns
    time.perf_counter time.perf_counter_ns
    datetime.now datetime.utcnow datetime.today date.today loop.time _loop.time""".split()
)
NOW_UNLESS_GIVEN = {"time.localtime": 1, "time.gmtime": 1, "time.ctime": 1, "time.strftime": 2}
# The clock itself; and the fetcher, which times out by the event loop's own time, as libcurl does.
MAY_READ_CLOCKS = {
    "clock.py": {"time.time", "time.clock_gettime"},
    "fetch/lanes.py": {"loop.time"},
    "fetch/ticks.py": {"loop.time"},
}


class Module(NamedTuple):
    path: str
    entry: str
    tree: ast.Module


def modules() -> list[Module]:
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        path = file.relative_to(ROOT)
        found.append(Module(path.as_posix(), path.with_suffix("").parts[0], ast.parse(file.read_text())))
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported, also inside functions and for the type checker alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def entries_used(module: Module) -> set[str]:
    used = set()
    for name in imported(module.tree):
        parts = name.split(".")
        if parts[0] == "skitter":
            used.add(parts[1] if len(parts) > 1 and parts[1] in {*LEVEL, TESTING} else "__init__")
    return used - {module.entry}


MODULES = modules()
LAYERED = [module for module in MODULES if module.entry != TESTING]


def test_every_module_has_its_layer() -> None:
    assert {module.entry for module in LAYERED} == set(LEVEL)


@pytest.mark.parametrize("module", LAYERED, ids=lambda module: module.path)
def test_imports_point_down(module: Module) -> None:
    used = entries_used(module) - FRONT_DOOR.get(module.entry, set())
    above = {name for name in used if name == TESTING or LEVEL[name] >= LEVEL[module.entry]}
    assert above == set()


def test_what_is_for_tests_stands_on_the_lowest_layer_alone() -> None:
    parts = [module for module in MODULES if module.entry == TESTING and module.path != DEMO]
    assert {name for module in parts for name in entries_used(module)} <= set(TESTING_USES)


def test_only_the_wiring_picks_an_implementation() -> None:
    importers = {
        module.path
        for module in MODULES
        if module.entry != "frontier"
        and any(name.startswith("skitter.frontier.rocks") for name in imported(module.tree))
    }
    assert importers == {"wiring.py"}


@pytest.mark.parametrize(
    "module", [module for module in MODULES if module.entry in PURE], ids=lambda module: module.path
)
def test_pure_packages_do_no_input_or_output(module: Module) -> None:
    assert {name.split(".")[0] for name in imported(module.tree)} & IMPURE == set()
    called = {dotted(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
    assert called & {"open", "print", "input", "exec", "eval", "__import__"} == set()


def dotted(node: ast.expr) -> str:
    """The last two parts of a name: `time.time`, `_loop.time` of `self._loop.time`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        value = node.value
        before = (
            value.attr
            if isinstance(value, ast.Attribute)
            else value.id
            if isinstance(value, ast.Name)
            else ""
        )
        return f"{before}.{node.attr}"
    return ""


def clock_reads(tree: ast.Module) -> set[str]:
    used = {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & CLOCK_READS
    used |= {name for name in imported(tree) if name in CLOCK_READS}  # from time import monotonic
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) < NOW_UNLESS_GIVEN.get(dotted(node.func), 0):
            used.add(dotted(node.func))
    return used


def test_nobody_but_the_clock_asks_the_time() -> None:
    reads = {module.path: found for module in LAYERED if (found := clock_reads(module.tree))}
    assert reads == MAY_READ_CLOCKS


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()",
        "from time import monotonic",
        "from datetime import datetime\nf = datetime.now",
        "import datetime\ndatetime.datetime.now()",
        "import time\ntime.strftime('%Y')",
        "import asyncio\nloop = asyncio.get_running_loop()\nloop.time()",
    ],
)
def test_a_look_at_the_clock_would_be_noticed(source: str) -> None:
    assert clock_reads(ast.parse(source))


def test_a_worker_process_loads_neither_store_nor_service() -> None:
    """Several of them start at once beside a crawl that waits for them: half the CPU of it all."""
    code = "import sys, skitter.console.worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    heavy = {"rocksdict", "uvicorn", "starlette", "pyarrow", "numpy", "duckdb", "skitter.service"}
    assert heavy & set(loaded.split()) == set()


def test_writing_tables_loads_no_library_that_reads_them() -> None:
    """0.3 to 0.6 s of CPU and 110 MB, in every crawl."""
    code = "import sys, skitter.archive.tables; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert {"pyarrow", "numpy", "pandas", "duckdb"} & set(loaded.split()) == set()
