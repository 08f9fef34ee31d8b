"""Makes the kept folder of this version: a crawl of a small site that has all that a folder can have."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from skitter import __version__
from tests.e2e.command import ENVIRON, command
from tests.folders.site import serving_kept_site

HERE = Path(__file__).parent


def main() -> int:
    name = "skitter-" + ".".join(__version__.split(".")[:2])
    with tempfile.TemporaryDirectory() as folder, serving_kept_site() as (resolve, _):
        into = Path(folder, name)
        words = ("http://kept.test/", "--into", into, "--resolve", resolve, "--allow-private")
        more = ("--delay", "0", "--with", "structured", "--traps", "observe")
        subprocess.run(command("crawl", *words, *more), env=ENVIRON, check=True, timeout=120)
        for left in (into / "crawl.lock", into / "skitter.log"):
            left.unlink(missing_ok=True)
        with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(into, arcname=name)
    print(HERE / f"{name}.tar.xz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
