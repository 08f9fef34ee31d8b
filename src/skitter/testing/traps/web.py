"""The trap web in a child process, for tests and benchmarks.

with TrapWeb(TrapPlan(scale=0.01)) as web:
    skitter crawl ... with web.plan.seeds and web.resolve
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path
from types import TracebackType

from skitter.testing.child import start_web, stop_web
from skitter.testing.traps.log import Row, read_log
from skitter.testing.traps.plan import TrapPlan


class TrapWeb:
    """Runs within its context; its log is complete after it, and lives as long as this object."""

    def __init__(self, plan: TrapPlan | None = None) -> None:
        self.plan = plan or TrapPlan()
        folder = tempfile.mkdtemp(prefix="trap-web-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.log_path = Path(folder) / "requests.jsonl"
        self._child: subprocess.Popen[bytes] | None = None
        self.resolve = ""
        """For the crawl's setting of the same name."""

    def __enter__(self) -> TrapWeb:
        plan = self.plan
        arguments = ["--seed", str(plan.seed), "--scale", str(plan.scale), "--cut", str(plan.cut)]
        arguments += [f"--only={kind}" for kind in plan.kinds]
        arguments += ["--log", str(self.log_path), "--with-parent"]
        self._child, line = start_web("skitter.testing.traps", arguments)
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

    def rows(self) -> list[Row]:
        """The log; within the context it may lag behind."""
        return read_log(self.log_path)[1]
