"""`skitter serve` as a process of its own, which a test may stop and start again at the same address."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from tests.e2e.command import ENVIRON, command

_PATIENCE = 60


class Served:
    def __init__(self, folder: Path, tokens: str = "") -> None:
        self._folder = folder
        self._log = folder.with_name(folder.name + ".serve.log")  # a new crawl's folder must be empty
        self._tokens = tokens
        self._child: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    def start(self) -> Served:
        asked = command("serve", self._folder, "--new", "--listen", f"127.0.0.1:{self.port}")
        environ = {**ENVIRON, "SKITTER_TOKENS": self._tokens}
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(asked, env=environ, stdout=log, stderr=log)
        self._await_health()
        return self

    def stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.terminate()
            child.wait(_PATIENCE)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the API, as somebody beside the browser makes it."""
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path.lstrip("/"), sent, method=method)
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return json.loads(answer.read())

    def _await_health(self) -> None:
        """Each try fails at once, or is queued by the kernel and answered."""
        assert self._child is not None
        while self._child.poll() is None:
            try:
                self.call("GET", "/v1/health")
            except OSError:
                continue
            return
        raise AssertionError(self._log.read_text()[-2000:])
