"""Every command and program of the tutorials and how-tos runs as it stands, page by page, from top to bottom.

A block that is not run has a comment before it that says why, and who tests it instead."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs_web import docs_web
from tests.e2e.command import ENVIRON

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs/tutorials").glob("*.md"), *(ROOT / "docs/how-to").glob("*.md")])
BLOCK = re.compile(r"(?:<!-- ([a-z ]+): (.*?) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)
LANGUAGES = {"sh", "python", "toml", "text"}


class Block(NamedTuple):
    note: str
    value: str
    language: str
    content: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text())]


@pytest.fixture(scope="module")
def web() -> Iterator[dict[str, str]]:
    with docs_web() as environ:
        yield environ


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    text = page.read_text()
    found = blocks_of(page)
    assert len(found) == text.count("```") // 2
    assert {block.language for block in found} <= LANGUAGES
    assert all(block.value for block in found if block.note == "not run")
    assert all(block.note == "file" for block in found if block.language in ("toml", "text"))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(b.note != "not run" for b in blocks_of(page))],
    ids=lambda page: page.stem,
)
def test_what_a_page_says_runs(page: Path, web: dict[str, str], tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    environ = {**ENVIRON, **web, "XDG_CACHE_HOME": str(tmp_path / ".cache"), "HOME": str(tmp_path)}
    environ["PATH"] = f"{programs}{os.pathsep}{ENVIRON['PATH']}"
    if shutil.which("skitter", path=environ["PATH"]) is None:
        pytest.skip("skitter is not installed as a command")
    script = ["set -eu", "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"]
    for number, block in enumerate(blocks_of(page)):
        if block.note == "file":
            (tmp_path / block.value).write_text(block.content)
        elif block.note != "not run" and block.language == "sh":
            script.append(block.content)
        elif block.note != "not run":
            (tmp_path / f"block-{number}.py").write_text(block.content)
            script.append(f"python block-{number}.py")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr


def test_the_site_is_built_with_strict_links(tmp_path: Path) -> None:
    mkdocs = os.environ.get("SKITTER_MKDOCS") or shutil.which("mkdocs")
    if mkdocs is None:
        pytest.skip("mkdocs is not there: make site installs it, and SKITTER_MKDOCS names it")
    command = [mkdocs, "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "site/search/search_index.json").is_file()
    elsewhere = re.compile(r"<script[^>]+src=.?https?:|<link[^>]+rel=.?stylesheet[^>]+href=.?https?:")
    pages = (tmp_path / "site").rglob("*.html")
    assert [page.name for page in pages if elsewhere.search(page.read_text())] == []
