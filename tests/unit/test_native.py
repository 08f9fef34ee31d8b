"""The kernels in C are there wherever they can be: no silent crawl at a third of the speed."""

from __future__ import annotations

import importlib
import shutil
import sysconfig
from pathlib import Path

import pytest

import skitter

_SOURCES = sorted((Path(skitter.__file__).parent / "native").glob("*.c"))
_CAN_BUILD = bool(shutil.which("cc")) and (Path(sysconfig.get_path("include")) / "Python.h").exists()


@pytest.mark.skipif(
    not _CAN_BUILD, reason="needs a C compiler and Python's headers, like the kernels themselves"
)
@pytest.mark.parametrize("source", _SOURCES, ids=lambda source: source.stem)
def test_every_kernel_is_built_where_there_is_a_compiler(source: Path) -> None:
    kernel = importlib.import_module(f"skitter.native.{source.stem}")
    assert Path(kernel.__file__ or "").stat().st_mtime >= source.stat().st_mtime, "older than its source"
