"""Two networks on one machine: namespaces `east` and `west`, each with an address of its own, and a place between
them that both reach. Needs root and iproute2; all of it is gone at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

MIDDLE = "10.71.0.1"
REGIONS = {"east": 2, "west": 1}
"""By the number of their network: an even host is near to an even one."""


def why_not() -> str:
    if os.geteuid() != 0:
        return "it needs root, for network namespaces"
    return "" if shutil.which("ip") else "it needs ip (Debian: iproute2)"


@contextmanager
def two_networks() -> Iterator[None]:
    _take_down()
    try:
        _ip("addr", "add", f"{MIDDLE}/32", "dev", "lo")
        for name, number in REGIONS.items():
            inside, outside = f"sk{number}b", f"sk{number}a"
            _ip("netns", "add", f"skitter-{name}")
            _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", f"skitter-{name}")
            _ip("addr", "add", f"10.71.{number}.1/24", "dev", outside)
            _ip("link", "set", outside, "up")
            within = ("-n", f"skitter-{name}")
            _ip(*within, "addr", "add", f"10.71.{number}.2/24", "dev", inside)
            _ip(*within, "link", "set", inside, "up")
            _ip(*within, "link", "set", "lo", "up")
            _ip(*within, "route", "add", "default", "via", f"10.71.{number}.1")
        yield
    finally:
        _take_down()


def command_in(region: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", f"skitter-{region}", *command]


def _take_down() -> None:
    for name, number in REGIONS.items():
        _ip("link", "del", f"sk{number}a", check=False)
        _ip("netns", "del", f"skitter-{name}", check=False)
    _ip("addr", "del", f"{MIDDLE}/32", "dev", "lo", check=False)


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)
