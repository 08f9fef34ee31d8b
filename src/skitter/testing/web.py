"""The synthetic web: thousands of virtual hosts on one loopback port, to try a crawl on.

    python -m skitter.testing.web --preset demo --log requests.jsonl
    python -m skitter.testing.audit requests.jsonl

From Python, `with SyntheticWeb(WebPlan.demo()) as web:` runs it as a child process. It listens on loopback
only and fetches nothing.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from types import FrameType, TracebackType

import msgspec

from skitter.errors import SkitterError, UsageError
from skitter.testing.child import start_web, stop_web
from skitter.testing.options import add_plan_options, plan_of
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request, RequestLog, read_log
from skitter.testing.server import Server
from skitter.testing.tls import server_context


class Ready(msgspec.Struct):
    """What the server says when it listens (`--json`)."""

    port: int
    seeds: tuple[str, ...]
    resolve: str
    secure_resolve: str = ""


class SyntheticWeb:
    """A synthetic web in a child process, from `start` (or entering the context) to `stop`.

    The log outlives the server; without a `log` path of yours it lies in a temporary folder that lives as
    long as this object.
    """

    def __init__(
        self,
        plan: WebPlan | None = None,
        *,
        latency: tuple[float, float] = (0.0, 0.0),
        log: Path | None = None,
        port: int = 0,
        certificate: Path | None = None,
        address: str = "127.0.0.1",
        secure_port: int = 0,
    ) -> None:
        """`certificate`: a PEM file with a key and its certificate, for hosts with https."""
        self.plan = plan or WebPlan()
        self._certificate = certificate
        self._latency = latency
        self._port = port
        self._address, self._secure_port = address, secure_port
        self._child: subprocess.Popen[bytes] | None = None
        self._ready: Ready | None = None
        if log is None:
            folder = tempfile.mkdtemp(prefix="synthetic-web-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            log = Path(folder) / "requests.jsonl"
        self.log_path = log

    def __enter__(self) -> SyntheticWeb:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> SyntheticWeb:
        low, high = self._latency
        arguments = ["--json", "--with-parent", "--port", str(self._port), "--log", str(self.log_path)]
        arguments += ["--latency", f"{low}-{high}", "--plan", msgspec.json.encode(self.plan).decode()]
        arguments += ["--address", self._address, "--secure-port", str(self._secure_port)]
        if self._certificate:
            arguments += ["--tls", str(self._certificate)]
        self._child, line = start_web("skitter.testing.web", arguments)
        self._ready = msgspec.json.decode(line, type=Ready)
        return self

    @property
    def ready(self) -> Ready:
        if self._ready is None:
            raise SkitterError("the synthetic web has not been started")
        return self._ready

    @property
    def port(self) -> int:
        return self.ready.port

    @property
    def seeds(self) -> tuple[str, ...]:
        return self.plan.seeds

    @property
    def resolve(self) -> str:
        """The override of DNS with which every host of this web is found, for `--resolve`."""
        return self.ready.resolve

    @property
    def resolves(self) -> tuple[str, ...]:
        """`resolve`, and the one for hosts with https where the web has a certificate."""
        return tuple(filter(None, (self.ready.resolve, self.ready.secure_resolve)))

    @property
    def pid(self) -> int | None:
        """The server's process; None when it does not run."""
        return self._child.pid if self._child else None

    def requests(self) -> list[Request]:
        """The log so far: complete after `stop`, up to 0.2 s behind before it."""
        return read_log(self.log_path)

    def stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        stop_web(child)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        plan = plan_of(options)
        if options.print_expected:
            sys.stdout.buffer.write(_expected_lines(plan))
            return 0
        if options.expected:
            options.expected.write_bytes(_expected_lines(plan))
        _run(plan, options)
    except SkitterError as fault:
        print(f"skitter.testing.web: {fault}", file=sys.stderr)
        return fault.exit_code
    except OSError as fault:
        print(f"skitter.testing.web: {fault}", file=sys.stderr)
        return 1
    return 0


def _run(plan: WebPlan, options: argparse.Namespace) -> None:
    _raise_descriptor_limit()
    log = RequestLog(options.log, plan)
    server = Server(
        plan,
        log,
        latency=_latency(options.latency),
        address=options.address,
        port=options.port,
        tls=server_context(options.tls) if options.tls else None,
        secure_port=options.secure_port,
    )

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if options.with_parent:
        server.stop_with(sys.stdin.fileno())
    _announce(plan, options.address, server, as_json=options.json)
    server.run()


def _announce(plan: WebPlan, address: str, server: Server, *, as_json: bool) -> None:
    secure = f"*:443:{address}:{server.secure_port}" if server.secure_port else ""
    ready = Ready(server.port, plan.seeds, f"*:80:{address}:{server.port}", secure)
    if as_json:
        print(msgspec.json.encode(ready).decode(), flush=True)
        return
    seeds = " ".join(plan.seeds)
    print(f"listening on {address}:{server.port}  seeds: {seeds}")
    places = " ".join(f"--resolve '{place}'" for place in (ready.resolve, secure) if place)
    print(f"crawl it: skitter crawl {seeds} --scope any {places} --into DIR", flush=True)


def _expected_lines(plan: WebPlan) -> bytes:
    rows = [row._asdict() for row in plan.expected().values()]
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def _latency(text: str) -> tuple[float, float]:
    low, _, high = text.partition("-")
    try:
        bounds = float(low), float(high or low)
    except ValueError:
        bounds = (1.0, 0.0)
    if not 0 <= bounds[0] <= bounds[1] < 3600:
        raise UsageError(f"--latency {text}: give seconds, or a range of them as in 0-0.05")
    return bounds


def _raise_descriptor_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="python -m skitter.testing.web", description="Serve a synthetic web."
    )
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--secure-port", type=int, default=0, help="for https; 0 picks a free one")
    parser.add_argument("--address", default="127.0.0.1", help="where to listen")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write a row for every request")
    parser.add_argument(
        "--latency", default="0", metavar="S[-S]", help="think time in seconds, drawn per host"
    )
    parser.add_argument("--tls", type=Path, metavar="PEM", help="key and certificate of hosts with https")
    parser.add_argument("--expected", type=Path, metavar="FILE", help="write what a correct crawl requests")
    parser.add_argument("--print-expected", action="store_true", help="print that, and exit")
    parser.add_argument("--json", action="store_true", help="announce as JSON")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input is closed")
    add_plan_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
