"""Folders of browsers: removed with them, and by the next who starts one if their owner was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skitter.render.profiles import Profile, sweep

OWNER = """
import sys
from skitter.render.profiles import Profile
profile = Profile()
print(profile.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_a_killed_owners_folder_is_swept_and_a_living_ones_is_not(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        (left / "Default").mkdir()
        (left / "Default" / "Cookies").write_text("x")
        mine = Profile()
        assert sweep() == 0
        assert left.is_dir()
        owner.send_signal(signal.SIGKILL)
        owner.wait(60)
    assert sweep() == 1
    assert [*tmp_path.iterdir()] == [Path(mine.path)]
    mine.remove()
    mine.remove()
    assert [*tmp_path.iterdir()] == []


def test_what_only_looks_like_one_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    (target / "file").write_text("x")
    os.symlink(target, tmp_path / "skitter-browser-link")
    (tmp_path / "skitter-browser-file").write_text("x")
    assert sweep() == 0
    assert (target / "file").read_text() == "x"
