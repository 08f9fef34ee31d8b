"""The kernels in C are there wherever they can be: no silent crawl at a third of the speed."""

from __future__ import annotations

import importlib
import shutil
import sysconfig
from pathlib import Path

import pytest

import skitter

_FOLDER = Path(skitter.__file__).parent / "native"
_TESTS = Path(__file__).parents[1]
_OF_ONE_MODULE = [*(_FOLDER / "python").glob("*"), *(_FOLDER / "core").rglob("*.h")]
_CAN_BUILD = bool(shutil.which("cc")) and (Path(sysconfig.get_path("include")) / "Python.h").exists()


needs_compiler = pytest.mark.skipif(
    not _CAN_BUILD, reason="needs a C compiler and Python's headers, like the kernels themselves"
)


@needs_compiler
def test_the_kernels_are_built_where_there_is_a_compiler() -> None:
    kernels = importlib.import_module("skitter.native._kernels")
    built = Path(kernels.__file__ or "").stat().st_mtime
    assert [source.name for source in _OF_ONE_MODULE if source.stat().st_mtime > built] == []


def test_the_cores_know_no_python() -> None:
    assert [file.name for file in (_FOLDER / "core").rglob("*.h") if "Python.h" in file.read_text()] == []


def test_there_is_one_extension_module_and_every_core_has_a_driver_under_sanitizers() -> None:
    assert [file.name for file in _FOLDER.glob("*.c")] == []
    drivers = {file.stem.removeprefix("fuzz_") for file in (_TESTS / "fuzz").glob("fuzz_*.c")}
    bound = {file.stem for file in (_FOLDER / "python").glob("*.c")} - {"module"}
    assert bound == drivers
