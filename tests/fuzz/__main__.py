"""The cores in C under sanitizers, and what a server reads of others: `make fuzz`, an hour; SECONDS=60 for less.

Builds each driver (`fuzz_*.c`: one plain C core) and the extension module itself (`bindings.py`) with gcc's
address and undefined behaviour sanitizers, and runs them on mutations of `corpus/`. Beside them run harnesses in
Python: `deliveries.py` (the wire of workers), `journals.py` (recovery) and `stores.py`. The same seed gives the
same inputs. What is found is printed, the input is kept in the build folder, and the exit code is 1. Where gcc or
its sanitizer is missing that is said, and only the harnesses in Python run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html.entities import html5
from pathlib import Path

HERE = Path(__file__).parent
NATIVE = HERE.parent.parent / "src" / "skitter" / "native"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
FLAGS = ["-g", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function"]
BINDINGS = "bindings"
HANGS_AFTER = 90  # seconds beyond its time
IN_PYTHON = ("deliveries", "journals", "stores")
CORES = sorted(file.stem.removeprefix("fuzz_") for file in HERE.glob("fuzz_*.c"))
# Python leaks by design, and a sandbox may forbid the leak sanitizer to look.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="in all, without the time to build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--core", action="append", choices=[*CORES, BINDINGS, *IN_PYTHON], help="only this one"
    )
    parser.add_argument("--into", type=Path, default=Path(tempfile.gettempdir()) / "skitter-fuzz")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    cores = arguments.core or [*CORES, BINDINGS, *IN_PYTHON]
    if missing := missing_tool(arguments.into):
        print(f"fuzz: the C is skipped, {missing}")
        cores = [core for core in cores if core in IN_PYTHON]
    workers = min(len(cores), os.cpu_count() or 1)
    seconds = max(1, arguments.seconds * workers // len(cores))
    with ThreadPoolExecutor(workers) as pool:
        passed = list(pool.map(lambda core: run(core, arguments.into, seconds, arguments.seed), cores))
    return 0 if all(passed) else 1


def missing_tool(into: Path) -> str:
    """What keeps this machine from building with sanitizers; empty when nothing does."""
    if shutil.which("gcc") is None:
        return "there is no gcc"
    source, program = into / "empty.c", into / "empty"
    source.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["gcc", *SANITIZERS, str(source), "-o", str(program)], capture_output=True)
    if built.returncode or subprocess.run([program], capture_output=True).returncode:
        return "gcc has no libasan or libubsan here"
    return ""


def run(core: str, into: Path, seconds: int, seed: int) -> bool:
    command = built(core, into)
    try:
        done = subprocess.run(
            [*command, str(seconds), str(seed), *corpus(core)],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **OPTIONS, **environment(core, into)},
            check=False,
            timeout=2 * seconds + HANGS_AFTER,
        )
    except subprocess.TimeoutExpired:
        print(f"fuzz: {core}: FAILED, it does not end", flush=True)
        return False
    verdict = (
        "" if done.returncode == 0 else f" FAILED with exit code {done.returncode}\n{done.stderr[-8000:]}"
    )
    print(f"fuzz: {core}: {seconds} s, {done.stdout.strip() or 'no figures'}{verdict}", flush=True)
    return done.returncode == 0


def built(core: str, into: Path) -> list[str]:
    """The command that fuzzes it."""
    if core in IN_PYTHON:
        return [sys.executable, "-m", f"tests.fuzz.{core}"]
    return build_module(core, into) if core == BINDINGS else build_driver(core, into)


def corpus(core: str) -> list[str]:
    folder = HERE / "corpus" if core == BINDINGS else HERE / "corpus" / core
    if not folder.exists():
        return []
    return sorted(str(file) for file in folder.rglob("*") if file.is_file())


def environment(core: str, into: Path) -> dict[str, str]:
    if core in IN_PYTHON:
        return {}
    if core == BINDINGS:
        asan = subprocess.run(
            ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        )
        return {"LD_PRELOAD": asan.stdout.strip(), "PYTHONMALLOC": "malloc"}
    return {"FUZZ_ENTITIES": str(entities(into))}


def entities(into: Path) -> Path:
    file = into / "entities.txt"
    file.write_bytes(
        b"".join(f"{name}\t{text}\n".encode() for name, text in html5.items() if "\n" not in text)
    )
    return file


def build_driver(core: str, into: Path) -> list[str]:
    program = into / f"fuzz_{core}"
    compile_with(["-o", str(program), str(HERE / f"fuzz_{core}.c")])
    return [str(program)]


def build_module(core: str, into: Path) -> list[str]:
    module = into / f"_kernels{sysconfig.get_config_var('EXT_SUFFIX')}"
    sources = sorted(str(file) for file in (NATIVE / "python").glob("*.c"))
    compile_with(
        ["-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", "-o", str(module), *sources],
    )
    return [sys.executable, str(HERE / "bindings.py"), str(module)]


def compile_with(arguments: list[str]) -> None:
    subprocess.run(["gcc", *FLAGS, *SANITIZERS, *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
