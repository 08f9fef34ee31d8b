"""Test material that others wrote, read where it lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def corpus(name: str) -> Path:
    folder = Path(os.environ.get("SKITTER_CORPORA", ROOT.parent / "shared" / "corpora")) / name
    if not folder.is_dir():
        pytest.skip(f"corpus {name} is not at {folder}; set SKITTER_CORPORA")
    return folder
