"""The web of apps in a child process, with a log of its requests as the synthetic web keeps it.

    with AppsWeb(AppsPlan(apps=2)) as web:
        skitter crawl ... with web.plan.seeds and web.resolve

It listens on loopback only and fetches nothing.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from types import FrameType, TracebackType

import msgspec

from skitter.testing.apps.sites import AppsPlan
from skitter.testing.child import start_web, stop_web
from skitter.testing.http_request import Head
from skitter.testing.plan import WebPlan
from skitter.testing.render import Answer, plain_answer
from skitter.testing.request_log import Request, RequestLog, read_log
from skitter.testing.server import Connection, Server

LOOPBACK = "127.0.0.1"


class AppsWeb:
    """Runs within its context; its log is complete after it, and lives as long as this object."""

    def __init__(self, plan: AppsPlan | None = None, *, latency: float = 0.0) -> None:
        self.plan = plan or AppsPlan()
        self._latency = latency
        folder = tempfile.mkdtemp(prefix="apps-web-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.log_path = Path(folder) / "requests.jsonl"
        self._child: subprocess.Popen[bytes] | None = None
        self.resolve = ""
        """For the crawl's setting of the same name."""

    def __enter__(self) -> AppsWeb:
        arguments = ["--plan", msgspec.json.encode(self.plan).decode(), "--latency", str(self._latency)]
        arguments += ["--log", str(self.log_path), "--with-parent"]
        self._child, line = start_web("skitter.testing.apps.web", arguments)
        self.resolve = line.decode().strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        child, self._child = self._child, None
        if child is not None:
            stop_web(child)

    @property
    def port(self) -> int:
        return int(self.resolve.rpartition(":")[2])

    def requests(self) -> list[Request]:
        """By their start; within the context the log may lag behind."""
        return read_log(self.log_path)


class _AppsServer(Server):
    """The server of the synthetic web, with other pages."""

    def __init__(self, apps: AppsPlan, log: RequestLog, *, think: float, port: int) -> None:
        super().__init__(WebPlan(), log, port=port)
        self._apps = apps
        self._seconds = think

    def _answer(self, connection: Connection, head: Head, host: int | None) -> Answer:
        if head.method != "GET":
            return plain_answer(405)
        page = self._apps.answer(head.host.partition(":")[0], head.target)
        return Answer(page.status, [("Content-Type", page.content_type)], page.body.encode())

    def _think(self, host: int | None) -> float:
        return self._seconds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m skitter.testing.apps.web", description=__doc__)
    parser.add_argument("--plan", default="{}", help="an AppsPlan in JSON")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--log", type=Path, metavar="FILE", help="a row for every request")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input is closed")
    options = parser.parse_args(arguments)
    plan = msgspec.json.decode(options.plan, type=AppsPlan)
    server = _AppsServer(plan, RequestLog(options.log, WebPlan()), think=options.latency, port=options.port)

    def stop(number: int, frame: FrameType | None) -> None:
        server.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if options.with_parent:
        server.stop_with(sys.stdin.fileno())
    print(f"*:80:{LOOPBACK}:{server.port}", flush=True)
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
