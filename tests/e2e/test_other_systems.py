"""Without what only Linux has (epoll, pidfd, /proc, O_PATH, prctl) a crawl runs, is steered and ends the same.

Every process of these tests begins with a `sitecustomize` that takes those away, as on macOS."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from skitter.folder import socket_name
from tests.e2e.command import ENVIRON, Done, command, said, skitter
from tests.raw_server import page, serving

# Most of the standard library is loaded before the rest goes: it is built for this system, and only skitter is to
# be deceived.
TAKEN_AWAY = """\
import select
for name in [name for name in dir(select) if "epoll" in name.lower()]:
    delattr(select, name)
import asyncio, ctypes, os, resource, selectors, signal, socket, subprocess, sys, sysconfig, tempfile
sysconfig.get_config_vars()
for name in ("pidfd_open", "O_PATH", "posix_fadvise", "sched_getaffinity"):
    delattr(os, name)
del socket.TCP_INFO
def refuse(event, arguments):
    if event in ("open", "os.listdir") and str(arguments[0]).startswith("/proc"):
        raise FileNotFoundError(2, "No such file or directory", str(arguments[0]))
sys.addaudithook(refuse)
sys.platform = "darwin"
"""
LINKS = b"".join(b'<a href="/%d">%d</a> ' % (n, n) for n in range(40))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "as-elsewhere"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(TAKEN_AWAY)
    return {**ENVIRON, "PYTHONPATH": f"{folder}{os.pathsep}{ENVIRON['PYTHONPATH']}"}


def answer(connection: socket.socket, raw: bytes) -> bool:
    path = raw.split()[1].decode()
    if path == "/robots.txt":
        connection.sendall(page(b"nothing", status=b"404 Not Found"))
    else:
        connection.sendall(page(LINKS if path == "/" else path.encode()))
    return len(path) % 2 == 0  # every other connection is closed by the server


def out_of_order(connection: socket.socket, raw: bytes) -> bool:
    connection.sendall(page(b"", status=b"500 Internal Server Error"))
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_a_crawl_finds_the_same_without_epoll(tmp_path: Path, environ: dict[str, str], workers: int) -> None:
    into = tmp_path / "crawl"
    flags = ("--allow-private", "--delay", "0", "--workers", workers, "--traps", "off")
    with serving(answer) as server:
        done = skitter("crawl", f"{server.url}/", "--into", into, *flags, environ=environ)
    assert done.returncode == 0, done.stderr
    counted = skitter("query", into, "select count(*) n from pages where status = 200", "--json")
    assert json.loads(said(counted)) == {"n": 41}


def test_a_crawl_is_steered_without_proc(tmp_path: Path, environ: dict[str, str]) -> None:
    into = tmp_path / ("long" * 30) / "crawl"  # too long for the name of a unix socket

    def run(*words: object) -> Done:
        return skitter(*words, environ=environ)

    config = tmp_path / "my.toml"
    config.write_text("[crawl]\nlinger = 7200\n[retry]\nbackoff = [3600.0]\n")
    with serving(out_of_order) as server:
        asked = command("crawl", "--into", into, f"{server.url}/", "--allow-private", "--config", config)
        _steer(asked, into, environ, run)


def _steer(asked: list[str], into: Path, environ: dict[str, str], run: Callable[..., Done]) -> None:
    with subprocess.Popen(asked, env=environ, stderr=subprocess.PIPE) as process:
        try:
            while (done := run("stats", into, "--json")).returncode or not _backs_off(done):
                assert process.poll() is None, process.stderr
            paused = run("pause", into)
            assert said(paused)
            assert f"pid {process.pid}" in paused.stderr
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def _backs_off(done: Done) -> bool:
    return bool(json.loads(done.stdout)["hosts"]["backing_off"])


def test_a_long_name_of_a_socket_is_reached_without_o_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_PATH")
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
        with socket_name(folder / "here.sock") as name:
            listener.bind(name)
        listener.listen()
        with socket_name(folder / "here.sock") as name:
            caller.connect(name)
