"""A network of one's own, with nothing but loopback: where other people's crawlers run.

They may ask for updates, or follow a link that they should not: here nothing leads out. Needs root on Linux; for
this process and all that it starts from then on.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

_NEW_MOUNTS, _NEW_NETWORK = 0x0002_0000, 0x4000_0000


def leave_the_network(resolver: Path | None = None) -> bool:
    """False where it cannot be done. `resolver` is a resolv.conf to use from now on. To be called by the main
    thread, before others are started: a thread takes the network of who started it."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK | _NEW_MOUNTS):
        return False
    commands = [["ip", "link", "set", "lo", "up"], ["mount", "--make-rprivate", "/"]]
    if resolver is not None:
        commands.append(["mount", "--bind", str(resolver), "/etc/resolv.conf"])
    for command in commands:
        subprocess.run(command, check=True)
    return True
