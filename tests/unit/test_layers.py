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
    ("__init__", "errors", "clock", "faultpoints", "confinement", "model", "native", "recent", "snapshot"),
    ("settings", "telemetry", "extras"),
    ("log", "folder", "schedule", "secret_files", "plan"),
    ("urls", "robots", "parse", "focus"),
    ("frontier", "fetch", "archive"),
    ("extend", "identities", "render"),
    ("committer", "seeds", "collection", "headline"),
    ("worker", "sinks", "python_reference"),
    ("service", "reference", "fetch_stack", "frontier_log"),
    ("wiring",),
    ("runtime",),
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
# Plugins on saved pages, loaded when a test asks for it.
ON_SAVED_PAGES = "testing/plugins.py"
# `skitter.open` is the package's front door: it leads up, and only when somebody calls it.
FRONT_DOOR = {"__init__": {"collection", "extend", "runtime", "testing"}}

PURE = ("urls", "robots", "parse", "schedule", "plan")
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
    "fetch/curl_pools.py": {"loop.time"},
    "fetch/timer_wheel.py": {"loop.time"},
    # how long sockets wait: no time of the crawl
    "service/http/door.py": {"loop.time"},
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
    parts = [
        module for module in MODULES if module.entry == TESTING and module.path not in (DEMO, ON_SAVED_PAGES)
    ]
    assert {name for module in parts for name in entries_used(module)} <= set(TESTING_USES)


_IMPLEMENTATION = ("skitter.frontier.engine", "skitter.frontier.tables", "skitter.frontier.stores")


def test_only_the_wiring_picks_an_implementation() -> None:
    importers = {
        module.path
        for module in MODULES
        if module.entry != "frontier"
        and any(name.startswith(_IMPLEMENTATION) for name in imported(module.tree))
    }
    assert importers == {"wiring.py"}


# What the frontier's rules may know of its tables: rows, changes and questions by name, and places as a whole.
ENGINE_USES = frozenset(
    f"skitter.frontier.tables.{name}"
    for name in (
        *("transaction", "queries", "row_cache", "slots", "trap_tables", "render_tables", "near_rows"),
        *("url_patterns", "forgotten"),
    )
)


@pytest.mark.parametrize(
    "module",
    [module for module in MODULES if module.path.startswith("frontier/engine/")],
    ids=lambda module: module.path,
)
def test_the_frontiers_rules_know_no_byte_layout_and_no_store(module: Module) -> None:
    names = list(imported(module.tree))
    assert not [name for name in names if name.startswith("skitter.frontier.stores")]
    tables = {name for name in names if name.startswith("skitter.frontier.tables.")}
    assert {name for name in tables if not any(name.startswith(one) for one in ENGINE_USES)} == set()
    reads = {"get", "scan", "first", "commit"}
    touched = {
        dotted(node.func)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and dotted(node.func).startswith("store.")
    }
    assert {name for name in touched if name.partition(".")[2] in reads} == set()
    raw = {"tx.put", "tx.put_all", "tx.delete", "tx.delete_range"}
    assert raw & {dotted(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)} == set()


def test_one_module_knows_rocksdb() -> None:
    users = [
        module.path for module in MODULES if "rocksdict" in {n.split(".")[0] for n in imported(module.tree)}
    ]
    assert users == ["frontier/stores/rocks.py"]


# What tests of the contract may know: the contract, values, pure packages, and the kit that drives a frontier.
CONTRACT_TESTS = Path(__file__).parents[1] / "contract"
CONTRACT_USES = (
    "skitter.errors skitter.model skitter.settings skitter.testing skitter.frontier.base "
    "skitter.frontier.link_batches skitter.plan skitter.schedule skitter.urls skitter.robots skitter.parse "
    "tests.contract tests.frontier_fixtures tests.frontier_kit tests.trap_kit tests.keys"
).split()


def reaches_behind_the_contract(tree: ast.Module) -> set[str]:
    """Imports of an implementation, names of modules in strings (for patches), private parts of other objects."""
    names = {name for name in imported(tree) if name.startswith(("skitter.", "tests."))}
    found = {
        name for name in names if not any(name == use or name.startswith(use + ".") for use in CONTRACT_USES)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and str(node.value).startswith("skitter."):
            found.add(str(node.value))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and dotted(node.value) != "self":
            found.add(dotted(node))
    return found


@pytest.mark.parametrize("file", sorted(CONTRACT_TESTS.glob("*.py")), ids=lambda file: file.name)
def test_tests_of_the_contract_know_no_implementation(file: Path) -> None:
    assert reaches_behind_the_contract(ast.parse(file.read_text())) == set()


@pytest.mark.parametrize(
    "source",
    [
        "from skitter.frontier.stores.rocks import RocksStore",
        "import skitter.frontier.engine.leasing",
        "from tests.engine_kit import engine_of",
        "driver.frontier._cache.store.close()",
        "patch.setattr('skitter.frontier.engine.requeue._MOST', 3)",
    ],
)
def test_a_look_behind_the_contract_would_be_noticed(source: str) -> None:
    assert reaches_behind_the_contract(ast.parse(source))


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
    code = "import sys, skitter.runtime.worker_process; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    heavy = {"rocksdict", "uvicorn", "starlette", "pyarrow", "numpy", "duckdb", "skitter.service"}
    assert heavy & set(loaded.split()) == set()
    assert "skitter.extend" not in loaded.split()


def test_to_import_skitter_or_to_crawl_without_plugins_loads_nothing_of_users_code() -> None:
    code = "import sys, skitter, skitter.cli, skitter.console.run.crawl, skitter.wiring; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert {name for name in loaded.split() if name.startswith("skitter.extend")} == set()
    alone = subprocess.run(
        [sys.executable, "-c", "import sys, skitter; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert {name for name in alone.split() if name.startswith("skitter.")} == set()


def test_a_crawl_of_which_nothing_is_rendered_loads_nothing_of_the_browser() -> None:
    code = "import sys, skitter.console.run.crawl, skitter.wiring; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    names = {
        "skitter.worker.renders.rendering",
        "skitter.worker.renders.rendered_pages",
        "skitter.parse.shell",
    }
    assert {name for name in loaded.split() if name.startswith("skitter.render") or name in names} == set()


def test_a_crawl_loads_no_library_of_tables() -> None:
    """0.3 to 0.7 s of CPU and 110 MB: a child process alone loads pyarrow, to write the tables."""
    code = "import sys, skitter.wiring, skitter.console.run.crawl; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert {"pyarrow", "numpy", "pandas", "duckdb"} & set(loaded.split()) == set()


def test_a_crawl_loads_no_web_framework_until_somebody_calls_it() -> None:
    """0.2 s of CPU and 23 MB: most crawls are never told anything."""
    code = "import sys, skitter.console.run.crawl, skitter.console.steer.commands; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert {"uvicorn", "starlette", "skitter.service.http.app"} & set(loaded.split()) == set()
